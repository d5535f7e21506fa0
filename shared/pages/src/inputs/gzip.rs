//! Gzip, by its signature and never by a name: lists called `.gz` are often not, and others are twice.

use crate::codes;
use flate2::bufread::GzDecoder;
use std::borrow::Cow;
use std::io::{BufRead, Read};

pub(super) struct Unpacked<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) was_packed: bool,
    pub(super) fault: Option<&'static str>,
}

/// A list zipped more often than this is a bomb.
const MAX_LAYERS: usize = 3;

pub(super) fn unpack(bytes: &[u8], max: usize) -> Unpacked<'_> {
    let mut out = Unpacked { bytes: Cow::Borrowed(bytes), was_packed: false, fault: None };
    for _ in 0..MAX_LAYERS {
        if !is_gzip(&out.bytes) {
            break;
        }
        let (unpacked, fault) = members(&out.bytes, max);
        // A signature and nothing behind it is no gzip.
        if unpacked.is_empty() && fault.is_some() {
            break;
        }
        out = Unpacked { bytes: Cow::Owned(unpacked), was_packed: true, fault: out.fault.or(fault) };
    }
    out
}

fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1F, 0x8B, 0x08])
}

/// All members, as far as they are sound.
fn members(bytes: &[u8], max: usize) -> (Vec<u8>, Option<&'static str>) {
    let mut rest = bytes;
    let mut out = Vec::new();
    while is_gzip(rest) {
        let mut decoder = GzDecoder::new(rest);
        let room = (max - out.len()) as u64;
        let read = decoder.by_ref().take(room.saturating_add(1)).read_to_end(&mut out);
        if out.len() > max {
            out.truncate(max);
            return (out, Some(codes::DECOMPRESSED_TOO_LARGE));
        }
        if read.is_err() {
            return (out, Some(codes::TRUNCATED_GZIP));
        }
        let mut behind = decoder.into_inner();
        let left = behind.fill_buf().map_or(0, <[u8]>::len);
        rest = rest.get(rest.len() - left..).unwrap_or_default();
    }
    // Padding with zeroes is usual; anything else behind the last member is junk worth a word.
    let fault = rest.iter().any(|b| *b != 0).then_some(codes::TRUNCATED_GZIP);
    (out, fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gz(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_is_unpacked_as_far_as_it_is_sound() {
        let cut = {
            let mut whole = gz("abc".repeat(10_000).as_bytes());
            whole.truncate(whole.len() - 12);
            whole
        };
        for (bytes, expected, fault) in [
            (b"plain".to_vec(), b"plain".to_vec(), None),
            (gz(b"abc"), b"abc".to_vec(), None),
            ([gz(b"abc"), gz(b"def")].concat(), b"abcdef".to_vec(), None),
            (gz(&gz(b"abc")), b"abc".to_vec(), None),
            ([gz(b"abc"), b"junk".to_vec()].concat(), b"abc".to_vec(), Some(codes::TRUNCATED_GZIP)),
            ([gz(b"abc"), vec![0; 9]].concat(), b"abc".to_vec(), None),
            (b"\x1F\x8B\x08".to_vec(), b"\x1F\x8B\x08".to_vec(), None),
            (gz(&[b'x'; 2_000]), vec![b'x'; 1_000], Some(codes::DECOMPRESSED_TOO_LARGE)),
        ] {
            let out = unpack(&bytes, 1_000);
            assert_eq!((out.bytes.as_ref(), out.fault), (expected.as_slice(), fault));
        }
        let out = unpack(&cut, 1 << 20);
        assert_eq!(out.fault, Some(codes::TRUNCATED_GZIP));
        assert!(out.bytes.starts_with(b"abcabc"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(mut bytes: Vec<u8>, cut in 0usize..60) {
            unpack(&bytes, 100);
            bytes.splice(0..0, [0x1F, 0x8B, 0x08]);
            unpack(&bytes, 100);
            let mut real = gz(&bytes);
            real.truncate(cut);
            unpack(&real, 100);
        }
    }
}
