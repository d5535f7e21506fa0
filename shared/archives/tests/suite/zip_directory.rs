use crate::support::{End, Zipped, by_chunks, codes, directory, zip, zip_with};
use fonds_archives::zip::{ChunkLimits, DirectoryReader, plan_chunks};
use fonds_archives::{ArchiveError, ArchiveKind, Limits, Problem, sniff, sniff_named};
use proptest::prelude::*;

fn two() -> Vec<Zipped> {
    vec![Zipped::stored("a.txt", "first"), Zipped::deflated("b.txt", "second ".repeat(50))]
}

fn code(bytes: &[u8]) -> &'static str {
    directory(bytes, &Limits::default()).map_or_else(|error| error.code(), |_| "OK")
}

#[test]
fn the_directory_is_found_wherever_it_is() {
    let comments: [&[u8]; 4] = [b"", b"a comment", b"PK\x05\x06 in a comment", &[b'x'; 0xffff]];
    for comment in comments {
        for zip64 in [false, true] {
            for (prepended, absolute) in [(0, false), (1000, false), (1000, true), (70_000, false), (300_000, true)] {
                let end = End {
                    comment: comment.to_vec(),
                    zip64,
                    prepended: vec![b'#'; prepended],
                    absolute,
                    ..End::default()
                };
                let bytes = zip_with(&two(), &end);
                let found = directory(&bytes, &Limits::default()).unwrap();
                assert_eq!(found.comment, comment);
                assert_eq!(found.prepended, if absolute { 0 } else { prepended as u64 });
                let outcomes = by_chunks(&bytes, &Limits::default()).unwrap();
                assert_eq!(outcomes[&0], Ok(b"first".to_vec()), "zip64 {zip64}, {prepended} before, {absolute}");
                assert!(outcomes[&1].is_ok());
            }
        }
    }
}

#[test]
fn a_directory_larger_than_one_range_is_read_in_windows() {
    let members: Vec<Zipped> = (0..10_000).map(|i| Zipped::stored(format!("{i:0>600}.jpg"), "x")).collect();
    let bytes = zip(&members);
    let mut reader = DirectoryReader::new(bytes.len() as u64, &Limits::default());
    let mut asked = Vec::new();
    while let Some(range) = reader.wants() {
        asked.push(range.end - range.start);
        reader.feed(range.start, &bytes[range.start as usize..range.end as usize]).unwrap();
    }
    let found = reader.finish().unwrap();
    assert_eq!(found.entries.len(), 10_000);
    assert!(asked.len() <= 4 && asked.iter().all(|len| *len <= 4 << 20), "{asked:?}");
    assert!(found.entries.iter().enumerate().all(|(i, entry)| entry.ordinal as usize == i && entry.problem.is_none()));
}

#[test]
fn a_small_directory_costs_one_range() {
    let members: Vec<Zipped> =
        (0..1_000).map(|i| Zipped::stored(format!("page-{i:04}.jpg"), "x".repeat(1000))).collect();
    let bytes = zip(&members);
    let mut reader = DirectoryReader::new(bytes.len() as u64, &Limits::default());
    let range = reader.wants().unwrap();
    reader.feed(range.start, &bytes[range.start as usize..]).unwrap();
    assert_eq!(reader.wants(), None);
    assert_eq!(reader.finish().unwrap().entries.len(), 1_000);
}

#[test]
fn counts_that_lie_condemn_the_directory() {
    let with_count = |count| zip_with(&two(), &End { count: Some(count), ..End::default() });
    assert_eq!(code(&with_count(2)), "OK");
    assert_eq!(code(&with_count(1)), "CORRUPT_DIRECTORY");
    assert_eq!(code(&with_count(3)), "CORRUPT_DIRECTORY");
    assert_eq!(code(&zip_with(&two(), &End { size_off_by: -1, ..End::default() })), "CORRUPT_DIRECTORY");
    assert_eq!(code(&zip_with(&two(), &End { size_off_by: 1, ..End::default() })), "CORRUPT_DIRECTORY");
    let lying64 = End { count: Some(1 << 40), zip64: true, ..End::default() };
    assert_eq!(code(&zip_with(&two(), &lying64)), "TOO_MANY_ENTRIES");
}

#[test]
fn a_count_cut_off_at_16_bits_is_no_lie() {
    let members: Vec<Zipped> = (0..65_540).map(|i| Zipped::stored(format!("{i}"), "")).collect();
    let bytes = zip_with(&members, &End { count: Some(4), ..End::default() });
    assert_eq!(directory(&bytes, &Limits::default()).unwrap().entries.len(), 65_540);
}

#[test]
fn volumes_are_told_apart_from_damage() {
    assert_eq!(code(&zip_with(&two(), &End { disk: 1, ..End::default() })), "MULTIVOLUME");
    let spanned = [b"PK\x07\x08".as_slice(), &zip(&two())[..60]].concat();
    assert_eq!(sniff(&spanned), Some(ArchiveKind::Zip));
    assert_eq!(code(&spanned), "MULTIVOLUME");
    let elsewhere = zip(&[Zipped::stored("a", "1"), Zipped::stored("b", "2").with(|m| m.disk = 3)]);
    assert_eq!(codes(&elsewhere), [("a".to_owned(), "OK"), ("b".to_owned(), "MULTIVOLUME")]);
}

#[test]
fn what_is_no_whole_zip_says_so() {
    let whole = zip(&two());
    assert_eq!(code(b""), "NOT_AN_ARCHIVE");
    assert_eq!(code(b"GIF89a and so on"), "NOT_AN_ARCHIVE");
    assert_eq!(code(&vec![0; 400_000]), "NOT_AN_ARCHIVE");
    assert_eq!(code(&whole[..whole.len() - 30]), "TRUNCATED");
    assert_eq!(code(&[&whole[..100], &vec![7; 400_000]].concat()), "TRUNCATED");
    let empty = zip(&[]);
    assert_eq!(sniff(&empty), Some(ArchiveKind::Zip));
    assert_eq!(directory(&empty, &Limits::default()).unwrap().entries, []);
    assert_eq!(sniff_named(b"#!/bin/sh", "setup.CBZ"), Some(ArchiveKind::Zip));
    assert_eq!(sniff_named(b"#!/bin/sh", "setup.sh"), None);
}

#[test]
fn a_short_answer_is_not_taken_for_the_file() {
    let bytes = zip(&two());
    let mut reader = DirectoryReader::new(bytes.len() as u64, &Limits::default());
    let range = reader.wants().unwrap();
    let error = reader.feed(range.start, &bytes[..bytes.len() - 1]).unwrap_err();
    assert_eq!(error.problem(), Some(Problem::Truncated));
    let mut reader = DirectoryReader::new(bytes.len() as u64, &Limits::default());
    assert!(matches!(reader.feed(7, &bytes), Err(ArchiveError::Read(_))));
}

#[test]
fn members_that_share_bytes_are_refused_one_by_one() {
    // Two entries for one header; and one whose data "contains" the next member (a quoted overlap).
    let mut members = vec![Zipped::stored("a", "first"), Zipped::stored("b", "second"), Zipped::stored("c", "third")];
    members.push(Zipped::stored("a", "first").with(|m| m.offset = Some(0)));
    let bytes = zip(&members);
    let found: Vec<&str> = codes(&bytes).into_iter().map(|(_, code)| code).collect();
    assert_eq!(found, ["OK", "OK", "OK", "OVERLAPPING"]);
    let members = [
        Zipped::stored("a", "12345").with(|m| {
            m.compressed = Some(20);
            m.size = 20;
            m.local = Some((0, 0, 0));
        }),
        Zipped::stored("b", "second"),
        Zipped::stored("c", "third"),
    ];
    let found: Vec<&str> = codes(&zip(&members)).into_iter().map(|(_, code)| code).collect();
    assert_eq!(found, ["CRC_MISMATCH", "OVERLAPPING", "OK"]);
}

#[test]
fn a_local_header_that_stretches_into_the_next_member_is_caught_when_it_is_read() {
    let members = [Zipped::stored("a", "12345").with(|m| m.local_extra = vec![0; 4]), Zipped::stored("b", "second")];
    let mut bytes = zip(&members);
    // Its extra fields are said to be 40 bytes longer than they are.
    bytes[28] = 44;
    assert_eq!(codes(&bytes), [("a".to_owned(), "OVERLAPPING"), ("b".to_owned(), "OK")]);
}

#[test]
fn chunks_are_contiguous_and_bounded() {
    let sizes = [10, 10, 10, 5_000, 10, 10];
    let mut members: Vec<Zipped> =
        sizes.iter().enumerate().map(|(i, size)| Zipped::stored(format!("{i}"), vec![b'x'; *size])).collect();
    members[4].flags = 1;
    let found = directory(&zip(&members), &Limits::default()).unwrap();
    let plan = |limits| {
        let chunks = plan_chunks(&found.entries, limits);
        assert!(chunks.windows(2).all(|pair| pair[0].bytes.end <= pair[1].bytes.start), "no byte is read twice");
        chunks.into_iter().map(|chunk| chunk.ordinals).collect::<Vec<_>>()
    };
    let limits = ChunkLimits::default();
    assert_eq!(plan(limits), [vec![0, 1, 2, 3, 5]], "an encrypted member is read over");
    assert_eq!(plan(ChunkLimits { members: 2, ..limits }), [vec![0, 1], vec![2, 3], vec![5]]);
    assert_eq!(plan(ChunkLimits { unpacked: 1_000, ..limits }), [vec![0, 1, 2], vec![3], vec![5]]);
    assert_eq!(plan(ChunkLimits { gap: 10, ..limits }), [vec![0, 1, 2, 3], vec![5]]);
    let chosen = found.entries.iter().filter(|entry| entry.size < 100);
    assert_eq!(plan_chunks(chosen, ChunkLimits { gap: 10, ..limits }).len(), 2, "those left out are not read over");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_plan_reads_every_member_once_and_the_same(
        sizes in prop::collection::vec(0_usize..3_000, 1..40),
        members in 1_usize..10,
        unpacked in 1_u64..5_000,
        packed in 1_u64..5_000,
    ) {
        let files: Vec<Zipped> = sizes
            .iter()
            .enumerate()
            .map(|(i, size)| if i % 2 == 0 { Zipped::stored(format!("{i}"), vec![i as u8; *size]) } else { Zipped::deflated(format!("{i}"), vec![i as u8; *size]) })
            .collect();
        let found = directory(&zip(&files), &Limits::default()).unwrap();
        let limits = ChunkLimits { members, unpacked, packed, gap: 0 };
        let chunks = plan_chunks(&found.entries, limits);
        let ordinals: Vec<u32> = chunks.iter().flat_map(|chunk| chunk.ordinals.clone()).collect();
        prop_assert_eq!(ordinals, (0..sizes.len() as u32).collect::<Vec<_>>());
        for chunk in chunks {
            prop_assert!(chunk.ordinals.len() <= members);
            prop_assert!(chunk.ordinals.len() == 1 || (chunk.unpacked <= unpacked && chunk.bytes.end - chunk.bytes.start <= packed));
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0_usize..400) {
        let _ = directory(&bytes, &Limits::default());
        let mut bytes = [zip(&two()), bytes].concat();
        let _ = directory(&bytes, &Limits::default());
        bytes.truncate(cut);
        let _ = directory(&bytes, &Limits::default());
    }
}
