//! Making signed requests: over HTTP for S3 (in its test), within the process for the local backends.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::Utc;
use futures_util::stream;
use sha2::{Digest, Sha256};

use crate::disk::DiskBlobs;
use crate::sign::{LocalSigner, SignedGet, SignedPut, SignedRequest};
use crate::{BlobError, BlobStore, Presigned, PutOutcome};

/// What a signed request was answered with.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Bytes,
}

/// Makes a signed request with its headers.
#[async_trait]
pub trait Client: Send + Sync {
    /// Sends it.
    async fn send(&self, request: &Presigned, body: Bytes) -> Answer;
}

/// Answers local URLs as the one-process host does, without the HTTP.
pub struct LocalClient {
    /// What the URLs read and write.
    pub store: Arc<dyn BlobStore>,
    /// What verifies them.
    pub signer: LocalSigner,
    /// Set for the disk, which takes bodies as streams.
    pub disk: Option<DiskBlobs>,
}

#[async_trait]
impl Client for LocalClient {
    async fn send(&self, request: &Presigned, body: Bytes) -> Answer {
        let target = format!("{}?{}", request.url.path(), request.url.query().unwrap_or_default());
        let answer = match self.signer.verify(request.method, &target, Utc::now()) {
            Ok(SignedRequest::Get(get)) => self.get(get).await,
            Ok(SignedRequest::Put(put)) => self.put(put, body).await,
            Err(_) => return Answer { status: 403, ..Answer::default() },
        };
        answer.unwrap_or_else(|error| Answer {
            status: match error {
                BlobError::NotFound { .. } => 404,
                BlobError::Range { .. } => 416,
                error if error.is_permanent() => 400,
                _ => 503,
            },
            ..Answer::default()
        })
    }
}

impl LocalClient {
    async fn get(&self, get: SignedGet) -> Result<Answer, BlobError> {
        let head = self.store.head(&get.key).await?.ok_or_else(|| BlobError::not_found(&get.key))?;
        let status = if get.range.is_some() { 206 } else { 200 };
        let body = match get.range {
            Some(range) => self.store.get_range(&get.key, range).await?,
            None => self.store.get(&get.key).await?,
        };
        let mut headers = BTreeMap::from([("content-type".to_owned(), get.content_type.unwrap_or(head.content_type))]);
        headers.extend(get.disposition.map(|value| ("content-disposition".to_owned(), value)));
        Ok(Answer { status, headers, body })
    }

    async fn put(&self, put: SignedPut, body: Bytes) -> Result<Answer, BlobError> {
        let outcome = match &self.disk {
            Some(disk) => {
                disk.receive(
                    &put,
                    stream::iter(body.chunks(1000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect::<Vec<_>>()),
                )
                .await?
            }
            None if body.len() as u64 != put.options.content_length => {
                return Err(BlobError::Invalid("length".to_owned()));
            }
            None if put.options.sha256.is_some_and(|sha256| Sha256::digest(&body).as_slice() != sha256) => {
                return Err(BlobError::Invalid("digest".to_owned()));
            }
            None => self.store.put_if_absent(&put.key, body.into(), &put.options.content_type).await?,
        };
        let status = if outcome == PutOutcome::Created { 200 } else { 412 };
        Ok(Answer { status, ..Answer::default() })
    }
}
