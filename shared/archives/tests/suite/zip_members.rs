use crate::support::{
    Outcome, Zipped, by_chunks, codes, directory, read_all, sample, sample_lzma, sample_xz, wrapped, zip,
};
use fonds_archives::zip::{ChunkReader, read_member};
use fonds_archives::{ArchiveError, ArchiveKind, Budget, Limits};
use std::io::{self, Read, Write};

/// The outcome of the first member, the same by chunks and in a pass.
fn first(members: &[Zipped]) -> Outcome {
    let bytes = zip(members);
    let by_chunks = by_chunks(&bytes, &Limits::default()).unwrap()[&0].clone();
    let (seen, _) = read_all(&bytes, &Limits::default());
    assert_eq!(seen[0].outcome, by_chunks);
    by_chunks
}

fn packed_by_every_method() -> Vec<Zipped> {
    let data = sample();
    let prose: Vec<u8> = (0..400).flat_map(|i| format!("{i} squared is {}; ", i * i).into_bytes()).collect();
    let mut deflate64 = Zipped::deflated("deflate64", &prose);
    // Without matches of 258 bytes or more than 32 KiB away the two are the same stream.
    deflate64.method = 9;
    vec![
        Zipped::stored("stored", &data),
        Zipped::deflated("deflate", &data),
        deflate64,
        Zipped::packed("bzip2", 12, &data, wrapped(ArchiveKind::TarBzip2, &data)),
        Zipped::packed("lzma", 14, &data, sample_lzma()).with(|m| m.flags = 2),
        Zipped::packed("zstd", 93, &data, wrapped(ArchiveKind::TarZstd, &data)),
        Zipped::packed("zstd as 20", 20, &data, wrapped(ArchiveKind::TarZstd, &data)),
        Zipped::packed("xz", 95, &data, sample_xz(false)),
    ]
}

#[test]
fn every_method_is_read() {
    for member in packed_by_every_method() {
        let name = String::from_utf8(member.name.clone()).unwrap();
        let size = member.size;
        let outcome = first(&[member]);
        assert_eq!(outcome.map(|bytes| bytes.len() as u64), Ok(size), "{name}");
    }
    let other = Zipped::packed("ppmd", 98, &sample(), vec![0; 50]);
    assert_eq!(first(&[other]), Err("UNSUPPORTED_METHOD"));
}

#[test]
fn every_method_notices_damage_and_the_next_member_is_read() {
    let after = Zipped::stored("after", "still here");
    for member in packed_by_every_method() {
        let name = String::from_utf8(member.name.clone()).unwrap();
        let middle = member.packed.len() / 2;
        let changed = member.clone().with(|m| m.packed[middle] ^= 0x55);
        let half = member.clone().with(|m| m.packed.truncate(middle));
        let nothing = member.clone().with(|m| m.packed.clear());
        for damaged in [changed, half, nothing] {
            let bytes = zip(&[damaged, after.clone()]);
            let outcomes = by_chunks(&bytes, &Limits::default()).unwrap();
            let code = outcomes[&0].clone().unwrap_err();
            assert!(["CORRUPT_MEMBER", "CRC_MISMATCH", "SIZE_MISMATCH"].contains(&code), "{name}: {code}");
            assert_eq!(outcomes[&1], Ok(b"still here".to_vec()), "behind {name}");
        }
    }
}

#[test]
fn an_empty_deflate_stream_is_no_stream() {
    let member = Zipped::packed("empty.txt", 8, b"", Vec::new());
    assert_eq!(first(&[member]), Err("CORRUPT_MEMBER"));
    assert_eq!(first(&[Zipped::deflated("empty.txt", "")]), Ok(Vec::new()));
    assert_eq!(first(&[Zipped::stored("empty.txt", "")]), Ok(Vec::new()));
}

#[test]
fn declared_sizes_and_checksums_are_kept_to() {
    let data = sample();
    let member = Zipped::deflated("a", &data);
    assert_eq!(first(&[member.clone().with(|m| m.size = 10)]), Err("SIZE_MISMATCH"));
    assert_eq!(first(&[member.clone().with(|m| m.size += 1)]), Err("SIZE_MISMATCH"));
    assert_eq!(first(&[member.clone().with(|m| m.crc32 ^= 1)]), Err("CRC_MISMATCH"));
    assert_eq!(first(&[Zipped::stored("a", "12345").with(|m| m.size = 4)]), Err("SIZE_MISMATCH"));
    assert_eq!(first(&[member.with(|m| m.compressed = Some(1 << 20))]), Err("CORRUPT_MEMBER"), "beyond the file");
}

#[test]
fn the_two_headers_must_say_the_same() {
    let member = Zipped::deflated("a.jpg", sample());
    let (crc, packed, size) = (member.crc32, member.packed.len() as u32, member.size as u32);
    let local = |local| member.clone().with(|m| m.local = Some(local));
    assert!(first(&[local((0, 0, 0))]).is_ok(), "never filled in");
    assert_eq!(first(&[local((crc, packed, size + 1))]), Err("SIZE_MISMATCH"));
    assert_eq!(first(&[local((crc, packed + 1, size))]), Err("SIZE_MISMATCH"));
    assert_eq!(first(&[local((crc + 1, packed, size))]), Err("CRC_MISMATCH"));
    assert_eq!(first(&[member.clone().with(|m| m.local_method = Some(0))]), Err("CORRUPT_MEMBER"));
    assert_eq!(first(&[member.clone().with(|m| m.local_name = Some(b"b.jpg".to_vec()))]), Err("CORRUPT_MEMBER"));
    let mixed = Zipped::deflated("d/a.jpg", "x").with(|m| m.local_name = Some(b"d\\a.jpg".to_vec()));
    assert!(first(&[mixed]).is_ok());
    assert_eq!(first(&[member.clone().with(|m| m.offset = Some(3))]), Err("CORRUPT_MEMBER"), "no header there");
}

#[test]
fn streamed_and_large_members_are_read() {
    let data = sample();
    assert_eq!(first(&[Zipped::deflated("a", &data).with(|m| m.flags = 8)]), Ok(data.clone()));
    assert_eq!(first(&[Zipped::deflated("a", &data).with(|m| m.zip64 = true)]), Ok(data.clone()));
    let short = Zipped::deflated("a", &data).with(|m| m.zip64 = true);
    let mut bytes = zip(&[short]);
    // The zip64 field of the directory is cut to one value of three.
    let at = bytes.windows(4).rposition(|w| w == [1, 0, 24, 0]).unwrap();
    bytes[at + 2] = 8;
    assert_eq!(codes(&bytes)[0].1, "CORRUPT_MEMBER");
}

#[test]
fn encrypted_is_not_corrupt() {
    let member = Zipped::stored("a", "secret");
    for flags in [1, 1 << 6 | 1, 1 << 13] {
        assert_eq!(first(&[member.clone().with(|m| m.flags = flags)]), Err("ENCRYPTED"));
    }
    assert_eq!(first(&[member.with(|m| m.method = 99)]), Err("ENCRYPTED"));
    let bytes = {
        let mut bytes = zip(&[Zipped::stored("a", "secret")]);
        bytes[6] |= 1;
        bytes
    };
    assert_eq!(codes(&bytes)[0].1, "ENCRYPTED", "by the local header alone");
}

#[test]
fn only_files_are_read() {
    let mode = |mode| first(&[Zipped::stored("a", "target").with(|m| m.mode = mode)]);
    assert_eq!(mode(0o120_777), Err("NOT_A_FILE"), "symbolic link");
    assert_eq!(mode(0o020_666), Err("NOT_A_FILE"), "device");
    assert_eq!(mode(0o140_666), Err("NOT_A_FILE"), "socket");
    assert_eq!(mode(0o100_600), Ok(b"target".to_vec()));
    assert_eq!(mode(0), Ok(b"target".to_vec()), "no type at all");
    assert_eq!(mode(0o010_600), Ok(b"target".to_vec()), "what was piped into zip");
    let dos = Zipped::stored("a", "target").with(|m| (m.made_by, m.mode) = (0, 0o120_777));
    assert_eq!(first(&[dos]), Ok(b"target".to_vec()), "DOS has no links");
    let dir = zip(&[Zipped::stored("dir/", "")]);
    assert!(directory(&dir, &Limits::default()).unwrap().entries[0].is_dir);
}

#[test]
fn twins_are_kept_apart_by_ordinal() {
    let bytes = zip(&[Zipped::stored("same", "one"), Zipped::stored("same", "two")]);
    let outcomes = by_chunks(&bytes, &Limits::default()).unwrap();
    assert_eq!((outcomes[&0].clone(), outcomes[&1].clone()), (Ok(b"one".to_vec()), Ok(b"two".to_vec())));
}

#[test]
fn a_cut_range_is_told_from_a_damaged_member() {
    for member in [Zipped::stored("a", sample()), Zipped::deflated("a", sample())] {
        let bytes = zip(&[member]);
        let found = directory(&bytes, &Limits::default()).unwrap();
        let entry = &found.entries[0];
        for cut in [0, 10, 31, 60, entry.compressed as usize] {
            let budget = Budget::new(Limits::default());
            let error = read_member(entry, &mut &bytes[..cut], &budget, &mut Vec::new()).unwrap_err();
            assert_eq!(error.code(), "TRUNCATED", "after {cut} bytes");
        }
    }
}

struct Failing;
impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ConnectionReset.into())
    }
}
impl Write for Failing {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn failures_of_the_line_and_of_the_sink_are_not_the_archives() {
    let bytes = zip(&[Zipped::deflated("a", sample())]);
    let found = directory(&bytes, &Limits::default()).unwrap();
    let entry = &found.entries[0];
    let budget = Budget::new(Limits::default());
    let mut breaking = bytes[..50].chain(Failing);
    let error = read_member(entry, &mut breaking, &budget, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, ArchiveError::Read(_)) && !error.is_permanent(), "{error}");
    let error = read_member(entry, &mut bytes.as_slice(), &budget, &mut Failing).unwrap_err();
    assert!(matches!(error, ArchiveError::Sink(_)) && !error.is_permanent(), "{error}");
    let mut chunk = ChunkReader::new(entry.header_offset, bytes.as_slice());
    assert!(chunk.read_member(entry, &budget, &mut Vec::new()).is_ok());
    assert_eq!(chunk.read_member(entry, &budget, &mut Vec::new()).unwrap_err().code(), "OVERLAPPING");
}

#[test]
fn an_entry_made_again_of_a_row_is_read_the_same() {
    for member in packed_by_every_method() {
        let bytes = zip(&[member]);
        let found = directory(&bytes, &Limits::default()).unwrap();
        let kept = &found.entries[0];
        let again = fonds_archives::zip::Entry { flags: 0, end: bytes.len() as u64, ..kept.clone() };
        let budget = Budget::new(Limits::default());
        let mut sink = Vec::new();
        let extracted = read_member(&again, &mut bytes.as_slice(), &budget, &mut sink).unwrap();
        assert_eq!((extracted.size, budget.produced()), (kept.size, kept.size));
    }
}
