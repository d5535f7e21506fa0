use std::fmt;

/// Something wrong with a package.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaczFault {
    /// No `datapackage.json`.
    NoDatapackage,
    /// `datapackage.json` is not what it should be.
    BadDatapackage(String),
    /// `datapackage.json` has no `wacz_version`.
    NoVersion,
    /// A version this reader does not know.
    UnknownVersion(String),
    /// `profile` is not `data-package`.
    NoProfile,
    /// A listed file is not in the zip.
    Missing(String),
    /// A file in the zip is not listed.
    Unlisted(String),
    /// A file does not have the stated length.
    SizeMismatch(String),
    /// A file does not have the stated hash.
    HashMismatch(String),
    /// A hash that is missing or cannot be checked.
    UncheckedHash(String),
    /// A name in the zip that must not be used as a path.
    UnsafePath(String),
    /// An encrypted entry.
    Encrypted(String),
    /// The zip's two tables of contents disagree, or a name is used twice.
    InconsistentZip(String),
    /// An entry cannot be read.
    Unreadable(String),
    /// No WARC under `archive/`.
    NoWarc,
    /// A compressed file that was deflated once more: records cannot be fetched by offset.
    Deflated(String),
    /// A WARC whose name does not say that it is gzip.
    GzipNotInName(String),
    /// No index under `indexes/`.
    NoIndex,
    /// The index is empty, unsorted or has lines that are none.
    BadIndex(String),
    /// No `pages/pages.jsonl`.
    NoPages,
    /// The page list has no header or pages without `url` or `ts`.
    BadPages(String),
    /// No `datapackage-digest.json`.
    NoDigest,
    /// `datapackage-digest.json` does not match `datapackage.json`.
    DigestMismatch,
}

impl WaczFault {
    /// A stable name, as shown to users and kept on rows.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoDatapackage => "NO_DATAPACKAGE",
            Self::BadDatapackage(_) => "BAD_DATAPACKAGE",
            Self::NoVersion => "NO_VERSION",
            Self::UnknownVersion(_) => "UNKNOWN_VERSION",
            Self::NoProfile => "NO_PROFILE",
            Self::Missing(_) => "MISSING_FILE",
            Self::Unlisted(_) => "UNLISTED_FILE",
            Self::SizeMismatch(_) => "SIZE_MISMATCH",
            Self::HashMismatch(_) => "HASH_MISMATCH",
            Self::UncheckedHash(_) => "UNCHECKED_HASH",
            Self::UnsafePath(_) => "UNSAFE_PATH",
            Self::Encrypted(_) => "ENCRYPTED",
            Self::InconsistentZip(_) => "INCONSISTENT_ZIP",
            Self::Unreadable(_) => "UNREADABLE_ENTRY",
            Self::NoWarc => "NO_WARC",
            Self::Deflated(_) => "DEFLATED_TWICE",
            Self::GzipNotInName(_) => "GZIP_NOT_IN_NAME",
            Self::NoIndex => "NO_INDEX",
            Self::BadIndex(_) => "BAD_INDEX",
            Self::NoPages => "NO_PAGES",
            Self::BadPages(_) => "BAD_PAGES",
            Self::NoDigest => "NO_DIGEST",
            Self::DigestMismatch => "DIGEST_MISMATCH",
        }
    }

    /// Whether a package with it is refused. The others are forms of older writers that harm nothing.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        !matches!(self, Self::NoProfile | Self::UncheckedHash(_) | Self::GzipNotInName(_) | Self::NoDigest)
    }
}

impl fmt::Display for WaczFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDatapackage => f.write_str("no datapackage.json"),
            Self::BadDatapackage(why) => write!(f, "datapackage.json: {why}"),
            Self::NoVersion => f.write_str("datapackage.json has no wacz_version"),
            Self::UnknownVersion(version) => write!(f, "unknown WACZ version {version:?}"),
            Self::NoProfile => f.write_str("the profile is not data-package"),
            Self::Missing(path) => write!(f, "{path} is listed but not there"),
            Self::Unlisted(path) => write!(f, "{path} is not listed in datapackage.json"),
            Self::SizeMismatch(path) => write!(f, "{path} does not have the stated length"),
            Self::HashMismatch(path) => write!(f, "{path} does not have the stated hash"),
            Self::UncheckedHash(path) => write!(f, "{path} has no hash that can be checked"),
            Self::UnsafePath(path) => write!(f, "unsafe path {path:?}"),
            Self::Encrypted(path) => write!(f, "{path} is encrypted"),
            Self::InconsistentZip(why) => write!(f, "the zip contradicts itself: {why}"),
            Self::Unreadable(path) => write!(f, "{path} cannot be read"),
            Self::NoWarc => f.write_str("no WARC under archive/"),
            Self::Deflated(path) => write!(f, "{path} is compressed twice"),
            Self::GzipNotInName(path) => write!(f, "{path} is gzip without .gz in its name"),
            Self::NoIndex => f.write_str("no index under indexes/"),
            Self::BadIndex(why) => write!(f, "index: {why}"),
            Self::NoPages => f.write_str("no pages/pages.jsonl"),
            Self::BadPages(why) => write!(f, "pages/pages.jsonl: {why}"),
            Self::NoDigest => f.write_str("no datapackage-digest.json"),
            Self::DigestMismatch => f.write_str("datapackage-digest.json does not match datapackage.json"),
        }
    }
}
