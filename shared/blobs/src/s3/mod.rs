//! Blobs in an S3 bucket, or in what speaks its protocol.

mod config;
mod fault;
mod keys;
mod multipart;
mod presign;
mod put;
mod read;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use bytes::Bytes;
use chrono::{DateTime, Utc};

pub use config::{Keys, S3Config};

use crate::{
    BlobError, BlobKey, BlobMeta, BlobStore, BlobStream, OpenUpload, Page, PageToken, PresignGet, PresignPut,
    Presigned, PutBody, PutOutcome, UploadId, UploadedPart,
};

/// A store in a bucket (below a prefix of it, when the configuration names one). Clones share the connections.
#[derive(Clone)]
pub struct S3Blobs {
    /// For calls that carry bodies: bounded by progress, not by total time.
    bulk: Client,
    /// For calls without: given up early, so that a retry still fits a function's budget.
    quick: Client,
    place: Arc<Place>,
}

/// Bucket and prefix; the prefix is empty or ends with a slash.
#[derive(Debug)]
struct Place {
    bucket: String,
    prefix: String,
}

impl fmt::Debug for S3Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Blobs").field("place", &self.place).finish_non_exhaustive()
    }
}

impl S3Blobs {
    /// Builds the clients. Nothing is sent; credentials are looked up with the first call.
    ///
    /// # Errors
    /// [`BlobError::Invalid`] for a bucket or prefix that cannot be one.
    pub async fn connect(config: S3Config) -> Result<Self, BlobError> {
        let (bulk, quick) = config.clients().await;
        let prefix = config.checked_prefix()?;
        Ok(Self { bulk, quick, place: Arc::new(Place { bucket: config.bucket, prefix }) })
    }

    /// Makes the bucket unless it is there and ours. For tests, emulators and first runs; on AWS the template makes it.
    ///
    /// # Errors
    /// [`BlobError::AccessDenied`] when the name is someone else's.
    pub async fn ensure_bucket(&self) -> Result<(), BlobError> {
        keys::ensure_bucket(self).await
    }

    fn bucket(&self) -> &str {
        &self.place.bucket
    }

    fn object(&self, key: &BlobKey) -> String {
        format!("{}{key}", self.place.prefix)
    }
}

#[async_trait]
impl BlobStore for S3Blobs {
    async fn put_if_absent(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<PutOutcome, BlobError> {
        put::put(self, key, body, content_type, put::Guard::Absent).await
    }

    async fn replace(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<(), BlobError> {
        put::put(self, key, body, content_type, put::Guard::None).await.map(drop)
    }

    async fn get_capped(&self, key: &BlobKey, cap: u64) -> Result<Bytes, BlobError> {
        read::whole(self, key, cap).await
    }

    async fn get_range_pinned(&self, key: &BlobKey, range: Range<u64>, etag: Option<&str>) -> Result<Bytes, BlobError> {
        read::range(self, key, range, etag).await
    }

    async fn stream(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<BlobStream, BlobError> {
        read::stream(self, key, range).await
    }

    async fn head(&self, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError> {
        keys::head(self, key).await
    }

    async fn delete(&self, keys: &[BlobKey]) -> Result<(), BlobError> {
        keys::delete(self, keys).await
    }

    async fn list(&self, prefix: &str, after: Option<&PageToken>, limit: usize) -> Result<Page, BlobError> {
        keys::list(self, prefix, after, limit).await
    }

    async fn create_multipart(&self, key: &BlobKey, content_type: &str) -> Result<UploadId, BlobError> {
        multipart::create(self, key, content_type).await
    }

    async fn upload_part(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        number: u32,
        body: Bytes,
    ) -> Result<UploadedPart, BlobError> {
        multipart::upload(self, key, upload, number, body.into()).await
    }

    async fn complete_multipart(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        parts: &[UploadedPart],
    ) -> Result<PutOutcome, BlobError> {
        multipart::complete(self, key, upload, parts).await
    }

    async fn abort_multipart(&self, key: &BlobKey, upload: &UploadId) -> Result<(), BlobError> {
        multipart::abort(self, key, upload).await
    }

    async fn stale_multiparts(
        &self,
        prefix: &str,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<OpenUpload>, BlobError> {
        multipart::stale(self, prefix, before, limit).await
    }

    async fn presign_get(&self, key: &BlobKey, ttl: Duration, options: PresignGet) -> Result<Presigned, BlobError> {
        presign::get(self, key, ttl, options).await
    }

    async fn presign_put(&self, key: &BlobKey, ttl: Duration, options: PresignPut) -> Result<Presigned, BlobError> {
        presign::put(self, key, ttl, options).await
    }
}
