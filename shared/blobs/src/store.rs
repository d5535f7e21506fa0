//! The trait every backend implements and the values that cross it.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream::BoxStream;
use url::Url;

use crate::{BlobError, BlobKey};

/// What [`BlobStore::get`] will hold in memory.
pub const DEFAULT_GET_CAP: u64 = 64 * 1024 * 1024;
/// Bodies above this go up in parts.
pub const MULTIPART_THRESHOLD: u64 = 64 * 1024 * 1024;
/// Smallest part but the last (S3: EntityTooSmall below).
pub const MIN_PART_BYTES: u64 = 5 * 1024 * 1024;
/// Highest part number.
pub const MAX_PARTS: u32 = 10_000;
/// Most entries one listing page returns.
pub const MAX_PAGE: usize = 1000;

/// The bytes of a put. A file is read, never moved or changed; it must not change while it is put.
#[derive(Debug, Clone)]
pub enum PutBody {
    /// Bytes in memory.
    Bytes(Bytes),
    /// A file on this machine.
    File(PathBuf),
}

impl From<Bytes> for PutBody {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for PutBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&'static [u8]> for PutBody {
    fn from(bytes: &'static [u8]) -> Self {
        Self::Bytes(Bytes::from_static(bytes))
    }
}

/// Both mean that the key now has an object; only the first that these bytes are its content (which for
/// content-addressed keys is no difference).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// This call made the object.
    Created,
    /// The object was there and is untouched.
    Existed,
}

/// What a store knows about an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobMeta {
    /// Size in bytes.
    pub size: u64,
    /// Opaque entity tag without quotes: equal tags of one key mean equal bytes.
    pub etag: String,
    /// Media type it was stored with.
    pub content_type: String,
    /// When it was stored, by the store's clock (S3: whole seconds).
    pub modified: DateTime<Utc>,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobEntry {
    /// The object's key.
    pub key: BlobKey,
    /// Size in bytes.
    pub size: u64,
    /// As [`BlobMeta::etag`].
    pub etag: String,
    /// As [`BlobMeta::modified`].
    pub modified: DateTime<Utc>,
}

/// Where a listing goes on. Safe to keep in a row: it names a key, not a session of the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageToken(pub(crate) String);

impl PageToken {
    /// Reads a token back from a row.
    #[must_use]
    pub fn from_raw(raw: impl Into<String>) -> Self {
        Self(raw.into())
    }

    /// What to keep in a row.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One page of a listing in the byte order of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// At most `limit` objects.
    pub entries: Vec<BlobEntry>,
    /// Names in the bucket that are no [`BlobKey`] (`folder/` markers, `a//b`): reported, not hidden. They count
    /// towards the limit.
    pub skipped: Vec<String>,
    /// `None` on the last page.
    pub next: Option<PageToken>,
}

/// Identifies one multipart upload. Keep it in a row; any process may go on with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UploadId(pub(crate) String);

impl UploadId {
    /// Reads an id back from a row.
    #[must_use]
    pub fn from_raw(raw: impl Into<String>) -> Self {
        Self(raw.into())
    }

    /// What to keep in a row.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An uploaded part, to be named again when the upload is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedPart {
    /// 1 to [`MAX_PARTS`].
    pub number: u32,
    /// The tag [`BlobStore::upload_part`] gave.
    pub etag: String,
}

/// A multipart upload nobody completed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenUpload {
    /// The key it would make.
    pub key: BlobKey,
    /// Its id.
    pub id: UploadId,
    /// When it was begun.
    pub started: DateTime<Utc>,
}

/// `Content-Disposition` of a presigned answer. The name may hold any character; it is encoded by RFC 6266.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// Shown in the browser; saved under this name.
    Inline(String),
    /// Saved under this name.
    Attachment(String),
}

/// What a presigned GET answers with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PresignGet {
    /// Overrides the stored media type.
    pub content_type: Option<String>,
    /// Sets `Content-Disposition`.
    pub disposition: Option<Disposition>,
    /// Only these bytes. On S3 this is a signed `Range` header that the client must send (see
    /// [`Presigned::headers`]), so such a URL cannot be the target of a redirect; local URLs carry it in the query.
    pub range: Option<Range<u64>>,
}

/// What a presigned PUT accepts. It makes the object only if there is none (a second PUT answers 412), so an
/// upload cannot be exchanged after it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresignPut {
    /// Exact size in bytes.
    pub content_length: u64,
    /// Media type it is stored with.
    pub content_type: String,
    /// SHA-256 the store checks the body against.
    pub sha256: Option<[u8; 32]>,
}

/// A request someone without credentials may make until `expires`.
#[derive(Clone, PartialEq, Eq)]
pub struct Presigned {
    /// `GET` or `PUT`.
    pub method: &'static str,
    /// Where to.
    pub url: Url,
    /// Headers that are part of the signature: sent exactly so, or the answer is 403.
    pub headers: Vec<(String, String)>,
    /// When it stops working.
    pub expires: DateTime<Utc>,
}

/// The URL is a bearer credential, so it stays out of logs.
impl fmt::Debug for Presigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presigned")
            .field("method", &self.method)
            .field("path", &self.url.path())
            .field("expires", &self.expires)
            .finish()
    }
}

/// The body of an object as it arrives. An error ends it.
pub type BlobStream = BoxStream<'static, io::Result<Bytes>>;

/// A place for immutable objects. Object-safe: used as `Arc<dyn BlobStore>`.
///
/// Every operation may be repeated: a put that already happened answers [`PutOutcome::Existed`], deletes and aborts of
/// what is gone succeed. Ranges are half-open, clipped at the object's end; an empty range is the empty answer
/// without a look at the object; a range that starts at or after the end is [`BlobError::Range`].
#[async_trait]
pub trait BlobStore: Send + Sync + 'static {
    /// Makes the object unless the key has one (`If-None-Match: *`). It is seen whole or not at all.
    async fn put_if_absent(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<PutOutcome, BlobError>;

    /// Makes or replaces the object. Only for files derived from rows that any writer would write alike
    /// (`crawls/<crawl>/index.*`); everything else is put if absent.
    async fn replace(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<(), BlobError>;

    /// The whole object, unless it has more than `cap` bytes.
    async fn get_capped(&self, key: &BlobKey, cap: u64) -> Result<Bytes, BlobError>;

    /// The whole object, up to [`DEFAULT_GET_CAP`].
    async fn get(&self, key: &BlobKey) -> Result<Bytes, BlobError> {
        self.get_capped(key, DEFAULT_GET_CAP).await
    }

    /// A part of the object.
    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Bytes, BlobError> {
        self.get_range_pinned(key, range, None).await
    }

    /// A part of the object as long as it still has this entity tag ([`BlobError::Changed`] otherwise), for readers
    /// that put one picture together from many ranges.
    async fn get_range_pinned(&self, key: &BlobKey, range: Range<u64>, etag: Option<&str>) -> Result<Bytes, BlobError>;

    /// The object, or a part of it, without holding it in memory.
    async fn stream(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<BlobStream, BlobError>;

    /// What is known of the object, `None` when there is none.
    async fn head(&self, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError>;

    /// Deletes objects, any number; keys without one are fine.
    async fn delete(&self, keys: &[BlobKey]) -> Result<(), BlobError>;

    /// Objects whose key starts with `prefix` (any string, not only whole folders) after `after`, at most
    /// `limit` (and [`MAX_PAGE`]).
    async fn list(&self, prefix: &str, after: Option<&PageToken>, limit: usize) -> Result<Page, BlobError>;

    /// Begins an upload in parts.
    async fn create_multipart(&self, key: &BlobKey, content_type: &str) -> Result<UploadId, BlobError>;

    /// Uploads one part; every part but the last has at least [`MIN_PART_BYTES`]. The same number again replaces it.
    async fn upload_part(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        number: u32,
        body: Bytes,
    ) -> Result<UploadedPart, BlobError>;

    /// Makes the object of the named parts, in ascending order, unless the key has one; the upload is gone either way.
    /// Completing again what was completed succeeds (with either outcome: S3 may remember the upload).
    async fn complete_multipart(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        parts: &[UploadedPart],
    ) -> Result<PutOutcome, BlobError>;

    /// Gives an upload up and frees its parts.
    async fn abort_multipart(&self, key: &BlobKey, upload: &UploadId) -> Result<(), BlobError>;

    /// Uploads begun before `before` and still open, at most `limit`, for the sweep to abort.
    async fn stale_multiparts(
        &self,
        prefix: &str,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<OpenUpload>, BlobError>;

    /// A URL that reads the object. It is signed whether or not the object exists.
    async fn presign_get(&self, key: &BlobKey, ttl: Duration, options: PresignGet) -> Result<Presigned, BlobError>;

    /// A URL that makes the object, once.
    async fn presign_put(&self, key: &BlobKey, ttl: Duration, options: PresignPut) -> Result<Presigned, BlobError>;
}

/// What a range means against an object of `size` bytes: `Ok(None)` for an empty answer.
pub(crate) fn clip(key: &BlobKey, range: &Range<u64>, size: u64) -> Result<Option<Range<u64>>, BlobError> {
    check_range(range)?;
    if range.is_empty() {
        return Ok(None);
    }
    if range.start >= size {
        return Err(BlobError::Range { key: key.as_str().to_owned(), start: range.start });
    }
    Ok(Some(range.start..range.end.min(size)))
}

pub(crate) fn check_range(range: &Range<u64>) -> Result<(), BlobError> {
    if range.start > range.end {
        return Err(BlobError::Invalid(format!("range {}..{} ends before it starts", range.start, range.end)));
    }
    Ok(())
}

/// A range for a signed URL: HTTP has no way to ask for an empty one.
pub(crate) fn check_signed_range(range: &Range<u64>) -> Result<(), BlobError> {
    check_range(range)?;
    if range.is_empty() {
        return Err(BlobError::Invalid("a signed range cannot be empty".to_owned()));
    }
    Ok(())
}

pub(crate) fn check_part_number(number: u32) -> Result<(), BlobError> {
    if (1..=MAX_PARTS).contains(&number) {
        return Ok(());
    }
    Err(BlobError::Invalid(format!("part number {number} is not within 1 to {MAX_PARTS}")))
}

/// Parts are named in ascending order, at least one (S3: InvalidPartOrder, MalformedXML).
pub(crate) fn check_parts(parts: &[UploadedPart]) -> Result<(), BlobError> {
    if parts.is_empty() {
        return Err(BlobError::Invalid("a multipart upload needs at least one part".to_owned()));
    }
    if !parts.is_sorted_by(|a, b| a.number < b.number) {
        return Err(BlobError::Invalid("parts are not in ascending order".to_owned()));
    }
    parts.iter().try_for_each(|part| check_part_number(part.number))
}

impl Disposition {
    /// The header value: an ASCII fallback and, when that loses something, the exact name as RFC 8187 `filename*`.
    #[must_use]
    pub fn header_value(&self) -> String {
        let (kind, name) = match self {
            Self::Inline(name) => ("inline", name),
            Self::Attachment(name) => ("attachment", name),
        };
        let plain: String = name
            .chars()
            .map(|c| if c == ' ' || (c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%' | '/')) { c } else { '_' })
            .collect();
        if plain == *name {
            return format!("{kind}; filename=\"{plain}\"");
        }
        let exact = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
        format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{exact}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disposition_names_are_encoded_not_injected() {
        let cases = [
            (Disposition::Attachment("page.wacz".into()), "attachment; filename=\"page.wacz\""),
            (Disposition::Inline("a b.png".into()), "inline; filename=\"a b.png\""),
            (Disposition::Attachment("ü.png".into()), "attachment; filename=\"_.png\"; filename*=UTF-8''%C3%BC%2Epng"),
            (
                Disposition::Attachment("x\"\r\nSet-Cookie: a".into()),
                "attachment; filename=\"x___Set-Cookie: a\"; filename*=UTF-8''x%22%0D%0ASet%2DCookie%3A%20a",
            ),
        ];
        for (disposition, expected) in cases {
            assert_eq!(disposition.header_value(), expected);
        }
    }
}
