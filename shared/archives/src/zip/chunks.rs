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
    /// Bytes of the file.
    pub packed: u64,
    /// Bytes between two members that are not worth reading over (members left out).
    pub gap: u64,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self { members: 64, unpacked: 256 << 20, packed: 256 << 20, gap: 1 << 20 }
    }
}

/// Members that lie one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// In the order of their bytes: the order to read them in.
    pub ordinals: Vec<u32>,
    /// The one range that has them all.
    pub bytes: Range<u64>,
    /// What they unpack to, as declared.
    pub unpacked: u64,
}

impl Chunk {
    fn new(entry: &Entry) -> Self {
        Self { ordinals: vec![entry.ordinal], bytes: entry.bytes(), unpacked: entry.size }
    }

    fn takes(&self, entry: &Entry, limits: ChunkLimits) -> bool {
        let bytes = entry.bytes();
        self.ordinals.len() < limits.members
            && self.unpacked.saturating_add(entry.size) <= limits.unpacked
            && bytes.end.saturating_sub(self.bytes.start) <= limits.packed
            && bytes.start >= self.bytes.end
            && bytes.start - self.bytes.end <= limits.gap
    }
}

/// Cuts the readable ones among these entries (all of a directory, or those the caller chose) into chunks, contiguous by
/// offset.
#[must_use]
pub fn plan_chunks<'a>(entries: impl IntoIterator<Item = &'a Entry>, limits: ChunkLimits) -> Vec<Chunk> {
    let mut readable: Vec<&Entry> = entries.into_iter().filter(|entry| entry.is_readable()).collect();
    readable.sort_unstable_by_key(|entry| (entry.header_offset, entry.ordinal));
    let mut chunks: Vec<Chunk> = Vec::new();
    for entry in readable {
        match chunks.last_mut() {
            Some(chunk) if chunk.takes(entry, limits) => {
                chunk.ordinals.push(entry.ordinal);
                chunk.bytes.end = entry.bytes().end;
                chunk.unpacked = chunk.unpacked.saturating_add(entry.size);
            }
            _ => chunks.push(Chunk::new(entry)),
        }
    }
    chunks
}
