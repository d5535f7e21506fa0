//! Everything that touches Postgres: migrations, one module per aggregate, the queue of record.
//!
//! The only crate that names sqlx. Functions take `&mut Conn`, so that what belongs together is
//! one transaction of the caller; no transaction is held while the network or a decoder is busy.
#![warn(missing_docs)]

pub mod admission;
pub mod capture;
pub mod crawls;
mod db;
pub mod hosts;
pub mod idempotency;
pub mod listing;
pub mod query;
pub mod runs;
pub mod search;
pub mod stats;
pub mod sweep;
pub mod tokens;

pub use db::{Conn, Db, DbConfig, MIGRATOR, StoreError, Tx};
