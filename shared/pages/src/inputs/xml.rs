//! Lists in XML that are no feeds: OPML, sitemaps, XBEL, and the posts of Delicious and Pinboard.

use super::Format;
use super::dates::parse_date;
use super::sink::{Item, Sink};
use crate::text::flow::collapsed;
use crate::tokens::{Tag, TextKind, Token, Tokenizer, decode_text};
use chrono::{DateTime, Utc};

const MAX_TEXT: usize = 70_000;
const MAX_DEPTH: usize = 64;

/// Reads a subscription list. A subscription gives its site and its feed; outlines without either are folders.
pub(super) fn opml(text: &str, sink: &mut Sink<'_>) {
    let mut tokens = Tokenizer::xml(text);
    // The folder of each open outline, if it is one.
    let mut open: Vec<Option<String>> = Vec::new();
    while let Some(token) = tokens.next() {
        if sink.is_full() {
            return;
        }
        match token {
            Token::Start(tag) if tag.name.as_str() == "outline" => {
                let folder: Vec<String> = open.iter().flatten().cloned().collect();
                let found = outline(&tokens, folder, sink);
                if !tag.self_closing && open.len() < MAX_DEPTH {
                    let name = tokens.attr("title").or_else(|| tokens.attr("text")).filter(|_| !found);
                    open.push(name.map(String::from));
                }
            }
            Token::End(tag) if tag.name.as_str() == "outline" => {
                open.pop();
            }
            _ => {}
        }
    }
}

fn outline(tokens: &Tokenizer<'_>, folder: Vec<String>, sink: &mut Sink<'_>) -> bool {
    let offset = tokens.span().start;
    let is = |kind: &str| tokens.attr("type").is_some_and(|t| t.trim().eq_ignore_ascii_case(kind));
    let item = Item {
        title: tokens.attr("title").filter(|t| !t.trim().is_empty()).or_else(|| tokens.attr("text")).map(String::from),
        tags: tokens.attr("category").map(|c| super::table::split_tags(&c)).unwrap_or_default(),
        added_at: tokens.attr("created").and_then(|date| parse_date(&date)),
        description: tokens.attr("description").map(String::from),
        folder,
        offset: Some(offset),
        ..Item::default()
    };
    let mut found = false;
    for (attr, rel) in [("htmlurl", "alternate"), ("url", "alternate"), ("xmlurl", "feed")] {
        let Some(href) = tokens.attr(attr).filter(|href| !href.trim().is_empty()) else { continue };
        found = true;
        if attr == "url" && is("include") {
            sink.nest(&href, Format::Opml, None, offset);
        } else {
            sink.add(&href, Item { rel: Some(rel.to_owned()), ..item.clone() });
        }
    }
    found
}

/// Reads a sitemap or an index of them: every `loc`, whatever the namespace, CDATA or not. What images and videos a page
/// has is not asked.
pub(super) fn sitemap(text: &str, sink: &mut Sink<'_>) {
    let mut tokens = Tokenizer::xml(text);
    let mut in_index = false;
    let mut entry: Option<(String, Option<DateTime<Utc>>, usize)> = None;
    let mut field: Option<&'static str> = None;
    let mut buffer = String::new();
    while let Some(token) = tokens.next() {
        if sink.is_full() {
            return;
        }
        match token {
            Token::Start(tag) => {
                match tag.name.as_str() {
                    "sitemapindex" => in_index = true,
                    "urlset" => in_index = false,
                    name @ ("url" | "sitemap") => {
                        flush_sitemap(&mut entry, in_index, sink);
                        in_index = name == "sitemap" || (in_index && name != "url");
                    }
                    _ => {}
                }
                field = sitemap_field(&tag);
                buffer.clear();
            }
            Token::Text(text, kind) if field.is_some() => push_text(&mut buffer, text, kind),
            Token::End(tag) => {
                match field.take() {
                    Some("loc") if !buffer.trim().is_empty() => {
                        flush_sitemap(&mut entry, in_index, sink);
                        entry = Some((std::mem::take(&mut buffer), None, tokens.span().start));
                    }
                    Some("lastmod") => {
                        if let Some((_, date, _)) = &mut entry {
                            *date = parse_date(&buffer);
                        }
                    }
                    _ => {}
                }
                if matches!(tag.name.as_str(), "url" | "sitemap") {
                    flush_sitemap(&mut entry, in_index, sink);
                }
            }
            _ => {}
        }
    }
    if field == Some("loc") && !buffer.trim().is_empty() {
        // The file ends within its last entry, whose URL may be cut; what cannot be told from a whole one is kept.
        flush_sitemap(&mut entry, in_index, sink);
        entry = Some((buffer, None, text.len()));
    }
    flush_sitemap(&mut entry, in_index, sink);
}

fn sitemap_field(tag: &Tag<'_>) -> Option<&'static str> {
    let media = tag.raw.split_once(':').is_some_and(|(prefix, _)| {
        matches!(prefix.to_ascii_lowercase().as_str(), "image" | "video" | "news" | "mobile" | "xhtml" | "pagemap")
    });
    match tag.name.as_str() {
        _ if media => None,
        // Some leave `loc` out and write the URL straight into its parent.
        "loc" | "sitemap" | "url" => Some("loc"),
        "lastmod" => Some("lastmod"),
        _ => None,
    }
}

fn flush_sitemap(entry: &mut Option<(String, Option<DateTime<Utc>>, usize)>, in_index: bool, sink: &mut Sink<'_>) {
    let Some((loc, date, offset)) = entry.take() else { return };
    let loc: String = loc.split_whitespace().collect();
    if in_index {
        sink.nest(&loc, Format::Sitemap, date, offset);
    } else {
        sink.add(&loc, Item { offset: Some(offset), ..Item::default() });
    }
}

fn push_text(buffer: &mut String, text: &str, kind: TextKind) {
    let text = if kind.has_entities() { decode_text(text) } else { text.into() };
    let room = MAX_TEXT.saturating_sub(buffer.len());
    buffer.push_str(crate::search_text::cut(&text, room));
}

/// Reads `<post href=... tag=.../>` (Delicious, Pinboard), XBEL's `<bookmark href=...><title>`, and otherwise the `href`
/// of whatever has one.
pub(super) fn bookmarks(text: &str, sink: &mut Sink<'_>) {
    let mut reader = Bookmarks { tokens: Tokenizer::xml(text), folders: Vec::new(), pending: None, buffer: None };
    while let Some(token) = reader.tokens.next() {
        if sink.is_full() {
            return;
        }
        match token {
            Token::Start(tag) => reader.start(&tag, sink),
            Token::End(tag) => reader.end(tag.name.as_str(), sink),
            Token::Text(text, kind) => {
                if let Some(buffer) = &mut reader.buffer {
                    push_text(buffer, text, kind);
                }
            }
            _ => {}
        }
    }
    reader.flush(sink);
}

struct Bookmarks<'a> {
    tokens: Tokenizer<'a>,
    folders: Vec<Option<String>>,
    pending: Option<(String, Item)>,
    buffer: Option<String>,
}

impl Bookmarks<'_> {
    fn start(&mut self, tag: &Tag<'_>, sink: &mut Sink<'_>) {
        let name = tag.name.as_str();
        match name {
            "folder" => {
                self.flush(sink);
                if !tag.self_closing && self.folders.len() < MAX_DEPTH {
                    self.folders.push(None);
                }
            }
            "title" | "desc" => self.buffer = Some(String::new()),
            _ => self.bookmark(sink),
        }
        if tag.self_closing {
            self.end(name, sink);
        }
    }

    fn bookmark(&mut self, sink: &mut Sink<'_>) {
        let text = |name: &str| self.tokens.attr(name).map(String::from).filter(|t| !t.trim().is_empty());
        let Some(href) = text("href") else { return };
        let date =
            ["time", "added", "add_date", "created"].iter().find_map(|name| parse_date(&self.tokens.attr(name)?));
        let tags = text("tag").map(|tags| tags.split_whitespace().map(str::to_owned).collect());
        let item = Item {
            title: text("description").or_else(|| text("title")),
            tags: tags.or_else(|| text("tags").map(|t| super::table::split_tags(&t))).unwrap_or_default(),
            added_at: date,
            description: text("extended"),
            folder: self.folders.iter().flatten().cloned().collect(),
            offset: Some(self.tokens.span().start),
            ..Item::default()
        };
        self.flush(sink);
        self.pending = Some((href, item));
    }

    fn end(&mut self, name: &str, sink: &mut Sink<'_>) {
        match name {
            "title" | "desc" => {
                let text = self.buffer.take().and_then(|text| collapsed(&text, MAX_TEXT));
                match (&mut self.pending, self.folders.last_mut()) {
                    (Some((_, item)), _) if name == "title" => item.title = item.title.take().or(text),
                    (Some((_, item)), _) => item.description = item.description.take().or(text),
                    (None, Some(folder)) if name == "title" => *folder = text,
                    _ => {}
                }
            }
            "folder" => {
                self.flush(sink);
                self.folders.pop();
            }
            "bookmark" | "post" => self.flush(sink),
            _ => {}
        }
    }

    fn flush(&mut self, sink: &mut Sink<'_>) {
        if let Some((href, item)) = self.pending.take() {
            sink.add(&href, item);
        }
    }
}
