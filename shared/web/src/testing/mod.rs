//! Test servers on loopback: an origin that behaves, in every way an origin can misbehave.
//!
//! [`Origin`] answers from sockets of its own making, byte for byte, so that a test says exactly what is
//! on the wire. It serves, in this order: replies set by the test ([`OriginConfig::route`]), the fault
//! catalogue ([`faults`]), a directory ([`OriginConfig::files`]), and a generated site ([`site`]).

mod certs;
pub mod faults;
mod files;
mod origin;
mod reply;
mod resolver;
pub mod site;

#[cfg(test)]
mod tests;

pub use certs::{Identity, TestCa};
pub use origin::{Handler, Origin, OriginConfig, Seen};
pub use reply::{Act, Message, Reply};
pub use resolver::ScriptedResolver;
