//! WARC 1.1 records (ISO 28500:2017) as values, ready for [`crate::writer::WarcWriter`].

use std::{
    borrow::Cow,
    fmt,
    io::{self, Read, Seek, SeekFrom},
    net::IpAddr,
};

use chrono::{DateTime, SecondsFormat, Utc};
use uuid::Uuid;

use crate::{digest::Sha256Digest, http_head::StoredHead};

/// Profile of a revisit whose payload is known byte for byte elsewhere (WARC 1.1, 6.7.2).
pub const IDENTICAL_PAYLOAD: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// `WARC-Type` of the records written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// Describes the records that follow.
    Warcinfo,
    /// A response as received.
    Response,
    /// A request as sent.
    Request,
    /// A response whose payload is already held elsewhere.
    Revisit,
    /// A thing without its protocol wrapping.
    Resource,
    /// Something said about another record.
    Metadata,
    /// Another form of a record's content.
    Conversion,
}

impl RecordType {
    /// The `WARC-Type` value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warcinfo => "warcinfo",
            Self::Response => "response",
            Self::Request => "request",
            Self::Revisit => "revisit",
            Self::Resource => "resource",
            Self::Metadata => "metadata",
            Self::Conversion => "conversion",
        }
    }

    /// Parses a `WARC-Type` value; `None` for types this crate does not write (`continuation`, extensions).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "warcinfo" => Self::Warcinfo,
            "response" => Self::Response,
            "request" => Self::Request,
            "revisit" => Self::Revisit,
            "resource" => Self::Resource,
            "metadata" => Self::Metadata,
            "conversion" => Self::Conversion,
            _ => return None,
        })
    }
}

/// `WARC-Record-ID`, a UUID; shown as `<urn:uuid:...>`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(Uuid);

impl RecordId {
    /// A fresh id (UUID v7, so ids sort by the time they were made).
    #[must_use]
    #[expect(clippy::new_without_default, reason = "every call gives another value, which Default does not suggest")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// Wraps a UUID.
    #[must_use]
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID itself.
    #[must_use]
    pub const fn uuid(self) -> Uuid {
        self.0
    }

    /// Parses `<urn:uuid:...>`, `urn:uuid:...` or a bare UUID; ids of other schemes give `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let inner = text.strip_prefix('<').and_then(|t| t.strip_suffix('>')).unwrap_or(text);
        Uuid::parse_str(inner).ok().map(Self)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<urn:uuid:{}>", self.0.as_hyphenated())
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `WARC-Truncated`: why the block is not the whole of what the origin offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truncated {
    /// A size limit of ours.
    Length,
    /// A time limit of ours.
    Time,
    /// The connection broke.
    Disconnect,
    /// Any other reason.
    Unspecified,
}

impl Truncated {
    /// The header value.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
            Self::Unspecified => "unspecified",
        }
    }
}

/// Which earlier record a revisit stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefersTo {
    /// `WARC-Refers-To`. Leave it out when the original lies in another WARC file and strict single-file checkers
    /// are to pass: they report an id they cannot find. Replay uses the URI and date.
    pub record_id: Option<RecordId>,
    /// `WARC-Refers-To-Target-URI`: the original's target URI.
    pub target_uri: String,
    /// `WARC-Refers-To-Date`: the original's date, equal to the microsecond.
    pub date: DateTime<Utc>,
}

/// What a body can be read from twice: once to hash it, once to store it.
pub trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// The part of a record's block after the HTTP head, or the whole block of records without one.
pub enum Body<'a> {
    /// In memory.
    Bytes(Cow<'a, [u8]>),
    /// Read twice from its position at the time of writing; never held in memory as a whole.
    File {
        /// Bytes to take.
        len: u64,
        /// Where they come from; an owner of its source (`'static`), so that a record may borrow head and body for different spans.
        reader: &'a mut (dyn ReadSeek + 'static),
    },
}

impl<'a> Body<'a> {
    /// No bytes.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Bytes(Cow::Borrowed(&[]))
    }

    /// All of a file, from its start.
    ///
    /// # Errors
    /// Those of seeking.
    pub fn file(reader: &'a mut (dyn ReadSeek + 'static)) -> io::Result<Self> {
        let len = reader.seek(SeekFrom::End(0))?;
        reader.seek(SeekFrom::Start(0))?;
        Ok(Self::File { len, reader })
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a [u8]> for Body<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a> From<&'a Vec<u8>> for Body<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl<'a> From<&'a bytes::Bytes> for Body<'a> {
    fn from(bytes: &'a bytes::Bytes) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Body<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Cow::Owned(bytes))
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.len())
    }
}

/// One record to be written. Digests, lengths and (unless [`Record::id`] is called) the id are filled in by the crate.
#[derive(Debug)]
pub struct Record<'a> {
    pub(crate) id: RecordId,
    pub(crate) kind: RecordType,
    pub(crate) date: DateTime<Utc>,
    pub(crate) target_uri: Option<String>,
    pub(crate) content_type: Cow<'a, str>,
    pub(crate) head: Option<&'a StoredHead>,
    pub(crate) body: Body<'a>,
    pub(crate) ip: Option<IpAddr>,
    pub(crate) protocols: Vec<Cow<'a, str>>,
    pub(crate) truncated: Option<Truncated>,
    pub(crate) concurrent_to: Vec<RecordId>,
    pub(crate) warcinfo_id: Option<RecordId>,
    pub(crate) refers_to: Option<RefersTo>,
    pub(crate) profile: Option<Cow<'a, str>>,
    pub(crate) filename: Option<String>,
    /// Given for a revisit, whose payload is not at hand; expected of any other record.
    pub(crate) payload: Option<Sha256Digest>,
    pub(crate) extra: Vec<(Cow<'a, str>, String)>,
}

impl<'a> Record<'a> {
    fn new(kind: RecordType, date: DateTime<Utc>, content_type: impl Into<Cow<'a, str>>, body: Body<'a>) -> Self {
        Self {
            id: RecordId::new(),
            kind,
            date,
            target_uri: None,
            content_type: content_type.into(),
            head: None,
            body,
            ip: None,
            protocols: Vec::new(),
            truncated: None,
            concurrent_to: Vec::new(),
            warcinfo_id: None,
            refers_to: None,
            profile: None,
            filename: None,
            payload: None,
            extra: Vec::new(),
        }
    }

    fn http(kind: RecordType, uri: &str, date: DateTime<Utc>, head: &'a StoredHead, body: Body<'a>) -> Self {
        let content_type = match kind {
            RecordType::Request => "application/http; msgtype=request",
            _ => "application/http; msgtype=response",
        };
        let mut record = Self::new(kind, date, content_type, body);
        record.target_uri = Some(safe_uri(uri));
        record.protocols.extend(head.protocol().map(Cow::Borrowed));
        record.head = Some(head);
        record
    }

    /// A response: head as made by [`crate::http_head::response`], body as stored.
    #[must_use]
    pub fn response(uri: &str, date: DateTime<Utc>, head: &'a StoredHead, body: impl Into<Body<'a>>) -> Self {
        Self::http(RecordType::Response, uri, date, head, body.into())
    }

    /// The request that belongs to the record `concurrent_to`.
    #[must_use]
    pub fn request(
        uri: &str,
        date: DateTime<Utc>,
        head: &'a StoredHead,
        body: impl Into<Body<'a>>,
        concurrent_to: RecordId,
    ) -> Self {
        Self::http(RecordType::Request, uri, date, head, body.into()).concurrent_to(concurrent_to)
    }

    /// A response whose payload has the digest `payload` and is stored where `refers_to` says. Only the head is kept.
    #[must_use]
    pub fn revisit(
        uri: &str,
        date: DateTime<Utc>,
        head: &'a StoredHead,
        payload: Sha256Digest,
        refers_to: RefersTo,
    ) -> Self {
        let mut record = Self::http(RecordType::Revisit, uri, date, head, Body::empty());
        record.refers_to = Some(refers_to);
        record.profile = Some(Cow::Borrowed(IDENTICAL_PAYLOAD));
        record.payload = Some(payload);
        record
    }

    /// A thing without protocol headers, such as a screenshot (`urn:...` or the page's URI as target).
    #[must_use]
    pub fn resource(
        uri: &str,
        date: DateTime<Utc>,
        content_type: impl Into<Cow<'a, str>>,
        body: impl Into<Body<'a>>,
    ) -> Self {
        let mut record = Self::new(RecordType::Resource, date, content_type, body.into());
        record.target_uri = Some(safe_uri(uri));
        record
    }

    /// Something said about `uri`, in any format; see [`warc_fields`] for the usual one.
    #[must_use]
    pub fn metadata(
        uri: &str,
        date: DateTime<Utc>,
        content_type: impl Into<Cow<'a, str>>,
        body: impl Into<Body<'a>>,
    ) -> Self {
        let mut record = Self::new(RecordType::Metadata, date, content_type, body.into());
        record.target_uri = Some(safe_uri(uri));
        record
    }

    /// Another form of the content of `refers_to`.
    #[must_use]
    pub fn conversion(
        uri: &str,
        date: DateTime<Utc>,
        content_type: impl Into<Cow<'a, str>>,
        body: impl Into<Body<'a>>,
        refers_to: RecordId,
    ) -> Self {
        let mut record = Self::new(RecordType::Conversion, date, content_type, body.into());
        record.target_uri = Some(safe_uri(uri));
        record.extra.push((Cow::Borrowed("WARC-Refers-To"), refers_to.to_string()));
        record
    }

    /// The description of the file's origin (`software`, `format`, `isPartOf`, `operator`, ...), first in a file.
    #[must_use]
    pub fn warcinfo(date: DateTime<Utc>, filename: Option<&str>, fields: &[(&str, &str)]) -> Self {
        let mut record = Self::new(RecordType::Warcinfo, date, WARC_FIELDS, Body::from(warc_fields(fields)));
        record.filename = filename.map(safe_value);
        record
    }

    /// Sets the id, for a record that another one must name before it is written.
    #[must_use]
    pub fn id(mut self, id: RecordId) -> Self {
        self.id = id;
        self
    }

    /// The id this record will have.
    #[must_use]
    pub const fn record_id(&self) -> RecordId {
        self.id
    }

    /// `WARC-IP-Address`: the address the exchange was held with.
    #[must_use]
    pub fn ip(mut self, ip: impl Into<Option<IpAddr>>) -> Self {
        self.ip = ip.into();
        self
    }

    /// Adds a `WARC-Protocol` (`h2`, `tls/1.3`, ...). HTTP/2 heads bring theirs along.
    #[must_use]
    pub fn protocol(mut self, protocol: impl Into<Cow<'a, str>>) -> Self {
        let protocol = protocol.into();
        if !self.protocols.contains(&protocol) {
            self.protocols.push(protocol);
        }
        self
    }

    /// `WARC-Truncated`; `None` leaves the record whole.
    #[must_use]
    pub fn truncated(mut self, reason: impl Into<Option<Truncated>>) -> Self {
        self.truncated = reason.into();
        self
    }

    /// Adds a `WARC-Concurrent-To`.
    #[must_use]
    pub fn concurrent_to(mut self, id: RecordId) -> Self {
        self.concurrent_to.push(id);
        self
    }

    /// `WARC-Warcinfo-ID`. Not set by default: a record that is copied into an export leaves its warcinfo behind.
    #[must_use]
    pub fn warcinfo_id(mut self, id: RecordId) -> Self {
        self.warcinfo_id = Some(id);
        self
    }

    /// The digest the stored body must have, for instance as hashed while it was downloaded; the writer refuses others.
    #[must_use]
    pub fn expect_payload(mut self, digest: Sha256Digest) -> Self {
        self.payload = Some(digest);
        self
    }

    /// Adds a named field of the caller's own, such as `WARC-Identified-Payload-Type`. A name that is none (letters, digits, `-`, `_`) is left out.
    #[must_use]
    pub fn field(mut self, name: impl Into<Cow<'a, str>>, value: &str) -> Self {
        let name = name.into();
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            self.extra.push((name, safe_value(value)));
        }
        self
    }
}

/// Media type of [`warc_fields`].
pub const WARC_FIELDS: &str = "application/warc-fields";

/// Renders `application/warc-fields`: one `name: value` a line.
#[must_use]
pub fn warc_fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = String::new();
    for (name, value) in fields {
        out.push_str(&safe_value(name));
        out.push_str(": ");
        out.push_str(&safe_value(value));
        out.push_str("\r\n");
    }
    out.into_bytes()
}

/// `WARC-Date`: UTC, to the microsecond when there is a fraction (WARC 1.1 allows up to nanoseconds; readers parse six digits).
#[must_use]
pub fn warc_date(date: DateTime<Utc>) -> String {
    let format = if date.timestamp_subsec_micros() == 0 { SecondsFormat::Secs } else { SecondsFormat::Micros };
    date.to_rfc3339_opts(format, true)
}

/// The URI as a header value: bytes that are no part of a URI (RFC 3986: controls, space, non-ASCII) are percent-encoded, everything
/// else stays as it was requested. A space would end the field for index formats that are separated by spaces.
#[must_use]
pub fn safe_uri(uri: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let uri = uri.trim_matches(|c: char| c.is_ascii_whitespace());
    let mut out = String::with_capacity(uri.len());
    for byte in uri.bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    out
}

/// A header value on one line: controls become spaces.
pub(crate) fn safe_value(value: &str) -> String {
    value.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
