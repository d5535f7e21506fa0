//! What a file is, by its bytes.

use crate::codec;
use crate::limits::Limits;
use crate::members::tar_header;
use crate::stream::{Caught, fill, is_out_of_memory};
use std::io;

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArchiveKind {
    /// zip, cbz; empty and spanned ones too.
    Zip,
    /// tar.
    Tar,
    /// tar in gzip.
    TarGzip,
    /// tar in bzip2.
    TarBzip2,
    /// tar in xz.
    TarXz,
    /// tar in zstd.
    TarZstd,
    /// 7z, cb7.
    SevenZ,
    /// rar 1.5 to 4.
    Rar4,
    /// rar 5 and later.
    Rar5,
}

impl ArchiveKind {
    /// The name kept in rows and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::TarGzip => "tar.gz",
            Self::TarBzip2 => "tar.bz2",
            Self::TarXz => "tar.xz",
            Self::TarZstd => "tar.zst",
            Self::SevenZ => "7z",
            Self::Rar4 => "rar4",
            Self::Rar5 => "rar5",
        }
    }

    /// Whether members can be read without what lies before them, from byte ranges alone.
    #[must_use]
    pub const fn is_random_access(self) -> bool {
        matches!(self, Self::Zip)
    }
}

/// How many first bytes make the best decision.
pub const SNIFF_BYTES: usize = 64 << 10;

/// What a file is, by its first bytes. Compressed files are looked into: they are archives when a tar is inside, or when
/// the head is too short to tell (then opening it tells).
#[must_use]
pub fn sniff(head: &[u8]) -> Option<ArchiveKind> {
    const SIGNATURES: &[(&[u8], ArchiveKind)] = &[
        (b"PK\x03\x04", ArchiveKind::Zip),
        (b"PK\x05\x06", ArchiveKind::Zip),
        // Spanned: what the first volume of several begins with, or a single one that might have been several.
        (b"PK\x07\x08", ArchiveKind::Zip),
        (b"PK00PK\x03\x04", ArchiveKind::Zip),
        (b"7z\xbc\xaf\x27\x1c", ArchiveKind::SevenZ),
        (b"Rar!\x1a\x07\x01\x00", ArchiveKind::Rar5),
        (b"Rar!\x1a\x07\x00", ArchiveKind::Rar4),
        (b"\x1f\x8b\x08", ArchiveKind::TarGzip),
        (b"BZh", ArchiveKind::TarBzip2),
        (b"\xfd7zXZ\x00", ArchiveKind::TarXz),
        (b"\x28\xb5\x2f\xfd", ArchiveKind::TarZstd),
    ];
    let found = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature)).map(|(_, kind)| *kind);
    match found {
        Some(kind @ (ArchiveKind::TarGzip | ArchiveKind::TarBzip2 | ArchiveKind::TarXz | ArchiveKind::TarZstd)) => {
            may_hold_a_tar(kind, head).then_some(kind)
        }
        Some(kind) => Some(kind),
        None => tar_header::is_first_header(head).then_some(ArchiveKind::Tar),
    }
}

/// As [`sniff`], for a file with a name: a zip is known by its end, so that one with something before it, or the last of
/// several volumes, is told by its extension only. Opening it tells what it really is.
#[must_use]
pub fn sniff_named(head: &[u8], name: &str) -> Option<ArchiveKind> {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let by_name = matches!(extension.as_deref(), Some("zip" | "cbz")).then_some(ArchiveKind::Zip);
    sniff(head).or(by_name)
}

/// What looking inside may cost; what asks for a larger dictionary is left to whoever opens it.
const DICTIONARY: u64 = 16 << 20;

/// Whether a tar is inside, or the head is too short to say no.
fn may_hold_a_tar(kind: ArchiveKind, head: &[u8]) -> bool {
    let limits = Limits { dictionary_bytes: DICTIONARY, ..Limits::default() };
    let Ok(decoder) = codec::for_tar(kind, head, &limits) else {
        return false;
    };
    let mut first = [0; tar_header::BLOCK];
    match fill(&mut Caught::new(decoder), &mut first) {
        Ok(n) => n == first.len() && tar_header::is_first_header(&first),
        Err(e) => e.kind() == io::ErrorKind::UnexpectedEof || is_out_of_memory(&e),
    }
}
