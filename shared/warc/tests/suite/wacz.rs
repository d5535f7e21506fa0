use std::{
    fs::File,
    io::{self, Cursor, Read, Write},
};

use fonds_warc::{
    CdxjIndex, ContentFacts, PackageMeta, Page, Sha256Digest, WaczReader, WaczWriter,
    wacz::{CollectionItem, Content, WARC_NAME, WaczError, WaczFault, artifact_path, collection_json},
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use crate::common::{corpora, now, package, sample};

#[test]
fn artifacts_are_served_by_range() {
    let (wacz, artifacts) = package(sample());
    for (place, bytes) in &artifacts {
        let start = usize::try_from(place.offset).unwrap();
        assert!(&wacz.out[start..start + bytes.len()] == bytes.as_slice(), "{}", place.path);
        assert_eq!((place.len, place.sha256), (bytes.len() as u64, Sha256Digest::of(bytes)));
    }
    assert_eq!(wacz.facts, ContentFacts::of(&wacz.out));
}

#[test]
fn what_was_packed_is_read_back() {
    let sample = sample();
    let (wacz, artifacts) = package(sample);
    let (mut reader, warnings) = WaczReader::open_verified(Cursor::new(&wacz.out)).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(reader.warcs().collect::<Vec<_>>(), ["archive/data.warc.gz"]);
    assert_eq!(reader.read("archive/data.warc.gz", u64::MAX).unwrap(), sample.warc);
    assert_eq!(reader.index_text().unwrap(), sample.index().into_text());
    let pages = reader.pages().unwrap();
    assert_eq!(pages.len(), 2);
    assert_eq!(pages[0].title.as_deref(), Some("Example \"quoted\""));
    assert!(pages.iter().all(|page| page.id.is_some()));
    assert_eq!(reader.package().main_page_url.as_deref(), Some("http://www.example.com/"));
    for (place, bytes) in artifacts {
        let info = reader.entries().iter().find(|e| e.path == place.path).unwrap().clone();
        assert_eq!((info.offset, info.len, info.stored), (Some(place.offset), place.len, true));
        assert_eq!(reader.read(&place.path, 1 << 20).unwrap(), bytes);
    }
    assert!(matches!(reader.read("archive/data.warc.gz", 100), Err(WaczError::TooLarge { .. })));
    assert!(matches!(reader.read("nothing", 100), Err(WaczError::NoEntry(_))));
}

#[test]
fn equal_input_gives_equal_bytes() {
    let sample = sample();
    assert!(package(sample).0.out == package(sample).0.out);
}

#[test]
fn a_package_without_its_parts_is_not_finished() {
    let meta = PackageMeta::default();
    let mut wacz = WaczWriter::new(Vec::new(), now());
    assert!(matches!(wacz.add_warc("data.zip", b"".as_slice()), Err(WaczError::BadPath(_))));
    wacz.add_warc(WARC_NAME, b"".as_slice()).unwrap();
    assert!(matches!(wacz.finish(&meta), Err(WaczError::Incomplete("index"))));
    assert!(matches!(WaczWriter::new(Vec::new(), now()).finish(&meta), Err(WaczError::Incomplete("WARC"))));
}

#[test]
fn paths_stay_inside_the_package() {
    let mut wacz = WaczWriter::new(Vec::new(), now());
    for path in ["", "/a", "a/../b", "..", "a//b", "a/", "a\\b", "c:x", "a\0", "./a", &"x/".repeat(600)] {
        assert!(matches!(wacz.add(path, b"".as_slice()), Err(WaczError::BadPath(_))), "{path:?}");
    }
    wacz.add("a/b", b"".as_slice()).unwrap();
    assert!(matches!(wacz.add("a/b", b"".as_slice()), Err(WaczError::BadPath(_))), "a path is used once");
    for (extractor, file, path) in [
        ("dom", "output.html", "artifacts/dom-output.html"),
        ("staticfile", "../../etc/passwd", "artifacts/staticfile-.._.._etc_passwd"),
        ("staticfile", "caf\u{e9} 1.PDF", "artifacts/staticfile-caf__1.PDF"),
        ("staticfile", "files.ZIP", "artifacts/staticfile-files.ZIP.bin"),
        ("", "", "artifacts/-"),
    ] {
        assert_eq!(artifact_path(extractor, file), path);
    }
    let long = artifact_path("staticfile", &format!("{}.pdf", "a".repeat(5_000)));
    assert!(long.len() < 200 && long.ends_with(".pdf"), "{long}");
    assert_ne!(long, artifact_path("staticfile", &format!("{}.pdf", "a".repeat(5_001))));
}

#[test]
fn data_that_is_not_what_was_stated_is_refused() {
    for (stated, given) in [("abc", "abd"), ("abc", "ab"), ("abc", "abcd")] {
        let mut wacz = WaczWriter::new(Vec::new(), now());
        let facts = ContentFacts::of(stated.as_bytes());
        let content = Content::Reader { facts, reader: &mut given.as_bytes() };
        assert!(matches!(wacz.add("a", content), Err(WaczError::Io(_))), "{given}");
        assert!(matches!(wacz.add("b", b"".as_slice()), Err(WaczError::Poisoned)));
    }
}

/// A package rebuilt with a change to its entries.
fn rebuilt(
    change: impl Fn(&str, Vec<u8>) -> Option<(String, Vec<u8>, CompressionMethod)>,
    more: &[(&str, &[u8])],
) -> Vec<u8> {
    let (wacz, _) = package(sample());
    let mut old = ZipArchive::new(Cursor::new(wacz.out)).unwrap();
    let mut new = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..old.len() {
        let mut entry = old.by_index(index).unwrap();
        let name = entry.name().unwrap().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        if let Some((name, bytes, method)) = change(&name, bytes) {
            new.start_file(name, SimpleFileOptions::default().compression_method(method)).unwrap();
            new.write_all(&bytes).unwrap();
        }
    }
    for (name, bytes) in more {
        new.start_file(*name, SimpleFileOptions::default().compression_method(CompressionMethod::Stored)).unwrap();
        new.write_all(bytes).unwrap();
    }
    new.finish().unwrap().into_inner()
}

fn keep(name: &str, bytes: Vec<u8>) -> Option<(String, Vec<u8>, CompressionMethod)> {
    Some((name.to_owned(), bytes, CompressionMethod::Stored))
}

#[test]
fn broken_packages_are_refused_with_the_reason() {
    let without = |gone: &'static str| rebuilt(move |name, bytes| keep(name, bytes).filter(|_| name != gone), &[]);
    let edited = |path: &'static str, from: &'static str, to: &'static str| {
        rebuilt(
            move |name, bytes| {
                let edit = || String::from_utf8_lossy(&bytes).replacen(from, to, 1).into_bytes();
                keep(name, if name == path { edit() } else { bytes.clone() })
            },
            &[],
        )
    };
    let deflated = rebuilt(
        |name, bytes| {
            let deflate = name.starts_with("archive/");
            Some((
                name.to_owned(),
                bytes,
                if deflate { CompressionMethod::Deflated } else { CompressionMethod::Stored },
            ))
        },
        &[],
    );
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("unchanged", rebuilt(keep, &[]), &[]),
        ("no manifest", without("datapackage.json"), &["NO_DATAPACKAGE"]),
        ("no digest file", without("datapackage-digest.json"), &["NO_DIGEST"]),
        ("no WARC", without("archive/data.warc.gz"), &["MISSING_FILE", "NO_WARC"]),
        ("no index", without("indexes/index.cdx"), &["MISSING_FILE", "NO_INDEX"]),
        ("no pages", without("pages/pages.jsonl"), &["MISSING_FILE", "NO_PAGES"]),
        ("a file more", rebuilt(keep, &[("archive/more.warc", b"x")]), &["UNLISTED_FILE"]),
        ("escaping path", rebuilt(keep, &[("../x", b"x")]), &["UNSAFE_PATH"]),
        ("manifest is no JSON", edited("datapackage.json", "{", "["), &["BAD_DATAPACKAGE"]),
        ("no version", edited("datapackage.json", "wacz_version", "waczversion"), &["NO_VERSION"]),
        ("old version", edited("datapackage.json", "1.1.1", "0.1.0"), &["UNKNOWN_VERSION"]),
        ("other profile", edited("datapackage.json", "\"data-package", "\"other"), &["NO_PROFILE", "DIGEST_MISMATCH"]),
        ("one letter changed", edited("artifacts/singlefile-singlefile.html", "1", "2"), &["HASH_MISMATCH"]),
        ("one letter more", edited("artifacts/title-title", "no", "noo"), &["SIZE_MISMATCH"]),
        ("index unsorted", edited("indexes/index.cdx", "com,example)/ ", "zz)/ "), &["SIZE_MISMATCH", "BAD_INDEX"]),
        ("index with junk", edited("indexes/index.cdx", "{", "x"), &["HASH_MISMATCH", "BAD_INDEX"]),
        ("pages without header", edited("pages/pages.jsonl", "format", "formal"), &["HASH_MISMATCH", "BAD_PAGES"]),
        ("page without ts", edited("pages/pages.jsonl", "\"ts\"", "\"tx\""), &["HASH_MISMATCH", "BAD_PAGES"]),
        ("deflated WARC", deflated, &["DEFLATED_TWICE"]),
    ];
    for (name, bytes, expected) in cases {
        let faults = match WaczReader::open(Cursor::new(bytes)) {
            Ok(mut reader) => reader.verify().unwrap(),
            Err(WaczError::Refused(fault)) => vec![fault],
            Err(other) => panic!("{name}: {other}"),
        };
        let codes: Vec<_> = faults.iter().map(WaczFault::code).collect();
        assert_eq!(codes, expected, "{name}");
    }
}

#[test]
fn foreign_packages_are_taken_or_refused() {
    let Some(corpora) = corpora() else { return };
    let open = |name: &str| WaczReader::open_verified(File::open(corpora.join("warc").join(name)).unwrap());
    let (mut reader, warnings) = open("py-wacz--valid_example_1.wacz").unwrap();
    let codes: Vec<_> = warnings.iter().map(WaczFault::code).collect();
    assert_eq!(codes, ["NO_DIGEST", "GZIP_NOT_IN_NAME"]);
    assert_eq!(reader.pages().unwrap()[0].url, "http://www.example.com/");
    assert_eq!(reader.index_text().unwrap().lines().count(), 1);
    let refusal = open("py-wacz--invalid_example_1.wacz").unwrap_err();
    assert_eq!(refusal.to_string(), "the package is refused: datapackage.json has no wacz_version");
    assert!(refusal.is_permanent());
}

#[test]
fn what_is_no_zip_is_refused() {
    let (wacz, _) = package(sample());
    for bytes in [b"".as_slice(), b"PK", b"hello world, this is no zip file at all", &wacz.out[..wacz.out.len() / 2]] {
        assert!(WaczReader::open(Cursor::new(bytes)).is_err());
    }
}

/// Keeps the ends of what is written and counts the rest, for files too large to hold.
#[derive(Default)]
struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
    len: u64,
}

const KEPT: usize = 1 << 20;

impl Write for Ends {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = KEPT.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 4 * KEPT {
            self.tail.drain(..self.tail.len() - KEPT);
        }
        self.len += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Ends {
    /// Reads as the file would, zeros where bytes were not kept.
    fn into_file(self) -> EndsFile {
        EndsFile { ends: self, at: 0 }
    }
}

struct EndsFile {
    ends: Ends,
    at: u64,
}

impl Read for EndsFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let tail_at = self.ends.len - self.ends.tail.len() as u64;
        for (n, slot) in out.iter_mut().enumerate() {
            if self.at >= self.ends.len {
                return Ok(n);
            }
            *slot = match usize::try_from(self.at.wrapping_sub(tail_at)) {
                Ok(at) if self.at >= tail_at => self.ends.tail[at],
                _ => self.ends.head.get(usize::try_from(self.at).unwrap()).copied().unwrap_or(0),
            };
            self.at += 1;
        }
        Ok(out.len())
    }
}

impl io::Seek for EndsFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.at = match to {
            io::SeekFrom::Start(at) => at,
            io::SeekFrom::End(by) => self.ends.len.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?,
            io::SeekFrom::Current(by) => self.at.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?,
        };
        Ok(self.at)
    }
}

#[test]
#[ignore = "hashes 4 GiB, which takes a while without optimisation; the field layout is tested in the zip writer itself"]
fn packages_above_four_gigabytes_are_zip64() {
    // Zeros, so that facts of 4.5 GB need no reading of 4.5 GB: the CRC is combined, the digest is not looked at by the zip.
    let len = (4u64 << 30) + 123_456;
    let block = ContentFacts::of(&vec![0; 1 << 20]);
    let mut crc = crc32fast::Hasher::new();
    for _ in 0..len >> 20 {
        crc.combine(&crc32fast::Hasher::new_with_initial_len(block.crc32, 1 << 20));
    }
    crc.update(&vec![0; usize::try_from(len & ((1 << 20) - 1)).unwrap()]);
    let facts = ContentFacts { len, sha256: Sha256Digest::of(b""), crc32: crc.finalize() };
    let mut wacz = WaczWriter::new(Ends::default(), now());
    let mut zeros = io::repeat(0).take(len);
    let warc = wacz.add_warc("large.warc", Content::Reader { facts, reader: &mut zeros }).unwrap();
    let behind = wacz.add_artifact("title", "title.txt", b"behind".as_slice()).unwrap();
    wacz.add_index(CdxjIndex::default()).unwrap();
    wacz.add_pages(&[]).unwrap();
    let done = wacz.finish(&PackageMeta { created: now(), ..PackageMeta::default() }).unwrap();
    assert!(behind.offset > 4 << 30 && warc.len == len);
    let mut zip = ZipArchive::new(done.out.into_file()).unwrap();
    assert_eq!(zip.by_name("archive/large.warc").unwrap().size(), len);
    let mut entry = zip.by_name("artifacts/title-title.txt").unwrap();
    assert_eq!(entry.data_start(), Some(behind.offset));
    let mut text = String::new();
    entry.read_to_string(&mut text).unwrap();
    assert_eq!(text, "behind");
}

#[test]
fn packages_of_many_files_are_zip64() {
    let mut wacz = WaczWriter::new(Vec::new(), now());
    wacz.add_warc(WARC_NAME, b"".as_slice()).unwrap();
    wacz.add_index(CdxjIndex::default()).unwrap();
    wacz.add_pages(&[Page::new("http://e.com/", now())]).unwrap();
    for i in 0..65_540 {
        wacz.add_artifact("x", &format!("{i}.txt"), b"".as_slice()).unwrap();
    }
    let done = wacz.finish(&PackageMeta { created: now(), ..PackageMeta::default() }).unwrap();
    assert_eq!(ZipArchive::new(Cursor::new(done.out)).unwrap().len(), 65_545);
}

#[test]
fn a_collection_lists_its_packages() {
    let meta =
        PackageMeta { title: Some("All".into()), created: now(), software: "fonds".into(), ..PackageMeta::default() };
    let item = CollectionItem {
        name: "one.wacz".into(),
        path: "https://e.com/one.wacz".into(),
        sha256: Sha256Digest::of(b"one"),
        bytes: 3,
    };
    let value: serde_json::Value = serde_json::from_str(&collection_json(&meta, &[item])).unwrap();
    assert_eq!(value["profile"], "multi-wacz-package");
    assert_eq!(value["title"], "All");
    let hash = Sha256Digest::of(b"one").to_string();
    let expected =
        serde_json::json!([{"name": "one.wacz", "path": "https://e.com/one.wacz", "hash": hash, "bytes": 3}]);
    assert_eq!(value["resources"], expected);
}
