use crate::support::{Tar, codes, gzip, read_all, read_range, texts, wrapped};
use fonds_archives::{ArchiveKind, Kind, Limits, Pass, sniff};

const WRAPPED: [ArchiveKind; 5] =
    [ArchiveKind::Tar, ArchiveKind::TarGzip, ArchiveKind::TarBzip2, ArchiveKind::TarXz, ArchiveKind::TarZstd];

fn three() -> Vec<u8> {
    Tar::default()
        .file("a.txt", "first")
        .file("b.txt", "x".repeat(5_000))
        .entry(b'5', b"dir/", b"")
        .file("dir/c.txt", "third")
        .end()
}

#[test]
fn tar_is_read_in_every_wrapping() {
    for kind in WRAPPED {
        let bytes = wrapped(kind, &three());
        assert_eq!(sniff(&bytes[..bytes.len().min(65_536)]), Some(kind), "{}", kind.as_str());
        let (seen, pass) = read_all(&bytes, &Limits::default());
        assert_eq!(pass, Ok(Pass::Complete));
        let names: Vec<&str> = seen.iter().map(|seen| seen.name.as_str()).collect();
        assert_eq!(names, ["a.txt", "b.txt", "dir/", "dir/c.txt"]);
        assert_eq!(texts(&seen).len(), 3);
        assert_eq!(seen[2].kind, Kind::Dir);
    }
}

#[test]
fn a_pass_resumes_at_any_member() {
    for kind in WRAPPED {
        let bytes = wrapped(kind, &three());
        let (all, _) = read_all(&bytes, &Limits::default());
        for cut in 0..=4_u32 {
            let (mut seen, _) = read_range(&bytes, &Limits::default(), ..cut);
            seen.extend(read_range(&bytes, &Limits::default(), cut..).0);
            assert_eq!(seen, all, "{} cut at {cut}", kind.as_str());
        }
    }
}

#[test]
fn long_names_are_read_in_all_three_ways() {
    let long = format!("{}/{}.jpg", "d".repeat(150), "n".repeat(150));
    let folder = format!("{}/", "d".repeat(99));
    let bytes = Tar::default()
        .gnu_long(long.as_bytes(), b"gnu")
        .pax(&[("mtime", "1.5"), ("path", &long)], "short", b"pax")
        .gnu_long(format!("{folder}file").as_bytes(), b"not a folder, though its cut name looks like one")
        .end();
    let (seen, _) = read_all(&bytes, &Limits::default());
    let names: Vec<&str> = seen.iter().map(|seen| seen.name.as_str()).collect();
    assert_eq!(names, [long.as_str(), &long, &format!("{folder}file")]);
    assert!(seen.iter().all(|seen| seen.outcome.is_ok()));
    let mut split = Tar::default().file("name.jpg", "ustar").0;
    split[345..349].copy_from_slice(b"some");
    split[148..156].fill(b' ');
    let sum: u32 = split[..512].iter().map(|b| u32::from(*b)).sum();
    split[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert_eq!(codes(&split)[0].0, "some/name.jpg");
}

#[test]
fn only_files_are_read_and_nothing_before_them_is_lost() {
    let bytes = Tar::default()
        .entry(b'2', b"symbolic", b"")
        .entry(b'1', b"hard", b"")
        .entry(b'3', b"device", b"")
        .entry(b'6', b"pipe", b"")
        .entry(b'g', b"global", b"20 comment=something")
        .entry(b'7', b"contiguous", b"file")
        .entry(b'S', b"sparse", b"holes")
        .pax(&[("GNU.sparse.major", "1"), ("GNU.sparse.name", "sparse too")], "x", b"holes")
        .entry(b'M', b"continued", b"rest")
        .file("../climbs", "x")
        .file("good.txt", "good")
        .end();
    let codes = codes(&bytes);
    let expected = [
        ("symbolic", "NOT_A_FILE"),
        ("hard", "NOT_A_FILE"),
        ("device", "NOT_A_FILE"),
        ("pipe", "NOT_A_FILE"),
        ("contiguous", "OK"),
        ("sparse", "UNSUPPORTED_METHOD"),
        ("sparse too", "UNSUPPORTED_METHOD"),
        ("continued", "MULTIVOLUME"),
        ("../climbs", "UNSAFE_PATH"),
        ("good.txt", "OK"),
    ];
    assert_eq!(codes.iter().map(|(name, code)| (name.as_str(), *code)).collect::<Vec<_>>(), expected);
}

#[test]
fn damage_ends_the_pass_behind_what_was_read() {
    let whole = three();
    for kind in WRAPPED {
        let cut = wrapped(kind, &whole[..2_000]);
        let (seen, pass) = read_all(&cut, &Limits::default());
        assert_eq!(pass, Err("TRUNCATED"), "{}", kind.as_str());
        assert_eq!(texts(&seen), [("a.txt".to_owned(), "first".to_owned())]);
        assert_eq!(seen[1].outcome, Err("TRUNCATED"));
    }
    let mut broken = whole.clone();
    broken[1024 + 20] ^= 1;
    let (seen, pass) = read_all(&broken, &Limits::default());
    assert_eq!((seen.len(), pass), (1, Err("CORRUPT_DIRECTORY")));
    let without_end = &whole[..whole.len() - 1024];
    assert_eq!(read_all(without_end, &Limits::default()).1, Ok(Pass::Complete));
    let half = gzip(&whole);
    let (_, pass) = read_all(&half[..half.len() / 2], &Limits::default());
    assert_eq!(pass, Err("TRUNCATED"));
}

#[test]
fn what_is_wrapped_must_be_a_tar() {
    assert_eq!(sniff(&gzip(b"<svg/>")), None);
    assert_eq!(sniff(&gzip(&vec![b'x'; 4_000])), None);
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let two_megabytes: Vec<u8> = (0..2_000_000).map(|_| noise()).collect();
    let undecided = wrapped(ArchiveKind::TarBzip2, &two_megabytes);
    assert_eq!(sniff(&undecided[..65_536]), Some(ArchiveKind::TarBzip2), "a head too short to tell");
    assert_eq!(read_all(&undecided, &Limits::default()).1, Err("NOT_AN_ARCHIVE"));
}

#[test]
fn what_stands_before_a_member_is_never_held_beyond_a_names_length() {
    // 64 MiB of "name" in 64 KiB of gzip.
    let mut tar = Tar::default();
    tar.header(b'L', b"././@LongLink", &format!("{:011o}\0", 64 << 20));
    tar.0.resize(tar.0.len() + (64 << 20), b'n');
    let bytes = gzip(&tar.file("short", "body").file("next", "x").end());
    let limits = Limits { ratio: 10_000, ..Limits::default() };
    let (seen, pass) = read_all(&bytes, &limits);
    assert_eq!(pass, Ok(Pass::Complete));
    assert_eq!((seen[0].outcome.clone(), seen[1].outcome.clone()), (Err("CORRUPT_MEMBER"), Ok(b"x".to_vec())));
}

#[test]
fn sizes_beyond_the_file_are_no_reason_to_allocate() {
    for size in ["77777777777\0", "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}"] {
        let mut tar = Tar::default();
        tar.header(b'0', b"huge", size);
        let (seen, _) = read_all(&tar.0, &Limits::default());
        assert!(seen.len() <= 1);
    }
    // In base 256, larger than any number.
    let mut base256 = Tar::default().file("first", "x");
    let at = base256.0.len();
    base256.header(b'0', b"huge", "00000000000\0");
    let header = &mut base256.0[at..];
    header[124] = 0x80;
    header[125..136].fill(0xff);
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert_eq!(codes(&base256.0), [("first".to_owned(), "OK"), ("(archive)".to_owned(), "CORRUPT_DIRECTORY")]);
}
