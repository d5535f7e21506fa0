//! Archives read in one pass over a local file, in physical order.
//!
//! ```ignore
//! let mut reader = ArchiveReader::open(file, ArchiveKind::SevenZ, &limits)?;
//! for block in reader.blocks() { if block.unpacked > Some(slice) { refuse(Problem::BlockTooLarge) } }
//! reader.visit(resume_at.., &budget, &mut |member, body| {
//!     match body.copy_to(&mut sink) { Ok(extracted) => commit(member, extracted), Err(e) => fail(member, e.code()) }
//!     if deadline_is_near() { Flow::Stop } else { Flow::Continue }
//! })?;
//! ```

use crate::error::MemberError;
use crate::{ArchiveError, ArchiveKind, Budget, Limits, Name, Problem};
use std::io::{self, Read, Seek, Write};
use std::ops::{Range, RangeBounds};

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file: the only kind that is read.
    File,
    /// A folder.
    Dir,
    /// A link, symbolic or hard, or a reference to another member.
    Link,
    /// Anything else: a device, a pipe, a socket.
    Other,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its place in the archive, from 0. The same on every pass.
    pub ordinal: u32,
    /// Its name.
    pub name: Name,
    /// Unpacked size as declared; `None` where the format does not tell in advance.
    pub size: Option<u64>,
    /// Packed size, where the member has one of its own.
    pub compressed: Option<u64>,
    /// CRC-32 of the unpacked bytes, where the format has it.
    pub crc32: Option<u32>,
    /// What it is.
    pub kind: Kind,
    /// Why its body must not be read; [`Body::copy_to`] returns it as its error.
    pub problem: Option<Problem>,
}

/// What was read of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extracted {
    /// Bytes handed to the sink.
    pub size: u64,
    /// Their CRC-32.
    pub crc32: u32,
    /// Set when the bytes are an archive (and the budget allows one more level): open it with [`Budget::nested`].
    pub archive: Option<ArchiveKind>,
}

/// Members that cannot be read without each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The ordinals; blocks cover all members, in order and without gaps.
    pub ordinals: Range<u32>,
    /// What it unpacks to, as declared; `None` where the format does not tell in advance (a compressed tar).
    pub unpacked: Option<u64>,
    /// What it is packed in.
    pub packed: Option<u64>,
    /// Whether reading its last member means unpacking those before it.
    pub solid: bool,
}

/// Go on or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// With the next member.
    Continue,
    /// No further; the pass ends without looking at the rest.
    Stop,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Every member of the range was visited.
    Complete,
    /// The visitor stopped it.
    Stopped,
}

/// Something an archive can be read from.
pub trait Source: Read + Seek + Send {}
impl<T: Read + Seek + Send> Source for T {}

/// The body of the member being visited. What the visitor leaves unread is passed over.
pub struct Body<'a> {
    input: &'a mut dyn Read,
}

impl Body<'_> {
    /// Writes the whole body to `sink`, checked against declared size and checksum, and paid from the budget.
    ///
    /// The sink gets nothing before the first [`SNIFF_BYTES`](crate::SNIFF_BYTES) were looked at (system files,
    /// archives); what it got before an error must be thrown away.
    ///
    /// # Errors
    /// The member's [`Problem`], found before or while reading.
    pub fn copy_to(&mut self, _sink: &mut dyn Write) -> Result<Extracted, MemberError> {
        Err(MemberError::refused(Problem::UnsupportedMethod, "not yet"))
    }
}

/// The body as a stream, for callers that look at its beginning only. Errors carry a [`MemberError`] inside.
impl Read for Body<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.input.read(buf)
    }
}

/// An archive, opened.
pub struct ArchiveReader {
    kind: ArchiveKind,
}

impl ArchiveReader {
    /// Opens an archive of this kind (see [`sniff`](crate::sniff())) and reads its directory where it has one. zip is
    /// read here too: the archives nested in others, and the ones on a local disk.
    ///
    /// # Errors
    /// Whatever is wrong with the archive as a whole.
    pub fn open(_source: impl Source + 'static, kind: ArchiveKind, _limits: &Limits) -> Result<Self, ArchiveError> {
        Ok(Self { kind })
    }

    /// What it was opened as.
    #[must_use]
    pub fn kind(&self) -> ArchiveKind {
        self.kind
    }

    /// All members in order, where the archive has a directory (zip, 7z, rar); `None` for tar, which tells as it goes.
    #[must_use]
    pub fn members(&self) -> Option<&[Member]> {
        None
    }

    /// What can be read independently: zip members, the folders of a 7z, the runs of a rar that start without a history.
    /// Several readers over the same file may visit different blocks at once. A tar is one block.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &[]
    }

    /// Visits the members whose ordinals are in the range, in physical order. Each is announced once; `body` is read or
    /// not. A member that fails does not stop the next where the format allows it.
    ///
    /// # Errors
    /// What ends the whole pass: damage that hides the next member, a spent budget, IO.
    pub fn visit(
        &mut self,
        _range: impl RangeBounds<u32>,
        _budget: &Budget,
        _visitor: &mut dyn FnMut(&Member, &mut Body<'_>) -> Flow,
    ) -> Result<Pass, ArchiveError> {
        Ok(Pass::Complete)
    }
}
