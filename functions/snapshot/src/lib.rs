//! One page: fetch it, render it when asked to, derive everything else from that one load, write
//! WARC and WACZ, find links.
//!
//! Two tasks share everything here: [`SnapshotPlain`] takes pages over HTTP in batches, and
//! [`SnapshotBrowser`] takes one page with the browser. The stages are the same, `fetch -> render ->
//! derive -> parse -> store`; the plain kind has no `render`.

mod browser;
mod closing;
mod deps;
pub mod extractors;
mod fetch;
mod gate;
mod links;
mod package;
mod page;
mod plain;
mod records;
mod render;

pub use browser::SnapshotBrowser;
pub use deps::Deps;
pub use plain::SnapshotPlain;
