//! The served bytes of a text that the browser decoded before it answered.
//!
//! Now and then the renderer answers for a body before the network process can: with the text, as
//! UTF-8 and without its byte order mark. Encoded again in the charset it came in, it is the served
//! bytes exactly when it has as many of them as the network stack counted and every character of it
//! exists in that charset.

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// The served bytes, or none when they cannot be had again. `served` is their number.
pub(super) fn served_bytes(text: &[u8], charset: &str, served: u64) -> Option<Bytes> {
    // What stands here was something undecodable; which bytes, nobody knows any more.
    if text.windows(REPLACEMENT.len()).any(|window| window == REPLACEMENT) {
        return None;
    }
    let text_of = std::str::from_utf8(text).ok()?;
    let encoding = Encoding::for_label(charset.as_bytes()).unwrap_or(UTF_8);
    let (mark, body) = if encoding == UTF_16LE {
        (&b"\xff\xfe"[..], text_of.encode_utf16().flat_map(u16::to_le_bytes).collect())
    } else if encoding == UTF_16BE {
        (&b"\xfe\xff"[..], text_of.encode_utf16().flat_map(u16::to_be_bytes).collect())
    } else {
        let (body, _, unmappable) = encoding.encode(text_of);
        if unmappable {
            return None;
        }
        let mark = if encoding == UTF_8 { &b"\xef\xbb\xbf"[..] } else { &[] };
        (mark, body.into_owned())
    };
    let served = usize::try_from(served).ok()?;
    if body.len() == served {
        Some(body.into())
    } else if body.len() + mark.len() == served {
        Some([mark, &body].concat().into())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::served_bytes;

    #[test]
    fn a_decoded_text_becomes_what_was_served_or_nothing() {
        let cases: [(&str, &str, &[u8]); 6] = [
            ("caf\u{e9}", "iso-8859-1", b"caf\xe9"),
            ("hi", "utf-16le", b"\xff\xfeh\0i\0"),
            ("hi", "utf-16be", b"\0h\0i"),
            ("bom", "utf-8", b"\xef\xbb\xbfbom"),
            ("\u{8868}", "shift_jis", b"\x95\x5c"),
            ("b", "no such charset", b"\xef\xbb\xbfb"),
        ];
        for (text, charset, served) in cases {
            let got = served_bytes(text.as_bytes(), charset, served.len() as u64);
            assert_eq!(got.as_deref(), Some(served), "{text} in {charset}");
            assert_eq!(served_bytes(text.as_bytes(), charset, served.len() as u64 + 7), None, "{text}: another length");
        }
        assert_eq!(served_bytes("x\u{fffd}".as_bytes(), "utf-8", 2), None, "an undecodable byte");
        assert_eq!(served_bytes("\u{8868}".as_bytes(), "iso-8859-1", 1), None, "not of this charset");
        assert_eq!(served_bytes(b"\xff", "utf-8", 4), None, "no text");
    }
}
