//! The `parse_*_urls` extractors: which links a fetched document leads to, whatever it is.

use crate::html::{FactsOptions, LinkKind, Outlink, decode, page_facts};
use crate::inputs::{self, Format, Hint, Limits, ParsedInput};
use crate::sniff;
use std::borrow::Cow;
use url::Url;

/// What was fetched.
#[derive(Clone, Copy, Debug)]
pub struct Fetched<'a> {
    /// Its `Content-Type`, if there was one.
    pub content_type: Option<&'a str>,
    /// Its body, with content codings undone.
    pub bytes: &'a [u8],
    /// Where it came from in the end, after redirects.
    pub url: &'a Url,
}

/// An extractor: nothing when the document is not of its kind, and otherwise its links, absolute and each once.
pub type Extractor = fn(&Fetched<'_>) -> Option<Vec<Outlink>>;

/// All of them, under the names their results have.
pub const EXTRACTORS: [(&str, Extractor); 5] = [
    ("parse_html_urls", parse_html_urls),
    ("parse_txt_urls", parse_txt_urls),
    ("parse_rss_urls", parse_rss_urls),
    ("parse_netscape_urls", parse_netscape_urls),
    ("parse_jsonl_urls", parse_jsonl_urls),
];

/// The most links taken from one document.
pub const MAX_LINKS: usize = 20_000;

/// What the others look at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Page,
    Bookmarks,
    Feed,
    Json,
    Rows,
    Text,
    Other,
}

fn content(fetched: &Fetched<'_>) -> Content {
    let mime = sniff::sniff(fetched.bytes, fetched.content_type).mime;
    let head = fetched.bytes.get(..sniff::SNIFF_BYTES).unwrap_or(fetched.bytes);
    match mime.as_str() {
        "text/html" | "application/xhtml+xml" => {
            let netscape = memchr::memmem::find(&head.to_ascii_lowercase(), b"netscape-bookmark-file").is_some();
            if netscape { Content::Bookmarks } else { Content::Page }
        }
        "application/rss+xml" | "application/atom+xml" | "application/rdf+xml" | "text/x-opml" => Content::Feed,
        "application/xml" | "text/xml" => xml_content(head),
        "text/csv" | "text/tab-separated-values" => Content::Rows,
        "text/plain" | "text/markdown" | "text/x-markdown" => match head.trim_ascii_start().first() {
            Some(b'{' | b'[') => Content::Json,
            _ => Content::Text,
        },
        mime if mime == "application/json"
            || mime.ends_with("+json")
            || mime.contains("ndjson")
            || mime.contains("jsonl") =>
        {
            Content::Json
        }
        "application/gzip" if sitemap_name(fetched.url) => Content::Feed,
        _ => Content::Other,
    }
}

fn sitemap_name(url: &Url) -> bool {
    url.path().contains("sitemap") || url.path().ends_with(".xml.gz")
}

fn xml_content(head: &[u8]) -> Content {
    let text = String::from_utf8_lossy(head);
    match inputs::detect(&text, &Hint::default()) {
        Format::Feed | Format::Sitemap | Format::Opml | Format::Xml => Content::Feed,
        Format::Netscape => Content::Bookmarks,
        Format::Html => Content::Page,
        _ => Content::Other,
    }
}

/// Links of a page: every `a[href]` and `area[href]`, and where `meta refresh` leads.
pub fn parse_html_urls(fetched: &Fetched<'_>) -> Option<Vec<Outlink>> {
    if content(fetched) != Content::Page {
        return None;
    }
    let options = FactsOptions { max_text: 0, max_links: MAX_LINKS, resources: false };
    let text = decode(fetched.bytes, fetched.content_type);
    let facts = page_facts(&text.text, fetched.url, &options);
    Some(facts.links.into_iter().filter(|l| l.kind == LinkKind::Navigate || l.source == "refresh").collect())
}

/// URLs in text.
pub fn parse_txt_urls(fetched: &Fetched<'_>) -> Option<Vec<Outlink>> {
    (content(fetched) == Content::Text).then(|| read(fetched, Format::Text, "text"))
}

/// Entries of a feed, pages of a sitemap (and the sitemaps of an index), subscriptions of an OPML list.
pub fn parse_rss_urls(fetched: &Fetched<'_>) -> Option<Vec<Outlink>> {
    if content(fetched) != Content::Feed {
        return None;
    }
    let parsed = parse(fetched, None);
    Some(to_links(parsed, "feed"))
}

/// Bookmarks of a browser's export.
pub fn parse_netscape_urls(fetched: &Fetched<'_>) -> Option<Vec<Outlink>> {
    (content(fetched) == Content::Bookmarks).then(|| read(fetched, Format::Netscape, "bookmark"))
}

/// Bookmarks in JSON, in JSON lines and in rows.
pub fn parse_jsonl_urls(fetched: &Fetched<'_>) -> Option<Vec<Outlink>> {
    match content(fetched) {
        Content::Json => Some(to_links(parse(fetched, None), "json")),
        Content::Rows => Some(read(fetched, Format::Csv, "row")),
        _ => None,
    }
}

fn read(fetched: &Fetched<'_>, format: Format, source: &'static str) -> Vec<Outlink> {
    to_links(parse(fetched, Some(format)), source)
}

fn parse(fetched: &Fetched<'_>, format: Option<Format>) -> ParsedInput {
    let limits = Limits { max_urls: MAX_LINKS, max_nested: MAX_LINKS, max_rejected: 0, ..Limits::default() };
    let hint = Hint { format, content_type: fetched.content_type, base: Some(fetched.url), ..Hint::default() };
    inputs::parse(fetched.bytes, &hint, &limits)
}

fn to_links(parsed: ParsedInput, source: &'static str) -> Vec<Outlink> {
    let link = |url: String, text: Option<String>, rel: Option<String>| Outlink {
        url,
        kind: LinkKind::Navigate,
        source: Cow::Borrowed(source),
        rel,
        text,
        nofollow: false,
    };
    let mut seen = std::collections::HashSet::new();
    let mut out: Vec<Outlink> = Vec::with_capacity(parsed.urls.len());
    for url in parsed.urls {
        if seen.insert(url.url.clone()) {
            out.push(link(url.url, url.title, url.rel));
        }
    }
    for nested in parsed.nested {
        if seen.insert(nested.url.clone()) {
            out.push(link(nested.url, None, Some("sitemap".to_owned())));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_has_one_extractor() {
        let url = Url::parse("https://x.org/dir/doc").unwrap();
        let cases: &[(Option<&str>, &str, &str, &[&str])] = &[
            (
                Some("text/html"),
                "<a href=a>x</a><meta http-equiv=refresh content='0;url=b'><img src=no>",
                "parse_html_urls",
                &["https://x.org/dir/a", "https://x.org/dir/b"],
            ),
            (None, "<!doctype html><a href='/a'>x</a>", "parse_html_urls", &["https://x.org/a"]),
            (Some("text/plain"), "see https://y.org/a.", "parse_txt_urls", &["https://y.org/a"]),
            (
                Some("application/rss+xml"),
                "<rss><channel><item><link>/a</link></item></channel></rss>",
                "parse_rss_urls",
                &["https://x.org/a"],
            ),
            (
                Some("text/xml"),
                "<?xml version='1.0'?><feed><entry><link href='a'/></entry></feed>",
                "parse_rss_urls",
                &["https://x.org/dir/a"],
            ),
            (
                Some("application/xml"),
                "<?xml version='1.0'?><sitemapindex><sitemap><loc>https://x.org/s.xml</loc></sitemap></sitemapindex>",
                "parse_rss_urls",
                &["https://x.org/s.xml"],
            ),
            (
                Some("text/html"),
                "<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><DT><A HREF='https://y.org/'>y</A></DL>",
                "parse_netscape_urls",
                &["https://y.org/"],
            ),
            (Some("application/json"), "[{\"url\":\"https://y.org/\"}]", "parse_jsonl_urls", &["https://y.org/"]),
            (
                Some("application/x-ndjson"),
                "{\"url\":\"https://y.org/\"}\n{\"url\":\"https://y.org/\"}\n{\"url\":\"/z\"}",
                "parse_jsonl_urls",
                &["https://y.org/", "https://x.org/z"],
            ),
            (Some("text/csv"), "title,url\na,https://y.org/", "parse_jsonl_urls", &["https://y.org/"]),
            (Some("image/png"), "\u{89}PNG", "", &[]),
        ];
        for (content_type, body, name, expected) in cases {
            let fetched = Fetched { content_type: *content_type, bytes: body.as_bytes(), url: &url };
            let found: Vec<_> = EXTRACTORS.iter().filter_map(|(n, f)| f(&fetched).map(|links| (*n, links))).collect();
            let names: Vec<_> = found.iter().map(|(n, _)| *n).collect();
            assert_eq!(names, if name.is_empty() { vec![] } else { vec![*name] }, "{body}");
            let urls: Vec<_> = found.iter().flat_map(|(_, links)| links).map(|l| l.url.as_str()).collect();
            assert_eq!(urls, *expected, "{body}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>, content_type in "text/(html|plain|xml|csv)|application/json") {
            let url = Url::parse("https://x.org/").unwrap();
            for (_, extract) in EXTRACTORS {
                extract(&Fetched { content_type: Some(&content_type), bytes: &bytes, url: &url });
            }
        }
    }
}
