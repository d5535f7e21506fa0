use std::fmt;

/// Something wrong with the bytes of a WARC file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The file ends inside a gzip member.
    TruncatedGzip,
    /// Deflate data or a member header is broken; nothing after it is read.
    CorruptGzip,
    /// CRC or length at the end of a gzip member disagree with its content.
    GzipChecksum,
    /// Bytes that belong to no record were skipped. After a record they mean that its `Content-Length` is too small.
    Junk {
        /// How many.
        bytes: u64,
    },
    /// Several records in one gzip member (whole-file gzip): none can be fetched by offset.
    SharedMember,
    /// A record header without an end.
    TruncatedHeader,
    /// A record header of more than 256 KiB; the record was skipped.
    HeaderTooLarge,
    /// A header line that is no `name: value`.
    BadHeaderLine,
    /// Header lines that end in LF alone.
    BareLineFeed,
    /// A version this reader does not know, taken as WARC 1.x.
    UnknownVersion(String),
    /// A required header field is missing.
    MissingField(&'static str),
    /// A field that may occur once occurs more often; the first counts.
    RepeatedField(&'static str),
    /// A field's value does not have the form the standard asks for.
    BadField(&'static str),
    /// `WARC-Type` is none of the standard's.
    UnknownType(String),
    /// A space in `WARC-Target-URI`; read as `%20`.
    SpaceInTargetUri,
    /// `WARC-Target-URI` in angle brackets (WARC 1.0 texts differ on it); read without them.
    BracketedTargetUri,
    /// The block ends early.
    TruncatedBlock {
        /// Bytes that are missing.
        missing: u64,
    },
    /// No empty lines after the block.
    MissingEndMark,
    /// The block does not have its `WARC-Block-Digest`.
    BlockDigestMismatch,
    /// The payload does not have its `WARC-Payload-Digest`, chunked or not.
    PayloadDigestMismatch,
    /// A digest in an algorithm or encoding this reader cannot check.
    UnknownDigest(String),
}

impl Fault {
    /// A stable name, as shown to users and kept on rows.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TruncatedGzip => "TRUNCATED_GZIP",
            Self::CorruptGzip => "CORRUPT_GZIP",
            Self::GzipChecksum => "GZIP_CHECKSUM",
            Self::Junk { .. } => "JUNK",
            Self::SharedMember => "SHARED_MEMBER",
            Self::TruncatedHeader => "TRUNCATED_HEADER",
            Self::HeaderTooLarge => "HEADER_TOO_LARGE",
            Self::BadHeaderLine => "BAD_HEADER_LINE",
            Self::BareLineFeed => "BARE_LINE_FEED",
            Self::UnknownVersion(_) => "UNKNOWN_VERSION",
            Self::MissingField(_) => "MISSING_FIELD",
            Self::RepeatedField(_) => "REPEATED_FIELD",
            Self::BadField(_) => "BAD_FIELD",
            Self::UnknownType(_) => "UNKNOWN_TYPE",
            Self::SpaceInTargetUri => "SPACE_IN_TARGET_URI",
            Self::BracketedTargetUri => "BRACKETED_TARGET_URI",
            Self::TruncatedBlock { .. } => "TRUNCATED_BLOCK",
            Self::MissingEndMark => "MISSING_END_MARK",
            Self::BlockDigestMismatch => "BLOCK_DIGEST_MISMATCH",
            Self::PayloadDigestMismatch => "PAYLOAD_DIGEST_MISMATCH",
            Self::UnknownDigest(_) => "UNKNOWN_DIGEST",
        }
    }

    /// Whether the content of the record, or the place of it, cannot be trusted. The others are matters of form.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::TruncatedGzip
                | Self::CorruptGzip
                | Self::GzipChecksum
                | Self::Junk { .. }
                | Self::TruncatedHeader
                | Self::HeaderTooLarge
                | Self::TruncatedBlock { .. }
                | Self::BlockDigestMismatch
                | Self::PayloadDigestMismatch
                | Self::MissingField("Content-Length")
                | Self::BadField("Content-Length")
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TruncatedGzip => f.write_str("the file ends inside a gzip member"),
            Self::CorruptGzip => f.write_str("broken gzip data"),
            Self::GzipChecksum => f.write_str("gzip checksum mismatch"),
            Self::Junk { bytes } => write!(f, "{bytes} bytes that belong to no record"),
            Self::SharedMember => f.write_str("several records in one gzip member"),
            Self::TruncatedHeader => f.write_str("the record header has no end"),
            Self::HeaderTooLarge => f.write_str("the record header is too large"),
            Self::BadHeaderLine => f.write_str("a header line without a name or colon"),
            Self::BareLineFeed => f.write_str("header lines end in LF instead of CRLF"),
            Self::UnknownVersion(version) => write!(f, "unknown version {version:?}"),
            Self::MissingField(name) => write!(f, "no {name}"),
            Self::RepeatedField(name) => write!(f, "{name} more than once"),
            Self::BadField(name) => write!(f, "malformed {name}"),
            Self::UnknownType(kind) => write!(f, "unknown record type {kind:?}"),
            Self::SpaceInTargetUri => f.write_str("a space in WARC-Target-URI"),
            Self::BracketedTargetUri => f.write_str("WARC-Target-URI in angle brackets"),
            Self::TruncatedBlock { missing } => write!(f, "the block ends {missing} bytes early"),
            Self::MissingEndMark => f.write_str("no empty lines after the block"),
            Self::BlockDigestMismatch => f.write_str("block digest mismatch"),
            Self::PayloadDigestMismatch => f.write_str("payload digest mismatch"),
            Self::UnknownDigest(label) => write!(f, "digest {label:?} cannot be checked"),
        }
    }
}

/// A fault and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Offset of the record or the bytes in the file.
    pub offset: u64,
    /// `WARC-Record-ID` as written, if there is a record.
    pub record_id: Option<String>,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}", self.offset)?;
        if let Some(id) = &self.record_id {
            write!(f, " {id}")?;
        }
        write!(f, ": {}", self.fault)
    }
}
