//! The layers between an archive's bytes and a sink: a watched source, a decoder that may fail in any way, the budget,
//! and the checks of a member.

use crate::error::{ArchiveError, Problem};
use crate::limits::Budget;
use crate::members::Extracted;
use crate::names;
use crate::sniff::{SNIFF_BYTES, sniff};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What went on below a decoder: whether the source itself failed, and how much of it was read. Decoders report both
/// kinds of failure alike, but only one of them may help when tried again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    fault: Arc<Mutex<Option<io::Error>>>,
    consumed: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Watch {
    fn note(&self, error: &io::Error) {
        let copy = io::Error::new(error.kind(), error.to_string());
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
    }

    /// The source's own failure, once.
    pub(crate) fn take_fault(&self) -> Option<io::Error> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Whether more was asked for than there was.
    fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// What an error met while reading decoded bytes means.
    pub(crate) fn judge(&self, error: io::Error) -> ArchiveError {
        if let Some(fault) = self.take_fault() {
            return ArchiveError::Read(fault);
        }
        let error = match error.downcast::<ArchiveError>() {
            Ok(ours) => return ours,
            Err(other) => other,
        };
        let problem = match error.kind() {
            io::ErrorKind::UnexpectedEof if self.ended() => Problem::Truncated,
            _ if is_out_of_memory(&error) => Problem::UnsupportedMethod,
            _ => described(&error),
        };
        ArchiveError::refused(problem, error.to_string())
    }
}

/// A source that is watched.
#[derive(Debug)]
pub(crate) struct Watched<R> {
    inner: R,
    watch: Watch,
}

impl<R> Watched<R> {
    pub(crate) fn new(inner: R, watch: Watch) -> Self {
        Self { inner, watch }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buf) {
            Ok(n) => {
                self.watch.consumed.fetch_add(n as u64, Ordering::Relaxed);
                if n == 0 && !buf.is_empty() {
                    self.watch.ended.store(true, Ordering::Relaxed);
                }
                Ok(n)
            }
            Err(e) => {
                if e.kind() != io::ErrorKind::Interrupted {
                    self.watch.note(&e);
                }
                Err(e)
            }
        }
    }
}

impl<R: Seek> Seek for Watched<R> {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.inner.seek(pos)
    }
}

/// The last net under decoders of other hands: a panic on hostile input becomes a damaged member. Nothing is used of a
/// decoder that panicked, so that its broken state cannot be seen.
pub(crate) struct Caught<R>(Option<R>);

impl<R> Caught<R> {
    pub(crate) fn new(decoder: R) -> Self {
        Self(Some(decoder))
    }
}

impl<R: Read> Read for Caught<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(decoder) = &mut self.0 else {
            return Err(io::Error::other(damaged("the decoder gave up")));
        };
        if let Ok(result) = catch_unwind(AssertUnwindSafe(|| decoder.read(buf))) {
            return result;
        }
        self.0 = None;
        Err(io::Error::other(damaged("the decoder gave up")))
    }
}

/// The same net for a call that is not a read.
pub(crate) fn caught<T>(what: &'static str, call: impl FnOnce() -> T) -> Result<T, ArchiveError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| ArchiveError::refused(Problem::CorruptDirectory, what))
}

pub(crate) fn damaged(detail: impl Into<std::borrow::Cow<'static, str>>) -> ArchiveError {
    ArchiveError::refused(Problem::CorruptMember, detail)
}

/// What output is compared with for [`Limits::ratio`](crate::Limits).
#[derive(Clone, Debug)]
pub(crate) enum Packed {
    /// So many bytes.
    Known(u64),
    /// As many as were read so far.
    Watched(Watch),
}

/// How much came out of how much, for one decoder.
#[derive(Debug)]
pub(crate) struct Ratio {
    packed: Packed,
    produced: u64,
}

impl Ratio {
    pub(crate) fn new(packed: Packed) -> Self {
        Self { packed, produced: 0 }
    }

    fn pay(&mut self, bytes: usize, budget: &Budget) -> Result<(), ArchiveError> {
        self.produced = self.produced.saturating_add(bytes as u64);
        budget.produce(bytes as u64)?;
        let limits = budget.limits();
        if self.produced <= limits.ratio_floor {
            return Ok(());
        }
        let packed = match &self.packed {
            Packed::Known(bytes) => *bytes,
            Packed::Watched(watch) => watch.consumed(),
        };
        if self.produced > packed.max(1).saturating_mul(limits.ratio) {
            let detail = format!("{} bytes from {packed}", self.produced);
            return Err(ArchiveError::refused(Problem::RatioExceeded, detail));
        }
        Ok(())
    }
}

/// Decoded bytes, paid from the budget as they come.
pub(crate) struct Paid<'a, R> {
    inner: R,
    budget: &'a Budget,
    ratio: &'a mut Ratio,
}

impl<'a, R> Paid<'a, R> {
    pub(crate) fn new(inner: R, budget: &'a Budget, ratio: &'a mut Ratio) -> Self {
        Self { inner, budget, ratio }
    }

    pub(crate) fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }
}

impl<R: Read> Read for Paid<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.ratio.pay(n, self.budget).map_err(io::Error::other)?;
        Ok(n)
    }
}

/// Whether a decoder would need a larger dictionary than it may have. zstd says so in words only.
pub(crate) fn is_out_of_memory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory || error.to_string().contains("too much memory")
}

/// Decoders that have no kind of error for it say it in words, or in an error of their own.
fn described(error: &io::Error) -> Problem {
    if let Some(inner) = error.get_ref().and_then(|e| e.downcast_ref::<sevenz_rust2::Error>()) {
        return crate::members::sevenz_problem(inner);
    }
    let text = error.to_string();
    if text.contains("declared size") {
        Problem::SizeMismatch
    } else if text.contains("checksum") || text.contains("CRC") {
        Problem::CrcMismatch
    } else {
        Problem::CorruptMember
    }
}

/// What a member must turn out to be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expect {
    pub(crate) size: Option<u64>,
    pub(crate) crc32: Option<u32>,
}

/// Checks a member's bytes as they pass.
struct Meter {
    expect: Expect,
    cap: u64,
    size: u64,
    crc: crc32fast::Hasher,
}

impl Meter {
    fn take(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        let size = self.size.saturating_add(bytes.len() as u64);
        if size > self.cap {
            return Err(too_large(self.cap));
        }
        if self.expect.size.is_some_and(|declared| size > declared) {
            let detail = format!("more than the {} bytes declared", self.expect.size.unwrap_or_default());
            return Err(ArchiveError::refused(Problem::SizeMismatch, detail));
        }
        self.size = size;
        self.crc.update(bytes);
        Ok(())
    }

    fn finish(self, archive: Option<crate::ArchiveKind>, watch: &Watch) -> Result<Extracted, ArchiveError> {
        if self.expect.size.is_some_and(|declared| self.size < declared) && watch.ended() {
            return Err(ArchiveError::refused(Problem::Truncated, "the archive ends within the member"));
        }
        if let Some(declared) = self.expect.size.filter(|declared| *declared != self.size) {
            let detail = format!("{} bytes, not the {declared} declared", self.size);
            return Err(ArchiveError::refused(Problem::SizeMismatch, detail));
        }
        let crc32 = self.crc.finalize();
        if let Some(declared) = self.expect.crc32.filter(|declared| *declared != crc32) {
            let detail = format!("checksum {crc32:08x}, not the {declared:08x} declared");
            return Err(ArchiveError::refused(Problem::CrcMismatch, detail));
        }
        Ok(Extracted { size: self.size, crc32, archive })
    }
}

pub(crate) fn too_large(cap: u64) -> ArchiveError {
    ArchiveError::refused(Problem::MemberTooLarge, format!("more than {cap} bytes"))
}

/// Copies a member to the sink, checked. The head is looked at before the sink gets a byte.
pub(crate) fn copy(
    input: &mut dyn Read,
    expect: Expect,
    name: &str,
    budget: &Budget,
    sink: &mut dyn Write,
    watch: &Watch,
) -> Result<Extracted, ArchiveError> {
    let mut meter = Meter { expect, cap: budget.limits().member_bytes, size: 0, crc: crc32fast::Hasher::new() };
    // A declared size may make the buffer smaller, never larger.
    let wanted = expect.size.map_or(SNIFF_BYTES, |size| usize::try_from(size).unwrap_or(SNIFF_BYTES).saturating_add(1));
    let mut buf = vec![0; wanted.clamp(512, SNIFF_BYTES)];
    let mut filled = fill(input, &mut buf).map_err(|e| watch.judge(e))?;
    let head = &buf[..filled];
    if names::is_apple_double(name, head) {
        return Err(ArchiveError::refused(Problem::SystemFile, "AppleDouble"));
    }
    let archive = sniff(head);
    if archive.is_some() && !budget.may_nest() {
        return Err(ArchiveError::refused(Problem::NestedArchive, "an archive within an archive"));
    }
    while filled > 0 {
        meter.take(&buf[..filled])?;
        sink.write_all(&buf[..filled]).map_err(ArchiveError::Sink)?;
        filled = read_some(input, &mut buf).map_err(|e| watch.judge(e))?;
    }
    meter.finish(archive, watch)
}

/// One read, whatever interrupts it.
pub(crate) fn read_some(input: &mut dyn Read, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buf) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Reads until the buffer is full or the input ends; how much it was.
pub(crate) fn fill(input: &mut dyn Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        match read_some(input, &mut buf[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// Reads and forgets up to `bytes`; how many there were.
pub(crate) fn pass_over(input: &mut dyn Read, bytes: u64) -> io::Result<u64> {
    io::copy(&mut input.take(bytes), &mut io::sink())
}
