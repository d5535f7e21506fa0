//! Foreign archives, with what each must come to.

use crate::support::{by_chunks, codes, corpora, read_all};
use fonds_archives::{ArchiveError, ArchiveKind, ArchiveReader, Budget, Flow, Limits, SNIFF_BYTES, sniff_named};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

/// File, then `name code` per member (or `(archive) code`), separated by ` | `. A name may be cut short with `*`.
const EXPECTED: &[(&str, &str)] = &[
    ("libarchive--test_read_format_zip_filename_cp932.zip", "表だよ/一覧表.txt OK | 表だよ/漢字.txt OK"),
    ("libarchive--test_read_format_zip_filename_cp866.zip", "ПРИВЕТ OK | привет OK"),
    (
        "libarchive--test_read_format_zip_7075_utf8_paths.zip",
        "File 1.txt OK | File 2 - ö.txt OK | File 3 - ä.txt OK | File 4 - å.txt OK",
    ),
    ("libarchive--test_read_format_zip_winzip_aes256.zip", "README ENCRYPTED"),
    ("libarchive--test_read_format_zip_encryption_header.zip", "(archive) ENCRYPTED"),
    ("libarchive--test_read_format_7zip_encryption_header.7z", "(archive) ENCRYPTED"),
    ("libarchive--test_read_format_zip_size_exceeds_declared_deflate.zip", "first SIZE_MISMATCH | second OK"),
    (
        "libarchive--test_read_format_zip_mac_metadata.zip",
        "file3 OK | __MACOSX/ SYSTEM_FILE | __MACOSX/._file3 SYSTEM_FILE",
    ),
    ("libarchive--test_read_format_zip_high_compression.zip", "char.bin OK"),
    ("libarchive--test_read_format_rar_multivolume.part0001.rar", "(archive) MULTIVOLUME"),
    ("libzip--bigzero-zip.zip", "bigzero.zip NESTED_ARCHIVE"),
    ("libzip--filename_duplicate.zip", "test1 OK | test1 OK"),
    ("libzip--incons-central-compsize-larger-toolarge.zip", "a SIZE_MISMATCH"),
    ("libzip--incons-cdoffset.zip", "(archive) CORRUPT_DIRECTORY"),
    ("libzip--incons-local-filename.zip", "a CORRUPT_MEMBER"),
    ("libzip--incons-filename-nul-byte.zip", "te* UNSAFE_PATH"),
    ("yauzl--absolute_path_atxt.zip", "/atxt UNSAFE_PATH | b.txt OK"),
    ("yauzl--multi-disk_zip_files_are_not_supported_found_disk_number_1.zip", "(archive) MULTIVOLUME"),
    ("yauzl--unexpected_EOF.zip", "empty.txt CORRUPT_MEMBER"),
    ("yauzl--wrong-entry-sizes.zip", "a.txt SIZE_MISMATCH | b.txt SIZE_MISMATCH | c/ NOT_A_FILE"),
    ("yauzl--zip64.zip", "test1.txt OK | test2.txt OK"),
    ("yauzl--streaming.zip", "test1.txt OK | test2.txt OK"),
    ("zip-slip-vulnerability--zip-slip.zip", "good.txt OK | ../* UNSAFE_PATH"),
    ("zip-slip-vulnerability--zip-slip-win.tar", "good.txt OK | ..\\* UNSAFE_PATH"),
    (
        "sharpcompress--7Zip.solid.7z",
        "exe NOT_A_FILE | jpg NOT_A_FILE | jpg/test.jpg OK | тест.txt OK | exe/test.exe OK",
    ),
    (
        "sharpcompress--7Zip.nonsolid.7z",
        "exe NOT_A_FILE | jpg NOT_A_FILE | jpg/test.jpg OK | тест.txt OK | exe/test.exe OK",
    ),
    ("sharpcompress--Rar.encrypted_filesAndHeader.rar", "(archive) ENCRYPTED"),
    ("rarfile--rar5-solid.rar", "stest1.txt OK | stest2.txt OK"),
    ("rarfile--rar5-evil-symlink-traversal.rar", "up NOT_A_FILE | up/pwned.txt OK"),
    ("rar-test-files--testfile.rar5.cbr", "testfile.jpg OK | testfile.png OK"),
];

fn read(dir: &Path, file: &str) -> Vec<u8> {
    std::fs::read(dir.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn sorted(mut codes: Vec<(String, &'static str)>) -> Vec<String> {
    codes.sort();
    codes.into_iter().map(|(name, code)| format!("{name} {code}")).collect()
}

#[test]
fn foreign_archives_come_to_what_they_must() {
    let Some(dir) = corpora() else { return };
    for (file, expected) in EXPECTED {
        let found = sorted(codes(&read(&dir, file)));
        let mut expected: Vec<&str> = expected.split(" | ").collect();
        expected.sort_unstable();
        assert_eq!(found.len(), expected.len(), "{file}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            let fits = match expected.split_once('*') {
                Some((start, end)) => found.starts_with(start) && found.ends_with(end),
                None => found == expected,
            };
            assert!(fits, "{file}: {found}, not {expected}");
        }
    }
}

#[test]
fn a_zip_is_the_same_by_ranges_and_in_a_pass() {
    let Some(dir) = corpora() else { return };
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "zip") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let (seen, pass) = read_all(&bytes, &Limits::default());
        match by_chunks(&bytes, &Limits::default()) {
            Ok(outcomes) => {
                let passed: Vec<_> = seen.into_iter().map(|seen| seen.outcome).collect();
                assert_eq!(outcomes.into_values().collect::<Vec<_>>(), passed, "{}", path.display());
            }
            Err(code) => assert_eq!(pass, Err(code), "{}", path.display()),
        }
    }
}

#[test]
fn solid_and_other_7z_have_the_same_members() {
    let Some(dir) = corpora() else { return };
    let members = |file: &str| {
        let mut seen = read_all(&read(&dir, file), &Limits::default()).0;
        seen.sort_by(|a, b| a.name.cmp(&b.name));
        seen.into_iter().map(|seen| (seen.name, seen.outcome)).collect::<Vec<_>>()
    };
    assert_eq!(members("sharpcompress--7Zip.solid.7z"), members("sharpcompress--7Zip.nonsolid.7z"));
}

#[test]
fn a_solid_rar_4_is_read_with_its_unicode_names() {
    let Some(dir) = corpora() else { return };
    let (seen, _) = read_all(&read(&dir, "sharpcompress--Rar.solid.rar"), &Limits::default());
    let sizes: Vec<(&str, usize)> =
        seen.iter().filter_map(|s| Some((s.name.as_str(), s.outcome.as_ref().ok()?.len()))).collect();
    assert_eq!(sizes, [("тест.txt", 15_498), ("exe\\test.exe", 45_056), ("jpg\\test.jpg", 40_372)]);
}

/// How many members the archives within an archive have, or why they were not opened. Those of up to this many are read.
fn nested(bytes: &[u8], limits: &Limits, read_up_to: usize) -> BTreeMap<String, Result<usize, &'static str>> {
    let budget = Budget::new(limits.clone());
    let mut outer = ArchiveReader::open(Cursor::new(bytes.to_vec()), ArchiveKind::Zip, limits).unwrap();
    let mut found = BTreeMap::new();
    let _ = outer.visit(.., &budget, &mut |member, body| {
        let mut inner = Vec::new();
        let extracted = body.copy_to(&mut inner).unwrap();
        let budget = budget.nested().unwrap();
        let read = || -> Result<usize, ArchiveError> {
            let mut reader = ArchiveReader::open(Cursor::new(inner), extracted.archive.unwrap(), limits)?;
            let members = reader.members().unwrap().len();
            let mut failure = Ok(members);
            if members <= read_up_to {
                reader.visit(.., &budget, &mut |_, body| match body.copy_to(&mut std::io::sink()) {
                    Ok(_) => Flow::Continue,
                    Err(error) => {
                        failure = Err(error);
                        Flow::Stop
                    }
                })?;
            }
            failure
        };
        found.insert(member.name.text.clone(), read().map_err(|error| error.code()));
        Flow::Continue
    });
    found
}

#[test]
fn one_level_down_the_caps_hold() {
    let Some(dir) = corpora() else { return };
    let limits = Limits { nesting_depth: 1, ..Limits::default() };
    let bigzero = nested(&read(&dir, "libzip--bigzero-zip.zip"), &limits, 10);
    assert_eq!(bigzero["bigzero.zip"], Err("RATIO_EXCEEDED"));
    let many = nested(&read(&dir, "libzip--manyfiles-zip.zip"), &limits, 0);
    let expected = [
        ("manyfiles-133000.zip", Err("TOO_MANY_ENTRIES")),
        ("manyfiles-65536.zip", Ok(65_536)),
        ("manyfiles-fewer.zip", Err("CORRUPT_DIRECTORY")),
        ("manyfiles-more.zip", Err("CORRUPT_DIRECTORY")),
        ("manyfiles-zip64-modulo.zip", Err("CORRUPT_DIRECTORY")),
        ("manyfiles-zip64.zip", Ok(70_000)),
        ("manyfiles.zip", Ok(70_000)),
    ];
    assert_eq!(many.iter().map(|(name, outcome)| (name.as_str(), *outcome)).collect::<Vec<_>>(), expected);
}

#[test]
fn every_file_of_the_corpora_has_an_outcome() {
    let Some(dir) = corpora() else { return };
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        let kind = sniff_named(&bytes[..bytes.len().min(SNIFF_BYTES)], &name);
        assert!(kind.is_some(), "{name} is not known");
        assert!(!codes(&bytes).is_empty(), "{name}");
    }
}
