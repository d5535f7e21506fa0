//! Bodies: in memory while small, in a temporary file above that.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};
use tempfile::TempPath;

/// A stored body. Cheap to clone; a file goes when the last clone does.
#[derive(Debug, Clone)]
pub enum Body {
    /// Small.
    Memory(Bytes),
    /// Large.
    File {
        /// The temporary file.
        path: Arc<TempPath>,
        /// Its size, bytes.
        len: u64,
    },
}

impl Body {
    /// Size, bytes.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// Whether there is nothing.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are in memory.
    pub const fn as_memory(&self) -> Option<&Bytes> {
        match self {
            Self::Memory(bytes) => Some(bytes),
            Self::File { .. } => None,
        }
    }

    /// The file, if it is one.
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::Memory(_) => None,
            Self::File { path, .. } => Some(path),
        }
    }

    /// Reads from the start. Blocking for files.
    pub fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            Self::File { path, .. } => Box::new(File::open(path.as_ref())?),
        })
    }

    /// The first `cap` bytes, or all if there are fewer.
    pub async fn prefix(&self, cap: usize) -> io::Result<Bytes> {
        match self {
            Self::Memory(bytes) => Ok(bytes.slice(..bytes.len().min(cap))),
            Self::File { path, len } => {
                let path = Arc::clone(path);
                let size = usize::try_from(*len).unwrap_or(usize::MAX).min(cap);
                on_blocking_thread(move || {
                    let mut out = Vec::with_capacity(size);
                    let file = File::open(path.as_ref())?;
                    file.take(size as u64).read_to_end(&mut out)?;
                    Ok(Bytes::from(out))
                })
                .await
            }
        }
    }
}

async fn on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|join| Err(io::Error::other(join)))
}

/// Collects a body as it comes in, hashing it.
pub(super) struct Spool {
    hash: Sha256,
    len: u64,
    memory_cap: usize,
    dir: Option<PathBuf>,
    store: Store,
}

enum Store {
    Empty,
    /// One piece: kept without a copy, which is how most small bodies come.
    One(Bytes),
    Many(BytesMut),
    File(Spilled),
}

/// Written in large pieces: a task switch per network read would cost more than the write.
struct Spilled {
    file: File,
    path: TempPath,
    pending: BytesMut,
}

const WRITE_SIZE: usize = 512 * 1024;

impl Spool {
    pub(super) fn new(memory_cap: usize, dir: Option<PathBuf>) -> Self {
        Self { hash: Sha256::new(), len: 0, memory_cap, dir, store: Store::Empty }
    }

    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    pub(super) async fn push(&mut self, piece: Bytes) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        self.hash.update(&piece);
        self.len += piece.len() as u64;
        let over = self.len > self.memory_cap as u64;
        self.store = match std::mem::replace(&mut self.store, Store::Empty) {
            Store::Empty if !over => Store::One(piece),
            Store::One(first) if !over => {
                let mut all = BytesMut::with_capacity((first.len() + piece.len()) * 2);
                all.extend_from_slice(&first);
                all.extend_from_slice(&piece);
                Store::Many(all)
            }
            Store::Many(mut all) if !over => {
                all.extend_from_slice(&piece);
                Store::Many(all)
            }
            Store::File(mut spilled) => {
                spilled.pending.extend_from_slice(&piece);
                Store::File(spilled.write_if(WRITE_SIZE).await?)
            }
            before => {
                let mut pending = match before {
                    Store::One(first) => BytesMut::from(&first[..]),
                    Store::Many(all) => all,
                    _ => BytesMut::new(),
                };
                pending.extend_from_slice(&piece);
                let spilled = Spilled::create(self.dir.clone(), pending).await?;
                Store::File(spilled.write_if(WRITE_SIZE).await?)
            }
        };
        Ok(())
    }

    /// The body and its SHA-256.
    pub(super) async fn finish(self) -> io::Result<(Body, [u8; 32])> {
        let body = match self.store {
            Store::Empty => Body::Memory(Bytes::new()),
            Store::One(bytes) => Body::Memory(bytes),
            Store::Many(bytes) => Body::Memory(bytes.freeze()),
            Store::File(spilled) => Body::File { path: Arc::new(spilled.write_if(0).await?.path), len: self.len },
        };
        Ok((body, self.hash.finalize().into()))
    }
}

impl Spilled {
    async fn create(dir: Option<PathBuf>, pending: BytesMut) -> io::Result<Self> {
        on_blocking_thread(move || {
            let mut builder = tempfile::Builder::new();
            builder.prefix("fonds-body-");
            let named = match dir {
                Some(dir) => builder.tempfile_in(dir),
                None => builder.tempfile(),
            }?;
            let (file, path) = named.into_parts();
            Ok(Self { file, path, pending })
        })
        .await
    }

    async fn write_if(self, at_least: usize) -> io::Result<Self> {
        if self.pending.len() < at_least || self.pending.is_empty() {
            return Ok(self);
        }
        on_blocking_thread(move || {
            let mut this = self;
            this.file.write_all(&this.pending)?;
            this.pending.clear();
            Ok(this)
        })
        .await
    }
}
