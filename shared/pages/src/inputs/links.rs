//! A page of links, and the HTML exports of read-later services, which are pages of links with more attributes.

use super::dates::parse_date;
use super::sink::{Item, Sink};
use crate::html::document_base;
use crate::text::flow::{collapsed, push_collapsed};
use crate::tokens::{TextKind, Token, Tokenizer, decode_text};
use crate::urls::Url;

const MAX_TEXT: usize = 2_048;

/// Reads every `a[href]` and `area[href]`. Links that lead to no page (`mailto:`, `javascript:`, `#top`) are no faults of
/// a page, so they are passed over; relative links without a base are.
pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    apply_base(text, sink);
    let mut reader = Reader {
        tokens: Tokenizer::html(text),
        export: is_export(text),
        open: None,
        heading: None,
        in_heading: false,
        buffer: String::new(),
    };
    while let Some(token) = reader.tokens.next() {
        if sink.is_full() {
            return;
        }
        match token {
            Token::Start(tag) => reader.start(tag.name.as_str(), sink),
            Token::End(tag) => reader.end(tag.name.as_str(), sink),
            Token::Text(text, kind) => reader.text(text, kind),
            _ => {}
        }
    }
    reader.flush(sink);
}

/// Pocket and Instapaper put what is unread under one heading and what is read under another.
fn is_export(text: &str) -> bool {
    let head = crate::search_text::cut(text, 4_096).to_ascii_lowercase();
    head.contains("time_added=") || head.contains("<title>pocket export") || head.contains("<title>instapaper")
}

fn apply_base(text: &str, sink: &mut Sink<'_>) {
    // Without an address of its own a page may still name one.
    let nowhere = Url::parse("http://invalid/").ok();
    let Some(url) = sink.base.as_ref().or(nowhere.as_ref()) else { return };
    let base = document_base(text, url);
    if Some(&base) != nowhere.as_ref() && base.host_str() != Some("invalid") {
        sink.base = Some(base);
    }
}

struct Reader<'a> {
    tokens: Tokenizer<'a>,
    export: bool,
    open: Option<(String, Item)>,
    heading: Option<String>,
    in_heading: bool,
    buffer: String,
}

impl Reader<'_> {
    fn start(&mut self, name: &str, sink: &mut Sink<'_>) {
        match name {
            "a" | "area" => {
                self.flush(sink);
                self.anchor();
                if name == "area" {
                    self.flush(sink);
                }
            }
            "h1" | "h2" if self.export => {
                self.flush(sink);
                self.in_heading = true;
            }
            "img" if self.open.is_some() && self.buffer.is_empty() => {
                if let Some(alt) = self.tokens.attr("alt") {
                    push_collapsed(&mut self.buffer, &alt, MAX_TEXT);
                }
            }
            _ => {}
        }
    }

    fn anchor(&mut self) {
        let Some(href) = self.tokens.attr("href") else { return };
        let date = ["time_added", "add_date", "data-date"].iter().find_map(|name| parse_date(&self.tokens.attr(name)?));
        let tags =
            self.tokens.attr("tags").map(|tags| tags.split(',').map(str::to_owned).collect()).unwrap_or_default();
        let title = self.tokens.attr("title").or_else(|| self.tokens.attr("alt")).map(String::from);
        let item = Item {
            title,
            tags,
            added_at: date,
            folder: self.heading.clone().into_iter().collect(),
            offset: Some(self.tokens.span().start),
            ..Item::default()
        };
        self.open = Some((href.into_owned(), item));
    }

    fn end(&mut self, name: &str, sink: &mut Sink<'_>) {
        match name {
            "a" => self.flush(sink),
            "h1" | "h2" if self.in_heading => {
                self.in_heading = false;
                self.heading = collapsed(&std::mem::take(&mut self.buffer), MAX_TEXT);
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, kind: TextKind) {
        if (self.open.is_some() || self.in_heading) && kind != TextKind::Raw {
            push_collapsed(&mut self.buffer, &decode_text(text), MAX_TEXT);
        }
    }

    fn flush(&mut self, sink: &mut Sink<'_>) {
        let text = collapsed(&std::mem::take(&mut self.buffer), MAX_TEXT);
        self.in_heading = false;
        let Some((href, mut item)) = self.open.take() else { return };
        item.title = text.or(item.title);
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || leads_to_no_page(href) {
            return;
        }
        sink.add(href, item);
    }
}

fn leads_to_no_page(href: &str) -> bool {
    href.split_once(':').is_some_and(|(scheme, _)| {
        matches!(
            scheme.to_ascii_lowercase().as_str(),
            "javascript" | "mailto" | "tel" | "data" | "about" | "blob" | "sms" | "callto" | "skype" | "whatsapp"
        )
    })
}
