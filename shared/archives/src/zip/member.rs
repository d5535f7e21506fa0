//! Reading members.

use super::Entry;
use crate::error::MemberError;
use crate::{Budget, Extracted, Problem};
use std::io::{Read, Write};

/// Reads one member. `input` begins at `entry.header_offset` and has at least the bytes up to `entry.end` (what lies
/// beyond is not looked at).
///
/// The sink gets nothing before the first [`SNIFF_BYTES`](crate::SNIFF_BYTES) were looked at (system files, archives);
/// what it got before an error must be thrown away.
///
/// # Errors
/// Any [`Problem`] of a member; [`MemberError::Read`] and [`MemberError::Sink`] as they come.
/// `ARCHIVE_TOO_LARGE` means that the budget is spent: no other member will fare better.
pub fn read_member(
    _entry: &Entry,
    _input: &mut dyn Read,
    _budget: &Budget,
    _sink: &mut dyn Write,
) -> Result<Extracted, MemberError> {
    Err(MemberError::refused(Problem::UnsupportedMethod, "not yet"))
}

/// Reads the members of a chunk from the bytes of its range, in the order of its ordinals; a member that fails does not
/// stop the next.
#[derive(Debug)]
pub struct ChunkReader<R> {
    input: R,
    position: u64,
}

impl<R: Read> ChunkReader<R> {
    /// `input` begins at `start`, which is [`Chunk::bytes`](super::Chunk)`.start`.
    pub fn new(start: u64, input: R) -> Self {
        Self { input, position: start }
    }

    /// As [`read_member`], after going forward to the entry.
    ///
    /// # Errors
    /// As [`read_member`]; entries out of order are `OVERLAPPING`.
    pub fn read_member(
        &mut self,
        entry: &Entry,
        budget: &Budget,
        sink: &mut dyn Write,
    ) -> Result<Extracted, MemberError> {
        let _ = self.position;
        read_member(entry, &mut self.input, budget, sink)
    }
}
