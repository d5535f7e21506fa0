//! Stores that watch or disturb another store, for tests.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::{
    BlobError, BlobKey, BlobMeta, BlobStore, BlobStream, OpenUpload, Page, PageToken, PresignGet, PresignPut,
    Presigned, PutBody, PutOutcome, UploadId, UploadedPart,
};

/// The operations of a store, as named in errors and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// `put_if_absent` and `replace`.
    Put,
    /// `get` and `get_range`.
    Get,
    /// `stream`.
    Stream,
    /// `head`.
    Head,
    /// `delete`.
    Delete,
    /// `list` and `stale_multiparts`.
    List,
    /// The four operations of a multipart upload.
    Multipart,
    /// `presign_get` and `presign_put`.
    Presign,
}

impl Op {
    /// The name used in errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Stream => "stream",
            Self::Head => "head",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Multipart => "multipart",
            Self::Presign => "presign",
        }
    }
}

/// Is asked before every operation and may refuse it.
pub trait Watch: Send + Sync + 'static {
    /// `what` is the key, or the prefix of a listing.
    ///
    /// # Errors
    /// Any error; the operation is then not run.
    fn before(&self, op: Op, what: &str) -> Result<(), BlobError>;
}

/// A store under watch.
pub struct Watched<W> {
    inner: Arc<dyn BlobStore>,
    watch: W,
}

/// Fails the first operations of each kind on each key with [`BlobError::Unavailable`], then works: what calls it must
/// either retry or leave everything in a state that a later run repairs.
pub type Unreliable = Watched<FirstFail>;

/// Counts the operations that reach the store.
pub type Counting = Watched<Counts>;

/// See [`Unreliable`].
pub struct FirstFail {
    failures: u32,
    seen: Mutex<HashMap<(Op, String), u32>>,
}

/// See [`Counting`].
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<Op, u64>>);

impl Watched<FirstFail> {
    /// Fails the first `failures` calls of every operation on every key.
    #[must_use]
    pub fn new(inner: Arc<dyn BlobStore>, failures: u32) -> Self {
        Self { inner, watch: FirstFail { failures, seen: Mutex::default() } }
    }
}

impl Watched<Counts> {
    /// Counts from zero.
    #[must_use]
    pub fn new(inner: Arc<dyn BlobStore>) -> Self {
        Self { inner, watch: Counts::default() }
    }

    /// How often `op` was called.
    #[must_use]
    pub fn count(&self, op: Op) -> u64 {
        self.counts().get(&op).copied().unwrap_or_default()
    }

    /// All counts but zeros.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Op, u64> {
        self.watch.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<W: Watch> Watched<W> {
    /// A store under a watch of one's own.
    #[must_use]
    pub fn with(inner: Arc<dyn BlobStore>, watch: W) -> Self {
        Self { inner, watch }
    }

    /// The watch.
    #[must_use]
    pub fn watch(&self) -> &W {
        &self.watch
    }
}

impl Watch for FirstFail {
    fn before(&self, op: Op, what: &str) -> Result<(), BlobError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = seen.entry((op, what.to_owned())).or_default();
        if *calls >= self.failures {
            return Ok(());
        }
        *calls += 1;
        Err(BlobError::unavailable(
            op.name(),
            format_args!("failure {calls} of {} asked for by the test", self.failures),
        ))
    }
}

impl Watch for Counts {
    fn before(&self, op: Op, _: &str) -> Result<(), BlobError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(op).or_default() += 1;
        Ok(())
    }
}

#[async_trait]
impl<W: Watch> BlobStore for Watched<W> {
    async fn put_if_absent(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<PutOutcome, BlobError> {
        self.watch.before(Op::Put, key.as_str())?;
        self.inner.put_if_absent(key, body, content_type).await
    }

    async fn replace(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<(), BlobError> {
        self.watch.before(Op::Put, key.as_str())?;
        self.inner.replace(key, body, content_type).await
    }

    async fn get_capped(&self, key: &BlobKey, cap: u64) -> Result<Bytes, BlobError> {
        self.watch.before(Op::Get, key.as_str())?;
        self.inner.get_capped(key, cap).await
    }

    async fn get_range_pinned(&self, key: &BlobKey, range: Range<u64>, etag: Option<&str>) -> Result<Bytes, BlobError> {
        self.watch.before(Op::Get, key.as_str())?;
        self.inner.get_range_pinned(key, range, etag).await
    }

    async fn stream(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<BlobStream, BlobError> {
        self.watch.before(Op::Stream, key.as_str())?;
        self.inner.stream(key, range).await
    }

    async fn head(&self, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError> {
        self.watch.before(Op::Head, key.as_str())?;
        self.inner.head(key).await
    }

    async fn delete(&self, keys: &[BlobKey]) -> Result<(), BlobError> {
        self.watch.before(Op::Delete, keys.first().map_or("", |key| key.as_str()))?;
        self.inner.delete(keys).await
    }

    async fn list(&self, prefix: &str, after: Option<&PageToken>, limit: usize) -> Result<Page, BlobError> {
        self.watch.before(Op::List, prefix)?;
        self.inner.list(prefix, after, limit).await
    }

    async fn create_multipart(&self, key: &BlobKey, content_type: &str) -> Result<UploadId, BlobError> {
        self.watch.before(Op::Multipart, key.as_str())?;
        self.inner.create_multipart(key, content_type).await
    }

    async fn upload_part(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        number: u32,
        body: Bytes,
    ) -> Result<UploadedPart, BlobError> {
        self.watch.before(Op::Multipart, key.as_str())?;
        self.inner.upload_part(key, upload, number, body).await
    }

    async fn complete_multipart(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        parts: &[UploadedPart],
    ) -> Result<PutOutcome, BlobError> {
        self.watch.before(Op::Multipart, key.as_str())?;
        self.inner.complete_multipart(key, upload, parts).await
    }

    async fn abort_multipart(&self, key: &BlobKey, upload: &UploadId) -> Result<(), BlobError> {
        self.watch.before(Op::Multipart, key.as_str())?;
        self.inner.abort_multipart(key, upload).await
    }

    async fn stale_multiparts(
        &self,
        prefix: &str,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<OpenUpload>, BlobError> {
        self.watch.before(Op::List, prefix)?;
        self.inner.stale_multiparts(prefix, before, limit).await
    }

    async fn presign_get(&self, key: &BlobKey, ttl: Duration, options: PresignGet) -> Result<Presigned, BlobError> {
        self.watch.before(Op::Presign, key.as_str())?;
        self.inner.presign_get(key, ttl, options).await
    }

    async fn presign_put(&self, key: &BlobKey, ttl: Duration, options: PresignPut) -> Result<Presigned, BlobError> {
        self.watch.before(Op::Presign, key.as_str())?;
        self.inner.presign_put(key, ttl, options).await
    }
}
