//! Bytes of a WARC file in storage order: plain, or gzip members whose borders stay visible.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use sha2::{Digest as _, Sha256};

use crate::digest::Sha256Digest;

const BUFFER: usize = 64 * 1024;
/// A gzip member header longer than this (names and comments) is not one.
const MAX_MEMBER_HEADER: u64 = 64 * 1024;

/// What is wrong with a gzip member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GzipFault {
    /// The file ends inside the member.
    Truncated,
    /// The deflate data or the member header is broken.
    Corrupt,
    /// CRC or length at the member's end disagree with its content.
    Checksum,
}

/// The stored bytes, counted, and hashed from a mark on.
struct Raw<R> {
    inner: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    consumed: u64,
    hasher: Option<Sha256>,
}

impl<R: Read> Raw<R> {
    /// Bytes at hand, at least one unless the file has ended.
    fn fill(&mut self) -> io::Result<&[u8]> {
        while self.at == self.end {
            match self.inner.read(&mut self.buffer) {
                Ok(n) => {
                    (self.at, self.end) = (0, n);
                    if n == 0 {
                        break;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(&self.buffer[self.at..self.end])
    }

    fn consume(&mut self, n: usize) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&self.buffer[self.at..self.at + n]);
        }
        self.at += n;
        self.consumed += n as u64;
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.fill()?.first().copied();
        if byte.is_some() {
            self.consume(1);
        }
        Ok(byte)
    }

    /// `N` bytes, or `None` at the end of the file.
    fn array<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let mut out = [0; N];
        for slot in &mut out {
            let Some(byte) = self.byte()? else { return Ok(None) };
            *slot = byte;
        }
        Ok(Some(out))
    }
}

struct Inflate {
    state: Decompress,
    crc: crc32fast::Hasher,
    len: u32,
    /// Inside a member, between its header and its end.
    open: bool,
}

/// Decoded bytes of a WARC file. In gzip form they never run over the border of a member.
pub(crate) struct Source<R> {
    raw: Raw<R>,
    gzip: Option<Inflate>,
    decoded: Vec<u8>,
    at: usize,
    fault: Option<GzipFault>,
    finished: bool,
    /// What follows the last member is no member.
    junk: bool,
}

impl<R: Read> Source<R> {
    /// Looks at the first two bytes to see whether the file is gzip.
    pub(crate) fn new(inner: R, hash_records: bool) -> io::Result<Self> {
        let mut raw = Raw {
            inner,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            at: 0,
            end: 0,
            consumed: 0,
            hasher: hash_records.then(Sha256::new),
        };
        while raw.end < 2 {
            match raw.inner.read(&mut raw.buffer[raw.end..]) {
                Ok(0) => break,
                Ok(n) => raw.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let gzip = raw.buffer[..raw.end].starts_with(&[0x1f, 0x8b]).then(|| Inflate {
            state: Decompress::new(false),
            crc: crc32fast::Hasher::new(),
            len: 0,
            open: false,
        });
        Ok(Self { raw, gzip, decoded: Vec::new(), at: 0, fault: None, finished: false, junk: false })
    }

    pub(crate) fn is_gzip(&self) -> bool {
        self.gzip.is_some()
    }

    /// Offset in the file: of the next decoded byte when plain, of the next stored byte when gzip.
    pub(crate) fn position(&self) -> u64 {
        match self.gzip {
            Some(_) => self.raw.consumed,
            None => self.raw.consumed - (self.decoded.len() - self.at) as u64,
        }
    }

    /// Starts the digest that [`Source::take_digest`] returns.
    pub(crate) fn mark(&mut self) {
        if let Some(hasher) = &mut self.raw.hasher {
            *hasher = Sha256::new();
        }
    }

    /// Digest of the stored bytes consumed since the mark, when asked for at the start.
    pub(crate) fn take_digest(&mut self) -> Option<Sha256Digest> {
        self.raw.hasher.as_mut().map(|hasher| std::mem::take(hasher).into())
    }

    /// A fault met since the last call.
    pub(crate) fn take_fault(&mut self) -> Option<GzipFault> {
        self.fault.take()
    }

    /// Whether a gzip member is open and not yet read to its end.
    pub(crate) fn in_member(&self) -> bool {
        self.at < self.decoded.len() || self.gzip.as_ref().is_some_and(|g| g.open)
    }

    /// Opens the next gzip member. `false` at the end of the file or when what follows is no member.
    pub(crate) fn next_member(&mut self) -> io::Result<bool> {
        if self.finished {
            return Ok(false);
        }
        self.mark();
        if self.raw.fill()?.is_empty() {
            self.finished = true;
            return Ok(false);
        }
        if self.raw.fill()?[0] != 0x1f {
            (self.finished, self.junk) = (true, true);
            return Ok(false);
        }
        let opened = match member_header(&mut self.raw)? {
            Ok(()) => true,
            Err(fault) => {
                self.fault = Some(fault);
                self.finished = true;
                false
            }
        };
        if let Some(gzip) = &mut self.gzip {
            gzip.state.reset(false);
            gzip.crc = crc32fast::Hasher::new();
            gzip.len = 0;
            gzip.open = opened;
        }
        Ok(opened)
    }

    /// Decoded bytes at hand; empty at the end of the member (gzip) or of the file (plain), or after a fault.
    pub(crate) fn fill(&mut self) -> io::Result<&[u8]> {
        if self.at == self.decoded.len() {
            self.decoded.clear();
            self.at = 0;
            if self.gzip.is_some() {
                self.inflate()?;
            } else {
                let bytes = self.raw.fill()?;
                self.decoded.extend_from_slice(bytes);
                let n = self.decoded.len();
                self.raw.at += n;
                self.raw.consumed += n as u64;
            }
        }
        Ok(&self.decoded[self.at..])
    }

    /// Decoded bytes at hand, trying for at least `want` of them.
    pub(crate) fn fill_to(&mut self, want: usize) -> io::Result<&[u8]> {
        self.fill()?;
        while self.decoded.len() - self.at < want {
            let kept = self.decoded.split_off(self.at);
            self.decoded.clear();
            self.at = 0;
            let more = self.fill()?.len();
            self.decoded.splice(0..0, kept);
            if more == 0 {
                break;
            }
        }
        Ok(&self.decoded[self.at..])
    }

    /// Skips stored bytes that are no gzip member, to the end of the file. Returns how many.
    pub(crate) fn skip_rest(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        while self.junk {
            let n = self.raw.fill()?.len();
            self.raw.consume(n);
            skipped += n as u64;
            self.junk = n > 0;
        }
        Ok(skipped)
    }

    /// Marks decoded bytes as used.
    pub(crate) fn consume(&mut self, n: usize) {
        if self.gzip.is_none()
            && let Some(hasher) = &mut self.raw.hasher
        {
            hasher.update(&self.decoded[self.at..self.at + n]);
        }
        self.at += n;
    }

    fn inflate(&mut self) -> io::Result<()> {
        let Some(gzip) = self.gzip.as_mut().filter(|g| g.open) else { return Ok(()) };
        self.decoded.reserve(BUFFER);
        while self.decoded.is_empty() {
            let input = self.raw.fill()?;
            let ended = input.is_empty();
            let (before_in, before_out) = (gzip.state.total_in(), gzip.state.total_out());
            let status = gzip.state.decompress_vec(input, &mut self.decoded, FlushDecompress::None);
            let used = usize::try_from(gzip.state.total_in() - before_in).unwrap_or(0);
            let made = gzip.state.total_out() - before_out;
            self.raw.consume(used);
            gzip.crc.update(&self.decoded);
            gzip.len = gzip.len.wrapping_add(u32::try_from(made & 0xffff_ffff).unwrap_or(0));
            match status {
                Ok(Status::StreamEnd) => return self.close_member(),
                Ok(_) if ended && made == 0 => return self.give_up(GzipFault::Truncated),
                Ok(_) if used == 0 && made == 0 => return self.give_up(GzipFault::Corrupt),
                Ok(_) => {}
                Err(_) => return self.give_up(GzipFault::Corrupt),
            }
        }
        Ok(())
    }

    fn close_member(&mut self) -> io::Result<()> {
        let trailer = self.raw.array::<8>()?;
        let Some(gzip) = &mut self.gzip else { return Ok(()) };
        gzip.open = false;
        match trailer {
            None => self.give_up(GzipFault::Truncated),
            Some([a, b, c, d, e, f, g, h]) => {
                let crc = std::mem::take(&mut gzip.crc).finalize();
                if u32::from_le_bytes([a, b, c, d]) != crc || u32::from_le_bytes([e, f, g, h]) != gzip.len {
                    self.fault = Some(GzipFault::Checksum);
                }
                Ok(())
            }
        }
    }

    /// After such a fault nothing that follows can be trusted to be a member border.
    fn give_up(&mut self, fault: GzipFault) -> io::Result<()> {
        self.fault = Some(fault);
        self.finished = true;
        if let Some(gzip) = &mut self.gzip {
            gzip.open = false;
        }
        Ok(())
    }
}

/// Reads a member header (RFC 1952, 2.3).
fn member_header<R: Read>(raw: &mut Raw<R>) -> io::Result<Result<(), GzipFault>> {
    let start = raw.consumed;
    let Some([id1, id2, method, flags, ..]) = raw.array::<10>()? else { return Ok(Err(GzipFault::Truncated)) };
    if (id1, id2, method) != (0x1f, 0x8b, 8) || flags & 0xe0 != 0 {
        return Ok(Err(GzipFault::Corrupt));
    }
    if flags & 4 != 0 {
        let Some(len) = raw.array::<2>()? else { return Ok(Err(GzipFault::Truncated)) };
        for _ in 0..u16::from_le_bytes(len) {
            if raw.byte()?.is_none() {
                return Ok(Err(GzipFault::Truncated));
            }
        }
    }
    // File name and comment, both ended by a zero.
    for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
        loop {
            match raw.byte()? {
                None => return Ok(Err(GzipFault::Truncated)),
                Some(0) => break,
                Some(_) if raw.consumed - start > MAX_MEMBER_HEADER => return Ok(Err(GzipFault::Corrupt)),
                Some(_) => {}
            }
        }
    }
    if flags & 2 != 0 && raw.array::<2>()?.is_none() {
        return Ok(Err(GzipFault::Truncated));
    }
    Ok(Ok(()))
}
