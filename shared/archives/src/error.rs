//! Why an archive or a member is refused.

use std::borrow::Cow;
use std::io;

macro_rules! problems {
    ($($name:ident $code:literal $doc:literal;)+) => {
        /// A reason that lies in the archive itself. Trying again does not help.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Problem { $(#[doc = $doc] $name),+ }

        impl Problem {
            /// Every reason.
            pub const ALL: &[Problem] = &[$(Problem::$name),+];

            /// The stable code, as in `fonds_domain::ErrorCode`.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Problem::$name => $code),+ }
            }
        }
    };
}

problems! {
    NotAnArchive "NOT_AN_ARCHIVE" "None of the formats.";
    Encrypted "ENCRYPTED" "The member, or the directory, is encrypted.";
    MultiVolume "MULTIVOLUME" "One part of several.";
    Truncated "TRUNCATED" "The bytes end before the archive or the member does.";
    CorruptDirectory "CORRUPT_DIRECTORY" "The directory contradicts itself or the file, for the whole archive or for one entry.";
    CorruptMember "CORRUPT_MEMBER" "The member's own header or data is damaged.";
    SizeMismatch "SIZE_MISMATCH" "More or fewer bytes than declared.";
    CrcMismatch "CRC_MISMATCH" "The bytes are not those the checksum was made of.";
    UnsafePath "UNSAFE_PATH" "Absolute, with a drive, climbing, empty, with NUL, or a device's name.";
    NotAFile "NOT_A_FILE" "A link, a device, a pipe.";
    SystemFile "SYSTEM_FILE" "`__MACOSX`, AppleDouble, `.DS_Store`, `Thumbs.db` and the like.";
    Overlapping "OVERLAPPING" "The bytes belong to another member too.";
    UnsupportedMethod "UNSUPPORTED_METHOD" "A compression method, or a dictionary size, that is not read.";
    RatioExceeded "RATIO_EXCEEDED" "More output per input than [`Limits::ratio`](crate::Limits).";
    MemberTooLarge "MEMBER_TOO_LARGE" "Larger than [`Limits::member_bytes`](crate::Limits).";
    ArchiveTooLarge "ARCHIVE_TOO_LARGE" "The members together are larger than [`Limits::total_bytes`](crate::Limits).";
    TooManyEntries "TOO_MANY_ENTRIES" "More than [`Limits::entries`](crate::Limits), or a directory beyond [`Limits::directory_bytes`](crate::Limits).";
    BlockTooLarge "BLOCK_TOO_LARGE" "For callers: a solid block ([`Block::unpacked`](crate::members::Block)) that does not fit their slice.";
    NestedArchive "NESTED_ARCHIVE" "An archive deeper than [`Limits::nesting_depth`](crate::Limits).";
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

/// What can go wrong with an archive as a whole, or with one member: which of the two is said by the function that
/// returns it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The archive's own fault.
    #[error("{problem}: {detail}")]
    Refused {
        /// The reason.
        problem: Problem,
        /// What exactly, for people.
        detail: Cow<'static, str>,
    },
    /// The archive's bytes could not be read.
    #[error("reading the archive: {0}")]
    Read(#[source] io::Error),
    /// The caller's sink did not take the bytes.
    #[error("writing a member: {0}")]
    Sink(#[source] io::Error),
}

/// The same, where one member is meant.
pub type MemberError = ArchiveError;

impl ArchiveError {
    /// A refusal.
    pub(crate) fn refused(problem: Problem, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused { problem, detail: detail.into() }
    }

    /// The reason, when it lies in the archive.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        match self {
            Self::Refused { problem, .. } => Some(*problem),
            Self::Read(_) | Self::Sink(_) => None,
        }
    }

    /// The stable code; `LOCAL_IO` where the fault is not the archive's.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.problem().map_or("LOCAL_IO", Problem::code)
    }

    /// Whether the same bytes would fail again.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.problem().is_some()
    }
}
