//! What no outside judge sees, asserted on every record: ids, dates, digests, targets, and that each
//! revisit names a record which is there.

use crate::archive::Archive;
use chrono::{DateTime, Utc};
use fonds_warc::{RecordType, WarcReader};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::io::Read;

/// A record, as far as others are held against it.
pub(crate) struct Kept {
    pub(crate) kind: RecordType,
    pub(crate) uri: String,
    pub(crate) date: DateTime<Utc>,
    /// `WARC-Payload-Digest`; a warcinfo has none.
    payload: String,
    /// URI and date of the original, for a revisit.
    refers: Option<(String, DateTime<Utc>)>,
}

impl Kept {
    /// Whether a player answers from it.
    pub(crate) fn is_capture(&self) -> bool {
        matches!(self.kind, RecordType::Response | RecordType::Revisit)
    }
}

/// All records of all objects, after looking at each and at all together.
pub(crate) fn sound(archive: &Archive) -> Vec<Kept> {
    let mut kept = Vec::new();
    let mut ids = HashSet::new();
    for object in &archive.objects {
        let mut reader = WarcReader::new(&object.warc_bytes[..]).expect("a WARC");
        while let Some(mut record) = reader.next_record().expect("readable") {
            let at = format!("{} at {}", object.key, record.offset());
            let mut block = Vec::new();
            record.read_to_end(&mut block).expect("its block");
            let end = record.finish().expect("its end");
            assert!(end.faults.is_empty(), "{at}: {:?}", end.faults);
            let id = end.header.record_id().unwrap_or_else(|| panic!("{at}: no record id"));
            assert!(ids.insert(id), "{at}: {id} was there before");
            kept.push(look(&end.header, &block, &at));
        }
        assert!(reader.faults().is_empty(), "{}: {:?}", object.key, reader.faults());
    }
    revisits_resolve(&kept);
    kept
}

fn look(header: &fonds_warc::reader::RecordHeader, block: &[u8], at: &str) -> Kept {
    let must = |name: &str| header.get(name).unwrap_or_else(|| panic!("{at}: no {name}")).to_owned();
    assert_eq!(header.version(), "WARC/1.1", "{at}");
    assert_eq!(must("Content-Length"), block.len().to_string(), "{at}");
    let kind = header.record_type().unwrap_or_else(|| panic!("{at}: {}", must("WARC-Type")));
    let date = instant(&must("WARC-Date"), at);
    assert_eq!(must("WARC-Block-Digest"), labelled(block), "{at}: block digest");
    if kind == RecordType::Warcinfo {
        return Kept { kind, uri: String::new(), date, payload: String::new(), refers: None };
    }
    let uri = must("WARC-Target-URI");
    assert!(uri.bytes().all(|b| b.is_ascii_graphic()), "{at}: {uri:?} is no URI on one line");
    let payload = must("WARC-Payload-Digest");
    let mut refers = None;
    if kind == RecordType::Revisit {
        must("WARC-Profile");
        refers = Some((must("WARC-Refers-To-Target-URI"), instant(&must("WARC-Refers-To-Date"), at)));
    } else {
        let body = if header.is_http() { after_head(block, at) } else { block };
        assert_eq!(payload, labelled(body), "{at}: payload digest");
    }
    Kept { kind, uri, date, payload, refers }
}

/// Each names a response of the collection with the same payload.
fn revisits_resolve(kept: &[Kept]) {
    let originals: HashMap<(&str, DateTime<Utc>), &str> = kept
        .iter()
        .filter(|k| k.kind == RecordType::Response)
        .map(|k| ((k.uri.as_str(), k.date), k.payload.as_str()))
        .collect();
    for revisit in kept {
        if let Some((uri, date)) = &revisit.refers {
            let original = originals.get(&(uri.as_str(), *date));
            assert_eq!(original, Some(&revisit.payload.as_str()), "{} refers to {uri} of {date}", revisit.uri);
        }
    }
}

/// Strict, unlike the reader: what others parse must be RFC 3339 in UTC.
fn instant(text: &str, at: &str) -> DateTime<Utc> {
    assert!(text.ends_with('Z'), "{at}: {text} is not in UTC");
    DateTime::parse_from_rfc3339(text).unwrap_or_else(|e| panic!("{at}: {text}: {e}")).to_utc()
}

fn labelled(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn after_head<'b>(block: &'b [u8], at: &str) -> &'b [u8] {
    let end =
        block.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or_else(|| panic!("{at}: no end of the HTTP head"));
    &block[end + 4..]
}
