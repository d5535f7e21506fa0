//! What can go wrong with a blob, split by whether trying again can help.

use std::io;

/// A failed operation on a blob store.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is no such object.
    #[error("no blob {key}")]
    NotFound {
        /// The key asked for.
        key: String,
    },
    /// The range starts at or after the end of the object.
    #[error("range {start}.. is outside blob {key}")]
    Range {
        /// The key asked for.
        key: String,
        /// First byte asked for.
        start: u64,
    },
    /// The object is larger than the caller is prepared to hold in memory.
    #[error("blob {key} has more than the {cap} bytes allowed here")]
    TooLarge {
        /// The key asked for.
        key: String,
        /// The limit in bytes.
        cap: u64,
    },
    /// The object is not the one that was pinned by its entity tag any more.
    #[error("blob {key} was replaced while it was read")]
    Changed {
        /// The key asked for.
        key: String,
    },
    /// The multipart upload was completed, aborted or never begun.
    #[error("no multipart upload of blob {key} under this id")]
    UploadGone {
        /// The key of the upload.
        key: String,
    },
    /// The credentials do not allow this operation, or the file system does not.
    #[error("not allowed to {operation}: {reason}")]
    AccessDenied {
        /// The operation, as in [`crate::Op`].
        operation: &'static str,
        /// What the store said.
        reason: String,
    },
    /// The store cannot answer now: throttled, timed out, unreachable, broken connection.
    #[error("blob store unavailable ({operation}): {reason}")]
    Unavailable {
        /// The operation, as in [`crate::Op`].
        operation: &'static str,
        /// What the store or the transport said.
        reason: String,
    },
    /// A request that no repetition makes right: bad key, bad part, missing bucket.
    #[error("invalid blob request: {0}")]
    Invalid(String),
    /// The local file system failed (disk backend, or a file given as body).
    #[error("blob file: {0}")]
    Io(#[from] io::Error),
}

impl BlobError {
    /// Whether the same call would fail again for the same reason. [`BlobError::Unavailable`] and
    /// [`BlobError::Io`] (a full disk, for one) may heal; everything else does not by itself.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Unavailable { .. } | Self::Io(_))
    }

    pub(crate) fn not_found(key: &crate::BlobKey) -> Self {
        Self::NotFound { key: key.as_str().to_owned() }
    }

    pub(crate) fn upload_gone(key: &crate::BlobKey) -> Self {
        Self::UploadGone { key: key.as_str().to_owned() }
    }

    pub(crate) fn unavailable(operation: &'static str, reason: impl ToString) -> Self {
        Self::Unavailable { operation, reason: reason.to_string() }
    }

    /// An I/O error seen by a caller of the disk backend, with the two kinds that have a name of their own.
    pub(crate) fn from_io(operation: &'static str, key: &crate::BlobKey, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::not_found(key),
            io::ErrorKind::PermissionDenied => Self::AccessDenied { operation, reason: error.to_string() },
            io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                Self::Invalid(format!("{key} is both a blob and a folder of blobs, which files cannot be"))
            }
            _ => Self::Io(error),
        }
    }
}
