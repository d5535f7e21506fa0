//! The Netscape bookmark file: what every browser and bookmark service exports. There is no standard; what is read here
//! is what they write, nested lists that are never closed and unquoted attributes included.

use super::dates::parse_date;
use super::sink::{Item, Sink};
use crate::text::flow::{collapsed, push_collapsed};
use crate::tokens::{TextKind, Token, Tokenizer, decode_text};

const MAX_TEXT: usize = 16 << 10;
const MAX_DEPTH: usize = 64;

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let mut reader = Reader { tokens: Tokenizer::html(text), ..Reader::default() };
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

/// What the text that comes belongs to.
#[derive(Default, PartialEq, Clone, Copy)]
enum Place {
    #[default]
    Nowhere,
    Folder,
    Title,
    Description,
}

struct Reader<'a> {
    tokens: Tokenizer<'a>,
    place: Place,
    buffer: String,
    /// The names of the lists that are open; lists without a heading have none.
    folders: Vec<Option<String>>,
    /// The heading whose list has not begun.
    heading: Option<String>,
    /// A bookmark whose description may follow.
    pending: Option<(String, Item)>,
    /// How many lists were opened beyond [`MAX_DEPTH`].
    too_deep: usize,
}

impl Default for Reader<'_> {
    fn default() -> Self {
        Reader {
            tokens: Tokenizer::html(""),
            place: Place::Nowhere,
            buffer: String::new(),
            folders: Vec::new(),
            heading: None,
            pending: None,
            too_deep: 0,
        }
    }
}

impl Reader<'_> {
    fn start(&mut self, name: &str, sink: &mut Sink<'_>) {
        match name {
            "a" => self.anchor(sink),
            "h3" => {
                self.flush(sink);
                self.place = Place::Folder;
            }
            "dl" => {
                self.flush(sink);
                if self.folders.len() < MAX_DEPTH {
                    self.folders.push(self.heading.take());
                } else {
                    self.too_deep += 1;
                }
            }
            "dt" | "h1" | "hr" => self.flush(sink),
            "dd" => {
                self.close_text();
                if self.pending.is_some() {
                    self.place = Place::Description;
                }
            }
            "br" | "p" | "div" | "li" if self.place == Place::Description => self.buffer.push('\n'),
            _ => {}
        }
    }

    fn anchor(&mut self, sink: &mut Sink<'_>) {
        let date =
            ["add_date", "time_added", "date_added"].iter().find_map(|name| parse_date(&self.tokens.attr(name)?));
        let Some(href) = self.tokens.attr("href") else { return };
        // A link within a description is part of it.
        if self.place == Place::Description && self.tokens.attr_raw("add_date").is_none() {
            return;
        }
        self.flush(sink);
        let tags = ["tags", "labels"]
            .iter()
            .find_map(|name| self.tokens.attr(name))
            .map(|tags| split_tags(&tags))
            .unwrap_or_default();
        let item = Item {
            tags,
            description: self.tokens.attr("description").map(String::from),
            added_at: date.or_else(|| parse_date(&self.tokens.attr("last_modified")?)),
            folder: self.folders.iter().flatten().cloned().collect(),
            offset: Some(self.tokens.span().start),
            ..Item::default()
        };
        self.pending = Some((href.into_owned(), item));
        self.place = Place::Title;
    }

    fn end(&mut self, name: &str, sink: &mut Sink<'_>) {
        match name {
            "a" if self.place == Place::Title => self.close_text(),
            "h3" if self.place == Place::Folder => self.close_text(),
            "dl" => {
                self.flush(sink);
                if self.too_deep > 0 {
                    self.too_deep -= 1;
                } else {
                    self.folders.pop();
                }
                self.heading = None;
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, kind: TextKind) {
        let room = MAX_TEXT.saturating_sub(self.buffer.len());
        if room == 0 {
            return;
        }
        let text = if kind.has_entities() { decode_text(text) } else { text.into() };
        match self.place {
            Place::Nowhere => {}
            Place::Folder | Place::Title => push_collapsed(&mut self.buffer, &text, MAX_TEXT),
            Place::Description => self.buffer.push_str(crate::search_text::cut(&text, room)),
        }
    }

    /// The text that was being read is complete.
    fn close_text(&mut self) {
        let text = std::mem::take(&mut self.buffer);
        match self.place {
            Place::Nowhere => {}
            Place::Folder => self.heading = collapsed(&text, MAX_TEXT),
            Place::Title => {
                if let Some((_, item)) = &mut self.pending {
                    item.title = collapsed(&text, MAX_TEXT);
                }
            }
            Place::Description => {
                if let Some((_, item)) = &mut self.pending {
                    item.description = Some(text).filter(|t| !t.trim().is_empty()).or(item.description.take());
                }
            }
        }
        self.place = Place::Nowhere;
    }

    fn flush(&mut self, sink: &mut Sink<'_>) {
        self.close_text();
        if let Some((href, item)) = self.pending.take() {
            sink.add(&href, item);
        }
    }
}

/// With commas where there are any, else with spaces.
fn split_tags(tags: &str) -> Vec<String> {
    let separators: &[char] = if tags.contains(',') { &[','] } else { &[' ', '\t', '\n'] };
    tags.split(separators).map(str::to_owned).collect()
}
