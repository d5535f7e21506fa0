//! A WARC and a WACZ with one of everything that pages bring along.

use std::{
    io::{Cursor, Write},
    net::IpAddr,
    path::PathBuf,
    sync::OnceLock,
};

use chrono::{DateTime, TimeDelta, Utc};
use flate2::{Compression, write::GzEncoder};
use fonds_warc::{
    Body, CdxjIndex, ContentFacts, PackageMeta, Page, Record, RecordId, RefersTo, Sha256Digest, StoredBody, Truncated,
    WaczWriter, WarcBuffer, Written,
    http_head::{self, raw_head},
    record::{WARC_FIELDS, warc_fields},
    wacz::{EntryPlace, FinishedWacz, WARC_NAME},
};

pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_760_000_000_123_456).unwrap()
}

pub(crate) fn corpora() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");
    let path = std::env::var_os("FONDS_CORPORA").map_or_else(|| PathBuf::from(default), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("no corpora at {}: nothing was checked against foreign files", path.display());
    None
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Bytes that hardly compress.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        })
        .collect()
}

pub(crate) struct Sample {
    pub(crate) warc: Vec<u8>,
    pub(crate) facts: ContentFacts,
    pub(crate) written: Vec<Written>,
}

impl Sample {
    pub(crate) fn index(&self) -> CdxjIndex {
        let mut index = CdxjIndex::default();
        index.extend(self.written.iter().filter_map(|w| w.cdxj(WARC_NAME)));
        index
    }
}

/// Writes exchanges, a second apart.
struct Recorder {
    warc: WarcBuffer,
    written: Vec<Written>,
    date: DateTime<Utc>,
}

impl Recorder {
    fn tick(&mut self) -> DateTime<Utc> {
        self.date += TimeDelta::milliseconds(1_001);
        self.date
    }

    fn put(&mut self, record: Record<'_>) -> RecordId {
        let written = self.warc.write(record).unwrap();
        let id = written.id;
        self.written.push(written);
        id
    }

    fn exchange(&mut self, url: &str, raw: &[u8], body: &[u8]) -> RecordId {
        self.exchange_as(url, raw, StoredBody::as_sent(body.len() as u64), body.into())
    }

    fn exchange_as(&mut self, url: &str, raw: &[u8], stored: StoredBody, body: Body<'_>) -> RecordId {
        let date = self.tick();
        let head = http_head::response(raw, stored).unwrap();
        let ip: IpAddr = "93.184.216.34".parse().unwrap();
        let id = self.put(Record::response(url, date, &head, body).ip(ip));
        let request = raw_head("GET / HTTP/1.1", [("Host", "example.com"), ("User-Agent", "fonds/0.1")]);
        let request = http_head::request(&request, StoredBody::as_sent(0)).unwrap();
        self.put(Record::request(url, date, &request, Body::empty(), id).ip(ip));
        id
    }
}

/// Made once; all tests look at the same one.
pub(crate) fn sample() -> &'static Sample {
    static SAMPLE: OnceLock<Sample> = OnceLock::new();
    SAMPLE.get_or_init(make_sample)
}

fn make_sample() -> Sample {
    let mut r = Recorder { warc: WarcBuffer::buffer(), written: Vec::new(), date: now() };
    let fields = [("software", "fonds 0.1.0"), ("format", "WARC File Format 1.1"), ("isPartOf", "tests\r\nof ours")];
    r.put(Record::warcinfo(now(), Some(WARC_NAME), &fields));
    ordinary(&mut r);
    odd_heads(&mut r);
    odd_targets(&mut r);
    large(&mut r);
    beside_http(&mut r);
    let (warc, facts) = r.warc.finish().unwrap();
    Sample { warc, facts, written: r.written }
}

fn ordinary(r: &mut Recorder) {
    let page = "<!doctype html><title>Example</title>".repeat(40).into_bytes();
    let first = "http://www.example.com/";
    let id = r.exchange(
        first,
        b"HTTP/1.1 200 OK\r\nDate: Wed, 01 Jan 2025 00:00:00 GMT\r\nContent-Type: text/html; charset=utf-8\r\n\
          Transfer-Encoding: chunked\r\nX-Odd:no space\r\n\r\n",
        &page,
    );
    let original = r.written.iter().find(|w| w.id == id).unwrap().clone();
    let packed = gzip(&page);
    let raw = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        packed.len()
    );
    r.exchange("https://example.com/gzip?b=2&a=1", raw.as_bytes(), &packed);
    r.exchange_as(
        "https://example.com/decoded",
        b"HTTP/2 200\r\ncontent-type: text/html\r\ncontent-encoding: br\r\ncontent-length: 17\r\n\r\n",
        StoredBody::decoded(page.len() as u64),
        Body::from(&page),
    );
    r.exchange(
        "https://example.com/moved",
        b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n",
        b"",
    );
    r.exchange("https://example.com/none", b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\n", b"gone");
    r.exchange("https://example.com/empty", b"HTTP/1.1 204 No Content\r\n\r\n", b"");
    r.exchange(
        "https://example.com/same",
        b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 1234\r\n\r\n",
        b"",
    );
    r.exchange("https://example.com/pixel.png", b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n", &noise(3_000));
    r.exchange("https://example.com/data.json", b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n", b"{}");

    let head = http_head::response(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\nX-Again: yes\r\n\r\n",
        StoredBody::as_sent(page.len() as u64),
    )
    .unwrap();
    let refers_to = RefersTo { record_id: Some(id), target_uri: first.to_owned(), date: original.date };
    let date = r.tick();
    r.put(Record::revisit("http://www.example.com/again", date, &head, Sha256Digest::of(&page), refers_to));
}

fn odd_heads(r: &mut Recorder) {
    let heads: &[(&str, &[u8])] = &[
        ("fold", b"HTTP/1.1 200 OK\r\nContent-Type: text/html;\r\n charset=utf-8\r\nX-A: 1\r\n\t2\r\n\r\n"),
        ("lf", b"HTTP/1.1 200 OK\nContent-Type: text/plain\nX-A: 1\n\n"),
        ("malformed", b"HTTP/1.1 200 OK\r\nthis is no header\r\n: no name\r\nbad name: x\r\nName : spaced\r\n\r\n"),
        ("latin1", b"HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=\"caf\xe9.txt\"\r\n\r\n"),
        ("utf8", "HTTP/1.1 200 OK\r\nX-Name: caf\u{e9} \u{1f600}\r\n\r\n".as_bytes()),
        ("controls", b"HTTP/1.1 200 OK\r\nX-Nul: a\0b\x01c\x7fd\rX-Bare: e\r\n\r\n"),
        ("no-reason", b"HTTP/1.1 200\r\nContent-Type: text/plain\r\n\r\n"),
        ("odd-status", b"HTTP/1.1 999 Request denied\r\n\r\n"),
        ("h3", b"HTTP/3 200\r\n:status: 200\r\nserver: x\r\n\r\n"),
        ("icy", b"ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n"),
        ("lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 99\r\nContent-Length: 5, 5\r\n\r\n"),
        ("no-end", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain"),
        ("empty-value", b"HTTP/1.1 200 OK\r\nContent-Type:\r\nX-Empty: \r\n\r\n"),
        ("pragma", b"HTTP/1.1 200 OK\r\ncontent-type: Text/HTML;charset=x\r\n\r\n"),
    ];
    for (name, raw) in heads {
        r.exchange(&format!("http://example.com/heads/{name}"), raw, b"hello");
    }
}

fn odd_targets(r: &mut Recorder) {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    for url in [
        "http://example.com/with space/and\ttab",
        "http://example.com/caf\u{e9}?q=\u{65e5}\u{672c}",
        "http://EXAMPLE.com:8080/Path/?Z=1&a=2#frag",
        "https://user:pass@example.com:443/%7Euser//a/../b/./c/",
        "http://[2001:db8::1]:81/v6",
        "http://192.168.0.1/ip",
        "http://example.com/?jsessionid=0123456789abcdef0123456789ABCDEF&x=1",
        "http://www2.example.com./trailing.dot?",
        "http://example.com/quote\"<>",
    ] {
        r.exchange(url, head, url.as_bytes());
    }
}

fn large(r: &mut Recorder) {
    let raw = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n";
    let bytes = noise(2_500_000);
    let mut file = Cursor::new(bytes.clone());
    let stored = StoredBody::as_sent(bytes.len() as u64);
    r.exchange_as("http://example.com/large.pdf", raw, stored, Body::file(&mut file).unwrap());
    let text = b"all work and no play ".repeat(100_000);
    r.exchange("http://example.com/large.txt", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", &text);
    let mut small = Cursor::new(b"a small file".to_vec());
    r.exchange_as("http://example.com/small-file", raw, StoredBody::as_sent(12), Body::file(&mut small).unwrap());

    let date = r.tick();
    let head = http_head::response(
        b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 900000\r\n\r\n",
        StoredBody::as_sent(5_000),
    )
    .unwrap();
    let body = noise(5_000);
    r.put(Record::response("http://example.com/cut.mp4", date, &head, &body).truncated(Truncated::Length));
}

fn beside_http(r: &mut Recorder) {
    let date = r.tick();
    let head =
        http_head::response(b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\r\n", StoredBody::as_sent(2));
    let id =
        r.put(Record::response("https://example.com/api", date, &head.unwrap(), b"{}".as_slice()).protocol("tls/1.3"));
    let post =
        b"POST /api HTTP/2\r\n:authority: example.com\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n";
    let post = http_head::request(post, StoredBody::as_sent(9)).unwrap();
    r.put(Record::request("https://example.com/api", date, &post, b"{\"a\": 12}".as_slice(), id));

    let block = warc_fields(&[("fetchTimeMs", "12"), ("via", "http://www.example.com/")]);
    r.put(Record::metadata("http://www.example.com/", date, WARC_FIELDS, block).concurrent_to(id));
    r.put(Record::metadata("http://www.example.com/", date, "application/json", br#"{"links": []}"#.as_slice()));
    let image = noise(2_000);
    let shot = r.put(Record::resource("urn:screenshot:http://www.example.com/", date, "image/png", &image));
    r.put(Record::conversion("urn:screenshot:http://www.example.com/", date, "image/webp", &image, shot));
    r.put(Record::resource(
        "https://example.com/r\u{e9}sum\u{e9}",
        date,
        "text/plain; charset=utf-8",
        b"text".as_slice(),
    ));
}

/// Where each artifact went, and its bytes.
pub(crate) type Artifacts = Vec<(EntryPlace, Vec<u8>)>;

/// A package around the sample, with artifacts of many types.
pub(crate) fn package(sample: &Sample) -> (FinishedWacz<Vec<u8>>, Artifacts) {
    let mut wacz = WaczWriter::new(Vec::new(), now());
    wacz.add_warc(WARC_NAME, &sample.warc).unwrap();
    let artifacts: Vec<(&str, &str, Vec<u8>)> = vec![
        ("screenshot", "screenshot.png", noise(10_000)),
        ("headers", "headers.json", br#"{"status": 200, "headers": {"a": "b"}}"#.to_vec()),
        ("seo", "seo.json", br#"["a", 1, null]"#.to_vec()),
        ("hashes", "hashes.json", br#"[{"path": "a"}, {"other": 1}]"#.to_vec()),
        ("staticfile", "datapackage.json", br#"{"resources": [{"path": "../x"}]}"#.to_vec()),
        ("redirects", "redirects.jsonl", b"{\"a\": 1}\n{\"b\": [2]}\n\"text\"\n".to_vec()),
        ("consolelog", "consolelog.jsonl", Vec::new()),
        ("dom", "output.html", b"<p>\xff\xfe".to_vec()),
        ("singlefile", "singlefile.html", b"<table><tr><td>1</td></tr></table>".to_vec()),
        ("readability", "content.txt", "caf\u{e9}".as_bytes().to_vec()),
        ("sslcerts", "chain.pem", b"-----BEGIN CERTIFICATE-----\n".to_vec()),
        ("staticfile", "table.csv", b"a,b\n1,2,3\n\n\"\n".to_vec()),
        ("staticfile", "book.xlsx", noise(500)),
        ("staticfile", "files.zip", noise(500)),
        ("staticfile", "data.tsv", b"a\tb\n1\n".to_vec()),
        ("staticfile", "page.xml.gz", gzip(b"<x/>")),
        ("mhtml", "snapshot.mhtml", b"From: <Saved>\r\n".to_vec()),
        ("favicon", "r\u{e9}sum\u{e9} 1.ico", noise(50)),
        ("title", "title", b"no dot".to_vec()),
    ];
    let mut places = Vec::new();
    for (extractor, file, bytes) in artifacts {
        places.push((wacz.add_artifact(extractor, file, &bytes).unwrap(), bytes));
    }
    wacz.add_index(sample.index()).unwrap();
    let page = Page {
        id: Some("01890a5d".to_owned()),
        title: Some("Example \"quoted\"".to_owned()),
        text: Some("text of\nthe page \u{1f600}".to_owned()),
        ..Page::new("http://www.example.com/", now())
    };
    wacz.add_pages(&[page, Page::new("https://example.com/gzip?b=2&a=1", now())]).unwrap();
    let meta = PackageMeta {
        title: Some("Tests".to_owned()),
        created: now(),
        software: "fonds 0.1.0".to_owned(),
        main_page_url: Some("http://www.example.com/".to_owned()),
        main_page_date: Some(now()),
        ..PackageMeta::default()
    };
    (wacz.finish(&meta).unwrap(), places)
}
