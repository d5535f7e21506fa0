//! rar 1.5 to 5. The format's parser and decoders are `rars`'s, which pushes bytes; here they are pulled, so the decoder
//! runs in a thread of its own for the length of a pass. That thread is also where its panics end.

mod pass;
mod pipe;

pub(super) use pass::visit;

use super::{Block, Kind, Member, Source};
use crate::error::{ArchiveError, Problem};
use crate::limits::Limits;
use crate::names::{self, Guess, Name, NameEncoding};
use crate::stream::{Watch, Watched, caught};
use rars::{ArchiveMember, ArchiveMemberDetail, ArchiveReadOptions, AttrSource, Error, ErrorKind};

/// Members are decoded as a stream beyond this.
const BUFFERED: u64 = 1 << 20;
/// A decoder's tables and staging, besides its dictionary and the copy it keeps of it.
const WORKSPACE: u64 = 64 << 20;

pub(super) struct Rar {
    archive: rars::Archive,
    watch: Watch,
    /// Members need those before them: none can be left out.
    solid: bool,
}

fn problem_of(error: &Error) -> Problem {
    let text = || error.to_string();
    match error.kind() {
        ErrorKind::PasswordRequired | ErrorKind::BadPassword => Problem::Encrypted,
        // Decryption is left out of the build: what asks for it is encrypted.
        ErrorKind::UnsupportedFeature if text().contains("encryption") => Problem::Encrypted,
        ErrorKind::UnsupportedFeature | ErrorKind::UnsupportedFormat | ErrorKind::ResourceLimit => {
            Problem::UnsupportedMethod
        }
        ErrorKind::ChecksumMismatch => Problem::CrcMismatch,
        _ => Problem::CorruptMember,
    }
}

fn open_error(error: &Error, watch: &Watch) -> ArchiveError {
    if let Some(fault) = watch.take_fault() {
        return ArchiveError::Read(fault);
    }
    let problem = match error.kind() {
        ErrorKind::ResourceLimit => Problem::TooManyEntries,
        ErrorKind::Io => Problem::Truncated,
        _ if error.to_string().contains("too short") => Problem::Truncated,
        _ => match problem_of(error) {
            known @ (Problem::Encrypted | Problem::UnsupportedMethod) => known,
            _ => Problem::CorruptDirectory,
        },
    };
    ArchiveError::refused(problem, error.to_string())
}

fn options(limits: &Limits) -> ArchiveReadOptions<'static> {
    ArchiveReadOptions::new()
        // The main header, service headers (comments, recovery data) and the end come on top of the members.
        .with_max_header_count(limits.entries.saturating_mul(2).saturating_add(16))
        .with_max_header_bytes(limits.directory_bytes)
        .with_max_reader_workspace_bytes(limits.dictionary_bytes.saturating_mul(2).saturating_add(WORKSPACE))
        .with_rar50_dictionary_size_limit(limits.dictionary_bytes)
        .with_rar50_buffered_decode_limit(BUFFERED)
}

impl Rar {
    pub(super) fn open(
        source: Box<dyn Source>,
        limits: &Limits,
    ) -> Result<(Self, Vec<Member>, Vec<Block>), ArchiveError> {
        let watch = Watch::default();
        let source = Watched::new(source, watch.clone());
        let read = || rars::ArchiveReader::read_reader_with_options(source, options(limits));
        let archive = caught("the headers break their reader", read)?.map_err(|e| open_error(&e, &watch))?;
        let (volume, solid) = match &archive {
            rars::Archive::Rar15To40(archive) => (archive.main.is_volume(), archive.main.is_solid()),
            rars::Archive::Rar50Plus(archive) => (archive.main.is_volume(), archive.main.is_solid()),
            _ => return Err(ArchiveError::refused(Problem::UnsupportedMethod, "rar of before 1.5")),
        };
        let found: Vec<ArchiveMember> = archive.members().collect();
        if volume || found.iter().any(|m| m.meta.is_split_before || m.meta.is_split_after) {
            return Err(ArchiveError::refused(Problem::MultiVolume, "one volume of several"));
        }
        if found.len() as u64 > limits.entries {
            return Err(ArchiveError::refused(Problem::TooManyEntries, format!("{} members", found.len())));
        }
        let solid = solid || found.iter().any(ArchiveMember::is_solid);
        let members = members(&found, limits);
        let blocks = blocks(&members, solid);
        Ok((Self { archive, watch, solid }, members, blocks))
    }
}

fn members(found: &[ArchiveMember], limits: &Limits) -> Vec<Member> {
    let mut guess = Guess::default();
    let undeclared = |m: &&ArchiveMember| !m.name_is_unicode() && std::str::from_utf8(&m.meta.name).is_err();
    found.iter().filter(undeclared).for_each(|m| guess.add(&m.meta.name));
    let guessed = guess.encoding();
    let member = |(i, m): (usize, &ArchiveMember)| {
        let name = name(m, guessed);
        let kind = kind(m);
        let problem = match kind {
            Kind::Link | Kind::Other => Some(Problem::NotAFile),
            _ if m.meta.is_encrypted => Some(Problem::Encrypted),
            Kind::File if dictionary(m) > limits.dictionary_bytes => Some(Problem::UnsupportedMethod),
            _ => names::judge(&name),
        };
        let too_large = (m.meta.unpacked_size > limits.member_bytes).then_some(Problem::MemberTooLarge);
        Member {
            ordinal: u32::try_from(i).unwrap_or(u32::MAX),
            name,
            size: Some(m.meta.unpacked_size),
            compressed: Some(m.meta.packed_size),
            crc32: match &m.detail {
                ArchiveMemberDetail::Rar15To40 { crc32, .. } => Some(*crc32),
                ArchiveMemberDetail::Rar50Plus { crc32, .. } => *crc32,
                _ => None,
            },
            kind,
            problem: problem.or(too_large),
        }
    };
    found.iter().enumerate().map(member).collect()
}

fn name(m: &ArchiveMember, guessed: NameEncoding) -> Name {
    let raw = m.meta.name.as_slice();
    if let ArchiveMemberDetail::Rar15To40 { unicode_name: Some(wire), .. } = &m.detail {
        let text = String::from_utf8_lossy(raw).into_owned();
        return Name { raw: wire.clone(), ..Name::utf16(text) };
    }
    Name::new(raw, m.name_is_unicode(), guessed)
}

/// Folders and links as the format has them, and by the Unix mode where one is stored.
fn kind(m: &ArchiveMember) -> Kind {
    let unix = if m.meta.attr_source() == AttrSource::Unix { m.meta.file_attr & 0o170_000 } else { 0 };
    match unix {
        _ if m.meta.is_redirection => Kind::Link,
        0o120_000 => Kind::Link,
        0o040_000 => Kind::Dir,
        _ if m.meta.is_directory => Kind::Dir,
        0 | 0o100_000 => Kind::File,
        _ => Kind::Other,
    }
}

/// What a rar 5 member declares: 128 KiB by a power of two, in rar 7 with 32nds on top. That of rar 4 is 4 MiB at most.
fn dictionary(m: &ArchiveMember) -> u64 {
    let ArchiveMemberDetail::Rar50Plus { compression_info: info, .. } = &m.detail else {
        return 0;
    };
    let is_7 = info & 0x3f != 0;
    let power = info >> 10 & if is_7 { 0x1f } else { 0x0f };
    let base = 0x2_0000_u64 << power;
    if m.meta.is_stored {
        0
    } else if is_7 {
        base.saturating_add(base / 32 * (info >> 15 & 0x1f))
    } else {
        base
    }
}

fn blocks(members: &[Member], solid: bool) -> Vec<Block> {
    let sum = |of: fn(&Member) -> Option<u64>| Some(members.iter().filter_map(of).fold(0, u64::saturating_add));
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    if solid && count > 0 {
        return vec![Block {
            ordinals: 0..count,
            unpacked: sum(|m| m.size),
            packed: sum(|m| m.compressed),
            solid: true,
        }];
    }
    let alone =
        |m: &Member| Block { ordinals: m.ordinal..m.ordinal + 1, unpacked: m.size, packed: m.compressed, solid: false };
    members.iter().map(alone).collect()
}
