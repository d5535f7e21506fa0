//! A zip writer for stored entries, without seeking.
//!
//! Written here rather than taken from a crate because the package needs two things at once: an output that cannot seek (a
//! multipart upload), so that sizes and CRC stand before the data, and the exact offset of every entry's first byte, which goes on
//! rows so that an artifact is served by a ranged read. Format: PKWARE APPNOTE 6.3.10, sections 4.3 to 4.5.

use std::io::{self, Read, Write};

use chrono::{DateTime, Datelike, Timelike, Utc};

use crate::digest::{ContentFacts, ContentMeter};

/// In a 16- or 32-bit field: the value is in the zip64 extra field.
const IN_ZIP64: u64 = 0xffff_ffff;
const MANY_ENTRIES: u64 = 0xffff;
/// Bit 11: the name is UTF-8.
const UTF8: u16 = 1 << 11;

/// Writes stored entries one after the other.
pub(crate) struct StoredZip<W: Write> {
    out: W,
    meter: ContentMeter,
    directory: Vec<u8>,
    entries: u64,
    dos_time: u16,
    dos_date: u16,
}

impl<W: Write> StoredZip<W> {
    pub(crate) fn new(out: W, modified: DateTime<Utc>) -> Self {
        let (dos_time, dos_date) = dos_stamp(modified);
        Self { out, meter: ContentMeter::default(), directory: Vec::new(), entries: 0, dos_time, dos_date }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.meter.update(bytes);
        Ok(())
    }

    /// Writes an entry from a reader whose facts are known and returns the offset of its first byte. The caller must not go on after
    /// an error.
    pub(crate) fn add(&mut self, name: &str, facts: &ContentFacts, data: &mut dyn Read) -> io::Result<u64> {
        let header_at = self.put_header(name, facts)?;
        let data_at = self.meter.len();
        self.copy(facts, data)?;
        self.list(name, facts, header_at);
        Ok(data_at)
    }

    /// Writes an entry from memory.
    pub(crate) fn add_bytes(&mut self, name: &str, facts: &ContentFacts, data: &[u8]) -> io::Result<u64> {
        let header_at = self.put_header(name, facts)?;
        let data_at = self.meter.len();
        self.put(data)?;
        self.list(name, facts, header_at);
        Ok(data_at)
    }

    /// Writes the local header and returns where it is.
    fn put_header(&mut self, name: &str, facts: &ContentFacts) -> io::Result<u64> {
        let header_at = self.meter.len();
        let large = facts.len >= IN_ZIP64;
        let mut header = Vec::with_capacity(64 + name.len());
        header.extend_from_slice(b"PK\x03\x04");
        self.common_fields(&mut header, name, facts, large);
        header.extend_from_slice(&if large { 20u16 } else { 0 }.to_le_bytes());
        header.extend_from_slice(name.as_bytes());
        if large {
            zip64_extra(&mut header, &[facts.len, facts.len]);
        }
        self.put(&header)?;
        Ok(header_at)
    }

    /// Copies the data, making sure that it is what the header said.
    fn copy(&mut self, facts: &ContentFacts, data: &mut dyn Read) -> io::Result<()> {
        let mut crc = crc32fast::Hasher::new();
        let mut len = 0u64;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let n = match data.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            len += n as u64;
            if len > facts.len {
                break;
            }
            crc.update(&buffer[..n]);
            self.put(&buffer[..n])?;
        }
        if len != facts.len || crc.finalize() != facts.crc32 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the entry's data is not what was stated"));
        }
        Ok(())
    }

    /// From "version needed" to "file name length", the same in both headers.
    fn common_fields(&self, header: &mut Vec<u8>, name: &str, facts: &ContentFacts, large: bool) {
        let size = if large { IN_ZIP64 } else { facts.len };
        header.extend_from_slice(&if large { 45u16 } else { 20 }.to_le_bytes());
        header.extend_from_slice(&UTF8.to_le_bytes());
        header.extend_from_slice(&0u16.to_le_bytes());
        header.extend_from_slice(&self.dos_time.to_le_bytes());
        header.extend_from_slice(&self.dos_date.to_le_bytes());
        header.extend_from_slice(&facts.crc32.to_le_bytes());
        header.extend_from_slice(&low32(size));
        header.extend_from_slice(&low32(size));
        header.extend_from_slice(&low16(name.len() as u64));
    }

    fn list(&mut self, name: &str, facts: &ContentFacts, header_at: u64) {
        let large = facts.len >= IN_ZIP64;
        let far = header_at >= IN_ZIP64;
        let mut values = if large { vec![facts.len, facts.len] } else { Vec::new() };
        values.extend(far.then_some(header_at));
        let mut extra = Vec::new();
        if !values.is_empty() {
            zip64_extra(&mut extra, &values);
        }
        let mut entry = std::mem::take(&mut self.directory);
        entry.extend_from_slice(b"PK\x01\x02");
        // Made on Unix, so that the permissions below count.
        entry.extend_from_slice(&(3u16 << 8 | 45).to_le_bytes());
        self.common_fields(&mut entry, name, facts, large);
        entry.extend_from_slice(&low16(extra.len() as u64));
        // No comment, first disk, no internal attributes.
        entry.extend_from_slice(&[0; 6]);
        entry.extend_from_slice(&(0o100_644u32 << 16).to_le_bytes());
        entry.extend_from_slice(&low32(header_at.min(IN_ZIP64)));
        entry.extend_from_slice(name.as_bytes());
        entry.extend_from_slice(&extra);
        self.directory = entry;
        self.entries += 1;
    }

    /// Writes the directory and returns the output and the facts of the whole file.
    pub(crate) fn finish(mut self) -> io::Result<(W, ContentFacts)> {
        let at = self.meter.len();
        let directory = std::mem::take(&mut self.directory);
        self.put(&directory)?;
        let size = directory.len() as u64;
        if self.entries >= MANY_ENTRIES || at >= IN_ZIP64 || size >= IN_ZIP64 {
            self.put_zip64_end(at, size)?;
        }
        let mut end = Vec::with_capacity(22);
        end.extend_from_slice(b"PK\x05\x06");
        end.extend_from_slice(&[0; 4]);
        let count = low16(self.entries.min(MANY_ENTRIES));
        end.extend_from_slice(&count);
        end.extend_from_slice(&count);
        end.extend_from_slice(&low32(size.min(IN_ZIP64)));
        end.extend_from_slice(&low32(at.min(IN_ZIP64)));
        end.extend_from_slice(&[0; 2]);
        self.put(&end)?;
        self.out.flush()?;
        Ok((self.out, self.meter.finish()))
    }

    fn put_zip64_end(&mut self, directory_at: u64, directory_len: u64) -> io::Result<()> {
        let end_at = self.meter.len();
        let mut end = Vec::with_capacity(76);
        end.extend_from_slice(b"PK\x06\x06");
        end.extend_from_slice(&44u64.to_le_bytes());
        end.extend_from_slice(&(3u16 << 8 | 45).to_le_bytes());
        end.extend_from_slice(&45u16.to_le_bytes());
        end.extend_from_slice(&[0; 8]);
        for value in [self.entries, self.entries, directory_len, directory_at] {
            end.extend_from_slice(&value.to_le_bytes());
        }
        end.extend_from_slice(b"PK\x06\x07");
        end.extend_from_slice(&[0; 4]);
        end.extend_from_slice(&end_at.to_le_bytes());
        end.extend_from_slice(&1u32.to_le_bytes());
        self.put(&end)
    }
}

fn zip64_extra(out: &mut Vec<u8>, values: &[u64]) {
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&low16(8 * values.len() as u64));
    for value in values {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn low16(value: u64) -> [u8; 2] {
    let [a, b, ..] = value.to_le_bytes();
    [a, b]
}

fn low32(value: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = value.to_le_bytes();
    [a, b, c, d]
}

/// MS-DOS time and date: two-second steps from 1980 to 2107.
fn dos_stamp(date: DateTime<Utc>) -> (u16, u16) {
    let year = (date.year() - 1980).clamp(0, 127).unsigned_abs();
    let time = (date.hour() << 11) | (date.minute() << 5) | (date.second() / 2);
    let day = (year << 9) | (date.month() << 5) | date.day();
    (u16::try_from(time).unwrap_or(0), u16::try_from(day).unwrap_or(0x21))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read, Seek, SeekFrom, Write};

    use super::*;

    /// Pretends that 5 GiB were written before, so that offsets need 64 bits. The file is sparse.
    #[test]
    fn far_entries_have_zip64_offsets() {
        const FAR: u64 = 5 << 30;
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(FAR).unwrap();
        file.seek(SeekFrom::Start(FAR)).unwrap();
        let mut zip = StoredZip::new(&mut file, DateTime::UNIX_EPOCH);
        zip.meter = ContentMeter::starting_at(FAR);
        let data_at = zip.add("a.txt", &ContentFacts::of(b"hello"), &mut &b"hello"[..]).unwrap();
        zip.finish().unwrap();
        file.flush().unwrap();
        let mut archive = zip::ZipArchive::new(file).unwrap();
        let mut entry = archive.by_name("a.txt").unwrap();
        assert_eq!(entry.data_start(), Some(data_at));
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    /// Headers of an entry of 6 GiB, without its data.
    #[test]
    fn large_entries_have_zip64_sizes() {
        let facts = ContentFacts { len: 6 << 30, ..ContentFacts::of(b"") };
        let mut zip = StoredZip::new(Cursor::new(Vec::new()), DateTime::UNIX_EPOCH);
        zip.list("large", &facts, 0);
        let (out, _) = zip.finish().unwrap();
        let archive = zip::ZipArchive::new(out).unwrap();
        let entry = archive.by_index_data(0).unwrap();
        assert_eq!((entry.size(), entry.compressed_size()), (6 << 30, 6 << 30));
    }

    #[test]
    fn dates_outside_the_range_are_clamped() {
        for (date, expected) in [
            ("1970-01-01T00:00:00Z", (0, (1 << 5) | 1)),
            ("2025-10-09T08:53:21Z", ((8 << 11) | (53 << 5) | 10, (45 << 9) | (10 << 5) | 9)),
            ("2999-12-31T23:59:59Z", ((23 << 11) | (59 << 5) | 29, (127 << 9) | (12 << 5) | 31)),
        ] {
            assert_eq!(dos_stamp(date.parse().unwrap()), expected, "{date}");
        }
    }
}
