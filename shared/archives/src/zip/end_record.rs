//! The end records (APPNOTE 4.3.14 to 4.3.16), found and read in the file's last bytes.

use crate::error::{ArchiveError, Problem};

pub(super) const END_LEN: usize = 22;
const LOCATOR_LEN: usize = 20;
pub(super) const END64_LEN: usize = 56;
/// The longest a tail can be that must be looked through: the record, its comment, the locator before it.
pub(super) const LONGEST_END: u64 = (END_LEN + 0xffff + LOCATOR_LEN + END64_LEN) as u64;

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
}

/// What an end record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EndRecord {
    /// Where it begins in the file.
    pub(super) at: u64,
    pub(super) disk: u32,
    pub(super) directory_disk: u32,
    pub(super) disk_entries: u64,
    pub(super) entries: u64,
    pub(super) size: u64,
    pub(super) offset: u64,
    pub(super) comment: Vec<u8>,
    /// Where the zip64 locator says the zip64 record is, if there is a locator.
    pub(super) end64_at: Option<u64>,
    /// How many volumes the locator knows of.
    pub(super) volumes: u32,
}

/// Finds the end record in the tail, which begins at `start`. A record whose comment ends exactly with the file is
/// believed before one with something behind it.
pub(super) fn find(tail: &[u8], start: u64) -> Option<EndRecord> {
    let mut fallback = None;
    for at in (0..=tail.len().checked_sub(END_LEN)?).rev() {
        if !tail[at..].starts_with(b"PK\x05\x06") {
            continue;
        }
        let end = at + END_LEN + usize::from(u16_at(tail, at + 20));
        if end == tail.len() {
            return Some(read(tail, at, end, start));
        }
        if end < tail.len() && fallback.is_none() {
            fallback = Some((at, end));
        }
    }
    fallback.map(|(at, end)| read(tail, at, end, start))
}

fn read(tail: &[u8], at: usize, end: usize, start: u64) -> EndRecord {
    let locator = at.checked_sub(LOCATOR_LEN).map(|l| &tail[l..at]).filter(|l| l.starts_with(b"PK\x06\x07"));
    EndRecord {
        at: start + at as u64,
        disk: u16_at(tail, at + 4).into(),
        directory_disk: u16_at(tail, at + 6).into(),
        disk_entries: u16_at(tail, at + 8).into(),
        entries: u16_at(tail, at + 10).into(),
        size: u32_at(tail, at + 12).into(),
        offset: u32_at(tail, at + 16).into(),
        comment: tail[at + END_LEN..end].to_vec(),
        end64_at: locator.map(|l| u64_at(l, 8)),
        volumes: locator.map_or(1, |l| u32_at(l, 16)),
    }
}

impl EndRecord {
    /// Where the directory (with the zip64 record, if any) must end.
    pub(super) fn records_start(&self) -> u64 {
        if self.end64_at.is_some() { self.at.saturating_sub(LOCATOR_LEN as u64) } else { self.at }
    }

    /// Takes the values of the zip64 record. A record that does not defer to it must agree with it: some writers cut the
    /// count off instead of marking it.
    pub(super) fn merge64(&mut self, record: &[u8]) -> Result<(), ArchiveError> {
        let (disk, directory_disk) = (u32_at(record, 16), u32_at(record, 20));
        let (disk_entries, entries) = (u64_at(record, 24), u64_at(record, 32));
        let (size, offset) = (u64_at(record, 40), u64_at(record, 48));
        let agrees = |short: u64, long: u64, all: u64| short == all || short == long & all;
        let same = agrees(self.entries, entries, 0xffff)
            && agrees(self.size, size, 0xffff_ffff)
            && agrees(self.offset, offset, 0xffff_ffff);
        if !same && !self.defers() {
            return Err(ArchiveError::refused(Problem::CorruptDirectory, "the two end records contradict each other"));
        }
        (self.disk, self.directory_disk, self.disk_entries) = (disk, directory_disk, disk_entries);
        (self.entries, self.size, self.offset) = (entries, size, offset);
        Ok(())
    }

    /// Whether any field says that the zip64 record has the value.
    pub(super) fn defers(&self) -> bool {
        self.entries == 0xffff || self.size == 0xffff_ffff || self.offset == 0xffff_ffff
    }

    pub(super) fn check_volumes(&self) -> Result<(), ArchiveError> {
        if self.disk != 0 || self.directory_disk != 0 || self.volumes > 1 {
            return Err(ArchiveError::refused(Problem::MultiVolume, "one volume of several"));
        }
        if self.disk_entries != self.entries {
            return Err(ArchiveError::refused(Problem::CorruptDirectory, "two counts in one end record"));
        }
        Ok(())
    }
}

/// Whether a zip64 record is of the second version, whose directory is compressed or encrypted (APPNOTE 7.3.4).
pub(super) fn is_version_2(record: &[u8]) -> bool {
    u64_at(record, 4) > 44 && u16_at(record, 14) >= 62
}
