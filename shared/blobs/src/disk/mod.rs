//! Blobs as files below one folder.
//!
//! ```text
//! ROOT/objects/<key>          the object, readable with any tool
//! ROOT/types/<key>            its media type, only where it is not what the key's extension says
//! ROOT/uploads/<id>/          a multipart upload: `about` and one file a part
//! ROOT/tmp/                   files being written
//! ```
//!
//! An object appears by `renameat2(RENAME_NOREPLACE)`, so it is whole or absent and the first writer wins. Because a
//! name is either a file or a folder, `a` and `a/b` cannot both be blobs here; no layout of [`BlobKey`] does that.

mod parts;
mod tree;
mod walk;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{Stream, StreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::io::ReaderStream;

use crate::sign::{LocalSigner, SignedPut};
use crate::store::check_range;
use crate::{
    BlobError, BlobKey, BlobMeta, BlobStore, BlobStream, MAX_PAGE, OpenUpload, Page, PageToken, PresignGet, PresignPut,
    Presigned, PutBody, PutOutcome, UploadId, UploadedPart,
};
use tree::Tree;

/// Read-ahead of a stream in bytes: few hops to the blocking pool, little memory.
const STREAM_BUFFER: usize = 256 * 1024;

/// What a finished put promises after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// File and folder are flushed to the disk first.
    #[default]
    Flushed,
    /// The kernel writes when it likes. Survives a killed process, not a power cut.
    Cached,
}

/// A store in a folder. Clones share it, and so may other processes.
#[derive(Debug, Clone)]
pub struct DiskBlobs {
    tree: Arc<Tree>,
    signer: LocalSigner,
}

impl DiskBlobs {
    /// Opens the folder, making it when there is none, and clears what writers killed a day ago left in `tmp`.
    ///
    /// # Errors
    /// [`BlobError::Io`] when the folder cannot be made or written to.
    pub fn open(root: impl AsRef<Path>, durability: Durability, signer: LocalSigner) -> Result<Self, BlobError> {
        let tree = Tree::open(root.as_ref(), durability)?;
        Ok(Self { tree: Arc::new(tree), signer })
    }

    /// What signs and verifies this store's URLs, for the server that answers them.
    #[must_use]
    pub fn signer(&self) -> &LocalSigner {
        &self.signer
    }

    /// Where the store is.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.tree.root()
    }

    /// The body of a verified presigned PUT: written to a file as it arrives, then put if absent when size and digest
    /// are as signed.
    ///
    /// # Errors
    /// [`BlobError::Invalid`] when the body is not as signed or breaks off; nothing is kept then.
    pub async fn receive(
        &self,
        put: &SignedPut,
        body: impl Stream<Item = io::Result<Bytes>> + Send + Unpin,
    ) -> Result<PutOutcome, BlobError> {
        let tmp = self.tree.tmp_file();
        let outcome = match spool(&tmp, put, body).await {
            Ok(()) => {
                let (key, content_type, path) = (put.key.clone(), put.options.content_type.clone(), tmp.clone());
                self.blocking(move |tree| tree.adopt(&key, &path, &content_type)).await
            }
            Err(error) => Err(error),
        };
        if !matches!(outcome, Ok(PutOutcome::Created)) {
            // Nobody else knows this name; what cannot be removed now is cleared by a later `open`.
            tokio::fs::remove_file(&tmp).await.ok();
        }
        outcome
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tree) -> Result<T, BlobError> + Send + 'static,
    ) -> Result<T, BlobError> {
        let tree = Arc::clone(&self.tree);
        match tokio::task::spawn_blocking(move || work(&tree)).await {
            Ok(result) => result,
            // The runtime is shutting down, or the closure panicked: either way the caller may try again.
            Err(error) => Err(BlobError::unavailable("disk", error)),
        }
    }
}

/// Writes the body to `tmp`, checking it against what was signed.
async fn spool(
    tmp: &Path,
    put: &SignedPut,
    mut body: impl Stream<Item = io::Result<Bytes>> + Send + Unpin,
) -> Result<(), BlobError> {
    let expected = put.options.content_length;
    let mut file = tokio::fs::OpenOptions::new().write(true).create_new(true).open(tmp).await?;
    let (mut hash, mut size) = (put.options.sha256.map(|_| Sha256::new()), 0_u64);
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| BlobError::Invalid(format!("the body of {} broke off: {error}", put.key)))?;
        size += chunk.len() as u64;
        if size > expected {
            break;
        }
        if let Some(hash) = &mut hash {
            hash.update(&chunk);
        }
        file.write_all(&chunk).await?;
    }
    file.flush().await?;
    if size != expected {
        return Err(BlobError::Invalid(format!("the body of {} is not of the {expected} bytes signed", put.key)));
    }
    if let (Some(hash), Some(sha256)) = (hash, put.options.sha256)
        && hash.finalize().as_slice() != sha256
    {
        return Err(BlobError::Invalid(format!("the body of {} has not the SHA-256 signed", put.key)));
    }
    Ok(())
}

#[async_trait]
impl BlobStore for DiskBlobs {
    async fn put_if_absent(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<PutOutcome, BlobError> {
        let (key, content_type) = (key.clone(), content_type.to_owned());
        self.blocking(move |tree| tree.put_if_absent(&key, &body, &content_type)).await
    }

    async fn replace(&self, key: &BlobKey, body: PutBody, content_type: &str) -> Result<(), BlobError> {
        let (key, content_type) = (key.clone(), content_type.to_owned());
        self.blocking(move |tree| tree.replace(&key, &body, &content_type)).await
    }

    async fn get_capped(&self, key: &BlobKey, cap: u64) -> Result<Bytes, BlobError> {
        let key = key.clone();
        self.blocking(move |tree| tree.read(&key, cap)).await
    }

    async fn get_range_pinned(&self, key: &BlobKey, range: Range<u64>, etag: Option<&str>) -> Result<Bytes, BlobError> {
        check_range(&range)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let (key, etag) = (key.clone(), etag.map(str::to_owned));
        self.blocking(move |tree| tree.read_range(&key, &range, etag.as_deref())).await
    }

    async fn stream(&self, key: &BlobKey, range: Option<Range<u64>>) -> Result<BlobStream, BlobError> {
        if let Some(range) = &range {
            check_range(range)?;
            if range.is_empty() {
                return Ok(stream::empty().boxed());
            }
        }
        let key = key.clone();
        let (file, length) = self.blocking(move |tree| tree.open_at(&key, range.as_ref())).await?;
        let reader = tokio::fs::File::from_std(file).take(length);
        Ok(ReaderStream::with_capacity(reader, STREAM_BUFFER).boxed())
    }

    async fn head(&self, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError> {
        let key = key.clone();
        self.blocking(move |tree| tree.head(&key)).await
    }

    async fn delete(&self, keys: &[BlobKey]) -> Result<(), BlobError> {
        let keys = keys.to_vec();
        self.blocking(move |tree| keys.iter().try_for_each(|key| tree.delete(key))).await
    }

    async fn list(&self, prefix: &str, after: Option<&PageToken>, limit: usize) -> Result<Page, BlobError> {
        let (prefix, after) = (prefix.to_owned(), after.map(|token| token.0.clone()));
        self.blocking(move |tree| walk::page(tree, &prefix, after.as_deref(), limit.clamp(1, MAX_PAGE))).await
    }

    async fn create_multipart(&self, key: &BlobKey, content_type: &str) -> Result<UploadId, BlobError> {
        let (key, content_type) = (key.clone(), content_type.to_owned());
        self.blocking(move |tree| parts::create(tree, &key, &content_type)).await
    }

    async fn upload_part(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        number: u32,
        body: Bytes,
    ) -> Result<UploadedPart, BlobError> {
        let (key, upload) = (key.clone(), upload.clone());
        self.blocking(move |tree| parts::upload(tree, &key, &upload, number, &body)).await
    }

    async fn complete_multipart(
        &self,
        key: &BlobKey,
        upload: &UploadId,
        uploaded: &[UploadedPart],
    ) -> Result<PutOutcome, BlobError> {
        let (key, upload, uploaded) = (key.clone(), upload.clone(), uploaded.to_vec());
        self.blocking(move |tree| parts::complete(tree, &key, &upload, &uploaded)).await
    }

    async fn abort_multipart(&self, key: &BlobKey, upload: &UploadId) -> Result<(), BlobError> {
        let (key, upload) = (key.clone(), upload.clone());
        self.blocking(move |tree| parts::abort(tree, &key, &upload)).await
    }

    async fn stale_multiparts(
        &self,
        prefix: &str,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<OpenUpload>, BlobError> {
        let prefix = prefix.to_owned();
        self.blocking(move |tree| parts::stale(tree, &prefix, before, limit)).await
    }

    async fn presign_get(&self, key: &BlobKey, ttl: Duration, options: PresignGet) -> Result<Presigned, BlobError> {
        self.signer.get(key, ttl, Utc::now(), options)
    }

    async fn presign_put(&self, key: &BlobKey, ttl: Duration, options: PresignPut) -> Result<Presigned, BlobError> {
        self.signer.put(key, ttl, Utc::now(), options)
    }
}

/// The file of a body given as a path stays the caller's.
fn copy_body(body: &PutBody, into: &mut std::fs::File) -> io::Result<()> {
    match body {
        PutBody::Bytes(bytes) => io::Write::write_all(into, bytes),
        // Shares or copies inside the kernel where the file system can.
        PutBody::File(path) => io::copy(&mut std::fs::File::open(path)?, into).map(drop),
    }
}

fn join_key(folder: &Path, key: &BlobKey) -> PathBuf {
    folder.join(key.as_str())
}
