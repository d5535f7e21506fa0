//! CDXJ: one line a capture, `<SURT key> <14-digit timestamp> <JSON>`, sorted, so a URL is found by binary search.

mod blocks;
mod lookup;

use std::{fmt, io::Read};

use chrono::{DateTime, Utc};
use serde::Deserialize;

pub use blocks::{CompressedIndex, block_ranges, compress};
pub use lookup::CdxjText;

use crate::{
    http_head::{media_type, summary},
    reader::{Located, RecordEnd, WarcReader},
    record::{RecordType, WARC_FIELDS},
};

/// One index line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdxjEntry {
    /// SURT key.
    pub urlkey: String,
    /// `YYYYMMDDhhmmss`, UTC.
    pub timestamp: String,
    /// Target URI of the record.
    pub url: String,
    /// Media type without parameters; `warc/revisit` for revisit records.
    pub mime: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Payload digest with its algorithm, `sha256:<hex>` for our own records.
    pub digest: Option<String>,
    /// Stored length of the record (its gzip member), bytes.
    pub length: u64,
    /// Stored offset of the record in `filename`, bytes.
    pub offset: u64,
    /// The WARC's name, without folder.
    pub filename: String,
    /// `sha256:<hex>` of the stored bytes.
    pub record_digest: Option<String>,
}

/// A line that is no index line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CdxjError {
    /// Not three parts separated by spaces.
    #[error("not a key, a timestamp and a JSON object")]
    Shape,
    /// The third part is not the object it should be.
    #[error("the JSON part is malformed or lacks url, offset, length or filename")]
    Json,
}

impl CdxjError {
    /// Always: the same line fails again.
    #[must_use]
    pub const fn is_permanent(self) -> bool {
        true
    }
}

/// Numbers in index lines come as numbers or as strings.
#[derive(Deserialize)]
#[serde(untagged)]
enum Loose {
    Number(u64),
    Text(String),
}

impl Loose {
    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(n) => Some(*n),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }
}

#[derive(Deserialize)]
struct Fields {
    url: String,
    mime: Option<String>,
    status: Option<Loose>,
    digest: Option<String>,
    length: Loose,
    offset: Loose,
    filename: String,
    #[serde(rename = "recordDigest")]
    record_digest: Option<String>,
}

impl CdxjEntry {
    /// Parses one line.
    ///
    /// # Errors
    /// [`CdxjError`] says which part is not as it should be.
    pub fn parse(line: &str) -> Result<Self, CdxjError> {
        let mut parts = line.trim_end_matches(['\r', '\n']).splitn(3, ' ');
        let (Some(urlkey), Some(timestamp), Some(json)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(CdxjError::Shape);
        };
        let fields: Fields = serde_json::from_str(json).map_err(|_| CdxjError::Json)?;
        Ok(Self {
            urlkey: urlkey.to_owned(),
            timestamp: timestamp.to_owned(),
            url: fields.url,
            mime: fields.mime,
            status: fields.status.and_then(|s| s.number()).and_then(|n| u16::try_from(n).ok()),
            digest: fields.digest,
            length: fields.length.number().ok_or(CdxjError::Json)?,
            offset: fields.offset.number().ok_or(CdxjError::Json)?,
            filename: fields.filename,
            record_digest: fields.record_digest,
        })
    }

    /// Index entry of a record read from a WARC, `None` for records that are not indexed and those without URI, date or place.
    #[must_use]
    pub fn of_record(end: &RecordEnd, filename: &str) -> Option<Self> {
        let header = &end.header;
        let kind = header.record_type()?;
        let content_type = header.get("Content-Type");
        match kind {
            RecordType::Response | RecordType::Revisit => {}
            RecordType::Resource | RecordType::Metadata if content_type != Some(WARC_FIELDS) => {}
            _ => return None,
        }
        let url = header.target_uri()?;
        let (status, http_mime) = end.http_head.as_deref().map(summary).unwrap_or_default();
        let mime = match kind {
            RecordType::Revisit => Some("warc/revisit".to_owned()),
            RecordType::Response => http_mime,
            _ => content_type.map(|value| media_type(value.as_bytes())),
        };
        let digest = match header.get("WARC-Payload-Digest") {
            Some(label) => Some(label.to_owned()),
            // A revisit does not hold its payload, so there is nothing to hash.
            None => (kind != RecordType::Revisit).then(|| end.payload_sha256.to_string()),
        };
        Some(Self {
            urlkey: crate::surt::surt(&url),
            timestamp: timestamp(header.date()?),
            url,
            mime,
            status,
            digest,
            length: end.length?,
            offset: end.offset,
            filename: filename.to_owned(),
            record_digest: end.record_digest.map(|d| d.to_string()),
        })
    }
}

/// The line without its end: keys in the order and spacing of the field's tools, numbers as strings, ASCII only.
impl fmt::Display for CdxjEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {{\"url\": ", self.urlkey, self.timestamp)?;
        ascii_json(f, &self.url)?;
        if let Some(mime) = &self.mime {
            f.write_str(", \"mime\": ")?;
            ascii_json(f, mime)?;
        }
        if let Some(status) = self.status {
            write!(f, ", \"status\": \"{status}\"")?;
        }
        if let Some(digest) = &self.digest {
            f.write_str(", \"digest\": ")?;
            ascii_json(f, digest)?;
        }
        write!(f, ", \"length\": \"{}\", \"offset\": \"{}\", \"filename\": ", self.length, self.offset)?;
        ascii_json(f, &self.filename)?;
        if let Some(digest) = &self.record_digest {
            f.write_str(", \"recordDigest\": ")?;
            ascii_json(f, digest)?;
        }
        f.write_str("}")
    }
}

/// A JSON string with everything but printable ASCII escaped.
fn ascii_json(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            ' '..='~' => fmt::Write::write_char(f, c)?,
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(f, "\\u{unit:04x}")?;
                }
            }
        }
    }
    f.write_str("\"")
}

/// 14 digits, UTC.
#[must_use]
pub fn timestamp(date: DateTime<Utc>) -> String {
    date.format("%Y%m%d%H%M%S").to_string()
}

/// Collects the lines of an index.
#[derive(Debug, Clone, Default)]
pub struct CdxjIndex {
    lines: Vec<String>,
}

impl CdxjIndex {
    /// Adds a line; takes `Option`s too, so `index.extend(written.cdxj(name))` skips what is not indexed.
    pub fn push(&mut self, entry: &CdxjEntry) {
        self.lines.push(entry.to_string());
    }

    /// How many lines were added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether no line was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The sorted index, each line once, each ended by a line feed. Byte order, as binary search and other tools expect.
    #[must_use]
    pub fn into_text(mut self) -> String {
        self.lines.sort_unstable();
        self.lines.dedup();
        let mut text = String::with_capacity(self.lines.iter().map(|line| line.len() + 1).sum());
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

impl Extend<CdxjEntry> for CdxjIndex {
    fn extend<T: IntoIterator<Item = CdxjEntry>>(&mut self, entries: T) {
        for entry in entries {
            self.push(&entry);
        }
    }
}

/// What indexing a WARC file gave.
#[derive(Debug, Clone, Default)]
pub struct Indexed {
    /// Entries in the order of the file.
    pub entries: Vec<CdxjEntry>,
    /// What is wrong with the file.
    pub faults: Vec<Located>,
}

/// Indexes a WARC file as far as it is sound.
///
/// # Errors
/// Those of the reader.
pub fn index_warc(file: impl Read, filename: &str) -> std::io::Result<Indexed> {
    let mut reader = WarcReader::with_record_digests(file)?;
    let mut entries = Vec::new();
    while let Some(record) = reader.next_record()? {
        entries.extend(CdxjEntry::of_record(&record.finish()?, filename));
    }
    Ok(Indexed { entries, faults: reader.faults().to_vec() })
}
