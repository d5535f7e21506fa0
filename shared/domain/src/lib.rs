//! Names, states and rules of fonds as plain values. No IO, no async, no clock.
//!
//! Everything that more than one function must agree on lives here: ids, the kinds of task with
//! their policy row, the status tables and legal moves, error codes, the frozen crawl
//! configuration, and the list of extractors.
#![warn(missing_docs)]

pub mod code;
pub mod config;
pub mod extractor;
pub mod id;
pub mod kind;
pub mod status;

pub use code::ErrorCode;
pub use config::{CrawlConfig, CrawlLimits, DedupScope, RobotsPolicy, Scope};
pub use extractor::{EXTRACTORS, Extractor, Stage};
pub use id::{CrawlId, RunId, SnapshotId, TokenId};
pub use kind::{Kind, Policy, Priority};
pub use status::{CrawlStatus, ResultStatus, RunStatus, SnapshotStatus, StopReason};
