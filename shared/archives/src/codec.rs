//! Decoders: of zip's methods, and of what tars are wrapped in. Each is given a cap for its dictionary.

use crate::error::{ArchiveError, Problem};
use crate::limits::Limits;
use crate::sniff::ArchiveKind;
use crate::stream::damaged;
use crate::zip::Method;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, BufRead, Read};

/// Deflate that knows whether its stream came to its end: flate2's own readers take the end of the input for that.
struct Inflate<R> {
    input: R,
    state: Decompress,
    done: bool,
}

impl<R: BufRead> Read for Inflate<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !self.done && !buf.is_empty() {
            let input = self.input.fill_buf()?;
            let at_end = input.is_empty();
            let (before_in, before_out) = (self.state.total_in(), self.state.total_out());
            let status = self.state.decompress(input, buf, FlushDecompress::None);
            let consumed = usize::try_from(self.state.total_in() - before_in).unwrap_or_default();
            let produced = usize::try_from(self.state.total_out() - before_out).unwrap_or_default();
            self.input.consume(consumed);
            self.done = matches!(status.map_err(io::Error::from)?, Status::StreamEnd);
            if produced > 0 {
                return Ok(produced);
            }
            if !self.done && at_end {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

/// Deflate64, whose reader takes the end of the input for the end of the stream too. A stream that has not ended has
/// always asked for more input first, which is how the two are told apart.
struct Inflate64<R: BufRead> {
    input: R,
    state: Box<deflate64::InflaterManaged>,
}

impl<R: BufRead> Read for Inflate64<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() {
            let input = self.input.fill_buf()?;
            let at_end = input.is_empty();
            let step = self.state.inflate(input, buf);
            self.input.consume(step.bytes_consumed);
            if step.data_error {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "invalid deflate64"));
            }
            if step.bytes_written > 0 || self.state.finished() {
                return Ok(step.bytes_written);
            }
            if at_end {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}

fn kib(bytes: u64) -> u32 {
    u32::try_from(bytes / 1024).unwrap_or(u32::MAX - 1)
}

fn zstd<'a>(input: impl BufRead + 'a, limits: &Limits) -> io::Result<impl Read + 'a> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
    // The format's own bounds are 2^10 and 2^31.
    decoder.window_log_max(limits.dictionary_bytes.max(1).ilog2().clamp(10, 31))?;
    Ok(decoder)
}

fn xz<'a>(input: impl BufRead + 'a, several: bool, limits: &Limits) -> impl Read + 'a {
    lzma_rust2::XzReader::new_mem_limit(input, several, kib(limits.dictionary_bytes))
}

/// zip's LZMA (APPNOTE 5.8.8): a version, the length of the properties, the properties, the stream.
fn lzma<R: BufRead>(mut input: R, flags: u16, size: u64, limits: &Limits) -> io::Result<lzma_rust2::LzmaReader<R>> {
    let mut head = [0; 9];
    input.read_exact(&mut head)?;
    if head[2..4] != [5, 0] {
        return Err(io::Error::other(damaged("LZMA properties of another length than 5")));
    }
    let dictionary = u32::from_le_bytes([head[5], head[6], head[7], head[8]]);
    let needed = lzma_rust2::lzma_get_memory_usage_by_props(dictionary, head[4])?;
    if needed > kib(limits.dictionary_bytes) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // Bit 1: the stream ends with a marker, and then only the marker says where.
    let known = if flags & 2 == 0 { size } else { u64::MAX };
    lzma_rust2::LzmaReader::new_with_props(input, known, head[4], dictionary, None)
}

/// A decoder for a zip member. A failure to begin (a header that is no header) comes with the first read, as any other.
pub(crate) fn for_member<'a>(
    method: Method,
    flags: u16,
    size: u64,
    input: impl BufRead + 'a,
    limits: &Limits,
) -> Result<Box<dyn Read + 'a>, ArchiveError> {
    let made: io::Result<Box<dyn Read + 'a>> = match method {
        Method::STORED => Ok(Box::new(input)),
        Method::DEFLATE => Ok(Box::new(Inflate { input, state: Decompress::new(false), done: false })),
        Method::DEFLATE64 => Ok(Box::new(Inflate64 { input, state: Box::new(deflate64::InflaterManaged::new()) })),
        Method::BZIP2 => Ok(Box::new(bzip2::bufread::BzDecoder::new(input))),
        Method::LZMA => lzma(input, flags, size, limits).map(|r| Box::new(r) as Box<dyn Read + 'a>),
        Method::ZSTD | Method::ZSTD_OLD => zstd(input, limits).map(|r| Box::new(r) as Box<dyn Read + 'a>),
        Method::XZ => Ok(Box::new(xz(input, false, limits))),
        Method(other) => {
            return Err(ArchiveError::refused(Problem::UnsupportedMethod, format!("method {other}")));
        }
    };
    Ok(made.unwrap_or_else(|error| Box::new(Failed(Some(error)))))
}

struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.take().unwrap_or_else(|| io::ErrorKind::InvalidData.into()))
    }
}

/// What a tar is wrapped in, taken off.
pub(crate) fn for_tar<'a>(
    kind: ArchiveKind,
    input: impl BufRead + 'a,
    limits: &Limits,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match kind {
        ArchiveKind::TarGzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        ArchiveKind::TarBzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
        ArchiveKind::TarXz => Box::new(xz(input, true, limits)),
        ArchiveKind::TarZstd => Box::new(zstd(input, limits)?),
        _ => Box::new(input),
    })
}
