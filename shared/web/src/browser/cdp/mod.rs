//! A thin client of the Chrome DevTools Protocol over `--remote-debugging-pipe`.
//!
//! Messages are JSON texts, each ended by a NUL byte, on two pipes that the browser finds as its
//! descriptors 3 and 4. Sessions are flat: a message of a page carries its `sessionId` at the top.
//! Only the envelope of a message is looked at here; parameters are decoded by whoever asked for
//! them, so that an event nobody subscribed to costs a few comparisons, and one of a shape not known
//! here harms nobody. Protocol: <https://chromedevtools.github.io/devtools-protocol/>.

mod connection;
mod error;
mod wire;

pub use connection::{Connection, Event, EventSink, Events, PendingCall, Reply, Session};
pub use error::CdpError;
