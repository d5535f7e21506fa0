//! From bytes to text, in the order of the WHATWG encoding sniffing algorithm: byte order mark, HTTP header, `meta` (or
//! XML declaration), and only then a guess.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::borrow::Cow;

/// How far into a document a declaration is looked for. The standard says 1,024 bytes; authors do not read it.
const PRESCAN_BYTES: usize = 4_096;
/// How much of an undeclared document the guess is made from.
const GUESS_BYTES: usize = 64 << 10;

/// Where the encoding was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// The `charset` of `Content-Type`.
    Header,
    /// `meta` or the XML declaration.
    Declared,
    /// Nothing said it; the bytes look like it.
    Guessed,
}

/// Decoded text.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    /// The text without its byte order mark. Borrowed when the bytes were UTF-8 already.
    pub text: Cow<'a, str>,
    /// The encoding it was read with.
    pub encoding: &'static Encoding,
    /// Where that came from.
    pub source: CharsetSource,
    /// Some bytes were no text in that encoding and became U+FFFD.
    pub had_errors: bool,
}

/// Decodes an HTML, XML or text document. `content_type` is the HTTP header's value, if there was one.
pub fn decode<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Decoded<'a> {
    let (encoding, source, skip) = sniff(bytes, content_type);
    let (text, had_errors) = encoding.decode_without_bom_handling(bytes.get(skip..).unwrap_or_default());
    Decoded { text, encoding, source, had_errors }
}

fn sniff(bytes: &[u8], content_type: Option<&str>) -> (&'static Encoding, CharsetSource, usize) {
    if let Some((encoding, len)) = Encoding::for_bom(bytes) {
        return (encoding, CharsetSource::Bom, len);
    }
    if let Some(encoding) = content_type.and_then(charset_of).and_then(for_label) {
        return (encoding, CharsetSource::Header, 0);
    }
    if let Some(encoding) = utf16_markup(bytes) {
        return (encoding, CharsetSource::Guessed, 0);
    }
    let head = bytes.get(..PRESCAN_BYTES).unwrap_or(bytes);
    if let Some(encoding) = declared(head) {
        return (encoding, CharsetSource::Declared, 0);
    }
    (guess(bytes), CharsetSource::Guessed, 0)
}

/// UTF-16 without a mark, told by markup's first characters.
fn utf16_markup(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [b'<', 0, b, 0, ..] if *b != 0 => Some(UTF_16LE),
        [0, b'<', 0, b, ..] if *b != 0 => Some(UTF_16BE),
        _ => None,
    }
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    // ISO-2022-JP is ASCII with escapes.
    let Some(first) = bytes.iter().position(|b| !b.is_ascii() || *b == 0x1B) else { return UTF_8 };
    let rest = bytes.get(first..).unwrap_or_default();
    let part = rest.get(..GUESS_BYTES).unwrap_or(rest);
    if mostly_utf8(part) {
        return UTF_8;
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(part, true);
    detector.guess(None, chardetng::Utf8Detection::Deny)
}

/// Whether these bytes are UTF-8 but for a character cut in two or a stray byte: one bad byte in a page of good ones
/// does not make it Latin-1.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().bytes().filter(|b| *b >= 0xC0).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good > 0 && bad <= 1 + good / 20 && (bad == 0 || good >= 4)
}

/// The encoding of a label, as documents may declare it.
fn for_label(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.trim_matches(['"', '\'', ' ', '\t']).as_bytes())
}

/// The `charset` parameter of a media type.
pub fn charset_of(content_type: &str) -> Option<&str> {
    let lower = content_type.to_ascii_lowercase();
    let mut from = 0;
    while let Some(at) = lower.get(from..)?.find("charset") {
        let rest = content_type.get(from + at + 7..)?.trim_start();
        if let Some(value) = rest.strip_prefix('=') {
            let value = value.trim_start();
            let value = match value.chars().next()? {
                quote @ ('"' | '\'') => value.get(1..)?.split(quote).next()?,
                _ => value.split([';', ',', ' ', '\t', '\n', '\r', '"', '\'']).next()?,
            };
            return Some(value.trim()).filter(|v| !v.is_empty());
        }
        from += at + 7;
    }
    None
}

/// A `meta` or XML declaration in the head of a document.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    // Declarations are ASCII, whatever the rest is; Latin-1 maps every byte to one character.
    let text: Cow<'_, str> = match std::str::from_utf8(head) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => encoding_rs::mem::decode_latin1(head),
    };
    let found = xml_declared(&text).or_else(|| meta_declared(&text))?;
    // A document that can be read as ASCII is not UTF-16, whatever it says of itself.
    Some(if found == UTF_16LE || found == UTF_16BE {
        UTF_8
    } else if found == encoding_rs::X_USER_DEFINED {
        WINDOWS_1252
    } else {
        found
    })
}

fn xml_declared(text: &str) -> Option<&'static Encoding> {
    let declaration = text.trim_start().strip_prefix("<?xml")?.split("?>").next()?;
    let value = declaration.split("encoding").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    for_label(value.get(1..)?.split(quote).next()?)
}

fn meta_declared(text: &str) -> Option<&'static Encoding> {
    let mut tokens = crate::tokens::Tokenizer::html(text);
    while let Some(token) = tokens.next() {
        let crate::tokens::Token::Start(tag) = token else { continue };
        match tag.name.as_str() {
            "meta" => {}
            "body" => return None,
            _ => continue,
        }
        if let Some(encoding) = tokens.attr("charset").and_then(|label| for_label(&label)) {
            return Some(encoding);
        }
        let pragma = tokens.attr("http-equiv").is_some_and(|v| v.trim().eq_ignore_ascii_case("content-type"));
        if pragma
            && let Some(content) = tokens.attr("content")
            && let Some(encoding) = charset_of(&content).and_then(for_label)
        {
            return Some(encoding);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_mark_header_declaration_guess() {
        use CharsetSource::{Bom, Declared, Guessed, Header};
        let cases: &[(&[u8], Option<&str>, &str, CharsetSource)] = &[
            (b"\xEF\xBB\xBF<meta charset=gbk>", Some("text/html; charset=iso-8859-1"), "UTF-8", Bom),
            (b"\xFF\xFE<\0p\0", None, "UTF-16LE", Bom),
            (b"<meta charset=gbk>", Some("text/html; charset=\"Shift_JIS\""), "Shift_JIS", Header),
            (b"<meta charset=gbk>", Some("text/html"), "GBK", Declared),
            (b"<meta charset=gbk>", Some("text/html; charset=nonsense"), "GBK", Declared),
            (b"<META HTTP-EQUIV=Content-Type CONTENT='text/html; charset=koi8-r'>", None, "KOI8-R", Declared),
            (b"<!-- <meta charset=gbk> --><meta charset=big5>", None, "Big5", Declared),
            (b"<script>'<meta charset=gbk>'</script><meta charset='big5'>", None, "Big5", Declared),
            (b"<?xml version='1.0' encoding='iso-8859-2'?><rss/>", None, "ISO-8859-2", Declared),
            (b"<meta charset=utf-16le>", None, "UTF-8", Declared),
            (b"<\0p\0>\0", None, "UTF-16LE", Guessed),
            (b"\0<\0p\0>", None, "UTF-16BE", Guessed),
            ("<p>Grüße</p>".as_bytes(), None, "UTF-8", Guessed),
            (b"<p>plain</p>", None, "UTF-8", Guessed),
            (b"<p>Gr\xFC\xDFe aus K\xF6ln</p>", None, "windows-1252", Guessed),
            (b"\x83\x65\x83\x58\x83\x67\x82\xC5\x82\xB7\x81\x42\x93\xFA\x96\x7B\x8C\xEA", None, "Shift_JIS", Guessed),
            (b"\x1B$B$3$s\x1B(B", None, "ISO-2022-JP", Guessed),
            (
                "Stra\u{df}e, Gr\u{fc}\u{df}e, K\u{f6}ln, sch\u{f6}n"
                    .as_bytes()
                    .split_last()
                    .map_or(&[][..], |(_, s)| s),
                None,
                "UTF-8",
                Guessed,
            ),
            ("ä ö ü ß \u{20ac}".as_bytes().split_last().map_or(&[][..], |(_, s)| s), None, "UTF-8", Guessed),
            (b"", None, "UTF-8", Guessed),
        ];
        for (bytes, header, encoding, source) in cases {
            let decoded = decode(bytes, *header);
            assert_eq!(
                (decoded.encoding.name(), decoded.source),
                (*encoding, *source),
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
    }

    #[test]
    fn text_is_decoded_and_its_mark_is_gone() {
        assert_eq!(decode(b"\xEF\xBB\xBFabc", None).text, "abc");
        assert_eq!(decode(b"\xFF\xFEa\0", None).text, "a");
        assert_eq!(decode(b"<meta charset=gbk>\xC4\xE3\xBA\xC3", None).text, "<meta charset=gbk>你好");
        let broken = decode(b"a\xFFb", Some("text/plain; charset=utf-8"));
        assert!(broken.had_errors && broken.text == "a\u{FFFD}b");
        assert!(matches!(decode("ä".as_bytes(), None).text, Cow::Borrowed(_)));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>, header in ".{0,40}") {
            decode(&bytes, Some(&header));
        }
    }
}
