use crate::support::{Coder, codes, rar4, rar5, read_all, read_range, sample, seven_z, texts};
use fonds_archives::{ArchiveKind, ArchiveReader, Budget, Flow, Limits, Pass, sniff};
use std::io::{Cursor, Read};

const FILES: [(&str, &[u8]); 4] =
    [("a.txt", b"first"), ("dir", b""), ("b.txt", b"the second one"), ("c.txt", b"third")];

fn seven_z_solid() -> Vec<u8> {
    seven_z(Coder::Copy, &[&FILES])
}

fn seven_z_apart() -> Vec<u8> {
    seven_z(Coder::Copy, &[&FILES[..2], &FILES[2..3], &FILES[3..]])
}

fn rar4_of(flags: u16) -> Vec<u8> {
    let raw: Vec<(&[u8], &[u8])> = FILES.iter().map(|(name, body)| (name.as_bytes(), *body)).collect();
    rar4(flags, &raw)
}

fn all() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("solid 7z", seven_z_solid()),
        ("7z", seven_z_apart()),
        ("rar 5", rar5(0, &FILES)),
        ("solid rar 5", rar5(4, &FILES)),
        ("rar 4", rar4_of(0)),
        ("solid rar 4", rar4_of(8)),
    ]
}

#[test]
fn members_come_in_order_whatever_the_packing() {
    for (what, bytes) in all() {
        let (seen, pass) = read_all(&bytes, &Limits::default());
        assert_eq!(pass, Ok(Pass::Complete), "{what}");
        let read: Vec<(String, String)> = texts(&seen).into_iter().filter(|(_, text)| !text.is_empty()).collect();
        let expected = [("a.txt", "first"), ("b.txt", "the second one"), ("c.txt", "third")];
        assert_eq!(read, expected.map(|(name, text)| (name.to_owned(), text.to_owned())), "{what}");
        assert!(seen.iter().enumerate().all(|(i, seen)| seen.ordinal as usize == i), "{what}");
    }
}

#[test]
fn a_pass_resumes_at_any_member() {
    for (what, bytes) in all() {
        let (whole, _) = read_all(&bytes, &Limits::default());
        for cut in 0..=4_u32 {
            let (mut seen, _) = read_range(&bytes, &Limits::default(), ..cut);
            assert_eq!(seen.len(), cut as usize, "{what}");
            seen.extend(read_range(&bytes, &Limits::default(), cut..).0);
            assert_eq!(seen, whole, "{what} cut at {cut}");
        }
    }
}

#[test]
fn a_pass_can_be_stopped_and_bodies_left_alone() {
    for (what, bytes) in all() {
        let kind = sniff(&bytes).unwrap();
        let mut reader = ArchiveReader::open(Cursor::new(bytes), kind, &Limits::default()).unwrap();
        let mut stopped_at = None;
        let pass = reader
            .visit(.., &Budget::new(Limits::default()), &mut |member, body| {
                let mut first = [0; 1];
                let _ = body.read(&mut first);
                stopped_at = Some(member.ordinal);
                if member.ordinal == 2 { Flow::Stop } else { Flow::Continue }
            })
            .unwrap();
        assert_eq!((pass, stopped_at), (Pass::Stopped, Some(2)), "{what}");
        let mut last = String::new();
        reader
            .visit(3.., &Budget::new(Limits::default()), &mut |_, body| {
                let mut bytes = Vec::new();
                body.copy_to(&mut bytes).unwrap();
                last = String::from_utf8(bytes).unwrap();
                Flow::Continue
            })
            .unwrap();
        assert_eq!(last, "third", "{what}: the same reader, again");
    }
}

#[test]
fn blocks_tell_what_can_be_read_at_once() {
    for (what, bytes) in all() {
        let reader =
            ArchiveReader::open(Cursor::new(bytes.clone()), sniff(&bytes).unwrap(), &Limits::default()).unwrap();
        let blocks = reader.blocks();
        let expected = match what {
            "7z" => 3,
            "rar 5" | "rar 4" => 4,
            _ => 1,
        };
        assert_eq!(blocks.len(), expected, "{what}");
        assert_eq!((blocks[0].ordinals.start, blocks[expected - 1].ordinals.end), (0, 4), "{what}");
        assert!(blocks.windows(2).all(|pair| pair[0].ordinals.end == pair[1].ordinals.start), "{what}: no gaps");
        assert_eq!(blocks.iter().map(|block| block.unpacked.unwrap()).sum::<u64>(), 24, "{what}");
        assert_eq!(blocks[0].solid, what.starts_with("solid"), "{what}");
        let mut seen = Vec::new();
        for block in blocks {
            seen.extend(read_range(&bytes, &Limits::default(), block.ordinals.clone()).0);
        }
        assert_eq!(seen, read_all(&bytes, &Limits::default()).0, "{what}");
    }
}

/// Changes a byte of the archive that is in a member's stored data.
fn damaged(mut bytes: Vec<u8>, text: &[u8]) -> Vec<u8> {
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] ^= 1;
    bytes
}

#[test]
fn one_bad_member_does_not_stop_the_next() {
    for (what, bytes) in all() {
        let (seen, pass) = read_all(&damaged(bytes, b"the second one"), &Limits::default());
        assert_eq!(pass, Ok(Pass::Complete), "{what}");
        assert_eq!(seen[0].outcome, Ok(b"first".to_vec()), "{what}");
        assert_eq!(seen[2].outcome, Err("CRC_MISMATCH"), "{what}");
        if what.starts_with("solid rar") {
            assert_eq!(seen[3].outcome, Err("CRC_MISMATCH"), "{what}: the decoder does not go on");
        } else {
            assert_eq!(seen[3].outcome, Ok(b"third".to_vec()), "{what}");
        }
    }
}

#[test]
fn a_solid_block_of_lzma_is_decoded_once() {
    let data = sample();
    let parts: [(&str, &[u8]); 3] = [("1", &data[..1_000]), ("2", &data[1_000..9_000]), ("3", &data[9_000..])];
    let bytes = seven_z(Coder::Lzma2Sample, &[&parts]);
    let (seen, _) = read_all(&bytes, &Limits::default());
    let read: Vec<u8> = seen.iter().flat_map(|seen| seen.outcome.clone().unwrap()).collect();
    assert_eq!(read, data);
    // Behind damage within the block there is nothing more; every member is told of it.
    let mut broken = bytes.clone();
    broken[32 + 40] ^= 0xff;
    let (seen, pass) = read_all(&broken, &Limits::default());
    assert_eq!((seen.len(), pass), (3, Ok(Pass::Complete)));
    assert!(seen.iter().any(|seen| seen.outcome.is_err()));
    assert!(seen.iter().skip_while(|seen| seen.outcome.is_ok()).all(|seen| seen.outcome.is_err()));
}

#[test]
fn encryption_volumes_and_methods_are_named() {
    let sealed = seven_z(Coder::Aes, &[&FILES[..1]]);
    assert_eq!(codes(&sealed), [("a.txt".to_owned(), "ENCRYPTED")]);
    let unknown = seven_z(Coder::Unknown, &[&FILES[..1]]);
    assert_eq!(codes(&unknown), [("a.txt".to_owned(), "UNSUPPORTED_METHOD")]);
    let archive = |bytes: &[u8]| codes(bytes).last().map(|(_, code)| *code);
    assert_eq!(archive(&rar5(1, &FILES)), Some("MULTIVOLUME"));
    assert_eq!(archive(&rar4_of(1)), Some("MULTIVOLUME"));
    let salt = [rar4(0x80, &[])[..20].to_vec(), vec![9; 64]].concat();
    assert_eq!(archive(&salt), Some("ENCRYPTED"));
    let cut = &seven_z_solid()[..60];
    assert_eq!(archive(cut), Some("TRUNCATED"));
    let mut header = seven_z_solid();
    *header.last_mut().unwrap() ^= 0xff;
    assert_eq!(archive(&header), Some("CORRUPT_DIRECTORY"));
    assert_eq!(sniff(&rar4_of(0)), Some(ArchiveKind::Rar4));
    assert_eq!(sniff(&rar5(0, &FILES)), Some(ArchiveKind::Rar5));
}

#[test]
fn names_of_rar_are_decoded_like_all_others() {
    let names: [&[u8]; 2] = [b"\x8f\x90\x88\x82\x85\x92", b"\xaf\xe0\xa8\xa2\xa5\xe2"];
    let bytes = rar4(0, &[(names[0], b"x"), (names[1], b"y")]);
    assert_eq!(codes(&bytes), [("ПРИВЕТ".to_owned(), "OK"), ("привет".to_owned(), "OK")]);
    let evil = rar5(0, &[("../up.txt", b"x"), ("good.txt", b"y")]);
    assert_eq!(codes(&evil), [("../up.txt".to_owned(), "UNSAFE_PATH"), ("good.txt".to_owned(), "OK")]);
}

#[test]
fn an_empty_7z_has_no_members() {
    let start = [0; 20];
    let bytes = [b"7z\xbc\xaf\x27\x1c\0\x04", &crc32fast::hash(&start).to_le_bytes()[..], &start].concat();
    assert_eq!(codes(&bytes), []);
}

#[test]
fn members_larger_than_a_pipe_are_streamed() {
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| (i >> 3) as u8).collect();
    let files: [(&str, &[u8]); 2] = [("large", &large), ("after", b"still here")];
    for bytes in [rar5(0, &files), rar5(4, &files), seven_z(Coder::Copy, &[&files])] {
        let (seen, _) = read_all(&bytes, &Limits::default());
        assert!(seen[0].outcome.as_deref() == Ok(&large), "{} bytes", seen[0].outcome.as_ref().map_or(0, Vec::len));
        assert_eq!(seen[1].outcome, Ok(b"still here".to_vec()));
    }
}

#[test]
fn independent_members_do_not_disturb_each_other_whatever_the_threads_do() {
    let files: Vec<(String, Vec<u8>)> = (0..200).map(|i| (format!("{i}"), vec![i as u8; 1 + 700 * (i % 7)])).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, body)| (name.as_str(), body.as_slice())).collect();
    let bytes = rar5(0, &files);
    let mut reader = ArchiveReader::open(Cursor::new(bytes), ArchiveKind::Rar5, &Limits::default()).unwrap();
    for round in 0..20 {
        let mut read = 0;
        reader
            .visit(.., &Budget::new(Limits::default()), &mut |member, body| {
                // Some are read, some are not, some in part.
                match (member.ordinal + round) % 3 {
                    0 => {
                        let mut bytes = Vec::new();
                        assert!(body.copy_to(&mut bytes).is_ok(), "{} in round {round}", member.ordinal);
                        assert!(bytes == files[member.ordinal as usize].1);
                        read += 1;
                    }
                    1 => {
                        let _ = body.read(&mut [0; 3]).unwrap();
                    }
                    _ => {}
                }
                Flow::Continue
            })
            .unwrap();
        assert!(read >= 66);
    }
}

#[test]
fn a_reader_may_go_to_another_thread() {
    fn sends<T: Send>() {}
    sends::<ArchiveReader>();
    sends::<Budget>();
}
