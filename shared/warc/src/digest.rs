//! Digests and the facts of a stored byte string.

use std::{
    fmt,
    io::{self, Read, Write},
    str::FromStr,
};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256, written `sha256:<64 lower-case hex digits>` in WARC, CDXJ and WACZ files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// Digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Wraps a digest computed elsewhere.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 lower-case hex digits without a label.
    #[must_use]
    pub fn hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }
}

impl From<Sha256> for Sha256Digest {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hex = [0u8; 64];
        HEXLOWER.encode_mut(&self.0, &mut hex);
        f.write_str("sha256:")?;
        f.write_str(std::str::from_utf8(&hex).unwrap_or_default())
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a SHA-256 in hex, with or without the `sha256:` label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 digest in hex")]
pub struct NotSha256;

impl FromStr for Sha256Digest {
    type Err = NotSha256;

    fn from_str(text: &str) -> Result<Self, NotSha256> {
        let hex = text.strip_prefix("sha256:").unwrap_or(text);
        let bytes = data_encoding::HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).map_err(|_| NotSha256)?;
        Ok(Self(bytes.try_into().map_err(|_| NotSha256)?))
    }
}

impl Serialize for Sha256Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Length and checks of a byte string: all a stored zip entry must state before its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentFacts {
    /// Length in bytes.
    pub len: u64,
    /// SHA-256 of the bytes.
    pub sha256: Sha256Digest,
    /// CRC-32 (IEEE), as gzip and zip use it.
    pub crc32: u32,
}

impl ContentFacts {
    /// Facts of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { len: bytes.len() as u64, sha256: Sha256Digest::of(bytes), crc32: crc32fast::hash(bytes) }
    }

    /// Reads `reader` to its end and returns its facts.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn of_reader(reader: &mut (impl Read + ?Sized)) -> io::Result<Self> {
        let mut meter = ContentMeter::default();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(meter.finish()),
                Ok(n) => meter.update(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// Gathers [`ContentFacts`] while bytes go by, for instance while a download is written to disk.
#[derive(Clone, Default)]
pub struct ContentMeter {
    len: u64,
    sha256: Sha256,
    crc32: crc32fast::Hasher,
}

impl ContentMeter {
    /// A meter that has seen `len` bytes it did not look at.
    #[cfg(test)]
    pub(crate) fn starting_at(len: u64) -> Self {
        Self { len, ..Self::default() }
    }

    /// Takes the next bytes into account.
    pub fn update(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.sha256.update(bytes);
        self.crc32.update(bytes);
    }

    /// Bytes seen so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no byte was seen yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The facts of all bytes seen.
    #[must_use]
    pub fn finish(self) -> ContentFacts {
        ContentFacts { len: self.len, sha256: self.sha256.into(), crc32: self.crc32.finalize() }
    }
}

impl Write for ContentMeter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for ContentMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentMeter").field("len", &self.len).finish_non_exhaustive()
    }
}
