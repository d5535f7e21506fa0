//! Archives read in one pass over a local file, in physical order.
//!
//! ```
//! # use fonds_archives::{ArchiveReader, Budget, Flow, Limits, Pass, sniff};
//! # fn import(file: std::io::Cursor<Vec<u8>>, head: &[u8], resume_at: u32) -> Result<(), fonds_archives::ArchiveError> {
//! # let limits = Limits::default();
//! # let Some(kind) = sniff(head) else { return Ok(()) };
//! let mut reader = ArchiveReader::open(file, kind, &limits)?;
//! let budget = Budget::new(limits);
//! let pass = reader.visit(resume_at.., &budget, &mut |member, body| {
//!     let mut bytes = Vec::new();
//!     match body.copy_to(&mut bytes) {
//!         Ok(extracted) => println!("{}: {} bytes", member.name.text, extracted.size),
//!         Err(error) => println!("{}: {}", member.name.text, error.code()),
//!     }
//!     Flow::Continue // or Flow::Stop before the deadline; resume at `member.ordinal + 1`
//! })?;
//! assert_eq!(pass, Pass::Complete);
//! # Ok(())
//! # }
//! ```

mod body;
#[cfg(feature = "rar")]
mod rar;
mod sevenz;
mod sevenz_survey;
mod tar;
pub(crate) mod tar_header;
mod zip;

pub use body::Body;
pub(crate) use sevenz::problem_of as sevenz_problem;

use crate::error::{ArchiveError, Problem};
use crate::limits::{Budget, Limits};
use crate::names::Name;
use crate::sniff::ArchiveKind;
use crate::stream::{Expect, Watch};
use std::io::{self, Read, Seek};
use std::ops::{Bound, Range, RangeBounds};

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
    /// What it unpacks to, as declared; `None` where the format does not tell in advance (tar).
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

/// What is called for every member of a pass.
pub type Visitor<'a> = dyn FnMut(&Member, &mut Body<'_>) -> Flow + 'a;

/// An archive, opened.
pub struct ArchiveReader {
    kind: ArchiveKind,
    format: Format,
    members: Option<Vec<Member>>,
    blocks: Vec<Block>,
}

enum Format {
    Zip(Box<dyn Source>, crate::zip::Directory),
    Tar(Box<dyn Source>),
    SevenZ(Box<sevenz::SevenZ>),
    #[cfg(feature = "rar")]
    Rar(Box<rar::Rar>),
}

impl ArchiveReader {
    /// Opens an archive of this kind (see [`sniff`](crate::sniff())) and reads its directory where it has one. zip is
    /// read here too: the archives nested in others, and the ones on a local disk.
    ///
    /// # Errors
    /// Whatever is wrong with the archive as a whole.
    pub fn open(source: impl Source + 'static, kind: ArchiveKind, limits: &Limits) -> Result<Self, ArchiveError> {
        let mut source: Box<dyn Source> = Box::new(source);
        let (format, members, blocks) = match kind {
            ArchiveKind::Zip => {
                let directory = crate::zip::read_directory(&mut source, limits)?;
                let members = directory.entries.iter().map(zip::member).collect();
                let blocks = directory.entries.iter().map(zip::block).collect();
                (Format::Zip(source, directory), Some(members), blocks)
            }
            ArchiveKind::SevenZ => {
                let (format, members, blocks) = sevenz::SevenZ::open(source, limits)?;
                (Format::SevenZ(Box::new(format)), Some(members), blocks)
            }
            #[cfg(feature = "rar")]
            ArchiveKind::Rar4 | ArchiveKind::Rar5 => {
                let (format, members, blocks) = rar::Rar::open(source, limits)?;
                (Format::Rar(Box::new(format)), Some(members), blocks)
            }
            #[cfg(not(feature = "rar"))]
            ArchiveKind::Rar4 | ArchiveKind::Rar5 => {
                return Err(ArchiveError::refused(Problem::UnsupportedMethod, "built without rar"));
            }
            _ => {
                let packed = source.seek(io::SeekFrom::End(0)).map_err(ArchiveError::Read)?;
                let block = Block { ordinals: 0..u32::MAX, unpacked: None, packed: Some(packed), solid: true };
                (Format::Tar(source), None, vec![block])
            }
        };
        Ok(Self { kind, format, members, blocks })
    }

    /// What it was opened as.
    #[must_use]
    pub fn kind(&self) -> ArchiveKind {
        self.kind
    }

    /// All members in order, where the archive has a directory (zip, 7z, rar); `None` for tar, which tells as it goes.
    #[must_use]
    pub fn members(&self) -> Option<&[Member]> {
        self.members.as_deref()
    }

    /// What can be read independently: zip members, the folders of a 7z, the members of a rar that is not solid. Several
    /// readers over the same file may visit different blocks at once. A tar is one block of unknown length
    /// (`0..u32::MAX`).
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Visits the members whose ordinals are in the range, in physical order. Each is announced once, with its problem if
    /// it has one; `body` is read or not. A member that fails does not stop the next where the format allows it; where it
    /// does not (damage within a solid block), those behind it are announced with the damage as their problem.
    ///
    /// Every pass over an archive with a directory counts all of its members in the budget once, a tar those it meets.
    ///
    /// # Errors
    /// What ends the whole pass: damage that hides the next member (tar), a spent budget, IO.
    pub fn visit(
        &mut self,
        range: impl RangeBounds<u32>,
        budget: &Budget,
        visitor: &mut Visitor<'_>,
    ) -> Result<Pass, ArchiveError> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u32::MAX,
        };
        let range = start..end.max(start);
        let members = self.members.as_deref().unwrap_or_default();
        budget.enter(members.len() as u64)?;
        match &mut self.format {
            Format::Zip(source, directory) => zip::visit(source.as_mut(), directory, members, range, budget, visitor),
            Format::Tar(source) => tar::visit(source.as_mut(), self.kind, range, budget, visitor),
            Format::SevenZ(format) => sevenz::visit(format, (members, &self.blocks), &range, budget, visitor),
            #[cfg(feature = "rar")]
            Format::Rar(format) => rar::visit(format, members, &range, budget, visitor),
        }
    }
}

impl std::fmt::Debug for ArchiveReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members = self.members.as_ref().map(Vec::len);
        f.debug_struct("ArchiveReader").field("kind", &self.kind).field("members", &members).finish_non_exhaustive()
    }
}

/// Calls the visitor for a member that has no bytes to be read.
fn announce(member: &Member, budget: &Budget, visitor: &mut Visitor<'_>) -> Flow {
    let expect = Expect { size: member.size, crc32: member.crc32 };
    visitor(member, &mut Body::new(&mut io::empty(), member, expect, budget, &Watch::default()))
}

/// Ends a pass whose budget is spent: the member that spent it has its error, no other would fare better.
fn check_spent(budget: &Budget) -> Result<(), ArchiveError> {
    budget.produce(0)
}
