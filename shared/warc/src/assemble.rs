//! Exports: one WARC out of ranges of several, and revisits made whole again.

use std::{
    collections::HashSet,
    io::{self, Read, Seek, SeekFrom, Write},
    sync::Arc,
};

use chrono::{DateTime, Utc};

use crate::{
    cdxj::CdxjEntry,
    digest::{ContentFacts, Sha256Digest},
    error::WarcError,
    http_head::{self, HeadError, StoredBody, StoredHead},
    reader::{Fault, Located, RecordEnd, RecordHeader, WarcReader, parse_date, plain_uri},
    record::{Body, ReadSeek, Record, RecordId, RecordType},
    writer::WarcWriter,
};

/// Why an export could not be assembled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// Reading a source or writing the export failed.
    #[error(transparent)]
    Warc(#[from] WarcError),
    /// A source is damaged; nothing of it was copied.
    #[error("a source WARC is damaged: {0}")]
    Damaged(Located),
    /// A source is not one gzip member a record.
    #[error("a source WARC is not compressed record by record")]
    NotMembers,
    /// A revisit without a usable HTTP head.
    #[error("a revisit record has no HTTP head")]
    Head(#[from] HeadError),
}

impl From<io::Error> for AssembleError {
    fn from(error: io::Error) -> Self {
        Self::Warc(error.into())
    }
}

impl AssembleError {
    /// Whether assembling the same sources again is bound to fail the same way.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Warc(error) => error.is_permanent(),
            _ => true,
        }
    }
}

/// What a revisit record asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisitTarget {
    /// The payload's digest as the record states it (`sha256:<hex>` for our own).
    pub digest: Option<String>,
    /// The same, parsed, when it is a SHA-256 in hex.
    pub sha256: Option<Sha256Digest>,
    /// `WARC-Refers-To`.
    pub record_id: Option<RecordId>,
    /// `WARC-Refers-To-Target-URI`.
    pub target_uri: Option<String>,
    /// `WARC-Refers-To-Date`.
    pub date: Option<DateTime<Utc>>,
}

impl RevisitTarget {
    /// What a revisit record's header says; `None` for other records.
    #[must_use]
    pub fn of(header: &RecordHeader) -> Option<Self> {
        if header.record_type() != Some(RecordType::Revisit) {
            return None;
        }
        let digest = header.get("WARC-Payload-Digest").map(str::to_owned);
        Some(Self {
            sha256: digest.as_deref().and_then(|d| d.strip_prefix("sha256:")?.parse().ok()),
            digest,
            record_id: header.get("WARC-Refers-To").and_then(RecordId::parse),
            target_uri: header.get("WARC-Refers-To-Target-URI").map(plain_uri),
            date: header.get("WARC-Refers-To-Date").and_then(parse_date),
        })
    }
}

/// Gives the payloads of revisits. Any `FnMut` of this shape is one.
pub trait Payloads {
    /// The payload as stored with the original (after its HTTP head), or `None` to leave the revisit as it is.
    ///
    /// # Errors
    /// Those of fetching it.
    fn payload(&mut self, target: &RevisitTarget) -> io::Result<Option<Box<dyn ReadSeek>>>;
}

impl<F: FnMut(&RevisitTarget) -> io::Result<Option<Box<dyn ReadSeek>>>> Payloads for F {
    fn payload(&mut self, target: &RevisitTarget) -> io::Result<Option<Box<dyn ReadSeek>>> {
        self(target)
    }
}

/// Leaves every revisit as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepRevisits;

impl Payloads for KeepRevisits {
    fn payload(&mut self, _: &RevisitTarget) -> io::Result<Option<Box<dyn ReadSeek>>> {
        Ok(None)
    }
}

/// Merges ranges of WARC files into a new one, member by member, without compressing them again.
pub struct WarcMerge<W: Write> {
    writer: WarcWriter<W>,
    filename: String,
    entries: Vec<CdxjEntry>,
    seen: HashSet<String>,
}

/// A merged WARC.
#[derive(Debug)]
pub struct MergedWarc<W> {
    /// The output.
    pub out: W,
    /// Facts of the whole file, as [`crate::wacz::Content::Reader`] needs them.
    pub facts: ContentFacts,
    /// Its index entries.
    pub entries: Vec<CdxjEntry>,
}

/// A member of a source that is to be copied. Only revisits keep their headers, so that a long source is no burden.
struct Member {
    id: String,
    offset: u64,
    length: u64,
    entry: Option<CdxjEntry>,
    revisit: Option<Revisit>,
}

struct Revisit {
    header: Arc<RecordHeader>,
    head: Vec<u8>,
    target: RevisitTarget,
}

impl Member {
    /// `None` for warcinfo records, which an export has its own of.
    fn of(end: RecordEnd, length: u64, filename: &str) -> Option<Self> {
        if end.header.record_type() == Some(RecordType::Warcinfo) {
            return None;
        }
        let entry = CdxjEntry::of_record(&end, filename);
        let id = end.header.get("WARC-Record-ID").unwrap_or_default().to_owned();
        let revisit = RevisitTarget::of(&end.header).map(|target| Revisit {
            header: end.header,
            head: end.http_head.unwrap_or_default(),
            target,
        });
        Some(Self { id, offset: end.offset, length, entry, revisit })
    }
}

impl<W: Write> WarcMerge<W> {
    /// Starts a WARC called `filename` in index lines, beginning with a warcinfo record of these fields.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, filename: &str, date: DateTime<Utc>, fields: &[(&str, &str)]) -> Result<Self, WarcError> {
        let mut writer = WarcWriter::new(out);
        writer.write(Record::warcinfo(date, Some(filename), fields))?;
        Ok(Self { writer, filename: filename.to_owned(), entries: Vec::new(), seen: HashSet::new() })
    }

    /// Copies all records of `members` (whole gzip members, such as a range of a shared WARC) but warcinfo records and those whose
    /// id was copied before. Revisits become full records where `payloads` has the payload.
    ///
    /// The whole source is checked first, so nothing of a damaged one gets in.
    ///
    /// # Errors
    /// A damaged source, and failing input or output.
    pub fn copy(&mut self, members: &mut (impl Read + Seek), payloads: &mut dyn Payloads) -> Result<(), AssembleError> {
        let start = members.stream_position()?;
        for member in scan(members, &self.filename)? {
            if !self.seen.insert(member.id) {
                continue;
            }
            if let Some(revisit) = member.revisit
                && let Some(mut payload) = payloads.payload(&revisit.target)?
            {
                self.write_expanded(&revisit, payload.as_mut())?;
                continue;
            }
            members.seek(SeekFrom::Start(start + member.offset))?;
            let offset = self.writer.copy_member(members, member.length)?;
            self.entries.extend(member.entry.map(|entry| CdxjEntry { offset, ..entry }));
        }
        Ok(())
    }

    fn write_expanded(
        &mut self,
        revisit: &Revisit,
        payload: &mut (dyn ReadSeek + 'static),
    ) -> Result<(), AssembleError> {
        let body = Body::file(payload)?;
        let head = http_head::response(&revisit.head, StoredBody::as_sent(body.len()))?;
        let written = self.writer.write(expand_revisit(&revisit.header, &head, body))?;
        self.entries.extend(written.cdxj(&self.filename));
        Ok(())
    }

    /// Writes a record of the caller's own into the export.
    ///
    /// # Errors
    /// Those of [`WarcWriter::write`].
    pub fn write(&mut self, record: Record<'_>) -> Result<(), WarcError> {
        self.seen.insert(record.record_id().to_string());
        let written = self.writer.write(record)?;
        self.entries.extend(written.cdxj(&self.filename));
        Ok(())
    }

    /// Ends the export.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> Result<MergedWarc<W>, WarcError> {
        let (out, facts) = self.writer.finish()?;
        Ok(MergedWarc { out, facts, entries: self.entries })
    }
}

impl<W: Write> std::fmt::Debug for WarcMerge<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WarcMerge")
            .field("writer", &self.writer)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

/// A response record in place of a revisit: the same id, URI, date and head (made fit for the body with [`crate::http_head::response`]),
/// and the payload the revisit stands for. It keeps the revisit's id because it takes its place: request and metadata records name it.
#[must_use]
pub fn expand_revisit<'a>(header: &RecordHeader, head: &'a StoredHead, payload: Body<'a>) -> Record<'a> {
    let uri = header.target_uri().unwrap_or_default();
    let mut record = Record::response(&uri, header.date().unwrap_or_default(), head, payload);
    if let Some(id) = header.record_id() {
        record = record.id(id);
    }
    record = record.ip(header.get("WARC-IP-Address").and_then(|ip| ip.parse().ok()));
    for protocol in header.all("WARC-Protocol") {
        record = record.protocol(protocol.to_owned());
    }
    for id in header.all("WARC-Concurrent-To").filter_map(RecordId::parse) {
        record = record.concurrent_to(id);
    }
    match RevisitTarget::of(header).and_then(|target| target.sha256) {
        Some(sha256) => record.expect_payload(sha256),
        None => record,
    }
}

/// Reads a source to its end and lists its members.
fn scan(members: &mut (impl Read + Seek), filename: &str) -> Result<Vec<Member>, AssembleError> {
    let mut reader = WarcReader::with_record_digests(&mut *members)?;
    let mut list = Vec::new();
    while let Some(record) = reader.next_record()? {
        let end = record.finish()?;
        let Some(length) = end.length.filter(|_| !end.faults.contains(&Fault::SharedMember)) else {
            return Err(AssembleError::NotMembers);
        };
        list.extend(Member::of(end, length, filename));
    }
    if let Some(damage) = reader.faults().iter().find(|located| located.fault.is_damage()) {
        return Err(AssembleError::Damaged(damage.clone()));
    }
    if !reader.is_gzip() && !list.is_empty() {
        return Err(AssembleError::NotMembers);
    }
    Ok(list)
}
