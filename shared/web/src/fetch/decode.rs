//! Content codings (RFC 9110 section 8.4): what a body says once unpacked.
//!
//! Servers label bodies wrongly, cut them short and add junk behind them. As browsers do, as much as
//! can be read is read; what was not whole is said beside it.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::{DeflateDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use crate::code::FetchCode;

/// A decoded body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// What could be decoded; at most the cap.
    pub bytes: Bytes,
    /// [`FetchCode::ContentEncodingBroken`] when the data ended early or was damaged,
    /// [`FetchCode::BodyTooLarge`] when the cap cut it.
    pub code: Option<FetchCode>,
}

/// Undoes the Content-Encodings of `headers`, last applied first. At most `cap` bytes come out, so a
/// small body cannot become a large one.
///
/// A body that is not in its claimed coding at all is given back as it is, without a code: that is how
/// browsers show it. Unknown codings end the decoding.
pub fn decode_body(headers: &HeaderMap, body: &Bytes, cap: usize) -> Decoded {
    let codings = codings(headers);
    let mut decoded = Decoded { bytes: body.clone(), code: None };
    for coding in codings.iter().rev() {
        let Some(step) = decode_one(coding, &decoded.bytes, cap) else {
            break;
        };
        decoded.bytes = step.bytes;
        decoded.code = decoded.code.or(step.code);
    }
    if decoded.bytes.len() > cap {
        decoded.bytes.truncate(cap);
        decoded.code = Some(FetchCode::BodyTooLarge);
    }
    decoded
}

fn codings(headers: &HeaderMap) -> Vec<String> {
    let mut all = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        let names = text.split(',').map(str::trim);
        all.extend(names.filter(|n| !n.is_empty() && *n != "identity").map(str::to_owned));
    }
    // Five layers are three more than anyone uses; more is an attack.
    all.truncate(5);
    all
}

/// `None` when the coding is unknown or the body is not in it.
fn decode_one(coding: &str, body: &Bytes, cap: usize) -> Option<Decoded> {
    if body.is_empty() {
        return None;
    }
    match coding {
        "gzip" | "x-gzip" => body.starts_with(&[0x1f, 0x8b]).then(|| gunzip(body, cap)),
        "deflate" => inflate(body, cap),
        "br" => {
            let out = read_up_to(brotli_decompressor::Decompressor::new(&body[..], 4096), cap);
            usable(out)
        }
        "zstd" => body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]).then(|| unzstd(body, cap)),
        _ => None,
    }
}

/// One member after another (RFC 1952 section 2.2); what follows the last is ignored.
fn gunzip(body: &[u8], cap: usize) -> Decoded {
    let mut rest = body;
    let mut all = Vec::new();
    loop {
        let mut member = flate2::bufread::GzDecoder::new(rest);
        let piece = read_up_to(&mut member, cap - all.len());
        all.extend_from_slice(&piece.bytes);
        if piece.code.is_some() {
            return Decoded { bytes: all.into(), code: piece.code };
        }
        rest = member.into_inner();
        if !rest.starts_with(&[0x1f, 0x8b]) {
            return Decoded { bytes: all.into(), code: None };
        }
    }
}

/// "deflate" is zlib (RFC 1950), but some servers send it bare (RFC 1951).
fn inflate(body: &[u8], cap: usize) -> Option<Decoded> {
    let is_zlib = matches!(body, [cmf, flg, ..]
        if cmf & 0x0f == 8 && (u16::from(*cmf) * 256 + u16::from(*flg)).is_multiple_of(31));
    if is_zlib && let Some(decoded) = usable(read_up_to(ZlibDecoder::new(body), cap)) {
        return Some(decoded);
    }
    usable(read_up_to(DeflateDecoder::new(body), cap))
}

fn unzstd(body: &[u8], cap: usize) -> Decoded {
    let mut rest = body;
    let mut all = Vec::new();
    loop {
        let before = rest.len();
        let piece = match ruzstd::decoding::StreamingDecoder::new(&mut rest) {
            Ok(frame) => read_up_to(frame, cap - all.len()),
            Err(_) => Decoded { bytes: Bytes::new(), code: Some(FetchCode::ContentEncodingBroken) },
        };
        all.extend_from_slice(&piece.bytes);
        let more = rest.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) && rest.len() < before;
        if piece.code.is_some() || !more {
            return Decoded { bytes: all.into(), code: piece.code };
        }
    }
}

/// A decoding that failed at its first byte says that the body was never encoded.
fn usable(decoded: Decoded) -> Option<Decoded> {
    let nothing = decoded.bytes.is_empty() && decoded.code.is_some();
    (!nothing).then_some(decoded)
}

fn read_up_to(mut reader: impl Read, cap: usize) -> Decoded {
    let mut out = Vec::new();
    let mut chunk = [0; 16 * 1024];
    let code = loop {
        match reader.read(&mut chunk) {
            Ok(0) => break None,
            Ok(n) => {
                let room = cap - out.len();
                out.extend_from_slice(&chunk[..n.min(room)]);
                if n > room {
                    break Some(FetchCode::BodyTooLarge);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break Some(FetchCode::ContentEncodingBroken),
        }
    };
    Decoded { bytes: out.into(), code }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const TEXT: &[u8] = b"It was a bright cold day in April, and the clocks were striking thirteen.";
    const BROKEN: Option<FetchCode> = Some(FetchCode::ContentEncodingBroken);

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn bare(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// An uncompressed-block frame, RFC 8878 section 3.1.1.
    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let len = u8::try_from(bytes.len()).unwrap();
        let block = (u32::from(len) << 3) | 1;
        let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, len];
        out.extend_from_slice(&block.to_le_bytes()[..3]);
        out.extend_from_slice(bytes);
        out
    }

    /// An uncompressed meta-block, RFC 7932 section 9.2.
    fn brotli(bytes: &[u8]) -> Vec<u8> {
        let len = u32::try_from(bytes.len()).unwrap() - 1;
        // WBITS 16 (0), ISLAST 0, MNIBBLES 0 (4 nibbles), MLEN-1, ISUNCOMPRESSED 1.
        let bits: u32 = (len << 4) | (1 << 20);
        let mut out = bits.to_le_bytes()[..3].to_vec();
        out.extend_from_slice(bytes);
        out.push(0x03); // ISLAST, ISLASTEMPTY
        out
    }

    fn check(encoding: &str, body: &[u8], expected: &[u8], code: Option<FetchCode>) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_str(encoding).unwrap());
        let got = decode_body(&headers, &Bytes::copy_from_slice(body), 1000);
        assert_eq!(got.bytes, expected, "{encoding}");
        assert_eq!(got.code, code, "{encoding}");
    }

    #[test]
    fn every_coding_decodes() {
        check("gzip", &gz(TEXT), TEXT, None);
        check("x-gzip", &gz(TEXT), TEXT, None);
        check("GZIP", &gz(TEXT), TEXT, None);
        check("deflate", &zlib(TEXT), TEXT, None);
        check("deflate", &bare(TEXT), TEXT, None);
        check("br", &brotli(TEXT), TEXT, None);
        check("zstd", &zstd(TEXT), TEXT, None);
        check("identity", TEXT, TEXT, None);
        check("", TEXT, TEXT, None);
        check("deflate, gzip", &gz(&zlib(TEXT)), TEXT, None);
        check("gzip", &[gz(TEXT), gz(TEXT)].concat(), &[TEXT, TEXT].concat(), None);
        check("zstd", &[zstd(TEXT), zstd(TEXT)].concat(), &[TEXT, TEXT].concat(), None);
    }

    #[test]
    fn what_is_not_encoded_comes_back_as_it_is() {
        for encoding in ["gzip", "deflate", "br", "zstd", "utf-8", "compress"] {
            check(encoding, TEXT, TEXT, None);
            check(encoding, b"", b"", None);
        }
    }

    #[test]
    fn broken_bodies_give_what_they_hold() {
        let whole = gz(TEXT);
        check("gzip", &[&whole[..], b"junk"].concat(), TEXT, None);
        check("gzip", &whole[..whole.len() - 4], TEXT, BROKEN);
        let mut wrong_crc = whole.clone();
        let at = whole.len() - 8;
        wrong_crc[at] ^= 0xff;
        check("gzip", &wrong_crc, TEXT, BROKEN);
        check("gzip", &whole[..5], b"", BROKEN);
        let cut = brotli(TEXT);
        check("br", &cut[..30], &TEXT[..27], BROKEN);
    }

    #[test]
    fn a_bomb_stops_at_the_cap() {
        let zeros = vec![0; 10_000_000];
        let code = Some(FetchCode::BodyTooLarge);
        check("gzip", &gz(&zeros), &zeros[..1000], code);
        check("gzip, gzip", &gz(&gz(&zeros)), &zeros[..1000], code);
        check("", &zeros, &zeros[..1000], code);
        check("gzip", &gz(&zeros[..1000]), &zeros[..1000], None);
    }

    proptest! {
        #[test]
        fn nothing_panics(encoding in "(gzip|deflate|br|zstd|,| ){0,4}", body: Vec<u8>, magic in 0..3usize) {
            let magic: &[u8] = [&[][..], &[0x1f, 0x8b, 8], &[0x28, 0xb5, 0x2f, 0xfd]][magic];
            let body = Bytes::from([magic, &body].concat());
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_str(&encoding).unwrap());
            let decoded = decode_body(&headers, &body, 500);
            prop_assert!(decoded.bytes.len() <= 500);
        }
    }
}
