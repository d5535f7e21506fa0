//! Submitted text and files, turned into URLs with what is known of them.
//!
//! Whatever the format, the rule is the same: every `http` or `https` URL the input means comes out, once for each time
//! it stands there, with its title, tags, date and folder; what looks like a link and is none is named with a code; and
//! a fault costs what is faulty, not what comes before or after it.

mod dates;
mod detect;
mod feed;
mod gzip;
mod json;
mod links;
mod netscape;
mod plain;
mod sink;
mod table;
mod xml;

pub use dates::{parse_date, parse_timestamp};
pub use detect::detect;

use crate::charset;
use crate::codes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sink::Sink;
use url::Url;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// URLs anywhere in text; one a line with `#` comments; Markdown.
    Text,
    /// The bookmark file of every browser.
    Netscape,
    /// A page of links, Pocket's and Instapaper's HTML exports among them.
    Html,
    /// Rows with a URL column: Pocket, Instapaper, Raindrop, ...
    Csv,
    /// Any JSON with objects that have a URL: Pinboard, wallabag, Omnivore, Pocket's API, Firefox and Chrome backups,
    /// JSON Feed.
    Json,
    /// One JSON value a line.
    JsonLines,
    /// RSS 0.9 to 2.0, RDF, Atom.
    Feed,
    /// Subscription lists.
    Opml,
    /// A sitemap or an index of sitemaps.
    Sitemap,
    /// Pinboard's and Delicious's XML, XBEL, and any XML with links in it.
    Xml,
}

impl std::str::FromStr for Format {
    type Err = String;

    /// Names as users write them.
    fn from_str(s: &str) -> Result<Format, String> {
        Ok(match s.trim().to_ascii_lowercase().as_str() {
            "text" | "txt" | "plain" | "url_list" | "urls" | "markdown" | "md" => Format::Text,
            "netscape" | "bookmarks" => Format::Netscape,
            "html" | "pocket_html" | "instapaper_html" => Format::Html,
            "csv" | "tsv" | "pocket_csv" | "pocket" | "instapaper" | "raindrop" => Format::Csv,
            "json" | "pinboard" | "pinboard_json" | "wallabag" | "omnivore" | "json_feed" | "jsonfeed" => Format::Json,
            "jsonl" | "json_lines" | "ndjson" => Format::JsonLines,
            "feed" | "rss" | "atom" | "rdf" => Format::Feed,
            "opml" => Format::Opml,
            "sitemap" => Format::Sitemap,
            "xml" | "xbel" | "pinboard_xml" => Format::Xml,
            other => return Err(format!("unknown input format `{other}`")),
        })
    }
}

/// What is known of the input beside its bytes. All of it is optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hint<'a> {
    /// The format, if the user said so; otherwise it is told from the bytes.
    pub format: Option<Format>,
    /// The `Content-Type` it came with.
    pub content_type: Option<&'a str>,
    /// Its file name; only the ending matters.
    pub file_name: Option<&'a str>,
    /// What relative links are resolved against: where the input was fetched from.
    pub base: Option<&'a Url>,
}

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most URLs.
    pub max_urls: usize,
    /// The most nested lists (sitemaps of an index).
    pub max_nested: usize,
    /// The most bytes of input.
    pub max_bytes: usize,
    /// The most bytes after decompression.
    pub max_decompressed: usize,
    /// The most rejected links that are named; more are counted.
    pub max_rejected: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_urls: 1_000_000,
            max_nested: 50_000,
            max_bytes: 256 << 20,
            max_decompressed: 512 << 20,
            max_rejected: 1_000,
        }
    }
}

/// One URL of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InputUrl {
    /// Absolute, `http` or `https`, WHATWG-serialised, with its fragment and without user name and password.
    pub url: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its tags, in order, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When it was saved; for feeds, when it was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_at: Option<DateTime<Utc>>,
    /// A note or summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The folders it lies in, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folder: Vec<String>,
    /// What kind of link of its entry it is, where the format tells (`alternate`, `enclosure`, `edit`, ...).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rel: Option<String>,
    /// The line of the input it stands on, from 1, where the format has lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// Something that looks like a link and cannot be archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejected {
    /// What stands there, at most 200 bytes of it.
    pub text: String,
    /// One of [`crate::codes`].
    pub code: String,
    /// For people.
    pub reason: String,
    /// The line, from 1, where the format has lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// A list named by this list, to be fetched and read in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nested {
    /// Absolute.
    pub url: String,
    /// What it should be.
    pub format: Format,
    /// When it last changed, if the list says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<DateTime<Utc>>,
}

/// What an input holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedInput {
    /// The format it was read as.
    pub format: Format,
    /// Its URLs, in order. The same URL may be there more than once; see [`collapse`].
    pub urls: Vec<InputUrl>,
    /// Lists it names.
    pub nested: Vec<Nested>,
    /// What was refused, the first so many.
    pub rejected: Vec<Rejected>,
    /// How many were refused.
    pub rejected_total: usize,
    /// Why not all of it was read, if so: one of [`crate::codes`].
    pub incomplete: Option<String>,
}

/// Reads an input. It never fails: what cannot be read is in `rejected` or `incomplete`.
pub fn parse(bytes: &[u8], hint: &Hint<'_>, limits: &Limits) -> ParsedInput {
    let mut faults: Vec<&'static str> = Vec::new();
    let mut bytes = bytes;
    if bytes.len() > limits.max_bytes {
        bytes = bytes.get(..limits.max_bytes).unwrap_or(bytes);
        faults.push(codes::INPUT_TOO_LARGE);
    }
    let unpacked = gzip::unpack(bytes, limits.max_decompressed);
    faults.extend(unpacked.fault);
    let bytes = unpacked.bytes.as_ref();
    if detect::is_binary(bytes) {
        let mut sink = Sink::new(hint.base, limits, "");
        sink.reject("", codes::UNSUPPORTED_INPUT, "this is no text: give a list, a bookmark export, a feed or a page");
        return sink.finish(hint.format.unwrap_or(Format::Text), faults.first().copied());
    }
    let decoded = charset::decode(bytes, hint.content_type.filter(|_| !unpacked.was_packed));
    let text = decoded.text.as_ref();
    let format = hint.format.unwrap_or_else(|| detect(text, hint));
    let mut sink = Sink::new(hint.base, limits, text);
    let format = read(text, format, hint, &mut sink);
    sink.finish(format, faults.first().copied())
}

/// Reads the text in its format, and says which it was in the end.
fn read(text: &str, format: Format, hint: &Hint<'_>, sink: &mut Sink<'_>) -> Format {
    match format {
        Format::Text => plain::read(text, sink),
        Format::Netscape => netscape::read(text, sink),
        Format::Html => links::read(text, sink),
        Format::Csv => table::read(text, sink),
        Format::Json | Format::JsonLines => {
            let format = json::read(text, format, sink);
            // `[title](https://...)` begins like JSON.
            if hint.format.is_none() && sink.is_empty() {
                sink.forget_faults();
                plain::read(text, sink);
                return if sink.is_empty() { format } else { Format::Text };
            }
            return format;
        }
        Format::Feed => feed::read(text, sink),
        Format::Opml => xml::opml(text, sink),
        Format::Sitemap if !text.trim_start().starts_with('<') => plain::read(text, sink),
        Format::Sitemap => xml::sitemap(text, sink),
        Format::Xml => xml::bookmarks(text, sink),
    }
    format
}

/// Makes each page one entry, the first; what it lacks is taken from the later ones, and tags are united.
pub fn collapse(urls: Vec<InputUrl>, keep_fragments: bool) -> Vec<InputUrl> {
    let mut at: std::collections::HashMap<String, usize> = std::collections::HashMap::with_capacity(urls.len());
    let mut out: Vec<InputUrl> = Vec::with_capacity(urls.len());
    for url in urls {
        let identity = match Url::parse(&url.url) {
            Ok(parsed) => crate::urls::identity(&parsed, keep_fragments).to_owned(),
            Err(_) => url.url.clone(),
        };
        let index = *at.entry(identity).or_insert(out.len());
        let Some(first) = out.get_mut(index) else {
            out.push(url);
            continue;
        };
        first.title = first.title.take().or(url.title);
        first.description = first.description.take().or(url.description);
        first.added_at = match (first.added_at, url.added_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        for tag in url.tags {
            if !first.tags.contains(&tag) {
                first.tags.push(tag);
            }
        }
        if first.folder.is_empty() {
            first.folder = url.folder;
        }
    }
    out
}
