//! One entry of the central directory.

use super::central::LOCAL_LEN;
use crate::{Name, Problem};
use std::ops::Range;

/// A compression method (APPNOTE 4.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method(pub u16);

impl Method {
    /// Not compressed.
    pub const STORED: Method = Method(0);
    /// Deflate.
    pub const DEFLATE: Method = Method(8);
    /// Deflate64.
    pub const DEFLATE64: Method = Method(9);
    /// bzip2.
    pub const BZIP2: Method = Method(12);
    /// LZMA.
    pub const LZMA: Method = Method(14);
    /// Zstandard by its deprecated number.
    pub const ZSTD_OLD: Method = Method(20);
    /// Zstandard.
    pub const ZSTD: Method = Method(93);
    /// xz.
    pub const XZ: Method = Method(95);
    /// WinZip's AES, which hides the method.
    pub const AES: Method = Method(99);

    /// Whether [`read_member`](crate::zip::read_member) reads it.
    #[must_use]
    pub const fn is_supported(self) -> bool {
        matches!(self.0, 0 | 8 | 9 | 12 | 14 | 20 | 93 | 95)
    }
}

/// One member as the directory has it. An `Entry` made again of what an import keeps in its rows (raw and decoded name,
/// offset, sizes, checksum, method) is good for [`read_member`](crate::zip::read_member).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the directory, from 0.
    pub ordinal: u32,
    /// Its name.
    pub name: Name,
    /// Where its local header lies, from the start of the file.
    pub header_offset: u64,
    /// Where its bytes end at the latest: the next member's header, or the directory. Where rows do not keep it, the end
    /// of the chunk is as safe, if less exact.
    pub end: u64,
    /// Packed size.
    pub compressed: u64,
    /// Unpacked size, as declared.
    pub size: u64,
    /// CRC-32 of the unpacked bytes, as declared.
    pub crc32: u32,
    /// How it is packed.
    pub method: Method,
    /// General purpose flags (APPNOTE 4.4.4). They have gone into `problem`; reading does not need them.
    pub flags: u16,
    /// A folder: nothing to read.
    pub is_dir: bool,
    /// Why it must not be read.
    pub problem: Option<Problem>,
}

impl Entry {
    /// Whether there is something to read and nothing against it.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        !self.is_dir && self.problem.is_none()
    }

    /// The bytes of the file that have it all. The local header's extra fields are not known in advance; between members
    /// that follow each other there is nothing else to be read in vain.
    #[must_use]
    pub fn bytes(&self) -> Range<u64> {
        let longest = LOCAL_LEN + 2 * 0xffff;
        let end = self.header_offset.saturating_add(longest).saturating_add(self.compressed).min(self.end);
        self.header_offset..end.max(self.header_offset)
    }
}
