//! The API over a real Postgres, with blobs in memory, called without a socket.
#![expect(clippy::unwrap_used, reason = "the harness is part of the tests")]

mod auth;
mod crawls;
mod edge;
mod files;
mod harness;
mod listing;
mod openapi;
mod search;
mod snapshots;
mod submit;
mod system;
