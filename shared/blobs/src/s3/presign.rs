//! Requests others may make with our rights. Signed locally; S3 is not asked.

use std::time::Duration;

use aws_sdk_s3::presigning::{PresignedRequest, PresigningConfig};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{TimeDelta, Utc};
use url::Url;

use super::S3Blobs;
use super::fault::Fault;
use super::read::range_header;
use crate::sign::check_ttl;
use crate::store::check_signed_range;
use crate::{BlobError, BlobKey, Disposition, PresignGet, PresignPut, Presigned};

pub(super) async fn get(
    store: &S3Blobs,
    key: &BlobKey,
    ttl: Duration,
    options: PresignGet,
) -> Result<Presigned, BlobError> {
    if let Some(range) = &options.range {
        check_signed_range(range)?;
    }
    let get = store.quick.get_object().bucket(store.bucket()).key(store.object(key));
    let get = get
        .set_response_content_type(options.content_type)
        .set_response_content_disposition(options.disposition.as_ref().map(Disposition::header_value))
        .set_range(options.range.as_ref().map(range_header));
    let signed = get.presigned(life(ttl)?).await.map_err(|error| Fault::new("presign", &error).without_key())?;
    presigned("GET", &signed, ttl)
}

pub(super) async fn put(
    store: &S3Blobs,
    key: &BlobKey,
    ttl: Duration,
    options: PresignPut,
) -> Result<Presigned, BlobError> {
    let length =
        i64::try_from(options.content_length).map_err(|_| BlobError::Invalid("the body is too long".to_owned()))?;
    let put = store.quick.put_object().bucket(store.bucket()).key(store.object(key));
    let put = put
        .content_length(length)
        .content_type(options.content_type)
        .cache_control(key.cache_control())
        .if_none_match("*")
        .set_checksum_sha256(options.sha256.map(|sha256| STANDARD.encode(sha256)));
    let signed = put.presigned(life(ttl)?).await.map_err(|error| Fault::new("presign", &error).without_key())?;
    presigned("PUT", &signed, ttl)
}

fn life(ttl: Duration) -> Result<PresigningConfig, BlobError> {
    check_ttl(ttl)?;
    PresigningConfig::expires_in(ttl).map_err(|error| BlobError::Invalid(error.to_string()))
}

fn presigned(method: &'static str, signed: &PresignedRequest, ttl: Duration) -> Result<Presigned, BlobError> {
    let url = Url::parse(signed.uri()).map_err(|error| BlobError::Invalid(error.to_string()))?;
    let headers =
        signed.headers().filter(|(name, _)| *name != "host").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let ttl = TimeDelta::from_std(ttl).map_err(|error| BlobError::Invalid(error.to_string()))?;
    Ok(Presigned { method, url, headers: headers.collect(), expires: Utc::now() + ttl })
}
