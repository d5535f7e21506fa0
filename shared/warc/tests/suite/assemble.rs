use std::io::{self, Cursor};

use fonds_warc::{
    Record, RecordId, RecordType, RefersTo, Sha256Digest, StoredBody, WarcBuffer, WarcMerge, WarcReader,
    assemble::{AssembleError, KeepRevisits, RevisitTarget},
    cdxj::index_warc,
    http_head,
    record::ReadSeek,
};

use crate::common::{gzip, now, sample};

const NAME: &str = "data.warc.gz";

fn kinds(warc: &[u8]) -> Vec<&'static str> {
    let mut reader = WarcReader::new(warc).unwrap();
    let mut kinds = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let end = record.finish().unwrap();
        assert_eq!(end.faults, []);
        kinds.push(end.header.record_type().map_or("?", RecordType::as_str));
    }
    kinds
}

/// Two captures of one page, the second as a revisit, with their requests.
fn shared() -> (Vec<u8>, std::ops::Range<usize>) {
    let mut warc = WarcBuffer::buffer();
    let raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    let head = http_head::response(raw, StoredBody::as_sent(5)).unwrap();
    let get = http_head::request(b"GET / HTTP/1.1\r\nHost: e.com\r\n\r\n", StoredBody::as_sent(0)).unwrap();
    warc.write(Record::warcinfo(now(), None, &[("software", "fonds")])).unwrap();
    let first = warc.write(Record::response("http://e.com/a", now(), &head, b"hello".as_slice())).unwrap();
    warc.write(Record::request("http://e.com/a", now(), &get, b"".as_slice(), first.id)).unwrap();
    let start = usize::try_from(warc.offset()).unwrap();
    let refers_to = RefersTo { record_id: Some(first.id), target_uri: "http://e.com/a".into(), date: first.date };
    let payload = first.payload_digest.unwrap();
    let again = Record::revisit("http://e.com/b", now(), &head, payload, refers_to).protocol("tls/1.3");
    let again = warc.write(again).unwrap();
    warc.write(Record::request("http://e.com/b", now(), &get, b"".as_slice(), again.id)).unwrap();
    let end = usize::try_from(warc.offset()).unwrap();
    (warc.finish().unwrap().0, start..end)
}

#[test]
fn ranges_are_copied_as_they_are() {
    let (warc, range) = shared();
    let mut merge = WarcMerge::new(Vec::new(), NAME, now(), &[("software", "fonds export")]).unwrap();
    merge.copy(&mut Cursor::new(&warc[..range.start]), &mut KeepRevisits).unwrap();
    merge.copy(&mut Cursor::new(&warc[range.clone()]), &mut KeepRevisits).unwrap();
    merge.copy(&mut Cursor::new(&warc[range.clone()]), &mut KeepRevisits).unwrap();
    let merged = merge.finish().unwrap();
    assert_eq!(kinds(&merged.out), ["warcinfo", "response", "request", "revisit", "request"]);
    assert!(merged.out.ends_with(&warc[range]), "not compressed again");
    assert_eq!(merged.facts, fonds_warc::ContentFacts::of(&merged.out));
    assert_eq!(merged.entries, index_warc(merged.out.as_slice(), NAME).unwrap().entries);
}

#[test]
fn a_range_in_the_middle_of_a_file_can_be_given() {
    let (warc, range) = shared();
    let mut file = Cursor::new(&warc);
    file.set_position(range.start as u64);
    let mut merge = WarcMerge::new(Vec::new(), NAME, now(), &[]).unwrap();
    merge.copy(&mut file, &mut KeepRevisits).unwrap();
    assert_eq!(kinds(&merge.finish().unwrap().out), ["warcinfo", "revisit", "request"]);
}

#[test]
fn revisits_become_whole_when_the_payload_is_at_hand() {
    let (warc, range) = shared();
    let mut asked = Vec::new();
    let mut payloads = |target: &RevisitTarget| -> io::Result<Option<Box<dyn ReadSeek>>> {
        asked.push(target.clone());
        Ok(Some(Box::new(Cursor::new(b"hello".to_vec()))))
    };
    let mut merge = WarcMerge::new(Vec::new(), NAME, now(), &[]).unwrap();
    merge.copy(&mut Cursor::new(&warc[range.clone()]), &mut payloads).unwrap();
    let merged = merge.finish().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].sha256, Some(Sha256Digest::of(b"hello")));
    assert_eq!((asked[0].target_uri.as_deref(), asked[0].date), (Some("http://e.com/a"), Some(now())));
    assert_eq!(kinds(&merged.out), ["warcinfo", "response", "request"]);
    assert_eq!(merged.entries.len(), 1);
    assert_eq!((merged.entries[0].mime.as_deref(), merged.entries[0].status), (Some("text/html"), Some(200)));
    assert_eq!(merged.entries, index_warc(merged.out.as_slice(), NAME).unwrap().entries);

    let mut reader = WarcReader::new(merged.out.as_slice()).unwrap();
    reader.next_record().unwrap();
    let end = reader.next_record().unwrap().unwrap().finish().unwrap();
    let response = end.header.record_id();
    assert_eq!(end.header.all("WARC-Protocol").collect::<Vec<_>>(), ["tls/1.3"]);
    assert!(end.header.get("WARC-Profile").is_none() && end.header.get("WARC-Refers-To-Date").is_none());
    let request = reader.next_record().unwrap().unwrap();
    let names = request.header().get("WARC-Concurrent-To").and_then(RecordId::parse);
    assert_eq!(names, response, "the request still names its response");
}

#[test]
fn a_wrong_payload_is_refused() {
    let (warc, range) = shared();
    let mut payloads = |_: &RevisitTarget| -> io::Result<Option<Box<dyn ReadSeek>>> {
        Ok(Some(Box::new(Cursor::new(b"hullo".to_vec()))))
    };
    let mut merge = WarcMerge::new(Vec::new(), NAME, now(), &[]).unwrap();
    let error = merge.copy(&mut Cursor::new(&warc[range]), &mut payloads).unwrap_err();
    assert!(matches!(&error, AssembleError::Warc(fonds_warc::WarcError::PayloadMismatch)), "{error}");
    assert!(error.is_permanent());
}

#[test]
fn nothing_of_a_damaged_source_gets_in() {
    let (warc, range) = shared();
    let part = &warc[range];
    let plain = {
        let mut text = Vec::new();
        io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(part), &mut text).unwrap();
        text
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("cut", part[..part.len() - 5].to_vec()),
        ("junk", [part, b"junk"].concat()),
        ("range that begins inside a member", part[3..].to_vec()),
        ("plain", plain.clone()),
        ("one member", gzip(&plain)),
    ];
    for (name, bytes) in cases {
        let mut merge = WarcMerge::new(Vec::new(), NAME, now(), &[]).unwrap();
        let error = merge.copy(&mut Cursor::new(bytes), &mut KeepRevisits).unwrap_err();
        assert!(matches!(error, AssembleError::Damaged(_) | AssembleError::NotMembers), "{name}: {error}");
        assert_eq!(kinds(&merge.finish().unwrap().out), ["warcinfo"], "{name}");
    }
}

#[test]
fn the_whole_sample_survives_a_merge() {
    let sample = sample();
    let mut merge = WarcMerge::new(Vec::new(), NAME, now(), &[]).unwrap();
    merge.copy(&mut Cursor::new(&sample.warc), &mut KeepRevisits).unwrap();
    let extra = Record::resource("urn:note", now(), "text/plain", b"added".as_slice());
    merge.write(extra).unwrap();
    let merged = merge.finish().unwrap();
    assert_eq!(kinds(&merged.out).len(), sample.written.len() + 1);
    assert_eq!(merged.entries.len(), sample.index().len() + 1);
}
