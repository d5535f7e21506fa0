//! Blobs in memory, for tests and dry runs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream};
use url::Url;
use uuid::Uuid;

use crate::sign::LocalSigner;
use crate::store::{check_part_number, check_parts, clip};
use crate::{
    BlobEntry, BlobError, BlobKey, BlobMeta, BlobStore, BlobStream, MAX_PAGE, MIN_PART_BYTES, OpenUpload, Page,
    PageToken, PresignGet, PresignPut, Presigned, PutBody, PutOutcome, UploadId, UploadedPart,
};

/// A store that lives as long as its last clone. Clones share the objects.
#[derive(Debug, Clone)]
pub struct MemoryBlobs {
    state: Arc<Mutex<State>>,
    signer: LocalSigner,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<BlobKey, Object>,
    uploads: BTreeMap<String, Upload>,
    writes: u64,
}

#[derive(Debug, Clone)]
struct Object {
    bytes: Bytes,
    content_type: String,
    etag: String,
    modified: DateTime<Utc>,
}

#[derive(Debug)]
struct Upload {
    key: BlobKey,
    content_type: String,
    started: DateTime<Utc>,
    parts: BTreeMap<u32, (String, Bytes)>,
}

impl State {
    fn tag(&mut self) -> String {
        self.writes += 1;
        format!("m{}", self.writes)
    }

    fn write(&mut self, key: &BlobKey, bytes: Bytes, content_type: &str) {
        let etag = self.tag();
        let object = Object { bytes, content_type: content_type.to_owned(), etag, modified: Utc::now() };
        self.objects.insert(key.clone(), object);
    }

    fn write_if_absent(&mut self, key: &BlobKey, bytes: Bytes, content_type: &str) -> PutOutcome {
        if self.objects.contains_key(key) {
            return PutOutcome::Existed;
        }
        self.write(key, bytes, content_type);
        PutOutcome::Created
    }

    fn upload(&mut self, key: &BlobKey, id: &UploadId) -> Result<&mut Upload, BlobError> {
        self.uploads.get_mut(&id.0).filter(|upload| upload.key == *key).ok_or_else(|| BlobError::upload_gone(key))
    }
}

impl Default for MemoryBlobs {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBlobs {
    /// An empty store. Its signed URLs lead nowhere but verify with [`Self::signer`].
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "a constant URL and a secret of 32 bytes")]
    pub fn new() -> Self {
        let secret = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        let base = Url::parse("http://blobs.invalid/").expect("a constant URL");
        Self { state: Arc::default(), signer: LocalSigner::new(base, &secret).expect("a long secret") }
    }

    /// What signs this store's URLs.
    #[must_use]
    pub fn signer(&self) -> &LocalSigner {
        &self.signer
    }

    /// Every key, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<BlobKey> {
        self.lock().objects.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change below is one insert or remove: a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn object(&self, key: &BlobKey) -> Result<Object, BlobError> {
        self.lock().objects.get(key).cloned().ok_or_else(|| BlobError::not_found(key))
    }
}

async fn load(body: PutBody) -> Result<Bytes, BlobError> {
    match body {
        PutBody::Bytes(bytes) => Ok(bytes),
        PutBody::File(path) => Ok(tokio::fs::read(path).await?.into()),
    }
}

#[async_trait]
impl BlobStore for MemoryBlobs {
    async fn put_if_absent(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<PutOutcome, BlobError> {
        let bytes = load(body).await?;
        Ok(self.lock().write_if_absent(key, bytes, content_type))
    }

    async fn replace(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<(), BlobError> {
        let bytes = load(body).await?;
        self.lock().write(key, bytes, content_type);
        Ok(())
    }

    async fn get_capped(&self, key: &BlobKey, cap: u64) -> Result<Bytes, BlobError> {
        let bytes = self.object(key)?.bytes;
        if bytes.len() as u64 > cap {
            return Err(BlobError::TooLarge { key: key.as_str().to_owned(), cap });
        }
        Ok(bytes)
    }

    async fn get_range_pinned(&self, key: &BlobKey, range: Range<u64>, etag: Option<&str>) -> Result<Bytes, BlobError> {
        crate::store::check_range(&range)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let object = self.object(key)?;
        if etag.is_some_and(|etag| etag != object.etag) {
            return Err(BlobError::Changed { key: key.as_str().to_owned() });
        }
        Ok(slice(key, &object.bytes, &range)?.unwrap_or_default())
    }

    async fn stream(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<BlobStream, BlobError> {
        let bytes = match range {
            Some(range) => self.get_range(key, range).await?,
            None => self.object(key)?.bytes,
        };
        let pieces: Vec<_> = (0..bytes.len())
            .step_by(64 * 1024)
            .map(|at| Ok(bytes.slice(at..bytes.len().min(at + 64 * 1024))))
            .collect();
        Ok(stream::iter(pieces).boxed())
    }

    async fn head(&self, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError> {
        Ok(self.lock().objects.get(key).map(|object| BlobMeta {
            size: object.bytes.len() as u64,
            etag: object.etag.clone(),
            content_type: object.content_type.clone(),
            modified: object.modified,
        }))
    }

    async fn delete(&self, keys: &[BlobKey]) -> Result<(), BlobError> {
        let mut state = self.lock();
        for key in keys {
            state.objects.remove(key);
        }
        Ok(())
    }

    async fn list(&self, prefix: &str, after: Option<&PageToken>, limit: usize) -> Result<Page, BlobError> {
        let limit = limit.clamp(1, MAX_PAGE);
        let state = self.lock();
        let mut found = state.objects.iter().filter(|(key, _)| {
            key.as_str().starts_with(prefix) && after.is_none_or(|after| key.as_str() > after.as_str())
        });
        let entries: Vec<_> = found
            .by_ref()
            .take(limit)
            .map(|(key, object)| BlobEntry {
                key: key.clone(),
                size: object.bytes.len() as u64,
                etag: object.etag.clone(),
                modified: object.modified,
            })
            .collect();
        let next = found.next().and(entries.last()).map(|entry| PageToken(entry.key.as_str().to_owned()));
        Ok(Page { entries, skipped: Vec::new(), next })
    }

    async fn create_multipart(&self, key: &BlobKey, content_type: &str) -> Result<UploadId, BlobError> {
        let id = Uuid::new_v4().to_string();
        let upload = Upload {
            key: key.clone(),
            content_type: content_type.to_owned(),
            started: Utc::now(),
            parts: BTreeMap::new(),
        };
        self.lock().uploads.insert(id.clone(), upload);
        Ok(UploadId(id))
    }

    async fn upload_part(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        number: u32,
        body: Bytes,
    ) -> Result<UploadedPart, BlobError> {
        check_part_number(number)?;
        let mut state = self.lock();
        let etag = state.tag();
        state.upload(key, upload)?.parts.insert(number, (etag.clone(), body));
        Ok(UploadedPart { number, etag })
    }

    async fn complete_multipart(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        parts: &[UploadedPart],
    ) -> Result<PutOutcome, BlobError> {
        check_parts(parts)?;
        let mut state = self.lock();
        // Completed before, by a call whose answer was lost.
        let existed = state.objects.contains_key(key);
        let found = match state.upload(key, upload) {
            Err(BlobError::UploadGone { .. }) if existed => return Ok(PutOutcome::Existed),
            found => found?,
        };
        let mut whole = BytesMut::new();
        for (at, part) in parts.iter().enumerate() {
            let Some((_, bytes)) = found.parts.get(&part.number).filter(|(etag, _)| *etag == part.etag) else {
                return Err(BlobError::Invalid(format!(
                    "part {} of {key} was not uploaded under this tag",
                    part.number
                )));
            };
            if at + 1 < parts.len() && (bytes.len() as u64) < MIN_PART_BYTES {
                return Err(BlobError::Invalid(format!(
                    "part {} of {key} is below {MIN_PART_BYTES} bytes",
                    part.number
                )));
            }
            whole.extend_from_slice(bytes);
        }
        let content_type = found.content_type.clone();
        state.uploads.remove(&upload.0);
        Ok(state.write_if_absent(key, whole.freeze(), &content_type))
    }

    async fn abort_multipart(&self, key: &BlobKey, upload: &UploadId) -> Result<(), BlobError> {
        let mut state = self.lock();
        if state.upload(key, upload).is_ok() {
            state.uploads.remove(&upload.0);
        }
        Ok(())
    }

    async fn stale_multiparts(
        &self,
        prefix: &str,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<OpenUpload>, BlobError> {
        let state = self.lock();
        let stale = state
            .uploads
            .iter()
            .filter(|(_, upload)| upload.started < before && upload.key.as_str().starts_with(prefix));
        let open = |(id, upload): (&String, &Upload)| OpenUpload {
            key: upload.key.clone(),
            id: UploadId(id.clone()),
            started: upload.started,
        };
        Ok(stale.take(limit).map(open).collect())
    }

    async fn presign_get(&self, key: &BlobKey, ttl: Duration, options: PresignGet) -> Result<Presigned, BlobError> {
        self.signer.get(key, ttl, Utc::now(), options)
    }

    async fn presign_put(&self, key: &BlobKey, ttl: Duration, options: PresignPut) -> Result<Presigned, BlobError> {
        self.signer.put(key, ttl, Utc::now(), options)
    }
}

fn slice(key: &BlobKey, bytes: &Bytes, range: &Range<u64>) -> Result<Option<Bytes>, BlobError> {
    let Some(range) = clip(key, range, bytes.len() as u64)? else { return Ok(None) };
    let at = |offset: u64| {
        usize::try_from(offset)
            .map_err(|_| BlobError::Invalid(format!("offset {offset} is beyond this machine's memory")))
    };
    Ok(Some(bytes.slice(at(range.start)?..at(range.end)?)))
}
