//! Records of the central directory (APPNOTE 4.3.12).

use super::end_record::{u16_at, u32_at, u64_at};
use super::{Entry, Method};
use crate::error::{ArchiveError, Problem};
use crate::limits::Limits;
use crate::names::{self, Guess, Name, NameEncoding};

pub(super) const RECORD_LEN: usize = 46;
/// A local header without its name and extra fields (APPNOTE 4.3.7).
pub(super) const LOCAL_LEN: u64 = 30;

const ENCRYPTED: u16 = 1;
const STRONG: u16 = 1 << 6;
const UTF8: u16 = 1 << 11;
const MASKED: u16 = 1 << 13;

/// The extra fields (APPNOTE 4.5): the first of an id, as far as they are whole.
pub(super) fn extra_field(mut extra: &[u8], id: u16) -> Option<&[u8]> {
    while extra.len() >= 4 {
        let len = usize::from(u16_at(extra, 2));
        let field = extra.get(4..4 + len)?;
        if u16_at(extra, 0) == id {
            return Some(field);
        }
        extra = &extra[4 + len..];
    }
    None
}

/// How long the record at the start of these bytes is; `None` when they are too few to tell or to hold it.
pub(super) fn record_len(bytes: &[u8]) -> Option<usize> {
    let len = |at| usize::from(u16_at(bytes, at));
    let total = RECORD_LEN + len(28) + len(30) + len(32);
    (bytes.len() >= RECORD_LEN && bytes.len() >= total).then_some(total)
}

/// One record, whole. Names that need a guess come back as they are, for [`name_all`].
pub(super) fn read_record(record: &[u8], ordinal: u32, prepended: u64, guess: &mut Guess) -> Entry {
    let name_end = RECORD_LEN + usize::from(u16_at(record, 28));
    let raw = &record[RECORD_LEN..name_end];
    let extra = &record[name_end..name_end + usize::from(u16_at(record, 30))];
    let flags = u16_at(record, 8);
    let wide = Wide::read(record, extra);
    let name = name_of(raw, extra, flags).unwrap_or_else(|| {
        guess.add(raw);
        Name { raw: raw.to_vec(), text: String::new(), encoding: NameEncoding::Cp437 }
    });
    let made_by = record[5];
    let mode = u32_at(record, 38) >> 16;
    let unix = matches!(made_by, 3 | 19);
    let is_dir = raw.ends_with(b"/")
        || (unix && mode & 0o170_000 == 0o040_000)
        || (!unix && raw.ends_with(b"\\") && wide.size == 0);
    let mut entry = Entry {
        ordinal,
        name,
        header_offset: wide.offset.saturating_add(prepended),
        end: 0,
        compressed: wide.compressed,
        size: wide.size,
        crc32: u32_at(record, 16),
        method: Method(u16_at(record, 10)),
        flags,
        is_dir,
        problem: None,
    };
    // What was piped into a zip is stored as the pipe it came through.
    let piped = mode & 0o170_000 == 0o010_000 && wide.size > 0;
    let special = unix && !is_dir && !piped && !matches!(mode & 0o170_000, 0 | 0o100_000);
    entry.problem = first_problem(&entry, wide.disk, wide.broken, special);
    entry
}

/// What is against an entry by its record alone. The order decides which reason is told.
fn first_problem(entry: &Entry, disk: u32, broken: bool, special: bool) -> Option<Problem> {
    let checks = [
        (entry.flags & (ENCRYPTED | STRONG | MASKED) != 0 || entry.method == Method::AES, Problem::Encrypted),
        (broken, Problem::CorruptMember),
        (disk != 0, Problem::MultiVolume),
        (special, Problem::NotAFile),
        (!entry.is_dir && !entry.method.is_supported(), Problem::UnsupportedMethod),
        (entry.method == Method::STORED && entry.size != entry.compressed && !entry.is_dir, Problem::SizeMismatch),
    ];
    checks.into_iter().find(|(holds, _)| *holds).map(|(_, problem)| problem)
}

/// Sizes and place, with the zip64 field (APPNOTE 4.5.3) where the record defers to it.
struct Wide {
    size: u64,
    compressed: u64,
    offset: u64,
    disk: u32,
    /// The record defers to a field that does not have the value.
    broken: bool,
}

impl Wide {
    fn read(record: &[u8], extra: &[u8]) -> Self {
        let mut field = extra_field(extra, 1).unwrap_or_default();
        let mut broken = false;
        let mut wide = |short: u32| {
            if short != u32::MAX {
                return u64::from(short);
            }
            let Some((value, rest)) = field.split_at_checked(8) else {
                broken = true;
                return u64::from(short);
            };
            field = rest;
            u64_at(value, 0)
        };
        let (size, compressed) = (wide(u32_at(record, 24)), wide(u32_at(record, 20)));
        let offset = wide(u32_at(record, 42));
        let disk = match u16_at(record, 34) {
            u16::MAX if field.len() >= 4 => u32_at(field, 0),
            // Written by some for "see the zip64 field" although there is none: a single volume then.
            u16::MAX => 0,
            disk => disk.into(),
        };
        Self { size, compressed, offset, disk, broken }
    }
}

/// Info-ZIP's Unicode path (APPNOTE 4.6.9).
const UNICODE_PATH: u16 = 0x7075;

/// The text of the Unicode path beside a name, whether or not its checksum fits.
pub(super) fn unicode_path(extra: &[u8]) -> Option<&[u8]> {
    extra_field(extra, UNICODE_PATH).and_then(|field| field.get(5..))
}

/// A name that needs no guess.
fn name_of(raw: &[u8], extra: &[u8], flags: u16) -> Option<Name> {
    if flags & UTF8 != 0
        && let Some(name) = Name::certain(raw, true)
    {
        return Some(name);
    }
    let field = extra_field(extra, UNICODE_PATH);
    field.and_then(|field| Name::unicode_path(raw, field)).or_else(|| Name::certain(raw, false))
}

/// Decodes the names that waited for the guess, and judges all of them.
pub(super) fn name_all(entries: &mut [Entry], guess: &Guess) {
    let encoding = guess.encoding();
    for entry in entries {
        if entry.name.text.is_empty() && !entry.name.raw.is_empty() {
            entry.name = Name::decoded(&entry.name.raw, encoding);
        }
        entry.problem = entry.problem.or_else(|| names::judge(&entry.name));
    }
}

/// Gives every entry its place: none may reach into the directory or into another one. Of two that claim the same bytes
/// the first one by place (then by order) keeps them.
pub(super) fn place_all(entries: &mut [Entry], directory_start: u64) {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_unstable_by_key(|i| (entries[*i].header_offset, *i));
    let mut taken_until = 0;
    let mut last: Option<usize> = None;
    for i in order {
        let entry = &mut entries[i];
        let least = LOCAL_LEN.saturating_add(entry.name.raw.len() as u64).saturating_add(entry.compressed);
        let end = entry.header_offset.saturating_add(least);
        entry.end = directory_start;
        if end > directory_start {
            entry.problem = entry.problem.or(Some(Problem::CorruptMember));
            continue;
        }
        if entry.header_offset < taken_until {
            entry.problem = entry.problem.or(Some(Problem::Overlapping));
            continue;
        }
        taken_until = end;
        let start = entry.header_offset;
        if let Some(before) = last.replace(i) {
            entries[before].end = start;
        }
    }
}

/// The caps that can be told from the directory. What an entry declares it must keep: an archive that declares little and
/// has much fails by its size, so that refusing by the declaration loses nothing.
pub(super) fn cap_all(entries: &mut [Entry], limits: &Limits) {
    for entry in entries.iter_mut().filter(|entry| !entry.is_dir) {
        let bomb = entry.size > limits.ratio_floor && entry.size / limits.ratio.max(1) > entry.compressed.max(1);
        if entry.size > limits.member_bytes {
            entry.problem = entry.problem.or(Some(Problem::MemberTooLarge));
        } else if bomb {
            entry.problem = entry.problem.or(Some(Problem::RatioExceeded));
        }
    }
}

/// A directory that does not begin with a record: what it is instead.
pub(super) fn no_record(bytes: &[u8]) -> ArchiveError {
    if bytes.starts_with(b"PK\x06\x08") {
        // Archive extra data (APPNOTE 4.3.11), which stands before an encrypted directory.
        return ArchiveError::refused(Problem::Encrypted, "the directory is encrypted");
    }
    ArchiveError::refused(Problem::CorruptDirectory, "no record where the directory should have one")
}
