//! Reading objects. A body that breaks off is taken up again where it broke, on the same version of the object: the
//! client's own retries end with the headers.

use std::io;
use std::ops::Range;

use aws_sdk_s3::primitives::ByteStream;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream as streams};

use super::S3Blobs;
use super::fault::{Fault, Meaning};
use super::keys::unquoted;
use super::put::backoff;
use crate::store::check_range;
use crate::{BlobError, BlobKey, BlobStream};

/// How often one read may be taken up again.
const RESUMES: u32 = 4;

/// A body being read.
struct Body {
    store: S3Blobs,
    key: BlobKey,
    etag: String,
    /// The bytes of the object still to come.
    rest: Range<u64>,
    bytes: ByteStream,
    resumes: u32,
}

pub(super) async fn whole(store: &S3Blobs, key: &BlobKey, cap: u64) -> Result<Bytes, BlobError> {
    let body = Body::open(store, key, None, None).await?;
    if body.rest.end > cap {
        return Err(BlobError::TooLarge { key: key.as_str().to_owned(), cap });
    }
    body.collect().await
}

pub(super) async fn range(
    store: &S3Blobs,
    key: &BlobKey,
    range: Range<u64>,
    etag: Option<&str>,
) -> Result<Bytes, BlobError> {
    check_range(&range)?;
    if range.is_empty() {
        return Ok(Bytes::new());
    }
    Body::open(store, key, Some(range), etag).await?.collect().await
}

pub(super) async fn stream(store: &S3Blobs, key: &BlobKey, range: Option<Range<u64>>) -> Result<BlobStream, BlobError> {
    if let Some(range) = &range {
        check_range(range)?;
        if range.is_empty() {
            return Ok(streams::empty().boxed());
        }
    }
    let body = Body::open(store, key, range, None).await?;
    let next = |body: Option<Body>| async move {
        let mut body = body?;
        match body.next().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(body))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    };
    Ok(streams::unfold(Some(body), next).boxed())
}

impl Body {
    async fn open(
        store: &S3Blobs,
        key: &BlobKey,
        range: Option<Range<u64>>,
        etag: Option<&str>,
    ) -> Result<Self, BlobError> {
        let start = range.as_ref().map_or(0, |range| range.start);
        let get = store.bulk.get_object().bucket(store.bucket()).key(store.object(key));
        let get =
            get.set_range(range.map(|range| range_header(&range))).set_if_match(etag.map(|etag| format!("\"{etag}\"")));
        let answer = get.send().await.map_err(|error| match Fault::new("get", &error) {
            fault if fault.meaning == Meaning::Range => BlobError::Range { key: key.as_str().to_owned(), start },
            fault => fault.into_error(key),
        })?;
        let length = answer.content_length.and_then(|length| u64::try_from(length).ok()).unwrap_or_default();
        Ok(Self {
            store: store.clone(),
            key: key.clone(),
            etag: unquoted(answer.e_tag),
            rest: start..start + length,
            bytes: answer.body,
            resumes: 0,
        })
    }

    /// The next piece; `None` only when every byte promised has come.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let problem = match self.bytes.next().await {
                Some(Ok(bytes)) if bytes.is_empty() => continue,
                Some(Ok(bytes)) => {
                    self.rest.start += bytes.len() as u64;
                    return Ok(Some(bytes));
                }
                None if self.rest.is_empty() => return Ok(None),
                None => io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    format!("{} bytes of {} are missing", self.rest.end - self.rest.start, self.key),
                ),
                Some(Err(error)) => io::Error::other(error),
            };
            // Without a tag it could go on in another object.
            if self.resumes == RESUMES || self.etag.is_empty() || self.rest.is_empty() {
                return Err(problem);
            }
            tracing::debug!(blob.key = %self.key, offset = self.rest.start, %problem, "body broke off, reading on");
            backoff(self.resumes).await;
            let resumes = self.resumes + 1;
            let (store, key) = (self.store.clone(), self.key.clone());
            let resumed = Self::open(&store, &key, Some(self.rest.clone()), Some(&self.etag)).await;
            *self = Self { resumes, ..resumed.map_err(io::Error::other)? };
        }
    }

    async fn collect(mut self) -> Result<Bytes, BlobError> {
        let failed = |error: io::Error| match error.downcast::<BlobError>() {
            Ok(blob) => blob,
            Err(error) => BlobError::unavailable("get", error),
        };
        let Some(first) = self.next().await.map_err(failed)? else { return Ok(Bytes::new()) };
        if self.rest.is_empty() {
            return Ok(first);
        }
        let expected = usize::try_from(self.rest.end - self.rest.start).unwrap_or_default() + first.len();
        let mut bytes = BytesMut::with_capacity(expected);
        bytes.extend_from_slice(&first);
        while let Some(more) = self.next().await.map_err(failed)? {
            bytes.extend_from_slice(&more);
        }
        Ok(bytes.freeze())
    }
}

/// RFC 9110, section 14.1.2: both ends inclusive. The range is not empty.
pub(super) fn range_header(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start, range.end.saturating_sub(1))
}
