//! What a body is, by its bytes (WHATWG MIME Sniffing, with the signatures of more formats).

/// How many bytes a decision needs at most.
pub const SNIFF_BYTES: usize = 4_096;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sniffed {
    /// The media type, without parameters.
    pub mime: String,
    /// Whether the bytes themselves gave it; otherwise it is what the server declared.
    pub from_bytes: bool,
}

/// The media type of a `Content-Type`, lower case and without parameters. `None` when it is no media type.
pub fn essence(content_type: &str) -> Option<String> {
    let mime = content_type.split([';', ',']).next()?.trim().to_ascii_lowercase();
    let (kind, sub) = mime.split_once('/')?;
    let token =
        |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&b));
    (token(kind) && token(sub)).then_some(mime)
}

/// Types that say nothing, and those that servers put on everything they do not know.
fn is_vague(mime: &str) -> bool {
    matches!(
        mime,
        "application/octet-stream"
            | "binary/octet-stream"
            | "application/unknown"
            | "unknown/unknown"
            | "*/*"
            | "application/x-download"
            | "application/force-download"
            | "application/download"
            | "text/plain"
    )
}

/// What a body is. A specific declared type stands, unless the bytes have the signature of another image, audio, video,
/// archive or document format; a vague or missing one gives way to the bytes.
pub fn sniff(head: &[u8], content_type: Option<&str>) -> Sniffed {
    let head = head.get(..SNIFF_BYTES).unwrap_or(head);
    let declared = content_type.and_then(essence).filter(|mime| !matches!(mime.as_str(), "unknown/unknown" | "*/*"));
    let found = signature(head);
    match (declared, found) {
        (None, Some(mime)) => Sniffed { mime: mime.to_owned(), from_bytes: true },
        (None, None) => Sniffed { mime: text_or_binary(head).to_owned(), from_bytes: true },
        (Some(declared), found) => {
            let text = declared == "text/plain";
            match found {
                // A page served as text stays text: that is what the server meant (source listings, robots.txt).
                Some(mime) if is_vague(&declared) && !(text && is_markup(mime)) => {
                    Sniffed { mime: mime.to_owned(), from_bytes: true }
                }
                Some(mime) if is_binary_format(mime) && conflicts(&declared, mime) => {
                    Sniffed { mime: mime.to_owned(), from_bytes: true }
                }
                None if is_vague(&declared) && !text && text_or_binary(head) == "text/plain" && !head.is_empty() => {
                    Sniffed { mime: "text/plain".to_owned(), from_bytes: true }
                }
                _ => Sniffed { mime: declared, from_bytes: false },
            }
        }
    }
}

fn is_markup(mime: &str) -> bool {
    matches!(mime, "text/html" | "application/xml" | "text/xml" | "image/svg+xml") || mime.ends_with("+xml")
}

fn is_binary_format(mime: &str) -> bool {
    ["image/", "audio/", "video/", "font/"].iter().any(|kind| mime.starts_with(kind)) && mime != "image/svg+xml"
        || matches!(mime, "application/pdf" | "application/zip" | "application/gzip" | "application/x-7z-compressed")
        || matches!(mime, "application/vnd.rar" | "application/x-bzip2" | "application/x-xz" | "application/zstd")
}

/// Whether a signature contradicts what was declared. A `.docx` is a zip, a `.svgz` a gzip: those agree.
fn conflicts(declared: &str, found: &str) -> bool {
    let family = |mime: &str| mime.split('/').next().unwrap_or("").to_owned();
    match found {
        "application/zip" | "application/gzip" => {
            matches!(declared, "text/html" | "application/xhtml+xml" | "application/pdf")
                || family(declared) == "image" && !declared.starts_with("image/svg")
        }
        _ => {
            family(declared) != family(found)
                || (family(found) == "image" && declared != found && !same_image(declared, found))
        }
    }
}

fn same_image(a: &str, b: &str) -> bool {
    let norm = |m: &str| match m {
        "image/jpg" | "image/pjpeg" => "image/jpeg".to_owned(),
        "image/x-icon" | "image/ico" => "vnd.microsoft.icon".to_owned(),
        other => other.trim_start_matches("image/x-").trim_start_matches("image/").to_owned(),
    };
    norm(a) == norm(b)
}

/// Whether a body is an HTML page: declared as one (and not plainly something else), or undeclared and looking like one.
pub fn is_html(content_type: Option<&str>, head: &[u8]) -> bool {
    matches!(sniff(head, content_type).mime.as_str(), "text/html" | "application/xhtml+xml")
}

fn signature(head: &[u8]) -> Option<&'static str> {
    if let Some(mime) = markup(head) {
        return Some(mime);
    }
    let kind = infer::get(head)?.mime_type();
    Some(match kind {
        "audio/x-flac" => "audio/flac",
        "image/x-icon" => "image/vnd.microsoft.icon",
        // These tell by a word within text, not by a signature.
        "text/html" | "text/xml" | "text/x-shellscript" => return None,
        other => other,
    })
}

/// The tags that make a body HTML (MIME Sniffing, 7.1).
const HTML_TAGS: [&str; 17] = [
    "<!doctype html",
    "<html",
    "<head",
    "<script",
    "<iframe",
    "<h1",
    "<div",
    "<font",
    "<table",
    "<a",
    "<style",
    "<title",
    "<b",
    "<body",
    "<br",
    "<p",
    "<!--",
];

fn markup(head: &[u8]) -> Option<&'static str> {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    if text.first() != Some(&b'<') {
        return utf16_markup(head);
    }
    let lower = String::from_utf8_lossy(text.get(..1_024).unwrap_or(text)).to_ascii_lowercase();
    if lower.starts_with("<?xml") || lower.starts_with("<!doctype") && !lower.starts_with("<!doctype html") {
        return Some(xml_kind(&lower));
    }
    let html = HTML_TAGS.iter().any(|tag| {
        let rest = lower.strip_prefix(tag);
        rest.is_some_and(|rest| {
            *tag == "<!--" || rest.starts_with([' ', '>', '\n', '\t', '\r', '/']) || rest.is_empty()
        })
    });
    if html {
        return Some("text/html");
    }
    match xml_kind(&lower) {
        "application/xml" => None,
        kind => Some(kind),
    }
}

fn utf16_markup(head: &[u8]) -> Option<&'static str> {
    let little = matches!(head, [0xFF, 0xFE, b'<', 0, ..] | [b'<', 0, _, 0, ..]);
    let big = matches!(head, [0xFE, 0xFF, 0, b'<', ..] | [0, b'<', 0, ..]);
    (little || big).then_some("text/html")
}

/// The kind of an XML document, by its root element.
fn xml_kind(lower: &str) -> &'static str {
    let root = crate::tokens::Tokenizer::xml(lower).find_map(|token| match token {
        crate::tokens::Token::Start(tag) => Some(tag.name),
        _ => None,
    });
    match root.as_ref().map_or("", |name| name.as_str()) {
        "html" => "application/xhtml+xml",
        "rss" => "application/rss+xml",
        "rdf" => "application/rdf+xml",
        "feed" => "application/atom+xml",
        "svg" => "image/svg+xml",
        "opml" => "text/x-opml",
        _ => "application/xml",
    }
}

/// Text unless a byte says otherwise (MIME Sniffing, 7.2).
fn text_or_binary(head: &[u8]) -> &'static str {
    if head.starts_with(b"\xFE\xFF") || head.starts_with(b"\xFF\xFE") {
        return "text/plain";
    }
    let binary = head.iter().any(|b| matches!(b, 0x00..=0x08 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F));
    if binary { "application/octet-stream" } else { "text/plain" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_what_they_are() {
        let png = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR".as_slice();
        let pdf = b"%PDF-1.7\n".as_slice();
        let zip = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0".as_slice();
        for (head, declared, expected) in [
            (b"<!DOCTYPE html><p>".as_slice(), None, "text/html"),
            (b"  \n<html>", None, "text/html"),
            (b"\xEF\xBB\xBF<!-- x --><p>", None, "text/html"),
            (b"<HTML lang=en>", Some("application/octet-stream"), "text/html"),
            (b"<p>x", Some("text/html; charset=utf-8"), "text/html"),
            (b"plain", Some("TEXT/HTML;x"), "text/html"),
            (b"<p>x", Some("text/plain"), "text/plain"),
            (b"<abbr>x", None, "text/plain"),
            (b"<?xml version='1.0'?><rss>", None, "application/rss+xml"),
            (b"<?xml version='1.0'?><!-- c --><a:feed xmlns:a='x'>", None, "application/atom+xml"),
            (b"<svg xmlns='x'>", None, "image/svg+xml"),
            (b"<?xml version='1.0'?><!DOCTYPE html PUBLIC 'x'><html>", None, "application/xhtml+xml"),
            (b"<?xml version='1.0'?><x>", None, "application/xml"),
            (png, None, "image/png"),
            (png, Some("text/html"), "image/png"),
            (png, Some("image/jpeg"), "image/png"),
            (pdf, Some("text/html"), "application/pdf"),
            (pdf, Some("application/octet-stream"), "application/pdf"),
            (
                zip,
                Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            ),
            (zip, Some("text/html"), "application/zip"),
            (b"hello", None, "text/plain"),
            (b"a\0b", None, "application/octet-stream"),
            (b"{\"a\":1}", Some("application/json"), "application/json"),
            (b"", Some("application/octet-stream"), "application/octet-stream"),
            (b"", None, "text/plain"),
            (b"x", Some("garbage"), "text/plain"),
        ] {
            assert_eq!(sniff(head, declared).mime, expected, "{} as {declared:?}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn html_is_told_from_what_only_claims_to_be() {
        assert!(is_html(Some("text/html"), b""));
        assert!(is_html(Some("application/xhtml+xml"), b"<html>"));
        assert!(is_html(None, b"<!doctype html>"));
        assert!(!is_html(Some("text/html"), b"%PDF-1.4"));
        assert!(!is_html(Some("text/plain"), b"<html>"));
        assert!(!is_html(None, b"hello"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(head: Vec<u8>, declared in proptest::option::of(".{0,30}")) {
            sniff(&head, declared.as_deref());
        }
    }
}
