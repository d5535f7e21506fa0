//! HTTP heads as they are stored: as received, changed only where a reader of WARC files would stumble.
//!
//! What is changed, and why:
//! * HTTP/2 and later have no status line; `HTTP/1.1 200 OK` is written and `WARC-Protocol: h2` says the rest.
//! * obs-fold (RFC 9112, 5.2) and bare LF become what they mean: one line, ended by CRLF.
//! * bodies are stored de-chunked, the one form whose payload digest all checkers agree on, so `transfer-encoding` is renamed
//!   `x-orig-transfer-encoding`; a `content-length` that is not the stored length is renamed `x-orig-content-length`.
//! * a body the browser gave us decoded no longer has its `content-encoding`; it is renamed `x-orig-content-encoding`. So is one that
//!   names no coding there is (`none`, `utf-8`, nothing), and a `gzip` whose body is none: players would undo it and lose bytes.
//! * lines that are no header at all are kept as the value of `x-orig-malformed`; controls in values become spaces (RFC 9110, 5.5).
//!
//! Everything else keeps its bytes, case and order.

/// How the body that belongs to a head is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBody {
    /// Stored length in bytes.
    pub len: u64,
    /// Whether the content coding (gzip, br, ...) was undone, as browsers do.
    pub decoded: bool,
    /// The body is known not to be gzip.
    not_gzip: bool,
}

impl StoredBody {
    /// A body with its content coding as sent (always without chunk framing).
    #[must_use]
    pub const fn as_sent(len: u64) -> Self {
        Self { len, decoded: false, not_gzip: false }
    }

    /// A body after the content coding was undone.
    #[must_use]
    pub const fn decoded(len: u64) -> Self {
        Self { len, decoded: true, not_gzip: false }
    }

    /// Tells the first bytes of the body (two are enough), so that a false `content-encoding: gzip` is seen.
    #[must_use]
    pub fn starting_with(mut self, body: &[u8]) -> Self {
        self.not_gzip = self.len >= 2 && body.len() >= 2 && !body.starts_with(&[0x1f, 0x8b]);
        self
    }
}

/// A head ready to be stored, ending in an empty line, with what the index needs from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHead {
    bytes: Vec<u8>,
    status: Option<u16>,
    mime: Option<String>,
    protocol: Option<&'static str>,
    dense: bool,
}

impl StoredHead {
    /// The bytes as stored.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Status code of a response.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        self.status
    }

    /// Media type of the body without parameters, as the index shows it.
    #[must_use]
    pub fn mime(&self) -> Option<&str> {
        self.mime.as_deref()
    }

    /// `WARC-Protocol` value when the exchange was not HTTP/1.
    #[must_use]
    pub const fn protocol(&self) -> Option<&'static str> {
        self.protocol
    }

    /// Whether the body is compressed already, so that trying hard again is wasted time.
    pub(crate) const fn dense(&self) -> bool {
        self.dense
    }
}

/// The bytes are no HTTP head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// No status line, such as `HTTP/1.1 200 OK`.
    #[error("no HTTP status line")]
    NoStatusLine,
    /// No request line, such as `GET / HTTP/1.1`.
    #[error("no HTTP request line")]
    NoRequestLine,
}

impl HeadError {
    /// Always: the same bytes fail again.
    #[must_use]
    pub const fn is_permanent(self) -> bool {
        true
    }
}

/// Makes a response head storable. `raw` is the status line and header lines as received; an empty line ends it or may be missing.
///
/// # Errors
/// [`HeadError::NoStatusLine`] when it does not begin with one.
pub fn response(raw: &[u8], body: StoredBody) -> Result<StoredHead, HeadError> {
    let mut lines = Lines::new(raw);
    let line = lines.next().ok_or(HeadError::NoStatusLine)?;
    let status_line = StatusLine::parse(line).ok_or(HeadError::NoStatusLine)?;
    let mut head = Builder::new(raw.len(), body);
    status_line.write(&mut head.out);
    for line in lines {
        head.header(line, Side::Response);
    }
    Ok(head.finish(Some(status_line.code), status_line.protocol))
}

/// Makes a request head storable; `body` is the request's body.
///
/// # Errors
/// [`HeadError::NoRequestLine`] when it does not begin with one.
pub fn request(raw: &[u8], body: StoredBody) -> Result<StoredHead, HeadError> {
    let mut lines = Lines::new(raw);
    let line = lines.next().ok_or(HeadError::NoRequestLine)?;
    let mut head = Builder::new(raw.len(), body);
    let protocol = write_request_line(&line, &mut head.out)?;
    for line in lines {
        head.header(line, Side::Request);
    }
    Ok(head.finish(None, protocol))
}

/// Builds a raw head out of parts, for clients that only give parsed headers. Feed the result to [`response`] or [`request`].
#[must_use]
pub fn raw_head<N: AsRef<[u8]>, V: AsRef<[u8]>>(
    start_line: &str,
    headers: impl IntoIterator<Item = (N, V)>,
) -> Vec<u8> {
    let mut raw = Vec::with_capacity(512);
    raw.extend_from_slice(start_line.as_bytes());
    raw.extend_from_slice(b"\r\n");
    for (name, value) in headers {
        raw.extend_from_slice(name.as_ref());
        raw.extend_from_slice(b": ");
        raw.extend(value.as_ref().iter().map(|&b| if matches!(b, b'\r' | b'\n') { b' ' } else { b }));
        raw.extend_from_slice(b"\r\n");
    }
    raw.extend_from_slice(b"\r\n");
    raw
}

/// The standard reason phrase (RFC 9110, 15), for protocols that send none.
#[must_use]
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        511 => "Network Authentication Required",
        _ => "Unknown",
    }
}

/// Splits the media type off a `Content-Type` value at the first `;` or white space, as CDXJ indexers do.
pub(crate) fn media_type(value: &[u8]) -> String {
    let value = value.trim_ascii_start();
    let end = value.iter().position(|b| *b == b';' || b.is_ascii_whitespace()).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// Reads status and media type back from a stored or foreign head.
pub(crate) fn summary(head: &[u8]) -> (Option<u16>, Option<String>) {
    let mut lines = Lines::new(head);
    let status = lines.next().and_then(StatusLine::parse).map(|line| line.code);
    let mime = lines.find_map(|line| {
        let (name, value) = split_header(line.as_ref())?;
        name.eq_ignore_ascii_case(b"content-type").then(|| media_type(value))
    });
    (status, mime)
}

/// Whether a head declares a chunked body.
pub(crate) fn is_chunked(head: &[u8]) -> bool {
    Lines::new(head).skip(1).any(|line| {
        split_header(line.as_ref()).is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case(b"transfer-encoding")
                && value.trim_ascii().to_ascii_lowercase().ends_with(b"chunked")
        })
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Request,
    Response,
}

struct StatusLine {
    version: &'static str,
    code: u16,
    reason: Vec<u8>,
    protocol: Option<&'static str>,
}

impl StatusLine {
    fn parse(line: impl AsRef<[u8]>) -> Option<Self> {
        let line = line.as_ref();
        let (version, rest) = line.split_at(line.iter().position(|b| matches!(b, b' ' | b'\t'))?);
        let (version, protocol) = match version.to_ascii_uppercase().as_slice() {
            b"HTTP/1.1" => ("HTTP/1.1", None),
            b"HTTP/1.0" | b"HTTP/0.9" | b"HTTP/1" | b"ICY" => ("HTTP/1.0", None),
            b"HTTP/2" | b"HTTP/2.0" => ("HTTP/1.1", Some("h2")),
            b"HTTP/3" | b"HTTP/3.0" => ("HTTP/1.1", Some("h3")),
            _ => return None,
        };
        let rest = rest.trim_ascii_start();
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let code: u16 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        if !(100..=999).contains(&code) || rest.get(digits).is_some_and(|b| !b.is_ascii_whitespace()) {
            return None;
        }
        let reason: Vec<u8> = rest[digits..].iter().map(|&b| printable(b)).collect();
        let reason = reason.trim_ascii().to_vec();
        Some(Self { version, code, reason, protocol })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.version.as_bytes());
        out.extend_from_slice(format!(" {:03} ", self.code).as_bytes());
        // A reason may be missing in HTTP/1 too; readers exist that want one, so it is supplied.
        if self.reason.is_empty() {
            out.extend_from_slice(reason(self.code).as_bytes());
        } else {
            out.extend_from_slice(&self.reason);
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn write_request_line(line: &[u8], out: &mut Vec<u8>) -> Result<Option<&'static str>, HeadError> {
    let mut words = line.split(|b| matches!(b, b' ' | b'\t')).filter(|w| !w.is_empty());
    let method = words.next().ok_or(HeadError::NoRequestLine)?;
    let target = words.next().ok_or(HeadError::NoRequestLine)?;
    if !method.iter().all(|&b| is_token(b)) {
        return Err(HeadError::NoRequestLine);
    }
    // A target with spaces in it is one target: what follows is the version only if it looks like one.
    let mut target = target.to_vec();
    let mut version: &[u8] = b"HTTP/1.1";
    for word in words {
        if word.to_ascii_uppercase().starts_with(b"HTTP/") {
            version = word;
        } else {
            target.extend_from_slice(b"%20");
            target.extend_from_slice(word);
        }
    }
    let (version, protocol): (&[u8], _) = match version.to_ascii_uppercase().as_slice() {
        b"HTTP/1.0" => (b"HTTP/1.0", None),
        b"HTTP/2" | b"HTTP/2.0" => (b"HTTP/1.1", Some("h2")),
        b"HTTP/3" | b"HTTP/3.0" => (b"HTTP/1.1", Some("h3")),
        _ => (b"HTTP/1.1", None),
    };
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend(target.iter().map(|&b| printable(b)));
    out.push(b' ');
    out.extend_from_slice(version);
    out.extend_from_slice(b"\r\n");
    Ok(protocol)
}

/// Collects the stored head line by line.
struct Builder {
    out: Vec<u8>,
    body: StoredBody,
    mime: Option<String>,
    dense: bool,
    /// A `content-length` equal to what is stored was kept.
    length_kept: bool,
    /// Where `content-length` must go if none was kept.
    length_at: Option<usize>,
    has_host: bool,
}

impl Builder {
    fn new(raw_len: usize, body: StoredBody) -> Self {
        Self {
            out: Vec::with_capacity(raw_len + 96),
            body,
            mime: None,
            dense: false,
            length_kept: false,
            length_at: None,
            has_host: false,
        }
    }

    fn header(&mut self, line: impl AsRef<[u8]>, side: Side) {
        let line = line.as_ref();
        if line.first() == Some(&b':') {
            return self.pseudo_header(line, side);
        }
        let Some((name, value)) = split_header(line) else {
            return self.push(b"x-orig-malformed", line);
        };
        let value = value.trim_ascii();
        let lower = name.to_ascii_lowercase();
        match lower.as_slice() {
            b"transfer-encoding" => {
                self.push(&[b"x-orig-", name].concat(), value);
                self.length_at = Some(self.out.len());
                return;
            }
            b"content-length" => {
                if parse_length(value) != Some(self.body.len) {
                    self.push(&[b"x-orig-", name].concat(), value);
                    self.length_at = Some(self.out.len());
                    return;
                }
                self.length_kept = true;
            }
            b"content-encoding" => {
                if self.body.decoded || !is_coding(value) || (self.body.not_gzip && names_gzip(value)) {
                    return self.push(&[b"x-orig-", name].concat(), value);
                }
                self.dense |= !value.eq_ignore_ascii_case(b"identity");
            }
            b"content-type" if self.mime.is_none() => {
                let mime = media_type(value);
                self.dense |= is_dense(&mime);
                self.mime = Some(mime);
            }
            b"host" => self.has_host = true,
            _ => {}
        }
        // Lengths are the one value that readers do not trim.
        let trimmed = !lower.ends_with(b"content-length") || !line.ends_with(b" ") && !line.ends_with(b"\t");
        if trimmed && line.iter().all(|&b| printable(b) == b) && line[name.len()] == b':' {
            self.out.extend_from_slice(line);
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.push(name, value);
        }
    }

    /// HTTP/2 pseudo-headers live in the start line; only the authority has a header of its own.
    fn pseudo_header(&mut self, line: &[u8], side: Side) {
        if side == Side::Request
            && !self.has_host
            && let Some(value) = line.strip_prefix(b":authority:")
        {
            self.has_host = true;
            self.push(b"Host", value.trim_ascii());
        }
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        // A control at an end becomes white space there, which the next reader of this head would drop.
        let value = value.trim_ascii_start();
        let end = value.iter().rposition(|&b| !printable(b).is_ascii_whitespace()).map_or(0, |at| at + 1);
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(b": ");
        self.out.extend(value[..end].iter().map(|&b| printable(b)));
        self.out.extend_from_slice(b"\r\n");
    }

    fn finish(mut self, status: Option<u16>, protocol: Option<&'static str>) -> StoredHead {
        if let (false, Some(at)) = (self.length_kept, self.length_at) {
            let line = format!("Content-Length: {}\r\n", self.body.len);
            self.out.splice(at..at, line.into_bytes());
        }
        self.out.extend_from_slice(b"\r\n");
        StoredHead { bytes: self.out, status, mime: self.mime, protocol, dense: self.dense }
    }
}

/// Name and value of a header line, or `None` when the name is no token (RFC 9110, 5.1). White space before the colon is dropped.
fn split_header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&b| b == b':')?;
    let name = line[..colon].trim_ascii_end();
    (!name.is_empty() && name.iter().all(|&b| is_token(b))).then_some((name, &line[colon + 1..]))
}

/// `content-length` as a number. A list of equal numbers, allowed by RFC 9110, 8.6, is none here: readers of archives trip over it.
fn parse_length(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Whether a `content-encoding` is a list of codings that exist on the web.
fn is_coding(value: &[u8]) -> bool {
    value.split(|&b| b == b',').all(|coding| {
        matches!(
            coding.trim_ascii().to_ascii_lowercase().as_slice(),
            b"gzip" | b"x-gzip" | b"deflate" | b"br" | b"zstd" | b"identity"
        )
    })
}

fn names_gzip(value: &[u8]) -> bool {
    value.rsplit(|&b| b == b',').next().is_some_and(|last| last.trim_ascii().to_ascii_lowercase().ends_with(b"gzip"))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Controls would break the line or confuse readers; RFC 9110, 5.5 has them replaced by a space.
fn printable(byte: u8) -> u8 {
    if (byte < 0x20 && byte != b'\t') || byte == 0x7f { b' ' } else { byte }
}

/// Media types whose bytes do not get smaller by deflating them again.
pub(crate) fn is_dense(mime: &str) -> bool {
    let mime = mime.to_ascii_lowercase();
    match mime.split_once('/') {
        Some(("image", kind)) => {
            !matches!(kind, "svg+xml" | "bmp" | "x-ms-bmp" | "tiff" | "x-icon" | "vnd.microsoft.icon")
        }
        Some(("video", _)) => true,
        Some(("audio", kind)) => !matches!(kind, "wav" | "x-wav" | "midi"),
        Some(("font", kind)) => kind.starts_with("woff"),
        Some(("application", kind)) => matches!(
            kind,
            "zip"
                | "gzip"
                | "x-gzip"
                | "zstd"
                | "x-7z-compressed"
                | "x-rar-compressed"
                | "vnd.rar"
                | "x-xz"
                | "x-bzip2"
                | "wacz"
                | "epub+zip"
                | "font-woff"
                | "font-woff2"
        ),
        _ => false,
    }
}

/// The lines of a head with folds undone and ends removed; stops at the first empty line.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    fn new(raw: &'a [u8]) -> Self {
        let start = raw.iter().position(|b| !matches!(b, b'\r' | b'\n')).unwrap_or(raw.len());
        Self { rest: &raw[start..] }
    }

    fn physical(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|&b| b == b'\n').map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        let mut line = line.strip_suffix(b"\n").unwrap_or(line);
        while let Some(shorter) = line.strip_suffix(b"\r") {
            line = shorter;
        }
        line
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = std::borrow::Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let line = self.physical();
        if line.is_empty() {
            self.rest = &[];
            return None;
        }
        let mut line = std::borrow::Cow::Borrowed(line);
        while matches!(self.rest.first(), Some(b' ' | b'\t')) {
            let fold = self.physical().trim_ascii();
            if !fold.is_empty() {
                let joined = line.to_mut();
                joined.push(b' ');
                joined.extend_from_slice(fold);
            }
        }
        Some(line)
    }
}
