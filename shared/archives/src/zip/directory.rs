//! The directory reader: asks for ranges, ends in entries.

use super::Entry;
use crate::{ArchiveError, Limits, Problem};
use std::ops::Range;

/// What the directory says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// In the order of the directory; `entries[i].ordinal == i`.
    pub entries: Vec<Entry>,
    /// Where the directory lies: no member's bytes reach beyond its start.
    pub bytes: Range<u64>,
    /// Bytes in front of the archive (a self-extractor's program, for example).
    pub prepended: u64,
    /// The archive's comment, as it stands.
    pub comment: Vec<u8>,
}

/// Reads the end record and the central directory without IO of its own.
///
/// ```ignore
/// let mut reader = DirectoryReader::new(total_len, &limits);
/// while let Some(range) = reader.wants() {
///     let bytes = get(range.clone());
///     reader.feed(range.start, &bytes)?;
/// }
/// let directory = reader.finish()?;
/// ```
#[derive(Debug)]
pub struct DirectoryReader {
    _total_len: u64,
    _limits: Limits,
}

impl DirectoryReader {
    /// For a file of this many bytes.
    #[must_use]
    pub fn new(total_len: u64, limits: &Limits) -> Self {
        Self { _total_len: total_len, _limits: limits.clone() }
    }

    /// The bytes it needs next; `None` when it is done. Ranges are at most a few MiB and lie within the file.
    #[must_use]
    pub fn wants(&self) -> Option<Range<u64>> {
        None
    }

    /// Takes the bytes of the range it wants: all of it, from its start.
    ///
    /// # Errors
    /// Whatever is wrong with the archive as a whole; `TRUNCATED` when fewer bytes are given than wanted.
    pub fn feed(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), ArchiveError> {
        Ok(())
    }

    /// The directory.
    ///
    /// # Errors
    /// `TRUNCATED` when it still wants bytes.
    pub fn finish(self) -> Result<Directory, ArchiveError> {
        Err(ArchiveError::refused(Problem::Truncated, "the directory was not read"))
    }
}
