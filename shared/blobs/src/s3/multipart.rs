//! Uploads in parts.

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use chrono::{DateTime, Utc};

use super::S3Blobs;
use super::fault::{Fault, Meaning};
use super::keys::{head, stamp, unquoted};
use super::put::{Guard, backoff};
use crate::store::{check_part_number, check_parts};
use crate::{BlobError, BlobKey, OpenUpload, PutOutcome, UploadId, UploadedPart};

/// Tries to complete while another writer holds the key.
const CONFLICTS: u32 = 5;

pub(super) async fn create(store: &S3Blobs, key: &BlobKey, content_type: &str) -> Result<UploadId, BlobError> {
    begin(store, key, content_type).await.map_err(|fault| fault.into_error(key))
}

pub(super) async fn begin(store: &S3Blobs, key: &BlobKey, content_type: &str) -> Result<UploadId, Fault> {
    let create = store.quick.create_multipart_upload().bucket(store.bucket()).key(store.object(key));
    let created = create.content_type(content_type).cache_control(key.cache_control()).send().await;
    let created = created.map_err(|error| Fault::new("create multipart", &error))?;
    let id = created
        .upload_id
        .ok_or_else(|| Fault::inside("create multipart", "InternalError", "no upload id in the answer".to_owned()))?;
    Ok(UploadId(id))
}

pub(super) async fn upload(
    store: &S3Blobs,
    key: &BlobKey,
    id: &UploadId,
    number: u32,
    body: ByteStream,
) -> Result<UploadedPart, BlobError> {
    check_part_number(number)?;
    send(store, key, id, number, body).await.map_err(|fault| fault.into_error(key))
}

pub(super) async fn send(
    store: &S3Blobs,
    key: &BlobKey,
    id: &UploadId,
    number: u32,
    body: ByteStream,
) -> Result<UploadedPart, Fault> {
    // A part number is at most 10,000.
    let wire = i32::try_from(number).unwrap_or(i32::MAX);
    let part = store
        .bulk
        .upload_part()
        .bucket(store.bucket())
        .key(store.object(key))
        .upload_id(&id.0)
        .part_number(wire)
        .body(body);
    let sent = part.send().await.map_err(|error| Fault::new("upload part", &error))?;
    Ok(UploadedPart { number, etag: unquoted(sent.e_tag) })
}

/// Completes for a caller that keeps the parts: on a conflict they are still there, so only this call is repeated.
pub(super) async fn complete(
    store: &S3Blobs,
    key: &BlobKey,
    id: &UploadId,
    parts: &[UploadedPart],
) -> Result<PutOutcome, BlobError> {
    check_parts(parts)?;
    let mut conflicts = 0;
    loop {
        match finish(store, key, id, parts, Guard::Absent).await {
            Ok(()) => return Ok(PutOutcome::Created),
            Err(fault) if fault.meaning == Meaning::Precondition => {
                // S3 keeps the parts of an upload that lost.
                abort(store, key, id).await?;
                return Ok(PutOutcome::Existed);
            }
            // Completed before, by a call whose answer was lost: then the object is there.
            Err(fault) if fault.meaning == Meaning::UploadGone => {
                return match head(store, key).await? {
                    Some(_) => Ok(PutOutcome::Existed),
                    None => Err(fault.into_error(key)),
                };
            }
            Err(fault) if fault.meaning == Meaning::Conflict && conflicts < CONFLICTS => {
                backoff(conflicts).await;
                conflicts += 1;
            }
            Err(fault) => return Err(fault.into_error(key)),
        }
    }
}

pub(super) async fn finish(
    store: &S3Blobs,
    key: &BlobKey,
    id: &UploadId,
    parts: &[UploadedPart],
    guard: Guard,
) -> Result<(), Fault> {
    let named = |part: &UploadedPart| {
        CompletedPart::builder()
            .part_number(i32::try_from(part.number).unwrap_or(i32::MAX))
            .e_tag(format!("\"{}\"", part.etag))
            .build()
    };
    let list = CompletedMultipartUpload::builder().set_parts(Some(parts.iter().map(named).collect())).build();
    let complete =
        store.bulk.complete_multipart_upload().bucket(store.bucket()).key(store.object(key)).upload_id(&id.0);
    let done = complete.multipart_upload(list).set_if_none_match(guard.if_none_match()).send().await;
    done.map(drop).map_err(|error| Fault::new("complete multipart", &error))
}

pub(super) async fn abort(store: &S3Blobs, key: &BlobKey, id: &UploadId) -> Result<(), BlobError> {
    let abort = store.quick.abort_multipart_upload().bucket(store.bucket()).key(store.object(key)).upload_id(&id.0);
    match abort.send().await.map_err(|error| Fault::new("abort multipart", &error)) {
        Err(fault) if !matches!(fault.meaning, Meaning::UploadGone | Meaning::NotFound) => Err(fault.into_error(key)),
        _ => Ok(()),
    }
}

pub(super) async fn stale(
    store: &S3Blobs,
    prefix: &str,
    before: DateTime<Utc>,
    limit: usize,
) -> Result<Vec<OpenUpload>, BlobError> {
    let (mut found, mut key_marker, mut id_marker) = (Vec::new(), None, None);
    loop {
        let list = store
            .quick
            .list_multipart_uploads()
            .bucket(store.bucket())
            .prefix(format!("{}{prefix}", store.place.prefix));
        let page = list.set_key_marker(key_marker).set_upload_id_marker(id_marker).send().await;
        let page = page.map_err(|error| Fault::new("list multipart", &error).without_key())?;
        for upload in page.uploads.unwrap_or_default() {
            let key = upload.key.as_deref().and_then(|key| key.strip_prefix(&store.place.prefix));
            let (Some(key), Some(id)) = (key.and_then(|key| BlobKey::parse(key).ok()), upload.upload_id) else {
                continue;
            };
            let started = stamp(upload.initiated);
            if started < before {
                found.push(OpenUpload { key, id: UploadId(id), started });
            }
            if found.len() >= limit {
                return Ok(found);
            }
        }
        if page.is_truncated != Some(true) || page.next_key_marker.is_none() {
            return Ok(found);
        }
        (key_marker, id_marker) = (page.next_key_marker, page.next_upload_id_marker);
    }
}
