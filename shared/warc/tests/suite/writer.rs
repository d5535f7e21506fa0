use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use fonds_warc::{
    Body, Record, RecordId, RecordType, RefersTo, Sha256Digest, StoredBody, WarcBuffer, WarcError, WarcReader,
    WarcWriter, cdxj::index_warc, http_head, record::warc_date,
};

use crate::common::{self, noise, now, sample};

fn head(len: u64) -> fonds_warc::StoredHead {
    http_head::response(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", StoredBody::as_sent(len)).unwrap()
}

#[test]
fn what_was_written_is_read_back() {
    let sample = sample();
    let mut reader = WarcReader::with_record_digests(sample.warc.as_slice()).unwrap();
    for written in &sample.written {
        let end = reader.next_record().unwrap().unwrap().finish().unwrap();
        assert_eq!(end.faults, []);
        assert_eq!(end.header.record_id(), Some(written.id));
        assert_eq!(end.header.record_type(), Some(written.kind));
        assert_eq!(end.header.date(), Some(written.date));
        assert_eq!(end.header.target_uri(), written.target_uri);
        assert_eq!((end.offset, end.length), (written.offset, Some(written.length)));
        assert_eq!(end.record_digest, Some(written.record_digest));
        assert_eq!(end.header.get("WARC-Block-Digest").unwrap(), written.block_digest.to_string());
        let payload = written.payload_digest.map(|d| d.to_string());
        assert_eq!(end.header.get("WARC-Payload-Digest"), payload.as_deref());
    }
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(reader.faults(), []);
}

#[test]
fn the_facts_are_those_of_the_file() {
    let sample = sample();
    assert_eq!(sample.facts, fonds_warc::ContentFacts::of(&sample.warc));
    let mut ids: Vec<_> = sample.written.iter().map(|w| w.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), sample.written.len(), "record ids are unique");
}

#[test]
fn index_lines_of_the_writer_and_of_the_reader_agree() {
    let sample = sample();
    let indexed = index_warc(sample.warc.as_slice(), "data.warc.gz").unwrap();
    let written: Vec<_> = sample.written.iter().filter_map(|w| w.cdxj("data.warc.gz")).collect();
    assert_eq!(indexed.entries, written);
}

#[test]
fn a_header_says_everything_in_its_place() {
    let mut warc = WarcBuffer::buffer();
    let head = http_head::response(b"HTTP/2 200\r\n\r\n", StoredBody::as_sent(0)).unwrap();
    let payload = Sha256Digest::of(b"body");
    let refers_to = RefersTo { record_id: Some(RecordId::new()), target_uri: "http://e.com/a b".into(), date: now() };
    let record = Record::revisit("http://e.com/\n x\u{e9}", now(), &head, payload, refers_to.clone())
        .ip("2001:db8::1".parse::<std::net::IpAddr>().unwrap())
        .protocol("tls/1.3\r\nWARC-Type: evil")
        .field("X-Own", "a\r\nb")
        .field("not a name", "left out");
    let id = record.record_id();
    warc.write(record).unwrap();
    let (bytes, _) = warc.finish().unwrap();
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    let block = "HTTP/1.1 200 OK\r\n\r\n";
    let expected = format!(
        "WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: {id}\r\nWARC-Date: 2025-10-09T08:53:20.123456Z\r\n\
         WARC-Target-URI: http://e.com/%0A%20x%C3%A9\r\nWARC-IP-Address: 2001:db8::1\r\nWARC-Protocol: h2\r\n\
         WARC-Protocol: tls/1.3  WARC-Type: evil\r\n\
         WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
         WARC-Refers-To: {}\r\nWARC-Refers-To-Target-URI: http://e.com/a%20b\r\n\
         WARC-Refers-To-Date: 2025-10-09T08:53:20.123456Z\r\nX-Own: a  b\r\nWARC-Payload-Digest: {payload}\r\n\
         WARC-Block-Digest: {}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n\
         {block}\r\n\r\n",
        refers_to.record_id.unwrap(),
        Sha256Digest::of(block.as_bytes()),
        block.len(),
    );
    assert_eq!(text, expected);
    assert_eq!(warc_date("2025-01-01T00:00:00Z".parse().unwrap()), "2025-01-01T00:00:00Z");
}

#[test]
fn large_and_small_bodies_make_the_same_record() {
    for len in [0, 1, 70_000, 524_288, 524_289, 1_048_576, 3_000_000] {
        let bytes = noise(len);
        let head = head(len as u64);
        let id = RecordId::new();
        let mut blocks = Vec::new();
        let mut file = Cursor::new(bytes.clone());
        for body in [Body::from(&bytes), Body::file(&mut file).unwrap()] {
            let mut warc = WarcBuffer::buffer();
            let written = warc.write(Record::response("http://e.com/", now(), &head, body).id(id)).unwrap();
            assert_eq!(written.payload_digest, Some(Sha256Digest::of(&bytes)));
            let (packed, _) = warc.finish().unwrap();
            let mut raw = Vec::new();
            flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut raw).unwrap();
            blocks.push(raw);
        }
        assert!(blocks[0] == blocks[1], "{len} bytes");
    }
}

/// A file that loses or changes bytes between two readings.
struct Shaky {
    inner: Cursor<Vec<u8>>,
    rewound: bool,
}

impl Read for Shaky {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        if self.rewound && n > 0 {
            out[0] ^= 1;
        }
        Ok(n)
    }
}

impl Seek for Shaky {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.rewound = matches!(to, SeekFrom::Start(_));
        self.inner.seek(to)
    }
}

#[test]
fn a_body_that_is_not_what_was_said_is_refused() {
    let mut warc = WarcBuffer::buffer();
    let bytes = noise(2_000_000);
    let head = head(bytes.len() as u64);
    let wrong = Record::response("http://e.com/", now(), &head, &bytes).expect_payload(Sha256Digest::of(b"other"));
    assert!(matches!(warc.write(wrong), Err(WarcError::PayloadMismatch)));
    let mut short = Cursor::new(bytes.clone());
    let body = Body::File { len: 2_000_001, reader: &mut short };
    let error = warc.write(Record::response("http://e.com/", now(), &head, body)).unwrap_err();
    assert!(matches!(error, WarcError::BodyShort { expected: 2_000_001, got: 2_000_000 }));
    assert_eq!(warc.offset(), 0, "nothing was written");

    let mut shaky = Shaky { inner: Cursor::new(bytes), rewound: false };
    let body = Body::File { len: 2_000_000, reader: &mut shaky };
    assert!(matches!(warc.write(Record::response("http://e.com/", now(), &head, body)), Err(WarcError::BodyChanged)));
    let next = Record::response("http://e.com/", now(), &head, b"x".as_slice());
    assert!(matches!(warc.write(next), Err(WarcError::Poisoned)), "a torn file is not continued");
}

struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.0);
        self.0 -= n;
        if n == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(n) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told() {
    let mut warc = WarcWriter::new(Full(700));
    let head = head(1);
    let mut results = Vec::new();
    for _ in 0..4 {
        results.push(warc.write(Record::response("http://e.com/", now(), &head, b"x".as_slice())));
    }
    assert!(results[0].is_ok());
    assert!(results.iter().any(|r| matches!(r, Err(WarcError::Io(e)) if e.kind() == io::ErrorKind::StorageFull)));
    assert!(matches!(results[3], Err(WarcError::Poisoned)));
    assert!(warc.finish().is_err());
}

#[test]
fn what_is_compressed_already_is_not_compressed_hard() {
    let bytes = common::gzip(&b"abc".repeat(100_000));
    let mut warc = WarcBuffer::buffer();
    let head = http_head::response(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: text/html\r\n\r\n",
        StoredBody::as_sent(bytes.len() as u64),
    )
    .unwrap();
    let written = warc.write(Record::response("http://e.com/", now(), &head, &bytes)).unwrap();
    assert_eq!(written.kind, RecordType::Response);
    assert!(written.length < bytes.len() as u64 + 1_000);
}
