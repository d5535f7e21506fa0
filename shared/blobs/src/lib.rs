//! Blobs: immutable objects under checked keys, on S3, on a disk or in memory.
//!
//! [`BlobStore`] is the one interface; [`s3::S3Blobs`], [`disk::DiskBlobs`] and [`memory::MemoryBlobs`] keep one
//! contract (`contract`), so a function does not know which it has. [`BlobKey`] is the only place that knows the layout
//! of the bucket. This is the only crate that names `aws-sdk-s3`.
//!
//! ```
//! # use fonds_blobs::{BlobKey, BlobStore, PutOutcome, memory::MemoryBlobs};
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let blobs = MemoryBlobs::new();
//! let key = BlobKey::parse("cas/x").unwrap();
//! assert_eq!(blobs.put_if_absent(&key, b"page".to_vec().into(), "text/plain").await.unwrap(), PutOutcome::Created);
//! assert_eq!(&blobs.get_range(&key, 1..3).await.unwrap()[..], b"ag");
//! # });
//! ```
#![warn(missing_docs)]

#[doc(hidden)]
pub mod contract;
pub mod decorate;
pub mod disk;
mod error;
mod key;
pub mod memory;
pub mod s3;
pub mod sign;
mod store;

pub use decorate::{Counting, Op, Unreliable};
pub use error::BlobError;
pub use key::{BlobKey, CrawlFile, KeyError, MAX_KEY_BYTES, MAX_SEGMENT_BYTES};
pub use store::{
    BlobEntry, BlobMeta, BlobStore, BlobStream, DEFAULT_GET_CAP, Disposition, MAX_PAGE, MAX_PARTS, MIN_PART_BYTES,
    MULTIPART_THRESHOLD, OpenUpload, Page, PageToken, PresignGet, PresignPut, Presigned, PutBody, PutOutcome, UploadId,
    UploadedPart,
};
