//! zip through the same door as the other archives: nested ones, and those on a local disk.

use super::{Block, Body, Flow, Kind, Member, Pass, Source, Visitor};
use crate::error::ArchiveError;
use crate::limits::Budget;
use crate::stream::{Expect, Watch};
use crate::zip::{self, Directory, Entry};
use std::io::{self, SeekFrom};
use std::ops::Range;

pub(super) fn member(entry: &Entry) -> Member {
    Member {
        ordinal: entry.ordinal,
        name: entry.name.clone(),
        size: Some(entry.size),
        compressed: Some(entry.compressed),
        crc32: Some(entry.crc32),
        kind: if entry.is_dir { Kind::Dir } else { Kind::File },
        problem: entry.problem,
    }
}

pub(super) fn block(entry: &Entry) -> Block {
    Block {
        ordinals: entry.ordinal..entry.ordinal + 1,
        unpacked: Some(entry.size),
        packed: Some(entry.compressed),
        solid: false,
    }
}

pub(super) fn visit(
    source: &mut dyn Source,
    directory: &Directory,
    members: &[Member],
    range: Range<u32>,
    budget: &Budget,
    visitor: &mut Visitor<'_>,
) -> Result<Pass, ArchiveError> {
    for (entry, member) in directory.entries.iter().zip(members).filter(|(e, _)| range.contains(&e.ordinal)) {
        let expect = Expect { size: member.size, crc32: member.crc32 };
        let mut flow = None;
        if entry.is_readable() {
            source.seek(SeekFrom::Start(entry.header_offset)).map_err(ArchiveError::Read)?;
            let opened = zip::open(entry, &mut &mut *source, budget, |decoded, watch| {
                flow = Some(visitor(member, &mut Body::new(decoded, member, expect, budget, watch)));
                Ok(())
            });
            if let (Err(error), None) = (opened, flow) {
                let problem = match error {
                    ArchiveError::Refused { problem, .. } => problem,
                    io => return Err(io),
                };
                let failed = Member { problem: Some(problem), ..member.clone() };
                flow = Some(super::announce(&failed, budget, visitor));
            }
        }
        let flow = flow.unwrap_or_else(|| {
            let mut nothing = io::empty();
            visitor(member, &mut Body::new(&mut nothing, member, expect, budget, &Watch::default()))
        });
        if flow == Flow::Stop {
            return Ok(Pass::Stopped);
        }
        super::check_spent(budget)?;
    }
    Ok(Pass::Complete)
}
