use std::io::Read;

use fonds_warc::{
    CdxjEntry, CdxjIndex,
    cdxj::{CdxjError, CdxjText, block_ranges, compress, index_warc},
};

use crate::common::{corpora, sample};

#[test]
fn a_line_is_written_as_others_write_it() {
    let line = r#"com,example)/ 20170306040206 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "1228", "offset": "784", "filename": "example.warc.gz"}"#;
    let entry = CdxjEntry::parse(line).unwrap();
    assert_eq!((entry.status, entry.length, entry.offset), (Some(200), 1228, 784));
    assert_eq!(entry.to_string(), line);
    let entry = CdxjEntry { mime: Some("caf\u{e9}\u{1f600}\"\\\t".into()), ..entry };
    assert!(entry.to_string().contains(r#""mime": "caf\u00e9\ud83d\ude00\"\\\u0009""#), "{entry}");
    assert_eq!(CdxjEntry::parse(&entry.to_string()).unwrap(), entry);
}

#[test]
fn lines_that_are_none_are_refused() {
    for (line, error) in [
        ("", CdxjError::Shape),
        ("key 2020", CdxjError::Shape),
        ("key 2020 {", CdxjError::Json),
        (r#"key 2020 {"url": "x"}"#, CdxjError::Json),
        (r#"key 2020 {"url": "x", "offset": "a", "length": 1, "filename": "f"}"#, CdxjError::Json),
    ] {
        assert_eq!(CdxjEntry::parse(line), Err(error), "{line}");
    }
    let numbers = r#"k 1 {"url": "x", "offset": 5, "length": 6, "filename": "f", "status": "-"}"#;
    let entry = CdxjEntry::parse(numbers).unwrap();
    assert_eq!((entry.offset, entry.length, entry.status), (5, 6, None));
}

#[test]
fn foreign_files_get_the_lines_of_other_tools() {
    let Some(corpora) = corpora() else { return };
    // As cdxj-indexer 1.5.0 writes them.
    for (name, expected) in [
        (
            "warcio--example.warc.gz",
            r#"com,example)/ 20170306040206 {"url": "http://example.com/", "mime": "text/html", "status": "200", "digest": "sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "1228", "offset": "784", "filename": "FILE"}
com,example)/ 20170306040348 {"url": "http://example.com/", "mime": "warc/revisit", "status": "200", "digest": "sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "586", "offset": "2621", "filename": "FILE"}"#,
        ),
        (
            "warcio--example-iana.org-chunked.warc",
            r#"org,iana)/ 20170306165409 {"url": "http://www.iana.org/", "mime": "text/html", "status": "200", "digest": "sha1:b1f949b4920c773fd9c863479ae9a788b948c7ad", "length": "7970", "offset": "405", "filename": "FILE"}"#,
        ),
    ] {
        let file = std::fs::File::open(corpora.join("warc").join(name)).unwrap();
        let indexed = index_warc(file, "FILE").unwrap();
        let lines: Vec<String> =
            indexed.entries.into_iter().map(|entry| CdxjEntry { record_digest: None, ..entry }.to_string()).collect();
        assert_eq!(lines.join("\n"), expected, "{name}");
    }
}

fn index(urls: usize, captures: usize) -> CdxjIndex {
    let mut index = CdxjIndex::default();
    for url in (0..urls).rev() {
        for capture in 0..captures {
            let url = format!("http://example.com/{url}?x");
            index.push(&CdxjEntry {
                urlkey: fonds_warc::surt(&url),
                timestamp: format!("2025010100{capture:02}00"),
                url,
                mime: None,
                status: Some(200),
                digest: None,
                length: 1,
                offset: 2,
                filename: "data.warc.gz".into(),
                record_digest: None,
            });
        }
    }
    index
}

#[test]
fn every_url_is_found_and_no_other() {
    let text = index(200, 3).into_text();
    assert!(text.lines().is_sorted());
    let lookup = CdxjText::new(&text);
    for url in 0..200 {
        let found: Vec<_> = lookup.find(&format!("https://www.example.com/{url}?X")).collect();
        assert_eq!(found.len(), 3, "{url}");
        assert!(found.iter().all(|e| e.url == format!("http://example.com/{url}?x")));
        assert!(found.is_sorted_by_key(|e| e.timestamp.clone()));
    }
    for url in
        ["http://example.com/", "http://example.com/200?x", "http://example.com/1", "http://a.com/", "http://zz.org/"]
    {
        assert_eq!(lookup.find(url).count(), 0, "{url}");
    }
    assert_eq!(CdxjText::new("").find("http://example.com/").count(), 0);
    assert_eq!(CdxjText::new("\n\n").find("http://example.com/").count(), 0);
}

#[test]
fn the_nearest_capture_is_chosen() {
    let text = index(5, 5).into_text();
    let lookup = CdxjText::new(&text);
    for (wanted, minute) in [
        ("19990101", "00"),
        ("20250101000129", "01"),
        ("20250101000131", "02"),
        ("2025010100", "00"),
        ("2030", "04"),
        ("", "00"),
    ] {
        let found = lookup.closest("http://example.com/3?x", wanted).unwrap();
        assert_eq!(found.timestamp, format!("2025010100{minute}00"), "{wanted}");
    }
    assert_eq!(lookup.closest("http://example.com/77", "2025"), None);
}

#[test]
fn a_compressed_index_gives_the_blocks_of_a_url() {
    let text = index(300, 3).into_text();
    let compressed = compress(&text, 10, "index.cdx.gz");
    let mut whole = String::new();
    flate2::read::MultiGzDecoder::new(compressed.data.as_slice()).read_to_string(&mut whole).unwrap();
    assert_eq!(whole, text);
    for url in (0..300).step_by(7) {
        let url = format!("http://example.com/{url}?x");
        let mut found = 0;
        for range in block_ranges(&compressed.idx, &fonds_warc::surt(&url)) {
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            let mut block = String::new();
            flate2::read::GzDecoder::new(&compressed.data[range]).read_to_string(&mut block).unwrap();
            found += CdxjText::new(&block).find(&url).count();
        }
        assert_eq!(found, 3, "{url}");
    }
    assert!(block_ranges("!meta 0 {}\nnonsense\nkey {\"offset\": 1}\n", "key").is_empty());
}

#[test]
fn equal_lines_are_kept_once() {
    let sample = sample();
    let mut index = sample.index();
    index.extend(sample.written.iter().filter_map(|w| w.cdxj("data.warc.gz")));
    assert_eq!(index.into_text(), sample.index().into_text());
}
