//! Outbound HTTP and the browser: everything fonds says to the web goes through this crate.
//!
//! * [`guard`]: which addresses may be connected to, decided at connect time.
//! * [`dial`]: names to addresses to sockets, under the guard.
//! * [`fetch`]: the HTTP path: exact bytes, redirects hop by hop, caps and time limits.
//! * [`proxy`]: the guard as an HTTP proxy, the only way out for a browser tab.
//! * [`robots`], [`politeness`]: what a host asks of us.
//!
//! It is the only crate that names an HTTP client or a browser.

pub mod browser;
pub mod code;
pub mod dial;
pub mod fetch;
pub mod guard;
pub mod politeness;
pub mod proxy;
pub mod robots;
#[doc(hidden)]
pub mod testing;

pub use code::FetchCode;
pub use dial::{Dialer, DialerConfig, Resolver, SystemResolver};
pub use fetch::{FetchRequest, FetchResult, Fetcher, FetcherConfig, Hop};
pub use guard::{Guard, GuardConfig, Refusal};
pub use proxy::{GuardProxy, ProxyConfig, RefusalRecord};
