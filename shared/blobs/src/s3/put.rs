//! Writing whole objects.

use std::path::Path;
use std::time::Duration;

use aws_sdk_s3::primitives::{ByteStream, Length};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::S3Blobs;
use super::fault::{Fault, Meaning};
use super::multipart;
use crate::{BlobError, BlobKey, MAX_PARTS, MULTIPART_THRESHOLD, PutBody, PutOutcome};

/// Parts in flight: with files read as they are sent, a few buffers of the HTTP client each.
const PARTS_IN_FLIGHT: usize = 4;
const PART_BYTES: u64 = 16 * 1024 * 1024;
/// Tries while another writer holds the key (409).
const CONFLICTS: u32 = 8;

/// The condition a put is under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// `If-None-Match: *`
    Absent,
    None,
}

impl Guard {
    pub(super) fn if_none_match(self) -> Option<String> {
        (self == Self::Absent).then(|| "*".to_owned())
    }
}

pub(super) async fn put(
    store: &S3Blobs,
    key: &BlobKey,
    body: PutBody,
    content_type: &str,
    guard: Guard,
) -> Result<PutOutcome, BlobError> {
    let size = match &body {
        PutBody::Bytes(bytes) => bytes.len() as u64,
        PutBody::File(path) => tokio::fs::metadata(path).await?.len(),
    };
    let mut conflicts = 0;
    loop {
        let done = if size > MULTIPART_THRESHOLD {
            put_parts(store, key, &body, size, content_type, guard).await
        } else {
            put_one(store, key, &body, size, content_type, guard).await?
        };
        match done {
            Ok(()) => return Ok(PutOutcome::Created),
            Err(fault) if fault.meaning == Meaning::Precondition && guard == Guard::Absent => {
                return Ok(PutOutcome::Existed);
            }
            Err(fault) if fault.meaning == Meaning::Conflict && conflicts < CONFLICTS => {
                tracing::debug!(blob.key = %key, conflicts, "another writer holds the key");
                backoff(conflicts).await;
                conflicts += 1;
            }
            Err(fault) => return Err(fault.into_error(key)),
        }
    }
}

/// The outer error is of the body, the inner one of S3.
async fn put_one(
    store: &S3Blobs,
    key: &BlobKey,
    body: &PutBody,
    size: u64,
    content_type: &str,
    guard: Guard,
) -> Result<Result<(), Fault>, BlobError> {
    let body = piece(body, 0, size).await?;
    let put = store
        .bulk
        .put_object()
        .bucket(store.bucket())
        .key(store.object(key))
        .body(body)
        .content_type(content_type)
        .cache_control(key.cache_control())
        // A content-addressed key says what its bytes hash to, so S3 can check them at no cost to us.
        .set_checksum_sha256(key.sha256().map(|sha256| STANDARD.encode(sha256)))
        .set_if_none_match(guard.if_none_match());
    Ok(put.send().await.map(drop).map_err(|error| Fault::new("put", &error)))
}

async fn put_parts(
    store: &S3Blobs,
    key: &BlobKey,
    body: &PutBody,
    size: u64,
    content_type: &str,
    guard: Guard,
) -> Result<(), Fault> {
    let upload = multipart::begin(store, key, content_type).await?;
    let done = send_parts(store, key, &upload, body, size, guard).await;
    if done.is_err() {
        // The error that counts is the first; what stays behind is found by the sweep.
        if let Err(error) = multipart::abort(store, key, &upload).await {
            tracing::warn!(blob.key = %key, %error, "an unfinished upload stays until the sweep aborts it");
        }
    }
    done
}

async fn send_parts(
    store: &S3Blobs,
    key: &BlobKey,
    upload: &crate::UploadId,
    body: &PutBody,
    size: u64,
    guard: Guard,
) -> Result<(), Fault> {
    let part_bytes = part_size(size);
    let count = u32::try_from(size.div_ceil(part_bytes)).unwrap_or(MAX_PARTS);
    let send = |number: u32| async move {
        let start = u64::from(number - 1) * part_bytes;
        let piece = piece(body, start, part_bytes.min(size - start)).await.map_err(|error| Fault::of_body(&error))?;
        multipart::send(store, key, upload, number, piece).await
    };
    let parts: Vec<_> = stream::iter(1..=count).map(send).buffered(PARTS_IN_FLIGHT).try_collect().await?;
    multipart::finish(store, key, upload, &parts, guard).await
}

/// At least [`PART_BYTES`], in whole MiB, so that [`MAX_PARTS`] suffice.
fn part_size(size: u64) -> u64 {
    const MIB: u64 = 1024 * 1024;
    size.div_ceil(u64::from(MAX_PARTS)).max(PART_BYTES).div_ceil(MIB) * MIB
}

/// A body that the client can send again when an attempt fails: a slice of the bytes, or a section of the file.
async fn piece(body: &PutBody, start: u64, length: u64) -> Result<ByteStream, BlobError> {
    match body {
        PutBody::Bytes(bytes) => Ok(slice(bytes, start, length).into()),
        PutBody::File(path) => section(path, start, length).await,
    }
}

fn slice(bytes: &Bytes, start: u64, length: u64) -> Bytes {
    // Both are below the length of the bytes, which is a usize.
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(at(start)..at(start + length))
}

async fn section(path: &Path, start: u64, length: u64) -> Result<ByteStream, BlobError> {
    let section = ByteStream::read_from().path(path).offset(start).length(Length::Exact(length)).buffer_size(64 * 1024);
    section.build().await.map_err(|error| BlobError::Invalid(format!("{}: {error}", path.display())))
}

/// Full jitter between zero and 50 ms, 100 ms, ... 2 s.
pub(super) async fn backoff(round: u32) {
    let most = 50_u64.saturating_mul(1 << round.min(6)).min(2000);
    tokio::time::sleep(Duration::from_millis(rand::random_range(0..=most))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_few_enough_and_large_enough() {
        const MIB: u64 = 1024 * 1024;
        for (size, expected) in
            [(65 * MIB, 16 * MIB), (160_000 * MIB, 16 * MIB), (160_001 * MIB, 17 * MIB), (5 * MIB * MIB, 525 * MIB)]
        {
            assert_eq!(part_size(size), expected);
            assert!(size.div_ceil(part_size(size)) <= u64::from(MAX_PARTS));
        }
    }
}
