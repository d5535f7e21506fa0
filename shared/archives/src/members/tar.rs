//! tar, plain and wrapped: one pass, member by member. Nothing of a body is ever held in memory, and of the records that
//! stand before a member only so much as a name may take.

use super::tar_header::{BLOCK, Entry, Header, Pax};
use super::{Body, Flow, Kind, Member, Pass, Source, Visitor};
use crate::codec;
use crate::error::{ArchiveError, Problem};
use crate::limits::Budget;
use crate::names::{self, Guess, Name};
use crate::sniff::ArchiveKind;
use crate::stream::{Caught, Expect, Packed, Paid, Ratio, Watch, Watched, fill, pass_over};
use std::io::{self, BufReader, Read, SeekFrom};
use std::ops::Range;

/// Longest records before a member that are looked at.
const LONGEST_RECORDS: u64 = 1 << 20;
const BUFFER: usize = 64 << 10;

enum Input<'a> {
    /// What is passed over is not read.
    Plain {
        input: BufReader<Watched<&'a mut dyn Source>>,
        left: u64,
    },
    Wrapped(Caught<Box<dyn Read + 'a>>),
}

impl Read for Input<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain { input, left } => {
                let n = input.read(buf)?;
                *left = left.saturating_sub(n as u64);
                Ok(n)
            }
            Self::Wrapped(input) => input.read(buf),
        }
    }
}

struct Tar<'b, 'i> {
    input: Paid<'b, Input<'i>>,
    watch: Watch,
    guess: Guess,
}

/// A member's header with all that stands before it.
struct Found {
    name: Name,
    entry: Entry,
    size: u64,
    problem: Option<Problem>,
}

fn truncated() -> ArchiveError {
    ArchiveError::refused(Problem::Truncated, "the archive ends within a member")
}

impl Tar<'_, '_> {
    /// A whole block; `false` at the end of the archive's bytes.
    fn block(&mut self, block: &mut [u8; BLOCK]) -> Result<bool, ArchiveError> {
        match fill(&mut self.input, block).map_err(|e| self.watch.judge(e))? {
            BLOCK => Ok(true),
            0 => Ok(false),
            _ => Err(truncated()),
        }
    }

    fn skip(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        if let Input::Plain { input, left } = self.input.get_mut() {
            let Ok(forward) = i64::try_from(bytes) else {
                return Err(truncated());
            };
            let Some(rest) = left.checked_sub(bytes) else {
                return Err(truncated());
            };
            input.seek_relative(forward).map_err(ArchiveError::Read)?;
            *left = rest;
            return Ok(());
        }
        let passed = pass_over(&mut self.input, bytes).map_err(|e| self.watch.judge(e))?;
        if passed < bytes { Err(truncated()) } else { Ok(()) }
    }

    /// What follows the body of a member up to the next block.
    fn padding(size: u64) -> u64 {
        size.wrapping_neg() % BLOCK as u64
    }

    fn skip_body(&mut self, size: u64) -> Result<(), ArchiveError> {
        self.skip(size.checked_add(Self::padding(size)).ok_or_else(truncated)?)
    }

    /// The body of a header that stands before a member; `None` when it is longer than any name.
    fn records(&mut self, size: u64) -> Result<Option<Vec<u8>>, ArchiveError> {
        if size > LONGEST_RECORDS {
            self.skip_body(size)?;
            return Ok(None);
        }
        let mut body = Vec::new();
        let read = (&mut self.input).take(size).read_to_end(&mut body).map_err(|e| self.watch.judge(e))?;
        if (read as u64) < size {
            return Err(truncated());
        }
        self.skip(Self::padding(size))?;
        Ok(Some(body))
    }

    /// The next member; `None` at the end.
    fn next(&mut self, first: bool) -> Result<Option<Found>, ArchiveError> {
        let mut long_name: Option<Vec<u8>> = None;
        let mut pax = Pax::default();
        let mut broken = false;
        let mut nothing_yet = first;
        loop {
            let mut block = [0; BLOCK];
            if !self.block(&mut block)? {
                return Ok(None);
            }
            let header = match Header::read(&block) {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(None),
                Err(_) if nothing_yet => {
                    return Err(ArchiveError::refused(Problem::NotAnArchive, "no tar inside"));
                }
                Err(e) => return Err(e),
            };
            nothing_yet = false;
            match header.entry {
                Entry::LongName => match self.records(header.size)? {
                    Some(mut name) => {
                        name.truncate(name.iter().position(|b| *b == 0).unwrap_or(name.len()));
                        long_name = Some(name);
                    }
                    None => broken = true,
                },
                Entry::Pax => match self.records(header.size)? {
                    Some(records) => pax = Pax::read(&records),
                    None => broken = true,
                },
                Entry::Skipped => self.skip_body(header.size)?,
                _ => {
                    if header.extended {
                        self.skip_sparse_map()?;
                    }
                    return Ok(Some(self.found(header, long_name, pax, broken)));
                }
            }
        }
    }

    fn skip_sparse_map(&mut self) -> Result<(), ArchiveError> {
        let mut block = [0; BLOCK];
        loop {
            if !self.block(&mut block)? {
                return Err(truncated());
            }
            if block[504] == 0 {
                return Ok(());
            }
        }
    }

    fn found(&mut self, header: Header, long_name: Option<Vec<u8>>, pax: Pax, broken: bool) -> Found {
        let declared = pax.path.is_some();
        let raw = pax.path.or(long_name).unwrap_or(header.name);
        let name = self.guess.next_name(&raw, declared);
        // Members without a body stay without one; a size in the records is for files that are too large for the header.
        let size = if matches!(header.entry, Entry::File | Entry::Sparse | Entry::Continued) {
            pax.size.unwrap_or(header.size)
        } else {
            header.size
        };
        let problem = match header.entry {
            _ if broken || pax.broken => Some(Problem::CorruptMember),
            Entry::Link | Entry::Other => Some(Problem::NotAFile),
            Entry::Continued => Some(Problem::MultiVolume),
            Entry::Sparse => Some(Problem::UnsupportedMethod),
            _ if pax.sparse => Some(Problem::UnsupportedMethod),
            _ => None,
        };
        let problem = problem.or_else(|| names::judge(&name));
        // What tar wrote for folders before it had a type for them.
        let entry = if header.entry == Entry::File && raw.ends_with(b"/") { Entry::Dir } else { header.entry };
        Found { name, entry, size, problem }
    }
}

fn member(found: Found, ordinal: u32, budget: &Budget) -> Member {
    let kind = match found.entry {
        Entry::Dir => Kind::Dir,
        Entry::Link => Kind::Link,
        Entry::Other => Kind::Other,
        _ => Kind::File,
    };
    let too_large = found.size > budget.limits().member_bytes;
    Member {
        ordinal,
        name: found.name,
        size: Some(found.size),
        compressed: None,
        crc32: None,
        kind,
        problem: found.problem.or(too_large.then_some(Problem::MemberTooLarge)),
    }
}

/// A pass over the members of the range.
pub(super) fn visit(
    source: &mut dyn Source,
    kind: ArchiveKind,
    range: Range<u32>,
    budget: &Budget,
    visitor: &mut Visitor<'_>,
) -> Result<Pass, ArchiveError> {
    let left = source.seek(SeekFrom::End(0)).map_err(ArchiveError::Read)?;
    source.rewind().map_err(ArchiveError::Read)?;
    let watch = Watch::default();
    let input = BufReader::with_capacity(BUFFER, Watched::new(source, watch.clone()));
    let input = if kind == ArchiveKind::Tar {
        Input::Plain { input, left }
    } else {
        let decoder = codec::for_tar(kind, input, budget.limits()).map_err(|e| watch.judge(e))?;
        Input::Wrapped(Caught::new(decoder))
    };
    let mut ratio = Ratio::new(Packed::Watched(watch.clone()));
    let mut tar = Tar { input: Paid::new(input, budget, &mut ratio), watch, guess: Guess::default() };
    let mut ordinal = 0;
    while ordinal < range.end {
        let Some(found) = tar.next(ordinal == 0)? else {
            return if ordinal == 0 && left == 0 {
                Err(ArchiveError::refused(Problem::NotAnArchive, "an empty file"))
            } else {
                Ok(Pass::Complete)
            };
        };
        budget.enter(1)?;
        let member = member(found, ordinal, budget);
        let size = member.size.unwrap_or_default();
        let mut unread = size;
        if ordinal >= range.start {
            let mut input = (&mut tar.input).take(size);
            let expect = Expect { size: Some(size), crc32: None };
            let flow = visitor(&member, &mut Body::new(&mut input, &member, expect, budget, &tar.watch));
            unread = input.limit();
            if flow == Flow::Stop {
                return Ok(Pass::Stopped);
            }
        }
        tar.skip(unread.checked_add(Tar::padding(size)).ok_or_else(truncated)?)?;
        ordinal += 1;
    }
    Ok(Pass::Complete)
}
