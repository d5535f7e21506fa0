use crate::support::{Zipped, codes, directory, zip};
use fonds_archives::names::{Guess, member_path};
use fonds_archives::{Limits, Name, NameEncoding, Problem};
use proptest::prelude::*;

fn guessed(names: &[&[u8]]) -> Vec<(String, NameEncoding)> {
    let members: Vec<Zipped> = names.iter().map(|name| Zipped::stored(name, "x")).collect();
    let entries = directory(&zip(&members), &Limits::default()).unwrap().entries;
    assert!(entries.iter().zip(names).all(|(entry, raw)| entry.name.raw == *raw), "raw bytes are kept");
    entries.into_iter().map(|entry| (entry.name.text, entry.name.encoding)).collect()
}

fn encoded(encoding: &'static encoding_rs::Encoding, names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| encoding.encode(name).0.into_owned()).collect()
}

fn check(encoding: &'static encoding_rs::Encoding, expected: NameEncoding, names: &[&str]) {
    let raw = encoded(encoding, names);
    let raw: Vec<&[u8]> = raw.iter().map(Vec::as_slice).collect();
    let expected: Vec<(String, NameEncoding)> = names.iter().map(|name| ((*name).to_owned(), expected)).collect();
    assert_eq!(guessed(&raw), expected);
}

#[test]
fn undeclared_names_are_guessed_over_all_of_them() {
    check(encoding_rs::SHIFT_JIS, NameEncoding::ShiftJis, &["表だよ/一覧表.txt", "表だよ/漢字.txt"]);
    check(encoding_rs::SHIFT_JIS, NameEncoding::ShiftJis, &["写真/夏休みの海.jpg", "写真/花火大会.jpg"]);
    check(encoding_rs::GBK, NameEncoding::Gbk, &["图片/我们的夏天.jpg", "图片/北京的秋天.jpg"]);
    check(encoding_rs::EUC_KR, NameEncoding::EucKr, &["사진/여름 바다.jpg", "사진/가을 하늘.jpg"]);
    check(encoding_rs::IBM866, NameEncoding::Cp866, &["ПРИВЕТ", "привет"]);
    check(encoding_rs::IBM866, NameEncoding::Cp866, &["Фотографии/Лето на море.jpg", "Фотографии/Осень.jpg"]);
}

#[test]
fn western_names_of_dos_are_code_page_437() {
    // Grüße.jpg, Ärger.txt, naïve café.png, Müller/Straße.jpg as PKZIP wrote them.
    let names: [&[u8]; 4] = [b"Gr\x81\xe1e.jpg", b"\x8erger.txt", b"na\x8bve caf\x82.png", b"M\x81ller/Stra\xe1e.jpg"];
    let texts: Vec<String> =
        guessed(&names).into_iter().map(|(text, encoding)| format!("{text} {}", encoding.as_str())).collect();
    assert_eq!(texts, ["Grüße.jpg cp437", "Ärger.txt cp437", "naïve café.png cp437", "Müller/Straße.jpg cp437"]);
}

#[test]
fn a_name_that_tells_its_encoding_is_not_guessed() {
    let utf8 = "été/日本.jpg";
    let raw = b"File - \x94.txt";
    let crc = crc32fast::hash(raw).to_le_bytes();
    let field = |crc: &[u8]| [b"up\x13\0\x01", crc, "File - ö.txt\0".as_bytes()].concat();
    let mut good = field(&crc);
    good.truncate(4 + 5 + "File - ö.txt".len());
    good[2] = (good.len() - 4) as u8;
    let mut stale = good.clone();
    stale[5] ^= 1;
    let members = [
        Zipped::stored(utf8, "1").with(|m| m.flags = 1 << 11),
        Zipped::stored(utf8, "2"),
        Zipped::stored(raw, "3").with(|m| m.extra = good.clone()),
        Zipped::stored(raw, "4").with(|m| m.extra = stale),
        // Bit 11 on bytes that are no UTF-8 is a lie.
        Zipped::stored(raw, "5").with(|m| m.flags = 1 << 11),
    ];
    let entries = directory(&zip(&members), &Limits::default()).unwrap().entries;
    let names: Vec<(&str, NameEncoding)> = entries.iter().map(|e| (e.name.text.as_str(), e.name.encoding)).collect();
    assert_eq!(
        names,
        [
            (utf8, NameEncoding::Utf8Declared),
            (utf8, NameEncoding::Utf8),
            ("File - ö.txt", NameEncoding::UnicodePath),
            ("File - ö.txt", NameEncoding::Cp437),
            ("File - ö.txt", NameEncoding::Cp437),
        ]
    );
}

#[test]
fn a_local_header_may_have_a_placeholder_beside_the_same_unicode_path() {
    let raw = b"File - \x94.txt";
    let field = |name: &[u8]| {
        let path = "File - ö.txt".as_bytes();
        [b"up", &((path.len() + 5) as u16).to_le_bytes()[..], b"\x01", &crc32fast::hash(name).to_le_bytes(), path]
            .concat()
    };
    let members = [Zipped::stored(raw, "text").with(|m| {
        m.extra = field(raw);
        m.local_name = Some(b"File - xx.txt".to_vec());
        m.local_extra = field(raw);
    })];
    assert_eq!(codes(&zip(&members)), [("File - ö.txt".to_owned(), "OK")]);
}

fn name(text: &str) -> Name {
    Name::certain(text.as_bytes(), false).unwrap()
}

#[test]
fn paths_are_cleaned_or_refused() {
    let good = [
        ("a.jpg", "a.jpg"),
        ("./dir//a.jpg", "dir/a.jpg"),
        ("dir\\a.jpg", "dir/a.jpg"),
        ("...jpg", "...jpg"),
        ("a..b/..c", "a..b/..c"),
        ("aux.jpg", "aux.jpg"),
        ("console/com10", "console/com10"),
        ("./", ""),
        ("dir/", "dir"),
        ("12:30.jpg", "12:30.jpg"),
    ];
    for (text, path) in good {
        assert_eq!(member_path(&name(text)).as_deref(), Ok(path), "{text}");
    }
    let bad = [
        "",
        "/",
        "//",
        "/etc/passwd",
        "\\share",
        "\\\\host\\share",
        "C:\\a",
        "c:a",
        "../a",
        "a/../../b",
        "a\\..\\..\\b",
        "..",
        "a/..",
        ".. /a",
        "a/.. ./b",
        "a\0.jpg",
        "con",
        "dir/NUL",
        "Aux ",
        "com1",
        "lpt9/a",
    ];
    for text in bad {
        assert_eq!(member_path(&name(text)), Err(Problem::UnsafePath), "{text:?}");
    }
}

#[test]
fn what_systems_leave_behind_is_told_apart_from_pictures() {
    let fork = [&[0, 5, 0x16, 7, 0, 2, 0, 0][..], &[0; 40]].concat();
    let members = [
        Zipped::stored("picture.jpg", "jpeg"),
        Zipped::stored("__MACOSX/._picture.jpg", &fork),
        Zipped::stored("._picture.jpg", &fork),
        Zipped::stored("._really a picture.jpg", "jpeg"),
        Zipped::stored("dir/.DS_Store", "x"),
        Zipped::stored("dir/Thumbs.db", "x"),
    ];
    let codes: Vec<&str> = codes(&zip(&members)).into_iter().map(|(_, code)| code).collect();
    assert_eq!(codes, ["OK", "SYSTEM_FILE", "SYSTEM_FILE", "OK", "SYSTEM_FILE", "SYSTEM_FILE"]);
}

proptest! {
    #[test]
    fn a_path_never_climbs(raw in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut guess = Guess::default();
        guess.add(&raw);
        let name = Name::new(&raw, false, guess.encoding());
        prop_assert_eq!(&name.raw, &raw);
        if let Ok(path) = member_path(&name) {
            prop_assert!(!path.starts_with('/') && !path.contains('\0') && !path.contains('\\'));
            prop_assert!(path.split('/').all(|component| component != ".." && component != "."));
        }
    }

    #[test]
    fn a_path_is_its_own_path(text in "[a-z./\\\\ ]{0,12}") {
        if let Ok(path) = member_path(&name(&text)) && !path.is_empty() {
            prop_assert_eq!(member_path(&name(&path)), Ok(path.clone()));
        }
    }
}
