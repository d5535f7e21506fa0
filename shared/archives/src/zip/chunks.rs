//! Cutting the entries into ranged reads.

use super::Entry;
use std::ops::Range;

/// How large a chunk may be. A single member may be larger; it is a chunk of its own then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Members.
    pub members: usize,
    /// Unpacked bytes, as declared.
    pub unpacked: u64,
    /// Bytes between two members that are not worth reading over (members left out).
    pub gap: u64,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self { members: 64, unpacked: 256 << 20, gap: 1 << 20 }
    }
}

/// Members that lie one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// In the order of their bytes: the order to read them in.
    pub ordinals: Vec<u32>,
    /// The one range that has them all.
    pub bytes: Range<u64>,
}

/// Cuts the readable ones among these entries (all of a directory, or those the caller chose) into chunks, contiguous by
/// offset.
#[must_use]
pub fn plan_chunks<'a>(_entries: impl IntoIterator<Item = &'a Entry>, _limits: ChunkLimits) -> Vec<Chunk> {
    Vec::new()
}
