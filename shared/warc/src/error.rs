use std::io;

/// Why a record could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WarcError {
    /// The output or a body reader failed.
    #[error("WARC input or output failed")]
    Io(#[from] io::Error),
    /// A body file was not the same bytes in the writing pass as in the hashing pass.
    #[error("the body changed while it was written")]
    BodyChanged,
    /// A body file ended before its stated length.
    #[error("the body has {got} of {expected} bytes")]
    BodyShort {
        /// Length stated by the caller, bytes.
        expected: u64,
        /// Bytes actually there.
        got: u64,
    },
    /// The body does not have the digest the caller said it has.
    #[error("the body does not have the expected digest")]
    PayloadMismatch,
    /// An earlier write failed midway, so what follows would be unreadable.
    #[error("an earlier record failed to be written")]
    Poisoned,
}

impl WarcError {
    /// Whether writing the same record again is bound to fail the same way.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Io(_) | Self::BodyChanged)
    }
}
