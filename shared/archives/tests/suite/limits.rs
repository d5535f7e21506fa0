use crate::support::{Coder, Tar, Zipped, by_chunks, directory, gzip, rar5, read_all, sample, sample_xz, seven_z, zip};
use fonds_archives::{ArchiveReader, Budget, Flow, Limits, Problem};
use std::io::Cursor;

const MIB: usize = 1 << 20;

fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

#[test]
fn small_files_may_pack_as_well_as_they_like() {
    let bytes = zip(&[Zipped::deflated("flat.bmp", vec![0; 8 * MIB])]);
    assert!(by_chunks(&bytes, &Limits::default()).unwrap()[&0].is_ok(), "1000 to 1, and under the floor");
}

#[test]
fn bombs_are_stopped_by_what_they_produce() {
    let limits = limits(|l| l.ratio_floor = MIB as u64);
    let bomb = vec![0; 4 * MIB];
    let honest = Zipped::deflated("bomb", &bomb);
    let lying = honest.clone().with(|m| m.size = 100);
    let unknown = honest.clone().with(|m| (m.size, m.compressed) = (u64::from(u32::MAX) / 64, None));
    let after = Zipped::stored("after", "still here");
    for (member, code) in [(honest, "RATIO_EXCEEDED"), (lying, "SIZE_MISMATCH"), (unknown, "RATIO_EXCEEDED")] {
        let outcomes = by_chunks(&zip(&[member, after.clone()]), &limits).unwrap();
        assert_eq!((outcomes[&0].clone(), outcomes[&1].clone()), (Err(code), Ok(b"still here".to_vec())));
    }
    let tarball = gzip(&Tar::default().file("bomb", &bomb).file("after", "x").end());
    let (seen, pass) = read_all(&tarball, &limits);
    assert_eq!((seen[0].outcome.clone(), pass), (Err("RATIO_EXCEEDED"), Err("RATIO_EXCEEDED")));
}

#[test]
fn a_member_that_is_too_large_is_left_out() {
    let limits = limits(|l| l.member_bytes = 1000);
    let (large, small) = (vec![b'x'; 1001], vec![b'y'; 1000]);
    let archives = [
        zip(&[Zipped::deflated("large", &large), Zipped::deflated("small", &small)]),
        Tar::default().file("large", &large).file("small", &small).end(),
        gzip(&Tar::default().file("large", &large).file("small", &small).end()),
        seven_z(Coder::Copy, &[&[("large", &large), ("small", &small)]]),
        rar5(0, &[("large", &large), ("small", &small)]),
    ];
    for bytes in archives {
        let (seen, _) = read_all(&bytes, &limits);
        let outcomes: Vec<_> = seen.into_iter().map(|seen| seen.outcome).collect();
        assert_eq!(outcomes, [Err("MEMBER_TOO_LARGE"), Ok(small.clone())]);
    }
}

#[test]
fn the_total_is_spent_once_and_ends_the_pass() {
    let limits = limits(|l| l.total_bytes = 2500);
    let kilobyte = vec![b'x'; 1000];
    let names = ["1", "2", "3", "4"];
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, kilobyte.as_slice())).collect();
    let zipped: Vec<Zipped> = names.iter().map(|name| Zipped::deflated(name, &kilobyte)).collect();
    let mut tar = Tar::default();
    for name in names {
        tar = tar.file(name, &kilobyte);
    }
    let tar = tar.end();
    let singles: Vec<&[(&str, &[u8])]> = files.chunks(1).collect();
    let archives = [
        ("zip", zip(&zipped)),
        ("tar.gz", gzip(&tar)),
        ("tar", tar),
        ("solid 7z", seven_z(Coder::Copy, &[&files])),
        ("7z", seven_z(Coder::Copy, &singles)),
        ("rar", rar5(0, &files)),
        ("solid rar", rar5(4, &files)),
    ];
    for (what, bytes) in archives {
        let (seen, pass) = read_all(&bytes, &limits);
        assert_eq!(pass, Err("ARCHIVE_TOO_LARGE"), "{what}");
        let read = seen.iter().filter(|seen| seen.outcome.is_ok()).count();
        assert!((1..=2).contains(&read), "{what}: {read} members of 1000 bytes within 2500");
        assert!(
            seen.len() <= 4 && seen.iter().all(|s| s.outcome.is_ok() || s.outcome == Err("ARCHIVE_TOO_LARGE")),
            "{what}: {seen:?}"
        );
    }
}

#[test]
fn members_are_counted() {
    let limits = limits(|l| l.entries = 2);
    let files: [(&str, &[u8]); 3] = [("1", b"x"), ("2", b"x"), ("3", b"x")];
    let mut tar = Tar::default();
    for (name, body) in files {
        tar = tar.file(name, body);
    }
    let zipped: Vec<Zipped> = files.iter().map(|(name, body)| Zipped::stored(name, body)).collect();
    for bytes in [zip(&zipped), tar.end(), seven_z(Coder::Copy, &[&files]), rar5(0, &files)] {
        let (seen, pass) = read_all(&bytes, &limits);
        assert_eq!(pass, Err("TOO_MANY_ENTRIES"));
        assert!(seen.len() <= 2);
    }
}

#[test]
fn dictionaries_are_capped() {
    let small = limits(|l| l.dictionary_bytes = MIB as u64);
    let xz = |large| zip(&[Zipped::packed("a", 95, &sample(), sample_xz(large))]);
    assert!(by_chunks(&xz(false), &small).unwrap()[&0].is_ok());
    assert_eq!(by_chunks(&xz(true), &small).unwrap()[&0], Err("UNSUPPORTED_METHOD"));
    assert_eq!(by_chunks(&xz(true), &Limits::default()).unwrap()[&0], Err("UNSUPPORTED_METHOD"));
    // A window of 16 MiB (exponent 14, mantissa 0) for a frame without content.
    let frame = b"\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00".to_vec();
    let zst = zip(&[Zipped::packed("a", 93, b"", frame)]);
    assert_eq!(by_chunks(&zst, &Limits::default()).unwrap()[&0], Ok(Vec::new()));
    assert_eq!(by_chunks(&zst, &small).unwrap()[&0], Err("UNSUPPORTED_METHOD"));
}

#[test]
fn archives_within_archives_are_refused_or_share_the_budget() {
    let inner = zip(&[Zipped::stored("deep.txt", "deep"), Zipped::stored("more.txt", "0123456789")]);
    let inner_tar = gzip(&Tar::default().file("x", "x").end());
    let outer = zip(&[Zipped::deflated("inner.cbz", &inner), Zipped::stored("inner.tar.gz", &inner_tar)]);
    let (seen, _) = read_all(&outer, &Limits::default());
    assert!(seen.iter().all(|seen| seen.outcome == Err("NESTED_ARCHIVE")), "{seen:?}");

    let limits = limits(|l| {
        l.nesting_depth = 1;
        l.total_bytes = inner.len() as u64 + inner_tar.len() as u64 + 12;
    });
    let budget = Budget::new(limits.clone());
    let open = |bytes: &[u8], kind| ArchiveReader::open(Cursor::new(bytes.to_vec()), kind, &limits).unwrap();
    let mut found = Vec::new();
    let mut reader = open(&outer, fonds_archives::ArchiveKind::Zip);
    reader
        .visit(.., &budget, &mut |_, body| {
            let mut bytes = Vec::new();
            let extracted = body.copy_to(&mut bytes).unwrap();
            found.push((extracted.archive.unwrap(), bytes));
            Flow::Continue
        })
        .unwrap();
    let nested = budget.nested().unwrap();
    assert_eq!(nested.nested().unwrap_err().problem(), Some(Problem::NestedArchive));
    let mut outcomes = Vec::new();
    let result = open(&found[0].1, found[0].0).visit(.., &nested, &mut |member, body| {
        outcomes.push((member.name.text.clone(), body.copy_to(&mut Vec::new()).map_err(|e| e.code()).map(|e| e.size)));
        Flow::Continue
    });
    assert_eq!(outcomes, [("deep.txt".to_owned(), Ok(4)), ("more.txt".to_owned(), Err("ARCHIVE_TOO_LARGE"))]);
    assert_eq!(result.unwrap_err().code(), "ARCHIVE_TOO_LARGE");
}

#[test]
fn a_directory_cannot_be_larger_than_its_share() {
    let limits = limits(|l| l.directory_bytes = 1000);
    let members: Vec<Zipped> = (0..50).map(|i| Zipped::stored(format!("{i}"), "x")).collect();
    assert_eq!(directory(&zip(&members), &limits).unwrap_err().code(), "TOO_MANY_ENTRIES");
}
