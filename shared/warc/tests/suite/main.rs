//! Behaviour of the crate seen from outside, in one binary because linking is what costs.
#![expect(clippy::unwrap_used, reason = "helpers are tests too: what they cannot do fails the test")]

mod assemble;
mod cdxj;
mod common;
mod http_heads;
mod judges;
mod reader;
mod surt_keys;
mod wacz;
mod writer;
