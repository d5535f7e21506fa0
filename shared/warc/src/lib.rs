//! Web archive files: WARC 1.1 records, CDXJ indexes and WACZ 1.1.1 packages.
//!
//! Pure transformations over `std::io` traits; nothing here opens a file, a socket or a clock that decides anything.
//!
//! * [`record`] and [`http_head`] say what a record is and which bytes of an HTTP exchange are kept,
//! * [`writer`] turns records into gzip members and tells where each one lies,
//! * [`reader`] reads WARC files of any origin as far as they are sound and names their faults,
//! * [`mod@surt`] and [`cdxj`] are the index: key, lines, look-up,
//! * [`wacz`] packs a snapshot into one object and reads such packages,
//! * [`assemble`] merges WARC ranges into an export and lists several packages as one collection.
#![warn(missing_docs)]

pub mod assemble;
pub mod cdxj;
pub mod digest;
mod error;
mod gzip;
pub mod http_head;
pub mod reader;
pub mod record;
pub mod surt;
pub mod wacz;
pub mod writer;
mod zipfile;

pub use assemble::{MergedWarc, WarcMerge};
pub use cdxj::{CdxjEntry, CdxjIndex};
pub use digest::{ContentFacts, ContentMeter, Sha256Digest};
pub use error::WarcError;
pub use http_head::{StoredBody, StoredHead};
pub use reader::{Fault, WarcReader};
pub use record::{Body, Record, RecordId, RecordType, RefersTo, Truncated};
pub use surt::surt;
pub use wacz::{EntryPlace, PackageMeta, Page, WaczReader, WaczWriter};
pub use writer::{WarcBuffer, WarcWriter, Written};
