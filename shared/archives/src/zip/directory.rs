//! The directory reader: asks for ranges, ends in entries.

use super::central::{self, name_all, place_all, read_record, record_len};
use super::end_record::{self, END64_LEN, EndRecord, LONGEST_END};
use super::{Entry, central::RECORD_LEN};
use crate::error::{ArchiveError, Problem};
use crate::limits::Limits;
use crate::names::Guess;
use crate::stream::fill;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// What is asked for first: enough for the whole directory of most archives.
const FIRST_TAIL: u64 = 256 << 10;
/// What is asked for at once of a large directory.
const WINDOW: u64 = 4 << 20;

/// What the directory says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// In the order of the directory; `entries[i].ordinal == i`.
    pub entries: Vec<Entry>,
    /// Where the directory lies: no member's bytes reach beyond its start.
    pub bytes: Range<u64>,
    /// Bytes in front of the archive (a self-extractor's program, for example).
    pub prepended: u64,
    /// The archive's comment, as it stands.
    pub comment: Vec<u8>,
}

/// Reads the end record and the central directory without IO of its own.
///
/// ```
/// # use fonds_archives::{Limits, zip::DirectoryReader};
/// # let file = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// let mut reader = DirectoryReader::new(file.len() as u64, &Limits::default());
/// while let Some(range) = reader.wants() {
///     let bytes = &file[range.start as usize..range.end as usize];
///     reader.feed(range.start, bytes)?;
/// }
/// assert!(reader.finish()?.entries.is_empty());
/// # Ok::<(), fonds_archives::ArchiveError>(())
/// ```
#[derive(Debug)]
pub struct DirectoryReader {
    total_len: u64,
    limits: Limits,
    step: Step,
    /// The file's last bytes, kept because the directory mostly lies in them.
    tail: Vec<u8>,
    tail_start: u64,
    /// Bytes of the directory that are not yet whole records.
    pending: Vec<u8>,
    guess: Guess,
    entries: Vec<Entry>,
    end: Option<EndRecord>,
    prepended: u64,
    directory: Range<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The last bytes, for the end record.
    Tail(Range<u64>),
    /// The first bytes, to say what a file without an end record is.
    Head(Range<u64>),
    /// The zip64 record, and where else to look for it.
    End64(Range<u64>, Option<u64>),
    /// The directory, from here.
    Records(u64),
    /// The first member's header: whether offsets count from the file's start after all.
    Probe(Range<u64>),
    Done,
}

fn corrupt(detail: &'static str) -> ArchiveError {
    ArchiveError::refused(Problem::CorruptDirectory, detail)
}

impl DirectoryReader {
    /// For a file of this many bytes.
    #[must_use]
    pub fn new(total_len: u64, limits: &Limits) -> Self {
        let start = total_len.saturating_sub(FIRST_TAIL.max(LONGEST_END));
        Self {
            total_len,
            limits: limits.clone(),
            step: Step::Tail(start..total_len),
            tail: Vec::new(),
            tail_start: total_len,
            pending: Vec::new(),
            guess: Guess::default(),
            entries: Vec::new(),
            end: None,
            prepended: 0,
            directory: 0..0,
        }
    }

    /// The bytes it needs next; `None` when it is done. Ranges are at most a few MiB and lie within the file.
    #[must_use]
    pub fn wants(&self) -> Option<Range<u64>> {
        match &self.step {
            Step::Tail(range) | Step::Head(range) | Step::End64(range, _) | Step::Probe(range) => Some(range.clone()),
            Step::Records(from) => Some(*from..self.directory.end.min(from.saturating_add(WINDOW))),
            Step::Done => None,
        }
        .filter(|range| !range.is_empty())
    }

    /// Takes the bytes of the range it wants: all of it, from its start.
    ///
    /// # Errors
    /// Whatever is wrong with the archive as a whole; `TRUNCATED` when fewer bytes are given than wanted.
    pub fn feed(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ArchiveError> {
        let Some(range) = self.wants().filter(|range| range.start == offset) else {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "not the range that was asked for");
            return Err(ArchiveError::Read(error));
        };
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let Some(bytes) = bytes.get(..len) else {
            return Err(ArchiveError::refused(Problem::Truncated, "the file is shorter than it was said to be"));
        };
        self.take(bytes)?;
        // The rest is read from the tail as far as it lies there.
        while let Some(range) = self.wants().filter(|range| range.start >= self.tail_start) {
            let tail = std::mem::take(&mut self.tail);
            let at = |offset: u64| usize::try_from(offset - self.tail_start).unwrap_or(usize::MAX);
            let bytes = tail.get(at(range.start)..at(range.end)).unwrap_or_default();
            let result = self.take(bytes);
            self.tail = tail;
            result?;
        }
        Ok(())
    }

    /// The directory.
    ///
    /// # Errors
    /// `TRUNCATED` when it still wants bytes; `NOT_AN_ARCHIVE` for an empty file.
    pub fn finish(self) -> Result<Directory, ArchiveError> {
        if self.total_len == 0 {
            return Err(ArchiveError::refused(Problem::NotAnArchive, "an empty file"));
        }
        if self.step != Step::Done {
            return Err(ArchiveError::refused(Problem::Truncated, "the directory was not read to its end"));
        }
        Ok(Directory {
            entries: self.entries,
            bytes: self.directory,
            prepended: self.prepended,
            comment: self.end.map(|end| end.comment).unwrap_or_default(),
        })
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        match self.step.clone() {
            Step::Tail(range) => {
                self.tail_start = range.start;
                self.tail = bytes.to_vec();
                self.find_end(bytes)
            }
            Step::Head(_) => Err(no_end_record(bytes)),
            Step::End64(range, elsewhere) => self.end64(range.start, bytes, elsewhere),
            Step::Records(_) => self.records(bytes),
            Step::Probe(_) => self.probe(bytes),
            Step::Done => Ok(()),
        }
    }

    fn find_end(&mut self, tail: &[u8]) -> Result<(), ArchiveError> {
        let Some(end) = end_record::find(tail, self.tail_start) else {
            if self.tail_start == 0 {
                return Err(no_end_record(tail));
            }
            self.step = Step::Head(0..8);
            return Ok(());
        };
        match end.end64_at {
            Some(said) => {
                let before_locator = end.records_start().checked_sub(END64_LEN as u64);
                // The place is counted from the archive's start, which is not the file's when something was put before
                // it: directly before the locator is where the record is then.
                let fits = |at: u64| at.checked_add(END64_LEN as u64).is_some_and(|e| e <= end.records_start());
                let places: Vec<u64> =
                    [Some(said), before_locator].into_iter().flatten().filter(|at| fits(*at)).collect();
                self.end = Some(end);
                let Some(first) = places.first() else {
                    return Err(corrupt("the zip64 record lies outside the file"));
                };
                self.look_for_end64(*first, places.get(1).copied());
                Ok(())
            }
            None => {
                let at = end.at;
                self.end = Some(end);
                self.begin_records(at)
            }
        }
    }

    fn look_for_end64(&mut self, at: u64, elsewhere: Option<u64>) {
        self.step = Step::End64(at..at + END64_LEN as u64, elsewhere);
    }

    fn end64(&mut self, at: u64, record: &[u8], elsewhere: Option<u64>) -> Result<(), ArchiveError> {
        let Some(end) = self.end.as_mut() else {
            return Err(corrupt("no end record"));
        };
        if !record.starts_with(b"PK\x06\x06") {
            return match elsewhere {
                Some(other) if other != at => {
                    self.look_for_end64(other, None);
                    Ok(())
                }
                // A locator that leads nowhere does no harm while nothing defers to it.
                _ if !end.defers() => {
                    let directory_end = end.records_start();
                    self.begin_records(directory_end)
                }
                _ => Err(corrupt("no zip64 record where the locator says")),
            };
        }
        if end_record::is_version_2(record) {
            return Err(ArchiveError::refused(Problem::Encrypted, "the directory is encrypted"));
        }
        end.merge64(record)?;
        self.begin_records(at)
    }

    /// Knows the end record, and where the directory must end.
    fn begin_records(&mut self, directory_end: u64) -> Result<(), ArchiveError> {
        let Some(end) = &self.end else {
            return Err(corrupt("no end record"));
        };
        end.check_volumes()?;
        if end.entries > self.limits.entries || end.size > self.limits.directory_bytes {
            let detail = format!("{} members, a directory of {} bytes", end.entries, end.size);
            return Err(ArchiveError::refused(Problem::TooManyEntries, detail));
        }
        let Some(start) = directory_end.checked_sub(end.size) else {
            return Err(corrupt("the directory would begin before the file"));
        };
        let Some(prepended) = start.checked_sub(end.offset) else {
            return Err(corrupt("the directory would end behind its end record"));
        };
        self.prepended = prepended;
        self.directory = start..directory_end;
        self.step = Step::Records(start);
        if start == directory_end { self.all_read() } else { Ok(()) }
    }

    fn records(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let Step::Records(from) = self.step else {
            return Ok(());
        };
        self.step = Step::Records(from + bytes.len() as u64);
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(rest) = pending.get(at..).filter(|rest| rest.len() >= 4) {
            if rest.starts_with(b"PK\x05\x05") {
                // The digital signature (APPNOTE 4.3.13) is the last record.
                at = pending.len();
            } else if !rest.starts_with(b"PK\x01\x02") {
                return Err(central::no_record(rest));
            } else if let Some(len) = record_len(rest) {
                self.record(&rest[..len])?;
                at += len;
            } else {
                break;
            }
        }
        pending.drain(..at);
        self.pending = pending;
        if from + bytes.len() as u64 >= self.directory.end { self.all_read() } else { Ok(()) }
    }

    fn record(&mut self, record: &[u8]) -> Result<(), ArchiveError> {
        let ordinal = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        if u64::from(ordinal) >= self.limits.entries {
            return Err(ArchiveError::refused(Problem::TooManyEntries, "more members than declared, and than allowed"));
        }
        self.entries.push(read_record(record, ordinal, self.prepended, &mut self.guess));
        Ok(())
    }

    fn all_read(&mut self) -> Result<(), ArchiveError> {
        let Some(end) = &self.end else {
            return Err(corrupt("no end record"));
        };
        let found = self.entries.len() as u64;
        // A writer without zip64 cuts a count of more than 65,535 off.
        let cut_off = end.end64_at.is_none() && found > 0xffff && found & 0xffff == end.entries;
        if !self.pending.is_empty() || (found != end.entries && !cut_off) {
            return Err(corrupt("the directory does not have as many members as declared"));
        }
        let first = self.entries.iter().map(|entry| entry.header_offset).min();
        match first {
            Some(first) if self.prepended > 0 && first + 4 <= self.directory.start => {
                self.step = Step::Probe(first..first + 4);
                Ok(())
            }
            _ => self.conclude(),
        }
    }

    /// Something stands before the archive. Mostly offsets do not count it; when no header is where it should be then,
    /// they count from the file's start.
    fn probe(&mut self, header: &[u8]) -> Result<(), ArchiveError> {
        if !header.starts_with(b"PK\x03\x04") {
            for entry in &mut self.entries {
                entry.header_offset = entry.header_offset.saturating_sub(self.prepended);
            }
            self.prepended = 0;
        }
        self.conclude()
    }

    fn conclude(&mut self) -> Result<(), ArchiveError> {
        name_all(&mut self.entries, &self.guess);
        place_all(&mut self.entries, self.directory.start);
        central::cap_all(&mut self.entries, &self.limits);
        self.tail = Vec::new();
        self.step = Step::Done;
        Ok(())
    }
}

/// What a file without an end record is.
fn no_end_record(head: &[u8]) -> ArchiveError {
    let (problem, detail) = if head.starts_with(b"PK\x07\x08") {
        (Problem::MultiVolume, "the first volume of several")
    } else if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK00PK") {
        (Problem::Truncated, "it ends before its directory")
    } else {
        (Problem::NotAnArchive, "no end record")
    };
    ArchiveError::refused(problem, detail)
}

/// The directory of an archive that can be read here.
///
/// # Errors
/// As [`DirectoryReader::feed`], and IO.
pub fn read_directory(source: &mut (impl Read + Seek), limits: &Limits) -> Result<Directory, ArchiveError> {
    let len = source.seek(SeekFrom::End(0)).map_err(ArchiveError::Read)?;
    let mut reader = DirectoryReader::new(len, limits);
    while let Some(range) = reader.wants() {
        source.seek(SeekFrom::Start(range.start)).map_err(ArchiveError::Read)?;
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or_default()];
        let filled = fill(source, &mut bytes).map_err(ArchiveError::Read)?;
        reader.feed(range.start, &bytes[..filled])?;
    }
    reader.finish()
}

const _: () = assert!(RECORD_LEN < WINDOW as usize);
