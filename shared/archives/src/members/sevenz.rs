//! 7z. The format's parser and decoders are `sevenz_rust2`'s; what is its own here: the survey before it, so that a header
//! cannot ask for more memory than it has members, checksums per member, so that one bad member of a solid block does not
//! end the block, and a refusal for every member that lies behind real damage.

use super::{Block, Body, Flow, Kind, Member, Pass, Source, Visitor, announce, check_spent, sevenz_survey};
use crate::error::{ArchiveError, Problem};
use crate::limits::{Budget, Limits};
use crate::names::{self, Name};
use crate::stream::{Caught, Expect, Packed, Paid, Ratio, Watch, Watched, caught};
use sevenz_rust2::{Archive, BlockDecoder, Error, Password};
use std::io::{self, Read};
use std::ops::Range;

type Watching = Watched<Box<dyn Source>>;

pub(super) struct SevenZ {
    archive: Archive,
    source: Watching,
    watch: Watch,
}

/// What its errors mean for a member. Those of IO have been told apart before.
pub(crate) fn problem_of(error: &Error) -> Problem {
    match error {
        Error::ChecksumVerificationFailed => Problem::CrcMismatch,
        Error::UnsupportedCompressionMethod(_) | Error::MaxMemLimited { .. } | Error::Unsupported(_) => {
            Problem::UnsupportedMethod
        }
        Error::PasswordRequired | Error::MaybeBadPassword(_) => Problem::Encrypted,
        _ => Problem::CorruptMember,
    }
}

fn open_error(error: Error, watch: &Watch) -> ArchiveError {
    if let Some(fault) = watch.take_fault() {
        return ArchiveError::Read(fault);
    }
    let problem = match &error {
        Error::BadSignature(_) => Problem::NotAnArchive,
        Error::MaxMemLimited { .. } => Problem::TooManyEntries,
        Error::Io(e, _) if e.kind() == io::ErrorKind::UnexpectedEof => Problem::Truncated,
        other => match problem_of(other) {
            known @ (Problem::Encrypted | Problem::UnsupportedMethod) => known,
            _ => Problem::CorruptDirectory,
        },
    };
    ArchiveError::refused(problem, error.to_string())
}

fn kib(bytes: u64) -> usize {
    usize::try_from(bytes / 1024).unwrap_or(usize::MAX / 1024)
}

impl SevenZ {
    pub(super) fn open(
        source: Box<dyn Source>,
        limits: &Limits,
    ) -> Result<(Self, Vec<Member>, Vec<Block>), ArchiveError> {
        let watch = Watch::default();
        let mut source = Watched::new(source, watch.clone());
        let survey = || sevenz_survey::survey(&mut source, limits, &watch);
        let has_header = caught("the header breaks its reader", survey)??;
        let read = || Archive::read_with_memory_limit(&mut source, &Password::empty(), kib(limits.directory_bytes));
        let mut archive = if has_header {
            caught("the header breaks its reader", read)?.map_err(|e| open_error(e, &watch))?
        } else {
            Archive::default()
        };
        if archive.files.len() as u64 > limits.entries {
            let detail = format!("{} members", archive.files.len());
            return Err(ArchiveError::refused(Problem::TooManyEntries, detail));
        }
        let members = members(&archive, limits);
        let blocks = blocks(&archive);
        // Its checks end a whole block at the first bad member; ours, which have the same numbers, do not.
        archive.files.iter_mut().for_each(|file| file.has_crc = false);
        archive.blocks.iter_mut().for_each(|block| block.has_crc = false);
        Ok((Self { archive, source, watch }, members, blocks))
    }
}

fn members(archive: &Archive, limits: &Limits) -> Vec<Member> {
    let member = |(i, file): (usize, &sevenz_rust2::ArchiveEntry)| {
        let name = Name::utf16(file.name.clone());
        let mode = if file.has_windows_attributes { file.windows_attributes } else { 0 };
        let kind = kind(file.is_directory, mode);
        let problem = match kind {
            _ if file.is_anti_item => Some(Problem::NotAFile),
            Kind::Link | Kind::Other => Some(Problem::NotAFile),
            _ if archive.is_file_encrypted(i) && file.has_stream => Some(Problem::Encrypted),
            _ => names::judge(&name),
        };
        let too_large = (file.size > limits.member_bytes).then_some(Problem::MemberTooLarge);
        Member {
            ordinal: u32::try_from(i).unwrap_or(u32::MAX),
            name,
            size: Some(if file.has_stream { file.size } else { 0 }),
            compressed: None,
            crc32: file.has_crc.then(|| u32::try_from(file.crc).unwrap_or_default()),
            kind,
            problem: problem.or(too_large),
        }
    };
    archive.files.iter().enumerate().map(member).collect()
}

/// Windows attributes; p7zip sets bit 15 and puts the Unix mode into the upper half. Bit 10 is a reparse point: a link.
fn kind(is_directory: bool, attributes: u32) -> Kind {
    let unix = if attributes & 0x8000 != 0 { attributes >> 16 & 0o170_000 } else { 0 };
    match unix {
        0o120_000 => Kind::Link,
        0o040_000 => Kind::Dir,
        _ if is_directory => Kind::Dir,
        0 | 0o100_000 if attributes & 0x400 != 0 => Kind::Link,
        0 | 0o100_000 => Kind::File,
        _ => Kind::Other,
    }
}

/// The files of a block: from the first of its own to the first of the next. Those without a body belong to the block
/// before them, or to the first one.
fn blocks(archive: &Archive) -> Vec<Block> {
    let count = u32::try_from(archive.files.len()).unwrap_or(u32::MAX);
    let mut packed = archive.pack_sizes().iter();
    let mut found: Vec<Block> = Vec::new();
    for (i, block) in archive.blocks.iter().enumerate() {
        let packed_streams = archive.stream_map.block_first_pack_stream_index();
        let first = packed_streams.get(i).copied().unwrap_or_default();
        let next = packed_streams.get(i + 1).copied().unwrap_or(archive.pack_sizes().len());
        let streams = next.saturating_sub(first);
        let packed: u64 = packed.by_ref().take(streams).fold(0, |sum, size| sum.saturating_add(*size));
        let start = archive.stream_map.block_first_file_index.get(i).copied().unwrap_or_default();
        let start = if found.is_empty() { 0 } else { u32::try_from(start).unwrap_or(count) };
        if let Some(before) = found.last_mut() {
            before.ordinals.end = start.max(before.ordinals.start);
        }
        let start = found.last().map_or(0, |before| before.ordinals.end);
        found.push(Block {
            ordinals: start..count,
            unpacked: Some(block.get_unpack_size()),
            packed: Some(packed),
            solid: false,
        });
    }
    if found.is_empty() && count > 0 {
        found.push(Block { ordinals: 0..count, unpacked: Some(0), packed: Some(0), solid: false });
    }
    for block in &mut found {
        let files = archive.files.get(block.ordinals.start as usize..block.ordinals.end as usize).unwrap_or_default();
        block.solid = files.iter().filter(|file| file.has_stream).count() > 1;
    }
    found
}

/// One pass over the blocks that have members of the range.
pub(super) fn visit(
    format: &mut SevenZ,
    (members, blocks): (&[Member], &[Block]),
    range: &Range<u32>,
    budget: &Budget,
    visitor: &mut Visitor<'_>,
) -> Result<Pass, ArchiveError> {
    for (index, block) in blocks.iter().enumerate() {
        if block.ordinals.start >= range.end || block.ordinals.end <= range.start {
            continue;
        }
        let mut pass = BlockPass {
            members,
            range,
            budget,
            visitor,
            block,
            next: block.ordinals.start,
            stopped: false,
            dead: None,
        };
        pass.run(format, index)?;
        if pass.stopped {
            return Ok(Pass::Stopped);
        }
        check_spent(budget)?;
    }
    Ok(Pass::Complete)
}

/// A pass over one block.
struct BlockPass<'a, 'v> {
    members: &'a [Member],
    range: &'a Range<u32>,
    budget: &'a Budget,
    visitor: &'a mut Visitor<'v>,
    block: &'a Block,
    /// The ordinal that comes next.
    next: u32,
    stopped: bool,
    /// Why nothing more can be read of the block.
    dead: Option<Problem>,
}

impl BlockPass<'_, '_> {
    fn run(&mut self, format: &mut SevenZ, index: usize) -> Result<(), ArchiveError> {
        let SevenZ { archive, source, watch } = format;
        let first = archive.stream_map.block_first_file_index.get(index).copied();
        let encrypted = first.is_some_and(|first| archive.is_file_encrypted(first));
        if archive.blocks.get(index).is_some() && !encrypted {
            let first = first.and_then(|first| u32::try_from(first).ok()).unwrap_or_default();
            self.announce_until(first);
            let memory = kib(self.budget.limits().dictionary_bytes);
            let password = Password::empty();
            let mut ratio = Ratio::new(Packed::Known(self.block.packed.unwrap_or_default()));
            let decoder = BlockDecoder::new_with_memory_limit(1, memory, index, archive, &password, source);
            let decode = || decoder.for_each_entries(&mut |_, body| Ok(self.one(body, &mut ratio, watch)));
            let result = caught("the decoder gave up", decode);
            if let Some(fault) = watch.take_fault() {
                return Err(ArchiveError::Read(fault));
            }
            let failure = match result {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(problem_of(&error)),
                Err(_) => Some(Problem::CorruptMember),
            };
            self.dead = self.dead.or(failure);
        }
        self.announce_until(self.block.ordinals.end);
        Ok(())
    }

    /// Announces what is not read: members without a body, and those behind damage.
    fn announce_until(&mut self, ordinal: u32) {
        while self.next < ordinal && !self.stopped {
            let member = self.members.get(self.next as usize);
            if let Some(member) = member.filter(|_| self.range.contains(&self.next)) {
                let lost = self.dead.filter(|_| member.size.is_some_and(|size| size > 0));
                let member = Member { problem: member.problem.or(lost), ..member.clone() };
                self.stopped = announce(&member, self.budget, self.visitor) == Flow::Stop;
            }
            self.next += 1;
        }
    }

    /// One file of the block; whether to go on.
    fn one(&mut self, body: &mut dyn Read, ratio: &mut Ratio, watch: &Watch) -> bool {
        let Some(member) = self.members.get(self.next as usize).filter(|_| self.next < self.range.end) else {
            return false;
        };
        self.next += 1;
        let mut input = Paid::new(Caught::new(body), self.budget, ratio);
        if self.range.contains(&member.ordinal) {
            let expect = Expect { size: member.size, crc32: member.crc32 };
            let flow = (self.visitor)(member, &mut Body::new(&mut input, member, expect, self.budget, watch));
            self.stopped = flow == Flow::Stop;
        }
        if self.stopped || self.next >= self.range.end {
            return false;
        }
        match io::copy(&mut input, &mut io::sink()) {
            Ok(_) => true,
            Err(error) => {
                self.dead = Some(watch.judge(error).problem().unwrap_or(Problem::CorruptMember));
                false
            }
        }
    }
}
