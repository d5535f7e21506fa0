//! Names of members: decoding, and what they may be.
//!
//! Raw bytes are always kept. A name that declares its encoding (zip's bit 11, Info-ZIP's Unicode path, pax, rar 5, 7z) or
//! is valid UTF-8 stands; the encoding of all others is guessed once per archive, over all of them together, because a
//! single short name tells nothing.

mod cp437;
mod guess;
mod path;

pub use guess::Guess;
pub use path::{is_apple_double, is_system_file, judge, member_path};

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
    /// Every encoding.
    pub const ALL: &[NameEncoding] = &[
        Self::Utf8Declared,
        Self::UnicodePath,
        Self::Utf16,
        Self::Utf8,
        Self::ShiftJis,
        Self::Gbk,
        Self::EucKr,
        Self::Cp866,
        Self::Cp437,
    ];

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

    /// The encoding of this name, as rows have it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|encoding| encoding.as_str() == name)
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

impl Name {
    /// A name whose encoding needs no guess: declared as UTF-8 and valid, or undeclared and valid.
    #[must_use]
    pub fn certain(raw: &[u8], declared: bool) -> Option<Name> {
        let text = std::str::from_utf8(raw).ok()?.to_owned();
        let encoding = if declared { NameEncoding::Utf8Declared } else { NameEncoding::Utf8 };
        Some(Name { raw: raw.to_vec(), text, encoding })
    }

    /// A name that is certain, or else in the encoding [guessed](Guess::encoding) for its archive.
    #[must_use]
    pub fn new(raw: &[u8], declared: bool, guessed: NameEncoding) -> Name {
        Name::certain(raw, declared).unwrap_or_else(|| Name::decoded(raw, guessed))
    }

    /// Info-ZIP's Unicode path (APPNOTE 4.6.9): version 1, the CRC-32 of the plain name, UTF-8. It counts only while the
    /// plain name is the one it was made for.
    #[must_use]
    pub fn unicode_path(raw: &[u8], field: &[u8]) -> Option<Name> {
        let (head, text) = field.split_at_checked(5)?;
        let crc = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let text = std::str::from_utf8(text).ok().filter(|text| !text.is_empty())?;
        (head[0] == 1 && crc == crc32fast::hash(raw)).then(|| Name {
            raw: raw.to_vec(),
            text: text.to_owned(),
            encoding: NameEncoding::UnicodePath,
        })
    }

    /// A name of a format whose names are UTF-16.
    #[must_use]
    pub fn utf16(text: String) -> Name {
        Name { raw: text.clone().into_bytes(), text, encoding: NameEncoding::Utf16 }
    }

    /// A name in this encoding. What does not decode becomes U+FFFD.
    #[must_use]
    pub fn decoded(raw: &[u8], encoding: NameEncoding) -> Name {
        let text = match guess::codec(encoding) {
            Some(codec) => codec.decode_without_bom_handling(raw).0.into_owned(),
            None if encoding == NameEncoding::Cp437 => cp437::decode(raw),
            None => String::from_utf8_lossy(raw).into_owned(),
        };
        Name { raw: raw.to_vec(), text, encoding }
    }
}
