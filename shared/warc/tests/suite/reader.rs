use std::{fs, io::Read};

use fonds_warc::{Fault, RecordType, WarcReader, reader::RecordEnd};
use proptest::prelude::*;

use crate::common::{corpora, gzip, sample};

/// Reads all records and the codes of all faults.
fn read_all(bytes: &[u8]) -> (Vec<RecordEnd>, Vec<&'static str>) {
    let mut reader = WarcReader::with_record_digests(bytes).unwrap();
    let mut ends = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        ends.push(record.finish().unwrap());
    }
    let codes = reader.faults().iter().map(|located| located.fault.code()).collect();
    (ends, codes)
}

fn record(kind: &str, fields: &str, block: &str) -> String {
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:a9c51e3e-0221-11e7-bf66-0242ac120005>\r\n\
         WARC-Date: 2025-01-01T00:00:00Z\r\n{fields}Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

fn resource(block: &str) -> String {
    record("resource", "WARC-Target-URI: http://e.com/\r\nContent-Type: text/plain\r\n", block)
}

#[test]
fn foreign_files_are_read_as_far_as_they_are_sound() {
    let Some(corpora) = corpora() else { return };
    let expected: &[(&str, usize, &[&str])] = &[
        ("warcio--example.warc.gz", 6, &[]),
        ("warcio--example-digest.warc", 4, &["UNKNOWN_DIGEST"]),
        ("warcio--example-iana.org-chunked.warc", 3, &[]),
        ("warcio--example-space-in-target-uri.warc.gz", 2, &["SPACE_IN_TARGET_URI"]),
        (
            "warcio--example-trunc.warc",
            4,
            &["MISSING_END_MARK", "JUNK", "BLOCK_DIGEST_MISMATCH", "PAYLOAD_DIGEST_MISMATCH"],
        ),
        ("warcio--post-test.warc.gz", 6, &[]),
    ];
    for (name, records, faults) in expected {
        let bytes = fs::read(corpora.join("warc").join(name)).unwrap();
        let (ends, codes) = read_all(&bytes);
        assert_eq!((ends.len(), codes.as_slice()), (*records, *faults), "{name}");
        for end in &ends {
            assert!(end.length.is_some() && end.record_digest.is_some(), "{name}");
        }
    }
}

#[test]
fn every_fault_has_its_name() {
    let good = resource("hello");
    let digest = "WARC-Target-URI: http://e.com/\r\nWARC-Block-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n";
    let cases: Vec<(&str, String, &[&str], usize)> = vec![
        ("sound", good.repeat(2), &[], 2),
        ("empty file", String::new(), &[], 0),
        ("no WARC", "hello\r\nworld".to_owned(), &["JUNK"], 0),
        ("junk before", format!("junk\r\n{good}"), &["JUNK"], 1),
        ("junk after", format!("{good}junk"), &["JUNK"], 1),
        ("junk between", format!("{good}WARC\r\nWAR\r\n{good}"), &["JUNK"], 2),
        ("blank lines between", format!("{good}\r\n\r\n{good}\r\n"), &[], 2),
        ("length too small", good.replace("Length: 5", "Length: 3") + &good, &["MISSING_END_MARK", "JUNK"], 2),
        ("length too large", good.replace("Length: 5", "Length: 999"), &["TRUNCATED_BLOCK"], 1),
        ("no end mark", good.trim_end().to_owned() + &good, &["MISSING_END_MARK"], 2),
        ("cut in the header", good[..60].to_owned(), &["TRUNCATED_HEADER"], 0),
        ("no length", good.replace("Content-Length: 5\r\n", ""), &["MISSING_FIELD", "MISSING_END_MARK", "JUNK"], 1),
        ("bad length", good.replace("Length: 5", "Length: -5"), &["BAD_FIELD", "MISSING_END_MARK", "JUNK"], 1),
        ("no date", good.replace("WARC-Date", "X-Date"), &["MISSING_FIELD"], 1),
        ("bad date", good.replace("2025-01-01T", "yesterday "), &["BAD_FIELD"], 1),
        ("id without brackets", good.replace(['<', '>'], ""), &["BAD_FIELD"], 1),
        ("no URI", record("response", "", ""), &["MISSING_FIELD"], 1),
        ("bracketed URI", good.replace("http://e.com/", "<http://e.com/>"), &["BRACKETED_TARGET_URI"], 1),
        ("unknown type", record("photograph", "", ""), &["UNKNOWN_TYPE"], 1),
        ("unknown version", good.replace("WARC/1.1", "WARC/7"), &["UNKNOWN_VERSION"], 1),
        ("two dates", good.replace("WARC-Date", "WARC-Date: x\r\nWARC-Date"), &["REPEATED_FIELD", "BAD_FIELD"], 1),
        ("no colon", good.replace("WARC-Date", "what\r\nWARC-Date"), &["BAD_HEADER_LINE"], 1),
        ("LF only", good.replace("\r\n", "\n"), &["BARE_LINE_FEED", "BARE_LINE_FEED"], 1),
        ("wrong digest", record("resource", digest, "x"), &["BLOCK_DIGEST_MISMATCH"], 1),
        ("unknown digest", record("resource", &digest.replace("sha1", "md9"), "x"), &["UNKNOWN_DIGEST"], 1),
        ("revisit without profile", record("revisit", "WARC-Target-URI: http://e.com/\r\n", ""), &["MISSING_FIELD"], 1),
        ("huge header", good.replace("WARC-Date", &"x".repeat(300_000)), &["HEADER_TOO_LARGE"], 0),
    ];
    for (name, text, faults, records) in cases {
        let (ends, codes) = read_all(text.as_bytes());
        assert_eq!((codes.as_slice(), ends.len()), (faults, records), "{name}");
    }
}

#[test]
fn gzip_faults_have_their_names() {
    let one = gzip(resource("hello").as_bytes());
    let two = gzip(resource("hello").repeat(2).as_bytes());
    let long = gzip(resource("hello").replace("Length: 5", "Length: 500").as_bytes());
    let short = gzip(resource("hello").replace("Length: 5", "Length: 2").as_bytes());
    let no_length = gzip(resource("hello").replace("Content-Length: 5\r\n", "").as_bytes());
    let mut crc = one.clone();
    let at = crc.len() - 8;
    crc[at] ^= 1;
    let mut broken = one.clone();
    broken[14] ^= 0xff;
    let cases: Vec<(&str, Vec<u8>, &[&str], usize)> = vec![
        ("sound", [one.clone(), one.clone()].concat(), &[], 2),
        ("whole-file gzip", two.clone(), &["SHARED_MEMBER"], 2),
        ("member of no record", [gzip(b"hello"), one.clone()].concat(), &["JUNK"], 1),
        ("empty member", [gzip(b""), one.clone()].concat(), &[], 1),
        ("junk after", [one.clone(), b"junk".to_vec()].concat(), &["JUNK"], 1),
        ("zeros after", [one.clone(), vec![0; 100]].concat(), &["JUNK"], 1),
        ("cut in the trailer", one[..one.len() - 3].to_vec(), &["TRUNCATED_GZIP"], 1),
        ("cut in a header", [one.clone(), one[..5].to_vec()].concat(), &["TRUNCATED_GZIP"], 1),
        ("checksum", [crc, one.clone()].concat(), &["GZIP_CHECKSUM"], 2),
        ("length too large", [long, one.clone()].concat(), &["TRUNCATED_BLOCK"], 2),
        ("length too small", [short, one.clone()].concat(), &["MISSING_END_MARK", "JUNK"], 2),
        ("no length", [no_length, one.clone()].concat(), &["MISSING_FIELD"], 2),
    ];
    for (name, bytes, faults, records) in cases {
        let (ends, codes) = read_all(&bytes);
        assert_eq!((codes.as_slice(), ends.len()), (faults, records), "{name}");
    }
    let (_, codes) = read_all(&broken);
    assert!(codes.iter().any(|c| matches!(*c, "CORRUPT_GZIP" | "GZIP_CHECKSUM")), "{codes:?}");
}

#[test]
fn digests_are_checked_in_every_spelling() {
    let block = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    let spellings = [
        ("sha1:03de6c570bfe24bfc328ccd7ca46b76eadaf4334", true),
        ("sha1:APPGYVYL7YSL7QZIZTL4URVXN2W26QZU", true),
        ("sha1:A95sVwv+JL/DKMzXyka3bq2vQzQ=", true),
        ("sha256:36bbe50ed96841d10443bcb670d6554f0a34b761be67ec9c4a8ad2c0c44ca42c", true),
        ("sha1:APPGYVYL7YSL7QZIZTL4URVXN2W26QZA", false),
    ];
    for (digest, holds) in spellings {
        let fields = format!(
            "WARC-Target-URI: http://e.com/\r\nWARC-Payload-Digest: {digest}\r\nContent-Type: application/http; msgtype=response\r\n"
        );
        let (_, codes) = read_all(record("response", &fields, block).as_bytes());
        assert_eq!(codes.is_empty(), holds, "{digest} {codes:?}");
    }
}

#[test]
fn a_block_can_be_read_in_part() {
    let sample = sample();
    let mut reader = WarcReader::new(sample.warc.as_slice()).unwrap();
    let mut responses = 0;
    while let Some(mut record) = reader.next_record().unwrap() {
        let mut start = [0; 9];
        let n = record.read(&mut start).unwrap();
        if record.header().record_type() == Some(RecordType::Response) {
            assert!(start[..n].starts_with(b"HTTP/1."), "the block begins with the status line");
            responses += 1;
        }
        // Dropped unfinished: the next one is found all the same.
    }
    assert_eq!(responses, sample.written.iter().filter(|w| w.kind == RecordType::Response).count());
    assert_eq!(reader.faults(), []);
}

#[test]
fn small_reads_make_no_difference() {
    struct Trickle<'a>(&'a [u8]);
    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = out.len().min(self.0.len()).min(1);
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }
    let text = format!("junk\r\n{}x{}", resource("hello"), resource("a\r\nWARC/1.1 in the block"));
    for bytes in [text.as_bytes().to_vec(), [gzip(text.as_bytes()), gzip(resource("b").as_bytes())].concat()] {
        let (ends, codes) = read_all(&bytes);
        let mut reader = WarcReader::with_record_digests(Trickle(&bytes)).unwrap();
        let mut count = 0;
        while let Some(record) = reader.next_record().unwrap() {
            let end = record.finish().unwrap();
            let place = |end: &RecordEnd| (end.offset, end.length, end.record_digest);
            assert_eq!(place(&end), place(&ends[count]));
            count += 1;
        }
        let again: Vec<_> = reader.faults().iter().map(|l| l.fault.code()).collect();
        assert_eq!((count, again), (ends.len(), codes));
    }
}

#[test]
fn places_of_plain_records_are_exact() {
    let text = resource("one") + &resource("two");
    let (ends, _) = read_all(text.as_bytes());
    for (end, expected) in ends.iter().zip([resource("one"), resource("two")]) {
        let start = usize::try_from(end.offset).unwrap();
        let stored = &text[start..start + usize::try_from(end.length.unwrap()).unwrap()];
        assert_eq!(stored, expected.trim_end());
        assert_eq!(end.record_digest, Some(fonds_warc::Sha256Digest::of(stored.as_bytes())));
    }
    assert!(!ends.iter().any(|end| end.faults.contains(&Fault::SharedMember)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_files_never_panic(
        seed in 0usize..3,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0usize..40), 1..6),
    ) {
        let block = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let fields = "WARC-Target-URI: http://e.com/\r\nWARC-Payload-Digest: sha1:APPGYVYL7YSL7QZIZTL4URVXN2W26QZU\r\n";
        let text = record("response", fields, block) + &resource("hello") + &record("warcinfo", "", "a: b\r\n");
        let mut bytes = match seed {
            0 => text.into_bytes(),
            1 => gzip(text.as_bytes()),
            _ => [gzip(resource("x").as_bytes()), gzip(text.as_bytes())].concat(),
        };
        for (index, byte, remove) in cuts {
            if bytes.is_empty() { break; }
            let at = index.index(bytes.len());
            bytes[at] = byte;
            let end = (at + remove).min(bytes.len());
            bytes.drain(at..end);
        }
        let (ends, _) = read_all(&bytes);
        let total: u64 = ends.iter().map(|end| end.block_len).sum();
        prop_assert!(total <= 10_000);
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), gz: bool) {
        let bytes = if gz { gzip(&[b"WARC/1.1\r\n", bytes.as_slice()].concat()) } else { bytes };
        read_all(&bytes);
    }
}
