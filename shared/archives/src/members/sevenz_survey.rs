//! What a 7z header would cost, before it is read: `sevenz_rust2` makes its list of files as long as the header says, and
//! a packed header of a few KiB may say tens of millions. Follows 7zFormat.txt of the LZMA SDK as far as the count.

use crate::error::{ArchiveError, Problem};
use crate::limits::Limits;
use crate::stream::{Watch, fill};
use std::io::{self, Read, Seek, SeekFrom};

const HEADER: u8 = 1;
const ARCHIVE_PROPERTIES: u8 = 2;
const ADDITIONAL_STREAMS: u8 = 3;
const MAIN_STREAMS: u8 = 4;
const FILES: u8 = 5;
const PACK_INFO: u8 = 6;
const UNPACK_INFO: u8 = 7;
const SUB_STREAMS: u8 = 8;
const SIZE: u8 = 9;
const CRC: u8 = 10;
const FOLDER: u8 = 11;
const UNPACK_SIZES: u8 = 12;
const SUB_STREAM_COUNTS: u8 = 13;
const ENCODED_HEADER: u8 = 23;

const START_LEN: u64 = 32;
const AES: &[u8] = &[6, 0xf1, 7, 1];
const LZMA: &[u8] = &[3, 1, 1];
const LZMA2: &[u8] = &[0x21];
/// The header of a header is not deeper than this in any archive that was not made to be.
const LAYERS: usize = 4;

/// Where the packed header lies and how it is packed.
#[derive(Default)]
struct Streams {
    pack_pos: u64,
    pack_sizes: Vec<u64>,
    folders: Vec<Folder>,
}

#[derive(Default)]
struct Folder {
    coders: Vec<(Vec<u8>, Vec<u8>)>,
    /// One per coder output.
    unpack_sizes: Vec<u64>,
    outputs: u64,
    has_crc: bool,
}

/// Bytes of a header, read to the end and no further. `None` is the end, or a count beyond the cap.
struct Bytes<'a> {
    rest: &'a [u8],
    /// How many of anything there may be.
    cap: u64,
    /// Whether that was the reason.
    too_many: bool,
}

/// Which of some streams have a checksum.
struct Defined<'a> {
    all: bool,
    bits: &'a [u8],
}

impl Defined<'_> {
    fn has(&self, i: usize) -> bool {
        self.all || self.bits.get(i / 8).is_some_and(|byte| byte & (0x80 >> (i % 8)) != 0)
    }
}

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(n).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// A number: the leading ones of the first byte say how many bytes follow.
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let extra = first.leading_ones();
        let mut value = 0_u64;
        for i in 0..extra.min(8) {
            value |= u64::from(self.byte()?) << (8 * i);
        }
        let high = if extra >= 7 { 0 } else { u64::from(first) & (0x7f >> extra) };
        Some(value | high << (8 * extra.min(7)))
    }

    /// A count of things that take at least a byte each.
    fn count(&mut self) -> Option<u64> {
        let n = self.number().filter(|n| *n <= self.rest.len() as u64)?;
        self.cap(n)
    }

    fn cap(&mut self, n: u64) -> Option<u64> {
        self.too_many |= n > self.cap;
        (n <= self.cap).then_some(n)
    }

    /// Passes over checksums: which of `n` there are, then four bytes for each.
    fn digests(&mut self, n: u64) -> Option<Defined<'a>> {
        if self.byte()? != 0 {
            self.take(n.checked_mul(4)?)?;
            return Some(Defined { all: true, bits: &[] });
        }
        let bits = self.take(n.div_ceil(8))?;
        let defined = Defined { all: false, bits };
        let there = (0..usize::try_from(n).ok()?).filter(|i| defined.has(*i)).count();
        self.take(4 * there as u64)?;
        Some(defined)
    }

    fn streams(&mut self) -> Option<Streams> {
        let mut streams = Streams::default();
        loop {
            match self.byte()? {
                0 => return Some(streams),
                PACK_INFO => self.pack_info(&mut streams)?,
                UNPACK_INFO => self.unpack_info(&mut streams)?,
                SUB_STREAMS => self.sub_streams(&streams)?,
                _ => return None,
            }
        }
    }

    fn pack_info(&mut self, streams: &mut Streams) -> Option<()> {
        streams.pack_pos = self.number()?;
        let count = self.count()?;
        loop {
            match self.byte()? {
                0 => return Some(()),
                SIZE => streams.pack_sizes = (0..count).map(|_| self.number()).collect::<Option<_>>()?,
                CRC => {
                    self.digests(count)?;
                }
                _ => return None,
            }
        }
    }

    fn unpack_info(&mut self, streams: &mut Streams) -> Option<()> {
        if self.byte()? != FOLDER {
            return None;
        }
        let count = self.count()?;
        if self.byte()? != 0 {
            return None;
        }
        streams.folders = (0..count).map(|_| self.folder()).collect::<Option<_>>()?;
        loop {
            match self.byte()? {
                0 => return Some(()),
                UNPACK_SIZES => {
                    for folder in &mut streams.folders {
                        folder.unpack_sizes = (0..folder.outputs).map(|_| self.number()).collect::<Option<_>>()?;
                    }
                }
                CRC => {
                    let defined = self.digests(count)?;
                    streams.folders.iter_mut().enumerate().for_each(|(i, folder)| folder.has_crc = defined.has(i));
                }
                _ => return None,
            }
        }
    }

    fn folder(&mut self) -> Option<Folder> {
        let mut folder = Folder::default();
        let mut inputs = 0_u64;
        for _ in 0..self.count()? {
            let flags = self.byte()?;
            let id = self.take(u64::from(flags & 15))?.to_vec();
            let (ins, outs) = if flags & 0x10 == 0 { (1, 1) } else { (self.number()?, self.number()?) };
            let properties =
                if flags & 0x20 == 0 { Vec::new() } else { self.count().and_then(|n| self.take(n))?.to_vec() };
            inputs = inputs.checked_add(ins)?;
            folder.outputs = folder.outputs.checked_add(outs)?;
            folder.coders.push((id, properties));
            if inputs > 64 || folder.outputs > 64 {
                return None;
            }
        }
        let bound = folder.outputs.checked_sub(1)?;
        for _ in 0..bound {
            self.number()?;
            self.number()?;
        }
        let packed = inputs.checked_sub(bound)?;
        for _ in 0..if packed > 1 { packed } else { 0 } {
            self.number()?;
        }
        Some(folder)
    }

    fn sub_streams(&mut self, streams: &Streams) -> Option<()> {
        let mut counts: Vec<u64> = vec![1; streams.folders.len()];
        let mut id = self.byte()?;
        if id == SUB_STREAM_COUNTS {
            for count in &mut counts {
                *count = self.number()?;
            }
            let all = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count))?;
            self.cap(all)?;
            id = self.byte()?;
        }
        if id == SIZE {
            for count in &counts {
                for _ in 1..*count {
                    self.number()?;
                }
            }
            id = self.byte()?;
        }
        if id == CRC {
            let known = |(count, folder): (&u64, &Folder)| if *count == 1 && folder.has_crc { 0 } else { *count };
            let unknown = counts.iter().zip(&streams.folders).map(known).try_fold(0_u64, u64::checked_add)?;
            self.digests(unknown)?;
            id = self.byte()?;
        }
        (id == 0).then_some(())
    }

    /// How many files a header has.
    fn files(&mut self) -> Option<u64> {
        loop {
            match self.byte()? {
                0 => return Some(0),
                ARCHIVE_PROPERTIES => {
                    while self.byte()? != 0 {
                        self.number().and_then(|n| self.take(n))?;
                    }
                }
                ADDITIONAL_STREAMS | MAIN_STREAMS => {
                    self.streams()?;
                }
                FILES => return self.count(),
                _ => return None,
            }
        }
    }
}

fn refuse<T>(problem: Problem, detail: &'static str) -> Result<T, ArchiveError> {
    Err(ArchiveError::refused(problem, detail))
}

/// Refuses an archive whose header is encrypted, cut off, too large, or does not parse. Whether there is a header: an
/// archive without files has none.
pub(super) fn survey(source: &mut (impl Read + Seek), limits: &Limits, watch: &Watch) -> Result<bool, ArchiveError> {
    let len = source.seek(SeekFrom::End(0)).map_err(ArchiveError::Read)?;
    source.rewind().map_err(ArchiveError::Read)?;
    let mut start = [0; START_LEN as usize];
    if fill(source, &mut start).map_err(ArchiveError::Read)? < start.len() {
        return refuse(Problem::Truncated, "shorter than its first header");
    }
    let field = |at: usize| little_endian(&start[at..at + 8]);
    let (offset, size) = (field(12), field(20));
    if start[8..12] == [0; 4] && start[12..] == [0; 20] {
        return refuse(Problem::CorruptDirectory, "it was never finished: no header");
    }
    if crc32fast::hash(&start[12..]) != u32::from_le_bytes([start[8], start[9], start[10], start[11]]) {
        return refuse(Problem::CorruptDirectory, "the first header's checksum does not hold");
    }
    if size > limits.directory_bytes {
        return refuse(Problem::TooManyEntries, "a header larger than allowed");
    }
    let Some(end) = START_LEN.checked_add(offset).and_then(|at| at.checked_add(size)).filter(|end| *end <= len) else {
        return refuse(Problem::Truncated, "the header lies beyond the end");
    };
    if size == 0 {
        return Ok(false);
    }
    let mut header = read_at(source, end - size, size)?;
    for _ in 0..LAYERS {
        let mut bytes =
            Bytes { rest: &header, cap: limits.entries.saturating_mul(4).saturating_add(64), too_many: false };
        match bytes.byte() {
            Some(HEADER) => {
                let files = bytes.files();
                return match files {
                    Some(files) if files <= limits.entries => Ok(true),
                    Some(files) => Err(ArchiveError::refused(Problem::TooManyEntries, format!("{files} members"))),
                    None => unparsed(&bytes),
                };
            }
            Some(ENCODED_HEADER) => {
                let Some(streams) = bytes.streams() else {
                    return unparsed(&bytes);
                };
                header = decode(source, &streams, limits, watch)?;
            }
            _ => return refuse(Problem::CorruptDirectory, "no header where one should be"),
        }
    }
    refuse(Problem::CorruptDirectory, "headers within headers")
}

fn unparsed<T>(bytes: &Bytes<'_>) -> Result<T, ArchiveError> {
    if bytes.too_many {
        return refuse(Problem::TooManyEntries, "more streams than members are allowed");
    }
    refuse(Problem::CorruptDirectory, "a header that does not parse")
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

fn read_at(source: &mut (impl Read + Seek), at: u64, size: u64) -> Result<Vec<u8>, ArchiveError> {
    source.seek(SeekFrom::Start(at)).map_err(ArchiveError::Read)?;
    let mut bytes = Vec::new();
    source.take(size).read_to_end(&mut bytes).map_err(ArchiveError::Read)?;
    Ok(bytes)
}

/// The header within its packing. 7-Zip packs headers with LZMA, others with LZMA2 or not at all.
fn decode(
    source: &mut (impl Read + Seek),
    streams: &Streams,
    limits: &Limits,
    watch: &Watch,
) -> Result<Vec<u8>, ArchiveError> {
    let (Some(folder), Some(packed)) = (streams.folders.first(), streams.pack_sizes.first()) else {
        return refuse(Problem::CorruptDirectory, "a packed header without its place");
    };
    if folder.coders.iter().any(|(id, _)| id == AES) {
        return refuse(Problem::Encrypted, "the header is encrypted");
    }
    let ([(id, properties)], Some(size)) = (folder.coders.as_slice(), folder.unpack_sizes.first().copied()) else {
        return refuse(Problem::UnsupportedMethod, "a header packed by several methods");
    };
    if size > limits.directory_bytes {
        return refuse(Problem::TooManyEntries, "a header larger than allowed");
    }
    let at = START_LEN.saturating_add(streams.pack_pos);
    source.seek(SeekFrom::Start(at)).map_err(ArchiveError::Read)?;
    let input = io::BufReader::new(source.take(*packed));
    let mut header = Vec::new();
    let mut read = |decoder: &mut dyn Read| decoder.take(size).read_to_end(&mut header).map_err(|e| watch.judge(e));
    let dictionary = dictionary(id, properties);
    if dictionary.is_some_and(|bytes| bytes > limits.dictionary_bytes) {
        return refuse(Problem::UnsupportedMethod, "a header that needs too large a dictionary");
    }
    let dictionary = dictionary.and_then(|bytes| u32::try_from(bytes).ok());
    match (id.as_slice(), dictionary) {
        (LZMA, Some(bytes)) => {
            let made = lzma_rust2::LzmaReader::new_with_props(input, size, properties[0], bytes, None);
            read(&mut made.map_err(|e| watch.judge(e))?)?;
        }
        (LZMA2, Some(bytes)) => {
            read(&mut lzma_rust2::Lzma2Reader::new(input, bytes, None))?;
        }
        ([0], _) => {
            read(&mut { input })?;
        }
        _ => return refuse(Problem::UnsupportedMethod, "a header packed by an unknown method"),
    }
    Ok(header)
}

/// The dictionary a coder asks for, in bytes.
fn dictionary(id: &[u8], properties: &[u8]) -> Option<u64> {
    match (id, properties) {
        (LZMA, [_, size @ ..]) if size.len() == 4 => Some(little_endian(size)),
        (LZMA2, [40]) => Some(u32::MAX.into()),
        (LZMA2, [p]) if *p < 40 => Some((2 | u64::from(p & 1)) << (p / 2 + 11)),
        _ => None,
    }
}
