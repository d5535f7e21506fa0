//! Writes records as gzip members, one a record, and tells where each one lies.

use std::{
    fmt::Write as _,
    io::{self, Read, SeekFrom, Write},
};

use chrono::{DateTime, Utc};
use flate2::{Compression, GzBuilder, write::GzEncoder};
use libdeflater::{CompressionLvl, Compressor};
use sha2::{Digest as _, Sha256};

use crate::{
    cdxj::CdxjEntry,
    digest::{ContentFacts, ContentMeter, Sha256Digest},
    error::WarcError,
    http_head::{is_dense, media_type},
    record::{Body, Record, RecordId, RecordType, WARC_FIELDS, safe_uri, safe_value, warc_date},
};

/// Records up to this size (header and block) are compressed in one go, the fastest way for small pages.
const ONE_GO: u64 = 1 << 20;
const COPY_BUFFER: usize = 64 * 1024;
/// Deflate level for bytes that may shrink, and for those that are compressed already.
const LEVEL: u8 = 6;
const DENSE_LEVEL: u8 = 1;

/// Where a record lies and what is needed to index it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Record id.
    pub id: RecordId,
    /// Record type.
    pub kind: RecordType,
    /// Target URI as in the record (no spaces); `None` for warcinfo.
    pub target_uri: Option<String>,
    /// Record date.
    pub date: DateTime<Utc>,
    /// First byte of the gzip member, counted from the first byte this writer wrote.
    pub offset: u64,
    /// Length of the gzip member in bytes.
    pub length: u64,
    /// Digest of the block (head and body).
    pub block_digest: Sha256Digest,
    /// Digest of the body; `None` for warcinfo.
    pub payload_digest: Option<Sha256Digest>,
    /// Digest of the gzip member itself (`recordDigest` in the index).
    pub record_digest: Sha256Digest,
    /// Length of the body in bytes.
    pub payload_len: u64,
    /// HTTP status of a response or revisit.
    pub status: Option<u16>,
    /// Media type without parameters: of the HTTP body, or of the block of records without HTTP.
    pub mime: Option<String>,
    /// Whether index lines are written for this record.
    indexed: bool,
}

impl Written {
    /// The index line, `None` for records that are not indexed (warcinfo, request, conversion, `application/warc-fields`).
    /// `filename` is the WARC's name inside the WACZ without folder.
    #[must_use]
    pub fn cdxj(&self, filename: &str) -> Option<CdxjEntry> {
        if !self.indexed {
            return None;
        }
        let url = self.target_uri.clone()?;
        Some(CdxjEntry {
            urlkey: crate::surt::surt(&url),
            timestamp: crate::cdxj::timestamp(self.date),
            url,
            mime: match self.kind {
                RecordType::Revisit => Some("warc/revisit".to_owned()),
                _ => self.mime.clone(),
            },
            status: self.status,
            digest: self.payload_digest.map(|d| d.to_string()),
            length: self.length,
            offset: self.offset,
            filename: filename.to_owned(),
            record_digest: Some(self.record_digest.to_string()),
        })
    }
}

/// Writes `.warc.gz`: one gzip member a record.
///
/// After an error midway the file has a torn end and the writer refuses to go on ([`WarcError::Poisoned`]).
pub struct WarcWriter<W: Write> {
    out: W,
    meter: ContentMeter,
    level: u8,
    normal: Compressor,
    dense: Compressor,
    header: String,
    raw: Vec<u8>,
    packed: Vec<u8>,
    poisoned: bool,
}

/// A writer into memory.
pub type WarcBuffer = WarcWriter<Vec<u8>>;

impl WarcBuffer {
    /// Starts an empty buffer.
    #[must_use]
    pub fn buffer() -> Self {
        Self::new(Vec::new())
    }
}

impl<W: Write> WarcWriter<W> {
    /// Starts writing at offset 0 of `out`.
    pub fn new(out: W) -> Self {
        Self::with_level(out, LEVEL)
    }

    /// Like [`WarcWriter::new`] with another deflate level, 1 to 9 (6 is usual). At level 1 a small page takes less than half the
    /// time and some percent more room.
    pub fn with_level(out: W, level: u8) -> Self {
        let level = level.clamp(1, 9);
        Self {
            out,
            meter: ContentMeter::default(),
            level,
            normal: Compressor::new(compression_level(level)),
            dense: Compressor::new(compression_level(DENSE_LEVEL)),
            header: String::new(),
            raw: Vec::new(),
            packed: Vec::new(),
            poisoned: false,
        }
    }

    /// Bytes written so far, which is the offset of the next record.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.meter.len()
    }

    /// The output as written so far; complete after every successful [`WarcWriter::write`].
    #[must_use]
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Ends the file: the output and the facts of all its bytes, as a WACZ entry needs them.
    ///
    /// # Errors
    /// Those of flushing, and [`WarcError::Poisoned`].
    pub fn finish(mut self) -> Result<(W, ContentFacts), WarcError> {
        if self.poisoned {
            return Err(WarcError::Poisoned);
        }
        self.out.flush()?;
        Ok((self.out, self.meter.finish()))
    }

    /// Writes one record.
    ///
    /// # Errors
    /// Those of the output and the body reader, and a body that is not what was stated. Nothing is written when a body
    /// fails its first reading, so the file stays sound then.
    pub fn write(&mut self, mut record: Record<'_>) -> Result<Written, WarcError> {
        if self.poisoned {
            return Err(WarcError::Poisoned);
        }
        load_small_file(&mut record.body)?;
        let facts = BlockFacts::measure(&mut record)?;
        self.header.clear();
        write_header(&mut self.header, &record, &facts);
        let offset = self.meter.len();
        let size = self.header.len() as u64 + facts.block_len;
        let (length, record_digest) = match &mut record.body {
            Body::Bytes(body) if size <= ONE_GO => {
                let head = record.head.map_or(&[][..], |h| h.bytes());
                self.write_small(head, body, is_dense_record(&record.head, &record.content_type))
            }
            _ => self.write_large(&mut record, &facts),
        }
        .inspect_err(|_| self.poisoned = true)?;
        Ok(Written {
            id: record.id,
            kind: record.kind,
            date: record.date,
            offset,
            length,
            block_digest: facts.block,
            payload_digest: facts.payload,
            record_digest,
            payload_len: record.body.len(),
            status: record.head.and_then(|h| h.status()).filter(|_| record.kind != RecordType::Request),
            mime: match record.head {
                Some(head) => head.mime().map(str::to_owned),
                None => Some(media_type(record.content_type.as_bytes())),
            },
            indexed: is_indexed(record.kind, &record.content_type),
            target_uri: record.target_uri,
        })
    }

    /// Copies one gzip member that is a record already, as exports do.
    pub(crate) fn copy_member(&mut self, member: &mut dyn Read, length: u64) -> Result<u64, WarcError> {
        if self.poisoned {
            return Err(WarcError::Poisoned);
        }
        let offset = self.meter.len();
        let mut tee = Tee { out: &mut self.out, meter: &mut self.meter, record: None };
        let copied = io::copy(&mut member.take(length), &mut tee).inspect_err(|_| self.poisoned = true)?;
        if copied != length {
            self.poisoned = true;
            return Err(WarcError::BodyShort { expected: length, got: copied });
        }
        Ok(offset)
    }

    fn write_small(&mut self, head: &[u8], body: &[u8], dense: bool) -> Result<(u64, Sha256Digest), WarcError> {
        self.raw.clear();
        self.raw.extend_from_slice(self.header.as_bytes());
        self.raw.extend_from_slice(head);
        self.raw.extend_from_slice(body);
        self.raw.extend_from_slice(b"\r\n\r\n");
        let compressor = if dense { &mut self.dense } else { &mut self.normal };
        self.packed.resize(compressor.gzip_compress_bound(self.raw.len()), 0);
        let length =
            compressor.gzip_compress(&self.raw, &mut self.packed).map_err(|e| io::Error::other(e.to_string()))?;
        let member = &self.packed[..length];
        self.out.write_all(member)?;
        self.meter.update(member);
        Ok((length as u64, Sha256Digest::of(member)))
    }

    fn write_large(&mut self, record: &mut Record<'_>, facts: &BlockFacts) -> Result<(u64, Sha256Digest), WarcError> {
        let dense = is_dense_record(&record.head, &record.content_type);
        let before = self.meter.len();
        let tee = Tee { out: &mut self.out, meter: &mut self.meter, record: Some(Sha256::new()) };
        let compression = Compression::new(u32::from(if dense { DENSE_LEVEL } else { self.level }));
        let mut gzip: GzEncoder<_> = GzBuilder::new().mtime(0).write(tee, compression);
        gzip.write_all(self.header.as_bytes())?;
        if let Some(head) = record.head {
            gzip.write_all(head.bytes())?;
        }
        match &mut record.body {
            Body::Bytes(bytes) => gzip.write_all(bytes)?,
            Body::File { len, reader } => {
                let mut hasher = Sha256::new();
                for_each_chunk(reader, *len, |chunk| {
                    hasher.update(chunk);
                    gzip.write_all(chunk)
                })?;
                if Some(hasher.into()) != facts.payload_as_read {
                    return Err(WarcError::BodyChanged);
                }
            }
        }
        gzip.write_all(b"\r\n\r\n")?;
        let tee = gzip.finish()?;
        let digest = tee.record.map(Sha256Digest::from).unwrap_or(Sha256Digest::from_bytes([0; 32]));
        Ok((self.meter.len() - before, digest))
    }
}

impl<W: Write> std::fmt::Debug for WarcWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WarcWriter")
            .field("offset", &self.offset())
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}

fn compression_level(level: u8) -> CompressionLvl {
    CompressionLvl::new(i32::from(level)).unwrap_or_default()
}

fn is_dense_record(head: &Option<&crate::http_head::StoredHead>, content_type: &str) -> bool {
    match head {
        Some(head) => head.dense(),
        None => is_dense(content_type),
    }
}

fn is_indexed(kind: RecordType, content_type: &str) -> bool {
    match kind {
        RecordType::Response | RecordType::Revisit => true,
        RecordType::Resource | RecordType::Metadata => content_type != WARC_FIELDS,
        RecordType::Warcinfo | RecordType::Request | RecordType::Conversion => false,
    }
}

/// Digests of a block, taken before its first byte is written because the header states them.
struct BlockFacts {
    block: Sha256Digest,
    block_len: u64,
    /// What `WARC-Payload-Digest` says.
    payload: Option<Sha256Digest>,
    /// What the body hashed to (the same, but for revisits).
    payload_as_read: Option<Sha256Digest>,
}

impl BlockFacts {
    fn measure(record: &mut Record<'_>) -> Result<Self, WarcError> {
        let mut block = Sha256::new();
        let mut payload = Sha256::new();
        let head_len = record.head.map_or(0, |h| h.bytes().len()) as u64;
        if let Some(head) = record.head {
            block.update(head.bytes());
        }
        match &mut record.body {
            Body::Bytes(bytes) => {
                block.update(&**bytes);
                payload.update(&**bytes);
            }
            Body::File { len, reader } => {
                let start = reader.stream_position()?;
                for_each_chunk(reader, *len, |chunk| {
                    block.update(chunk);
                    payload.update(chunk);
                    Ok(())
                })?;
                reader.seek(SeekFrom::Start(start))?;
            }
        }
        let read = Sha256Digest::from(payload);
        let payload = match record.kind {
            RecordType::Warcinfo => None,
            RecordType::Revisit => record.payload,
            _ if record.payload.is_some_and(|expected| expected != read) => return Err(WarcError::PayloadMismatch),
            _ => Some(read),
        };
        Ok(Self { block: block.into(), block_len: head_len + record.body.len(), payload, payload_as_read: Some(read) })
    }
}

/// A small file is quicker compressed in one go than in a stream.
fn load_small_file(body: &mut Body<'_>) -> Result<(), WarcError> {
    if let Body::File { len, reader } = body
        && *len <= ONE_GO / 2
    {
        let mut bytes = Vec::with_capacity(usize::try_from(*len).unwrap_or(0));
        for_each_chunk(reader, *len, |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        *body = Body::from(bytes);
    }
    Ok(())
}

fn for_each_chunk(
    reader: &mut dyn crate::record::ReadSeek,
    len: u64,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), WarcError> {
    let mut buffer = vec![0; COPY_BUFFER];
    let mut left = len;
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(COPY_BUFFER).min(COPY_BUFFER);
        match reader.read(&mut buffer[..want]) {
            Ok(0) => return Err(WarcError::BodyShort { expected: len, got: len - left }),
            Ok(n) => {
                take(&buffer[..n])?;
                left -= n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

fn write_header(out: &mut String, record: &Record<'_>, facts: &BlockFacts) {
    let mut field = |name: &str, value: std::fmt::Arguments<'_>| {
        // Writing into a String cannot fail.
        let _ = write!(out, "{name}: {value}\r\n");
    };
    field("WARC/1.1\r\nWARC-Type", format_args!("{}", record.kind.as_str()));
    field("WARC-Record-ID", format_args!("{}", record.id));
    field("WARC-Date", format_args!("{}", warc_date(record.date)));
    if let Some(name) = &record.filename {
        field("WARC-Filename", format_args!("{name}"));
    }
    if let Some(uri) = &record.target_uri {
        field("WARC-Target-URI", format_args!("{uri}"));
    }
    if let Some(ip) = record.ip {
        field("WARC-IP-Address", format_args!("{ip}"));
    }
    for protocol in &record.protocols {
        field("WARC-Protocol", format_args!("{}", safe_value(protocol)));
    }
    if let Some(id) = record.warcinfo_id {
        field("WARC-Warcinfo-ID", format_args!("{id}"));
    }
    for id in &record.concurrent_to {
        field("WARC-Concurrent-To", format_args!("{id}"));
    }
    if let Some(profile) = &record.profile {
        field("WARC-Profile", format_args!("{}", safe_value(profile)));
    }
    if let Some(refers) = &record.refers_to {
        if let Some(id) = refers.record_id {
            field("WARC-Refers-To", format_args!("{id}"));
        }
        field("WARC-Refers-To-Target-URI", format_args!("{}", safe_uri(&refers.target_uri)));
        field("WARC-Refers-To-Date", format_args!("{}", warc_date(refers.date)));
    }
    if let Some(reason) = record.truncated {
        field("WARC-Truncated", format_args!("{}", reason.as_str()));
    }
    for (name, value) in &record.extra {
        field(name, format_args!("{value}"));
    }
    if let Some(digest) = facts.payload {
        field("WARC-Payload-Digest", format_args!("{digest}"));
    }
    field("WARC-Block-Digest", format_args!("{}", facts.block));
    field("Content-Type", format_args!("{}", safe_value(&record.content_type)));
    field("Content-Length", format_args!("{}\r\n", facts.block_len));
}

/// Passes bytes on, counting and hashing them.
struct Tee<'a, W: Write> {
    out: &'a mut W,
    meter: &'a mut ContentMeter,
    record: Option<Sha256>,
}

impl<W: Write> Write for Tee<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.meter.update(&bytes[..n]);
        if let Some(hasher) = &mut self.record {
            hasher.update(&bytes[..n]);
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
