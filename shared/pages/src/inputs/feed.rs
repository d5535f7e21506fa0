//! RSS, RDF and Atom, read off the tokens: a feed that is not well formed, or says a namespace of its own, is read like
//! any other, as far as it goes.

use super::dates::parse_date;
use super::sink::{Item, Sink};
use crate::text::flow::collapsed;
use crate::text::html_to_text;
use crate::tokens::{Tag, TextKind, Token, Tokenizer, decode_text};
use chrono::{DateTime, Utc};
use url::Url;

const MAX_TEXT: usize = 16 << 10;
const MAX_LINKS: usize = 100;
const MAX_TAGS: usize = 200;

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let mut reader = Reader {
        tokens: Tokenizer::xml(text),
        levels: Vec::new(),
        outer_base: sink.base.clone(),
        own_base: None,
        entry: None,
        field: Field::None,
        buffer: String::new(),
    };
    while let Some(token) = reader.tokens.next() {
        if sink.is_full() {
            return;
        }
        match token {
            Token::Start(tag) => reader.start(&tag, sink),
            Token::End(tag) => reader.end(tag.raw, sink),
            Token::Text(text, kind) => reader.text(text, kind),
            _ => {}
        }
    }
    reader.close_entry(sink);
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Field {
    None,
    Title,
    Link,
    Id,
    Date,
    Tag,
    Summary,
    Content,
}

#[derive(Default)]
struct Entry {
    /// How deep its element is, to tell its own children.
    depth: usize,
    title: Option<String>,
    /// Absolute if they can be, with their `rel`.
    links: Vec<(String, Option<String>)>,
    /// `id` or `guid`, and the `rdf:about`: links of last resort.
    ids: Vec<String>,
    published: Option<DateTime<Utc>>,
    updated: Option<DateTime<Utc>>,
    tags: Vec<String>,
    summary: Option<String>,
    /// The links in its text, which count only where it has no other.
    in_text: Vec<String>,
    offset: usize,
}

struct Reader<'a> {
    tokens: Tokenizer<'a>,
    levels: Vec<Level<'a>>,
    outer_base: Option<Url>,
    /// What the feed says of its own address, for want of anything better.
    own_base: Option<Url>,
    entry: Option<Entry>,
    field: Field,
    buffer: String,
}

/// An open element.
struct Level<'a> {
    raw: &'a str,
    /// Where it changes the base (XML Base).
    base: Option<Url>,
}

const MAX_DEPTH: usize = 256;

impl<'a> Reader<'a> {
    fn base(&self) -> Option<&Url> {
        self.levels
            .iter()
            .rev()
            .find_map(|level| level.base.as_ref())
            .or(self.outer_base.as_ref())
            .or(self.own_base.as_ref())
    }

    fn absolute(&self, href: &str) -> String {
        let href = href.trim();
        self.base().and_then(|base| base.join(href).ok()).map_or_else(|| href.to_owned(), String::from)
    }

    fn push_level(&mut self, raw: &'a str) {
        if self.levels.len() >= MAX_DEPTH {
            return;
        }
        let base = self.tokens.attr("xml:base").and_then(|href| match self.base() {
            Some(base) => base.join(href.trim()).ok(),
            None => Url::parse(href.trim()).ok(),
        });
        self.levels.push(Level { raw, base });
    }

    fn start(&mut self, tag: &Tag<'a>, sink: &mut Sink<'_>) {
        let name = tag.name.as_str();
        if matches!(name, "item" | "entry") {
            self.close_entry(sink);
        }
        self.push_level(tag.raw);
        match name {
            "item" | "entry" => self.open_entry(),
            "link" if self.entry.is_some() => self.link(),
            "link" => self.feed_link(),
            "a" => self.content_link(),
            "enclosure" | "content" if self.entry.is_some() => self.enclosure(name),
            _ => {}
        }
        if self.is_own_child() {
            self.field(tag);
        }
        if tag.self_closing {
            self.end(tag.raw, sink);
        }
    }

    /// Elements within an entry's own content or source are not about the entry.
    fn is_own_child(&self) -> bool {
        self.entry.as_ref().is_some_and(|entry| self.levels.len() == entry.depth + 1)
    }

    fn open_entry(&mut self) {
        let about = self.tokens.attr("rdf:about").map(|about| self.absolute(&about));
        self.entry = Some(Entry {
            depth: self.levels.len(),
            ids: about.into_iter().collect(),
            offset: self.tokens.span().start,
            ..Entry::default()
        });
    }

    fn link(&mut self) {
        if !self.is_own_child() {
            return;
        }
        let Some(href) = self.tokens.attr("href") else { return };
        let rel = self.tokens.attr("rel").map(|rel| rel.trim().to_ascii_lowercase());
        let rel = rel.filter(|rel| !rel.is_empty()).unwrap_or_else(|| "alternate".to_owned());
        self.push_link(&href, Some(rel));
    }

    /// A link of the feed itself: where it is, or the site it belongs to.
    fn feed_link(&mut self) {
        match self.tokens.attr("href").and_then(|href| Url::parse(href.trim()).ok()) {
            Some(url) if self.tokens.attr("rel").is_some_and(|rel| rel.trim() == "self") => self.own_base = Some(url),
            Some(url) => self.own_base = self.own_base.take().or(Some(url)),
            None => {
                self.buffer.clear();
                self.field = Field::Link;
            }
        }
    }

    /// A link in an entry's text that is not escaped.
    fn content_link(&mut self) {
        if let Some(href) = self.tokens.attr("href") {
            let href = self.absolute(&href);
            if let Some(entry) = &mut self.entry
                && entry.in_text.len() < MAX_LINKS
            {
                entry.in_text.push(href);
            }
        }
    }

    fn enclosure(&mut self, name: &str) {
        // Atom's `content` has `src`; Media RSS's has `url`.
        let href = if name == "enclosure" { self.tokens.attr("url") } else { None };
        let href = href.or_else(|| self.tokens.attr("src").filter(|_| name == "content"));
        if let Some(href) = href
            && self.is_own_child()
        {
            let rel = if name == "content" { "alternate" } else { "enclosure" };
            self.push_link(&href, Some(rel.to_owned()));
        }
    }

    fn push_link(&mut self, href: &str, rel: Option<String>) {
        if href.trim().is_empty() {
            return;
        }
        let href = self.absolute(href);
        if let Some(entry) = &mut self.entry
            && entry.links.len() < MAX_LINKS
            && !entry.links.iter().any(|(known, _)| *known == href)
        {
            entry.links.push((href, rel));
        }
    }

    fn field(&mut self, tag: &Tag<'_>) {
        self.buffer.clear();
        // `media:title`, `itunes:summary` and the like repeat what the plain element says.
        let prefix = tag.raw.split_once(':').map_or("", |(prefix, _)| prefix);
        self.field = match tag.name.as_str() {
            "title" if prefix != "media" && prefix != "itunes" => Field::Title,
            "link" => Field::Link,
            "origlink" => Field::Link,
            "id" => Field::Id,
            "guid" => {
                let permanent = self.tokens.attr("ispermalink").is_none_or(|v| !v.trim().eq_ignore_ascii_case("false"));
                if permanent { Field::Id } else { Field::None }
            }
            "pubdate" | "published" | "updated" | "issued" | "modified" | "date" | "created" => Field::Date,
            "category" | "subject" => {
                if let Some(term) = self.tokens.attr("term") {
                    self.push_tag(&term);
                }
                Field::Tag
            }
            "description" | "summary" if prefix != "media" && prefix != "itunes" => Field::Summary,
            "content" | "encoded" if prefix != "media" => Field::Content,
            _ => Field::None,
        };
    }

    fn push_tag(&mut self, tag: &str) {
        let tag = collapsed(tag, 255);
        if let Some(entry) = &mut self.entry
            && entry.tags.len() < MAX_TAGS
        {
            entry.tags.extend(tag);
        }
    }

    fn text(&mut self, text: &str, kind: TextKind) {
        if self.field == Field::None || self.buffer.len() >= MAX_TEXT {
            return;
        }
        let text = if kind.has_entities() { decode_text(text) } else { text.into() };
        let room = MAX_TEXT - self.buffer.len();
        self.buffer.push_str(crate::search_text::cut(&text, room));
    }

    fn end(&mut self, raw: &str, sink: &mut Sink<'_>) {
        // HTML that was not escaped leaves elements open and closes what was never opened.
        let Some(at) = self.levels.iter().rposition(|level| level.raw.eq_ignore_ascii_case(raw)) else { return };
        let entry_depth = self.entry.as_ref().map(|entry| entry.depth);
        if entry_depth.is_some_and(|depth| at == depth) {
            self.close_field(crate::tokens::Name::local(raw).as_str());
        } else if self.entry.is_none() && self.field == Field::Link {
            self.field = Field::None;
            let url = Url::parse(std::mem::take(&mut self.buffer).trim()).ok();
            self.own_base = self.own_base.take().or(url);
        }
        if entry_depth.is_some_and(|depth| at < depth) {
            self.close_entry(sink);
        }
        self.levels.truncate(at);
    }

    fn close_field(&mut self, name: &str) {
        let field = std::mem::replace(&mut self.field, Field::None);
        let text = std::mem::take(&mut self.buffer);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match field {
            Field::Link => self.push_link(text, Some("alternate".to_owned())),
            Field::Tag => self.push_tag(text),
            Field::Id => {
                // An identifier may be any URI; only one that could be fetched may stand in for a link.
                let id = Url::parse(text).ok().filter(|u| matches!(u.scheme(), "http" | "https")).map(String::from);
                if let Some(entry) = &mut self.entry {
                    entry.ids.extend(id);
                }
            }
            Field::Content => self.links_in(text),
            Field::Title | Field::Date | Field::Summary => self.set(field, name, text),
            Field::None => {}
        }
    }

    /// The links in HTML that was escaped.
    fn links_in(&mut self, text: &str) {
        let mut tokens = Tokenizer::html(text);
        let mut found: Vec<String> = Vec::new();
        while let Some(token) = tokens.next() {
            if let Token::Start(tag) = token
                && tag.name.as_str() == "a"
                && let Some(href) = tokens.attr("href")
                && found.len() < MAX_LINKS
            {
                found.push(self.absolute(&href));
            }
        }
        if let Some(entry) = &mut self.entry {
            entry.in_text.extend(found);
        }
    }

    fn set(&mut self, field: Field, name: &str, text: &str) {
        if field == Field::Summary && text.contains('<') {
            self.links_in(text);
        }
        let Some(entry) = &mut self.entry else { return };
        match field {
            // Titles and summaries may be HTML.
            Field::Title if entry.title.is_none() => entry.title = collapsed(&plain(text), MAX_TEXT),
            Field::Summary if entry.summary.is_none() => entry.summary = Some(plain(text)),
            Field::Date => {
                let date = parse_date(text);
                let slot =
                    if matches!(name, "updated" | "modified") { &mut entry.updated } else { &mut entry.published };
                *slot = slot.or(date);
            }
            _ => {}
        }
    }

    fn close_entry(&mut self, sink: &mut Sink<'_>) {
        self.field = Field::None;
        let Some(mut entry) = self.entry.take() else { return };
        self.levels.truncate(entry.depth.saturating_sub(1));
        if entry.links.is_empty() {
            // A permanent link that is only given as the identifier.
            entry.links.extend(entry.ids.into_iter().next().map(|id| (id, None)));
        }
        if entry.links.is_empty() {
            let links = entry.in_text.into_iter().filter(|href| href.starts_with("http"));
            entry.links.extend(links.map(|href| (href, Some("content".to_owned()))));
        }
        // The page first, then what belongs to it.
        entry.links.sort_by_key(|(_, rel)| rel.as_deref().is_some_and(|rel| rel != "alternate"));
        for (href, rel) in entry.links {
            let item = Item {
                title: entry.title.clone(),
                tags: entry.tags.clone(),
                added_at: entry.published.or(entry.updated),
                description: entry.summary.clone(),
                rel,
                offset: Some(entry.offset),
                folder: Vec::new(),
            };
            sink.add(&href, item);
        }
    }
}

fn plain(text: &str) -> String {
    if text.contains(['<', '&']) { html_to_text(text, MAX_TEXT).0 } else { text.to_owned() }
}
