//! Which format an input is in.

use super::{Format, Hint, table};
use crate::tokens::{Token, Tokenizer};

/// How much of the input the decision is made from.
const HEAD: usize = 16 << 10;

/// No list of links: it has zero bytes that are not UTF-16's.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let head = bytes.get(..4_096).unwrap_or(bytes);
    if head.starts_with(&[0xFF, 0xFE]) || head.starts_with(&[0xFE, 0xFF]) {
        return false;
    }
    if matches!(head, [b'<', 0, ..] | [0, b'<', ..]) {
        return false;
    }
    head.contains(&0)
        || head.starts_with(b"%PDF-")
        || head.starts_with(b"PK\x03\x04")
        || head.starts_with(&[0x1F, 0x8B, 0x08])
}

/// The format of a text. The text itself counts for more than what it is called.
pub fn detect(text: &str, hint: &Hint<'_>) -> Format {
    let head = crate::search_text::cut(text, HEAD);
    let start = head.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
    match start.chars().next() {
        // `<https://x.org/>` is how mails and Markdown quote a URL.
        Some('<') if start.get(1..5).is_some_and(|s| s.eq_ignore_ascii_case("http")) => Format::Text,
        Some('<') => markup(start),
        Some('{') => {
            if many_values(text) {
                Format::JsonLines
            } else {
                Format::Json
            }
        }
        Some('[') if looks_like_json_array(start) => Format::Json,
        _ => rows_or_text(start, hint),
    }
}

fn looks_like_json_array(start: &str) -> bool {
    let inside = start[1..].trim_start();
    inside.starts_with(['{', '[', '"', ']'])
}

/// Whether a second JSON object begins on a line of its own at the left.
fn many_values(text: &str) -> bool {
    let mut lines = text.trim_start().lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("").trim_end();
    first.ends_with('}') && lines.next().is_some_and(|line| line.starts_with('{'))
}

fn markup(start: &str) -> Format {
    let lower = start.get(..512).unwrap_or(start).to_ascii_lowercase();
    if lower.contains("netscape-bookmark-file") {
        return Format::Netscape;
    }
    for token in Tokenizer::xml(start) {
        let Token::Start(tag) = token else { continue };
        match tag.name.as_str() {
            "rss" | "rdf" | "feed" | "channel" | "entry" => return Format::Feed,
            "opml" => return Format::Opml,
            "urlset" | "sitemapindex" => return Format::Sitemap,
            "posts" | "xbel" | "bookmarks" => return Format::Xml,
            "html" | "head" | "body" | "meta" | "title" | "h1" | "p" | "div" | "ul" | "a" => break,
            "dl" | "dt" | "h3" => return Format::Netscape,
            _ => {}
        }
        if start.starts_with("<?xml") {
            return Format::Xml;
        }
    }
    // Bookmark files without their first line: a list of definitions whose terms are links.
    let lower = start.to_ascii_lowercase();
    if lower.contains("<dl") && lower.contains("<dt><a ") { Format::Netscape } else { Format::Html }
}

fn rows_or_text(start: &str, hint: &Hint<'_>) -> Format {
    let mime = hint.content_type.and_then(crate::sniff::essence).unwrap_or_default();
    let name = hint.file_name.unwrap_or("").to_ascii_lowercase();
    let ends = |ending: &str| name.strip_suffix(".gz").unwrap_or(&name).ends_with(ending);
    if table::has_header(start) {
        return Format::Csv;
    }
    if mime == "text/csv" || mime == "text/tab-separated-values" || ends(".csv") || ends(".tsv") {
        return Format::Csv;
    }
    Format::Text
}
