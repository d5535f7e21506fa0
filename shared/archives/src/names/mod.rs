//! Names of members: decoding, and what they may be.

/// How a name's bytes were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameEncoding {
    /// The format says UTF-8 and it is (zip's bit 11, rar 5, pax).
    Utf8Declared,
    /// Info-ZIP's Unicode path (extra field 0x7075) whose checksum fits the name it stands beside.
    UnicodePath,
    /// UTF-16 in the format (7z, the Unicode names of rar 4); `raw` is its UTF-8.
    Utf16,
    /// Undeclared, and valid UTF-8 (ASCII is).
    Utf8,
    /// Guessed over all names of the archive.
    ShiftJis,
    /// Guessed over all names of the archive.
    Gbk,
    /// Guessed over all names of the archive.
    EucKr,
    /// Guessed over all names of the archive.
    Cp866,
    /// Nothing else fits: what PKZIP wrote.
    Cp437,
}

impl NameEncoding {
    /// The name kept in rows, lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Utf8Declared => "utf-8-declared",
            Self::UnicodePath => "unicode-path",
            Self::Utf16 => "utf-16",
            Self::Utf8 => "utf-8",
            Self::ShiftJis => "shift_jis",
            Self::Gbk => "gbk",
            Self::EucKr => "euc-kr",
            Self::Cp866 => "cp866",
            Self::Cp437 => "cp437",
        }
    }
}

/// A member's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The bytes in the archive.
    pub raw: Vec<u8>,
    /// Decoded, as it stands: not cleaned, not to be used as a path.
    pub text: String,
    /// How.
    pub encoding: NameEncoding,
}
