//! The browser: one warm process, one isolated context a capture.
//!
//! * [`cdp`]: a thin client of the Chrome DevTools Protocol over a pipe. No debugging port is opened,
//!   so neither a page nor another local user can reach the browser, and the browser ends by itself
//!   when this process does.
//! * [`Browser`]: one process: its flags, its user, its process group, its end.
//! * [`BrowserHandle`]: a warm browser shared by several tabs, renewed after a crash, a number of
//!   captures or too much memory.
//! * [`capture`]: one load of one page, and every output taken from it.

#[doc(hidden)]
pub mod bare;
pub mod capture;
pub mod cdp;
mod code;
mod config;
mod flags;
mod handle;
mod launch;
mod process;
mod profile;

pub use capture::{Capture, CaptureRequest, Egress, MainDocument, Outputs, Resource};
pub use code::{BrowserError, CaptureCode, OutputError};
pub use config::{BrowserConfig, SandboxMode};
pub use handle::BrowserHandle;
pub use launch::{Browser, BrowserInfo};
pub use process::Usage;

#[cfg(test)]
mod tests;
