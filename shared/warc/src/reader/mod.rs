//! Reads WARC files of any origin as far as they are sound and names what is wrong with them.
//!
//! Only an error of the underlying reader is an `Err`; everything that is wrong with the bytes is a [`Fault`] on the record (and
//! in [`WarcReader::faults`]), and reading goes on where a next record can be found: at the next gzip member, or at the next `WARC/` line.

mod digests;
mod fault;
mod header;

use std::{
    io::{self, Read},
    sync::Arc,
};

pub use fault::{Fault, Located};
pub use header::RecordHeader;
pub(crate) use header::{parse_date, plain_uri};

use crate::{
    digest::Sha256Digest,
    gzip::{GzipFault, Source},
    reader::digests::BlockDigester,
};

/// A header block longer than this is a fault. It holds a target URI of 64 KiB, thrice percent-encoded, and all else.
const MAX_HEADER: usize = 256 * 1024;
/// Faults kept per file; a file of junk must not fill the memory.
const MAX_FAULTS: usize = 1_000;

/// Reads records one after the other from plain `.warc` or `.warc.gz`.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let file: &[u8] = b"";
/// let mut reader = fonds_warc::WarcReader::new(file)?;
/// while let Some(mut record) = reader.next_record()? {
///     let mut block = Vec::new();
///     std::io::Read::read_to_end(&mut record, &mut block)?; // or leave it: the rest is skipped and still checked
///     let end = record.finish()?;
///     assert!(end.faults.is_empty(), "{} {:?}", end.offset, end.faults);
/// }
/// # Ok(()) }
/// ```
pub struct WarcReader<R> {
    source: Source<R>,
    current: Option<Open>,
    faults: Vec<Located>,
    /// Offset of the gzip member that is open.
    member: u64,
    ended: bool,
}

/// The record being read.
struct Open {
    header: Arc<RecordHeader>,
    offset: u64,
    /// Block bytes not read yet; `None` when the length is unknown and the block ends with its gzip member.
    left: Option<u64>,
    block_len: u64,
    /// Not the first of its gzip member.
    shared: bool,
    digester: BlockDigester,
    faults: Vec<Fault>,
}

/// All that is known of a record once its block was read.
#[derive(Debug, Clone)]
pub struct RecordEnd {
    /// Its header.
    pub header: Arc<RecordHeader>,
    /// Where it begins in the file: its gzip member, or its version line in a plain file.
    pub offset: u64,
    /// Stored length: of the gzip member, or in a plain file from the version line to the end of the block. `None` when it shares a
    /// gzip member with other records.
    pub length: Option<u64>,
    /// Bytes of the block actually there.
    pub block_len: u64,
    /// The HTTP head of the block, if it has one (capped; longer heads are not recognised).
    pub http_head: Option<Vec<u8>>,
    /// Digest of the stored bytes from offset over length, if asked for ([`WarcReader::with_record_digests`]).
    pub record_digest: Option<Sha256Digest>,
    /// SHA-256 of the payload as stored: after the HTTP head, or the whole block.
    pub payload_sha256: Sha256Digest,
    /// What is wrong with it.
    pub faults: Vec<Fault>,
}

impl<R: Read> WarcReader<R> {
    /// Starts at the first byte of a WARC file.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn new(inner: R) -> io::Result<Self> {
        Self::start(inner, false)
    }

    /// Like [`WarcReader::new`], and hashes the stored bytes of every record, as an index with `recordDigest` needs.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn with_record_digests(inner: R) -> io::Result<Self> {
        Self::start(inner, true)
    }

    fn start(inner: R, digests: bool) -> io::Result<Self> {
        let source = Source::new(inner, digests)?;
        Ok(Self { source, current: None, faults: Vec::new(), member: 0, ended: false })
    }

    /// Whether the file is gzip.
    #[must_use]
    pub fn is_gzip(&self) -> bool {
        self.source.is_gzip()
    }

    /// All faults met so far, in order, at most 1,000.
    #[must_use]
    pub fn faults(&self) -> &[Located] {
        &self.faults
    }

    /// The next record, or `None` at the end. A record before it that was not read to its end is skipped (and checked).
    ///
    /// # Errors
    /// Those of the reader.
    pub fn next_record(&mut self) -> io::Result<Option<ReadRecord<'_, R>>> {
        self.close_current()?;
        while !self.ended {
            if let Some(header) = self.open_next()? {
                return Ok(Some(ReadRecord { reader: self, header }));
            }
        }
        Ok(None)
    }

    fn report(&mut self, offset: u64, record_id: Option<&str>, fault: Fault) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Located { offset, record_id: record_id.map(str::to_owned), fault });
        }
    }

    fn report_source(&mut self, offset: u64) {
        if let Some(fault) = self.source.take_fault() {
            self.report(offset, None, fault.into());
        }
    }

    /// Tries to open a record; `None` when something was skipped instead or the file has ended.
    fn open_next(&mut self) -> io::Result<Option<Arc<RecordHeader>>> {
        let shared = self.source.in_member();
        if self.source.is_gzip() && !shared {
            self.member = self.source.position();
            if !self.source.next_member()? {
                self.ended = true;
                let junk = self.source.skip_rest()?;
                if junk > 0 {
                    self.report(self.member, None, Fault::Junk { bytes: junk });
                }
                self.report_source(self.member);
                return Ok(None);
            }
        }
        self.skip_blank_lines()?;
        let offset = if self.source.is_gzip() { self.member } else { self.source.position() };
        if self.source.fill_to(MAGIC.len())?.starts_with(MAGIC) {
            return self.open_record(offset, shared && self.source.is_gzip());
        }
        let at_end = self.source.fill()?.is_empty();
        if at_end && !self.source.is_gzip() {
            self.ended = true;
        }
        self.report_source(offset);
        let bytes = self.skip_to_record()?;
        if bytes > 0 {
            self.report(offset, None, Fault::Junk { bytes });
        }
        Ok(None)
    }

    fn open_record(&mut self, offset: u64, shared: bool) -> io::Result<Option<Arc<RecordHeader>>> {
        if !self.source.is_gzip() {
            self.source.mark();
        }
        let block = match self.read_header_block()? {
            Ok(block) => block,
            Err(fault) => {
                self.report_source(offset);
                self.report(offset, None, fault);
                self.skip_to_record()?;
                return Ok(None);
            }
        };
        let (header, faults) = RecordHeader::parse(&block);
        let digester = BlockDigester::new(&header);
        // Without a length the block ends with its member; in a plain file it cannot be told from what follows.
        let left = header.content_length().or(if self.source.is_gzip() && !shared { None } else { Some(0) });
        let header = Arc::new(header);
        self.current = Some(Open { header: header.clone(), offset, left, block_len: 0, shared, digester, faults });
        Ok(Some(header))
    }

    /// The header lines up to the empty line.
    fn read_header_block(&mut self) -> io::Result<Result<Vec<u8>, Fault>> {
        let mut block = Vec::new();
        loop {
            let bytes = self.source.fill()?;
            if bytes.is_empty() {
                return Ok(Err(Fault::TruncatedHeader));
            }
            let end = bytes.iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| at + 1);
            let line_start = block.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
            block.extend_from_slice(&bytes[..end]);
            self.source.consume(end);
            if block.ends_with(b"\n") && block[line_start..].trim_ascii().is_empty() {
                block.truncate(line_start);
                return Ok(Ok(block));
            }
            if block.len() > MAX_HEADER {
                return Ok(Err(Fault::HeaderTooLarge));
            }
        }
    }

    fn skip_blank_lines(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.source.fill()?;
            let blank = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
            let more = blank > 0 && blank == bytes.len();
            self.source.consume(blank);
            if !more {
                return Ok(());
            }
        }
    }

    /// Skips to the end of the gzip member, or in a plain file to the next line that begins a record. Returns how many bytes.
    fn skip_to_record(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        loop {
            let gzip = self.source.is_gzip();
            let bytes = self.source.fill_to(if gzip { 1 } else { MAGIC.len() + 1 })?;
            if bytes.is_empty() {
                return Ok(skipped);
            }
            let line = bytes.windows(MAGIC.len() + 1).position(|w| w[0] == b'\n' && &w[1..] == MAGIC);
            let n = match line {
                Some(at) if !gzip => at + 1,
                _ if gzip || bytes.len() <= MAGIC.len() => bytes.len(),
                _ => bytes.len() - MAGIC.len(),
            };
            let found = !gzip && line.is_some();
            self.source.consume(n);
            skipped += n as u64;
            if found {
                return Ok(skipped);
            }
        }
    }

    fn read_block(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(open) = &mut self.current else { return Ok(0) };
        let limit = open.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        if limit == 0 || out.is_empty() {
            return Ok(0);
        }
        let bytes = self.source.fill()?;
        let n = bytes.len().min(limit).min(out.len());
        out[..n].copy_from_slice(&bytes[..n]);
        open.digester.update(&bytes[..n]);
        self.source.consume(n);
        open.block_len += n as u64;
        open.left = open.left.map(|left| left - n as u64);
        Ok(n)
    }

    /// Reads what is left of the record, checks it and finds its end.
    fn close_current(&mut self) -> io::Result<Option<RecordEnd>> {
        let mut sink = [0; 8 * 1024];
        while self.read_block(&mut sink)? > 0 {}
        let Some(mut open) = self.current.take() else { return Ok(None) };
        // Index tools count a plain record to the end of its block; a gzip member has its own end and may hold more.
        let plain_end = (!self.source.is_gzip()).then(|| (self.source.position(), self.source.take_digest()));
        let missing = open.left.filter(|&left| left > 0);
        if let Some(missing) = missing {
            open.faults.push(Fault::TruncatedBlock { missing });
        } else if open.left.is_some() {
            self.read_end_mark(&mut open)?;
        }
        let more = self.more_in_member(&mut open)?;
        open.faults.extend(self.source.take_fault().map(Fault::from));
        let alone = !open.shared && !more;
        let (end, digest) = plain_end.unwrap_or_else(|| (self.source.position(), self.source.take_digest()));
        let (http_head, payload_sha256, digest_faults) = open.digester.finish(missing.is_none());
        open.faults.extend(digest_faults);
        let id = open.header.get("WARC-Record-ID").map(str::to_owned);
        for fault in &open.faults {
            self.report(open.offset, id.as_deref(), fault.clone());
        }
        Ok(Some(RecordEnd {
            offset: open.offset,
            length: alone.then(|| end - open.offset),
            block_len: open.block_len,
            http_head,
            record_digest: digest.filter(|_| alone),
            payload_sha256,
            faults: open.faults,
            header: open.header,
        }))
    }

    fn read_end_mark(&mut self, open: &mut Open) -> io::Result<()> {
        let bytes = self.source.fill_to(4)?;
        if bytes.starts_with(b"\r\n\r\n") {
            self.source.consume(4);
        } else if bytes.starts_with(b"\n\n") {
            self.source.consume(2);
            open.faults.push(Fault::BareLineFeed);
        } else {
            open.faults.push(Fault::MissingEndMark);
        }
        Ok(())
    }

    /// Whether the gzip member goes on with another record. Anything else that follows is skipped and reported.
    fn more_in_member(&mut self, open: &mut Open) -> io::Result<bool> {
        let gzip = self.source.is_gzip();
        if gzip {
            self.skip_blank_lines()?;
        }
        let next = self.source.fill_to(MAGIC.len())?;
        if next.is_empty() || (!gzip && matches!(next[0], b'\r' | b'\n')) {
            return Ok(false);
        }
        if next.starts_with(MAGIC) {
            if gzip {
                open.faults.push(Fault::SharedMember);
            }
            return Ok(gzip);
        }
        if open.faults.contains(&Fault::MissingEndMark) || gzip {
            let bytes = self.skip_to_record()?;
            open.faults.push(Fault::Junk { bytes });
        }
        Ok(false)
    }
}

const MAGIC: &[u8] = b"WARC/";

impl From<GzipFault> for Fault {
    fn from(fault: GzipFault) -> Self {
        match fault {
            GzipFault::Truncated => Self::TruncatedGzip,
            GzipFault::Corrupt => Self::CorruptGzip,
            GzipFault::Checksum => Self::GzipChecksum,
        }
    }
}

impl<R> std::fmt::Debug for WarcReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WarcReader")
            .field("faults", &self.faults.len())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// A record whose header was read; reading from it gives the block, never more than its length.
pub struct ReadRecord<'r, R> {
    reader: &'r mut WarcReader<R>,
    header: Arc<RecordHeader>,
}

impl<R: Read> ReadRecord<'_, R> {
    /// The record's header.
    #[must_use]
    pub fn header(&self) -> &Arc<RecordHeader> {
        &self.header
    }

    /// Where the record begins in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.reader.current.as_ref().map_or(0, |open| open.offset)
    }

    /// Skips what was not read of the block, checks digests and finds the record's end.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn finish(self) -> io::Result<RecordEnd> {
        self.reader.close_current()?.ok_or_else(|| io::Error::other("the record was closed before"))
    }
}

impl<R: Read> Read for ReadRecord<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reader.read_block(out)
    }
}

impl<R> std::fmt::Debug for ReadRecord<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadRecord").field("header", &self.header).finish_non_exhaustive()
    }
}
