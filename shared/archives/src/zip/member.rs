//! Reading members.

use super::Entry;
use super::central::{LOCAL_LEN, extra_field, unicode_path};
use super::end_record::{u16_at, u32_at, u64_at};
use crate::codec;
use crate::error::{MemberError, Problem};
use crate::stream::{Caught, Expect, Packed, Paid, Ratio, Watch, Watched, copy, fill, pass_over};
use crate::{Budget, Extracted};
use std::io::{self, BufReader, Read, Write};

const LOCAL: usize = LOCAL_LEN as usize;
/// What is read at once of packed data.
const BUFFER: usize = 64 << 10;
const DESCRIPTOR: u16 = 1 << 3;

/// Reads one member. `input` begins at `entry.header_offset` and has at least the bytes of [`Entry::bytes`] (what lies
/// beyond is not looked at).
///
/// The sink gets nothing before the first [`SNIFF_BYTES`](crate::SNIFF_BYTES) were looked at (system files, archives);
/// what it got before an error must be thrown away.
///
/// # Errors
/// Any [`Problem`] of a member; [`MemberError::Read`] and [`MemberError::Sink`] as they come.
/// `ARCHIVE_TOO_LARGE` means that the budget is spent: no other member will fare better.
pub fn read_member(
    entry: &Entry,
    input: &mut dyn Read,
    budget: &Budget,
    sink: &mut dyn Write,
) -> Result<Extracted, MemberError> {
    open(entry, input, budget, |decoded, watch| {
        let expect = Expect { size: Some(entry.size), crc32: Some(entry.crc32) };
        copy(decoded, expect, &entry.name.text, budget, sink, watch)
    })
}

/// Opens a member for whoever reads it: the decoded bytes, and what watches the packed ones.
pub(crate) fn open<T>(
    entry: &Entry,
    input: &mut dyn Read,
    budget: &Budget,
    read: impl FnOnce(&mut dyn Read, &Watch) -> Result<T, MemberError>,
) -> Result<T, MemberError> {
    if let Some(problem) = entry.problem {
        return Err(MemberError::refused(problem, "refused by the directory"));
    }
    if entry.is_dir {
        return Err(MemberError::refused(Problem::NotAFile, "a folder"));
    }
    let watch = Watch::default();
    let mut input = Watched::new(input, watch.clone());
    let header = local_header(entry, &mut input).map_err(|e| watch.judge(e))?;
    let data_start = entry.header_offset.saturating_add(header.len);
    if data_start.saturating_add(entry.compressed) > entry.end {
        return Err(MemberError::refused(Problem::Overlapping, "its bytes reach into the next member's"));
    }
    let packed = BufReader::with_capacity(buffer_for(entry.compressed), input.take(entry.compressed));
    let decoder = codec::for_member(entry.method, header.flags, entry.size, packed, budget.limits())?;
    let mut ratio = Ratio::new(Packed::Known(entry.compressed));
    read(&mut Paid::new(Caught::new(decoder), budget, &mut ratio), &watch)
}

/// A buffer that need not be larger than what is to be read through it.
fn buffer_for(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(BUFFER).clamp(512, BUFFER)
}

struct LocalHeader {
    len: u64,
    flags: u16,
}

/// Reads the local header (APPNOTE 4.3.7) and compares it with the directory.
fn local_header(entry: &Entry, input: &mut dyn Read) -> io::Result<LocalHeader> {
    let mut fixed = [0; LOCAL];
    if fill(input, &mut fixed)? < LOCAL {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut variable = vec![0; usize::from(u16_at(&fixed, 26)) + usize::from(u16_at(&fixed, 28))];
    if !fixed.starts_with(b"PK\x03\x04") {
        return Err(refuse(Problem::CorruptMember, "no header where the directory says"));
    }
    if fill(input, &mut variable)? < variable.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (name, extra) = variable.split_at(usize::from(u16_at(&fixed, 26)));
    compare(entry, &fixed, name, extra)?;
    Ok(LocalHeader { len: LOCAL_LEN + variable.len() as u64, flags: u16_at(&fixed, 6) })
}

fn refuse(problem: Problem, detail: &'static str) -> io::Error {
    io::Error::other(MemberError::refused(problem, detail))
}

/// A header that says something else than the directory makes two archives of one: refused, whichever is right.
fn compare(entry: &Entry, fixed: &[u8], name: &[u8], extra: &[u8]) -> io::Result<()> {
    let flags = u16_at(fixed, 6);
    if flags & 1 != 0 {
        return Err(refuse(Problem::Encrypted, "encrypted by its own header"));
    }
    if u16_at(fixed, 8) != entry.method.0 {
        return Err(refuse(Problem::CorruptMember, "another method than in the directory"));
    }
    // Old writers of the .NET framework have `\` in one of the two.
    let same_byte = |(a, b): (&u8, &u8)| a == b || matches!((a, b), (b'/', b'\\') | (b'\\', b'/'));
    let same_bytes = name.len() == entry.name.raw.len() && name.iter().zip(&entry.name.raw).all(same_byte);
    // A placeholder (`xx`) with the real name in its Unicode path: the names are the same then.
    let same_path = unicode_path(extra).is_some_and(|path| path == entry.name.text.as_bytes());
    if !same_bytes && !same_path {
        return Err(refuse(Problem::CorruptMember, "another name than in the directory"));
    }
    if flags & DESCRIPTOR != 0 {
        return Ok(());
    }
    let mut wide = extra_field(extra, 1).unwrap_or_default();
    let mut size = |short: u32| match wide.split_at_checked(8) {
        Some((value, rest)) if short == u32::MAX => {
            wide = rest;
            u64_at(value, 0)
        }
        _ => u64::from(short),
    };
    let (unpacked, packed) = (size(u32_at(fixed, 22)), size(u32_at(fixed, 18)));
    // Zero is what writers leave there that did not come back to fill it in.
    if (unpacked != 0 && unpacked != entry.size) || (packed != 0 && packed != entry.compressed) {
        return Err(refuse(Problem::SizeMismatch, "another size than in the directory"));
    }
    let crc32 = u32_at(fixed, 14);
    if crc32 != 0 && crc32 != entry.crc32 {
        return Err(refuse(Problem::CrcMismatch, "another checksum than in the directory"));
    }
    Ok(())
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
        let Some(gap) = entry.header_offset.checked_sub(self.position) else {
            return Err(MemberError::refused(Problem::Overlapping, "before the one read last"));
        };
        let passed = pass_over(&mut self.input, gap).map_err(MemberError::Read)?;
        self.position += passed;
        if passed < gap {
            return Err(MemberError::refused(Problem::Truncated, "the range ends before the member"));
        }
        let watch = Watch::default();
        let mut input = Watched::new((&mut self.input).take(entry.bytes().end - entry.header_offset), watch.clone());
        let result = read_member(entry, &mut input, budget, sink);
        self.position += watch.consumed();
        result
    }
}
