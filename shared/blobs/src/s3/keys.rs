//! What is in the bucket: head, list, delete.

use aws_sdk_s3::primitives::DateTime as AwsTime;
use aws_sdk_s3::types::{Delete, EncodingType, ObjectIdentifier};
use chrono::{DateTime, Utc};
use percent_encoding::percent_decode_str;

use super::S3Blobs;
use super::fault::{Fault, Meaning};
use super::put::backoff;
use crate::{BlobEntry, BlobError, BlobKey, BlobMeta, MAX_PAGE, Page, PageToken};

/// Most keys of one DeleteObjects.
const DELETE_BATCH: usize = 1000;
/// Rounds for keys that a 200 answer reports as failed for now.
const DELETE_ROUNDS: u32 = 6;

pub(super) async fn ensure_bucket(store: &S3Blobs) -> Result<(), BlobError> {
    let create = store.quick.create_bucket().bucket(store.bucket());
    let region = store.quick.config().region().map(|region| region.as_ref().to_owned());
    // `us-east-1` is the one region that must not be named.
    let place = region.filter(|region| region != "us-east-1").map(|region| {
        aws_sdk_s3::types::CreateBucketConfiguration::builder().location_constraint(region.as_str().into()).build()
    });
    match create.set_create_bucket_configuration(place).send().await {
        Ok(_) => Ok(()),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_bucket_already_owned_by_you()) => Ok(()),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_bucket_already_exists()) => {
            Err(BlobError::AccessDenied {
                operation: "create bucket",
                reason: format!("{} belongs to someone else", store.bucket()),
            })
        }
        Err(error) => Err(Fault::new("create bucket", &error).without_key()),
    }
}

pub(super) async fn head(store: &S3Blobs, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError> {
    let answer = store.quick.head_object().bucket(store.bucket()).key(store.object(key)).send().await;
    match answer.map_err(|error| Fault::new("head", &error)) {
        Ok(about) => Ok(Some(BlobMeta {
            size: size(about.content_length),
            etag: unquoted(about.e_tag),
            content_type: about.content_type.unwrap_or_else(|| key.content_type().to_owned()),
            modified: stamp(about.last_modified),
        })),
        Err(fault) if fault.meaning == Meaning::NotFound => Ok(None),
        Err(fault) => Err(fault.into_error(key)),
    }
}

pub(super) async fn list(
    store: &S3Blobs,
    prefix: &str,
    after: Option<&PageToken>,
    limit: usize,
) -> Result<Page, BlobError> {
    let place = &store.place.prefix;
    let limit = limit.clamp(1, MAX_PAGE);
    let list = store.quick.list_objects_v2().bucket(store.bucket()).prefix(format!("{place}{prefix}"));
    // A key to start after rather than a continuation token: it means the same tomorrow, in another process. Encoded,
    // because XML cannot carry every key.
    let answer = list
        .set_start_after(after.map(|after| format!("{place}{}", after.0)))
        .max_keys(i32::try_from(limit).unwrap_or(i32::MAX))
        .encoding_type(EncodingType::Url)
        .send()
        .await
        .map_err(|error| Fault::new("list", &error).without_key())?;
    let (mut page, mut last) = (Page::default(), None);
    for object in answer.contents.unwrap_or_default() {
        let name = decoded(object.key.as_deref().unwrap_or_default());
        let name = name.strip_prefix(place.as_str()).unwrap_or(&name).to_owned();
        last = Some(name.clone());
        match BlobKey::parse(name.clone()) {
            Ok(key) => {
                page.entries.push(BlobEntry {
                    key,
                    size: size(object.size),
                    etag: unquoted(object.e_tag),
                    modified: stamp(object.last_modified),
                });
            }
            Err(_) => page.skipped.push(name),
        }
    }
    page.next = last.filter(|_| answer.is_truncated == Some(true)).map(PageToken);
    Ok(page)
}

pub(super) async fn delete(store: &S3Blobs, keys: &[BlobKey]) -> Result<(), BlobError> {
    for batch in keys.chunks(DELETE_BATCH) {
        let mut left: Vec<String> = batch.iter().map(|key| store.object(key)).collect();
        left.sort_unstable();
        left.dedup();
        let mut round = 0;
        loop {
            let (failed, reason) = delete_once(store, &left).await?;
            let Some(reason) = reason else { break };
            if round == DELETE_ROUNDS {
                return Err(reason.without_key());
            }
            tracing::debug!(failed = failed.len(), "objects were not deleted yet");
            backoff(round).await;
            round += 1;
            left = failed;
        }
    }
    Ok(())
}

/// One DeleteObjects; gives the keys to try again and why. A 200 answer may hold failures of single keys, throttling
/// among them, which the client does not see as errors.
async fn delete_once(store: &S3Blobs, names: &[String]) -> Result<(Vec<String>, Option<Fault>), BlobError> {
    let invalid = |error: aws_sdk_s3::error::BuildError| BlobError::Invalid(error.to_string());
    let objects = names
        .iter()
        .map(|name| ObjectIdentifier::builder().key(name).build())
        .collect::<Result<Vec<_>, _>>()
        .map_err(invalid)?;
    let request = Delete::builder().set_objects(Some(objects)).quiet(true).build().map_err(invalid)?;
    let answer = store.quick.delete_objects().bucket(store.bucket()).delete(request).send().await;
    let answer = answer.map_err(|error| Fault::new("delete", &error).without_key())?;
    let (mut again, mut reason) = (Vec::new(), None);
    for error in answer.errors.unwrap_or_default() {
        let name = error.key.unwrap_or_default();
        let fault = Fault::inside(
            "delete",
            error.code.as_deref().unwrap_or_default(),
            format!("{name}: {}", error.message.unwrap_or_default()),
        );
        match fault.meaning {
            Meaning::NotFound => {}
            Meaning::Unavailable | Meaning::Conflict => {
                again.push(name);
                reason = Some(fault);
            }
            _ => return Err(fault.without_key()),
        }
    }
    Ok((again, reason))
}

/// S3 encodes keys in listings as form data: a space is `+`.
fn decoded(key: &str) -> String {
    percent_decode_str(&key.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// Entity tags go around without their quotes.
pub(super) fn unquoted(etag: Option<String>) -> String {
    etag.unwrap_or_default().trim_matches('"').to_owned()
}

pub(super) fn stamp(time: Option<AwsTime>) -> DateTime<Utc> {
    let Some(time) = time else { return DateTime::default() };
    DateTime::from_timestamp(time.secs(), time.subsec_nanos()).unwrap_or_default()
}

fn size(size: Option<i64>) -> u64 {
    size.and_then(|size| u64::try_from(size).ok()).unwrap_or_default()
}
