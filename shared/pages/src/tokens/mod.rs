//! A pull tokenizer for HTML (WHATWG HTML, section 13.2.5) and, in its second mode, for XML that need not be
//! well formed.
//!
//! Everything in this crate that reads markup reads it through here, once, without building a tree: nothing grows with
//! the nesting of the page, and nothing is copied unless an entity has to be decoded. The HTML rules are the
//! standard's, with two decisions of ours: `noscript` and `noframes` are read as markup (an archive wants the links in
//! them), and declarations of entities are never expanded (so there is no entity bomb).

mod attrs;
mod entities;
mod name;
mod raw_text;

pub use attrs::Attr;
pub use entities::{decode_attr, decode_attr_into, decode_text, decode_text_into};
pub use name::Name;

use attrs::AttrSpan;
use std::ops::Range;

/// What a stretch of text is made of, which decides whether entities are decoded in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Ordinary text: entities are decoded.
    Data,
    /// `title`, `textarea`: entities are decoded, tags are not.
    RcData,
    /// `style`, `script`, `xmp`, `iframe`, `noembed`, `plaintext`: taken literally.
    Raw,
    /// A CDATA section: taken literally.
    Cdata,
}

impl TextKind {
    /// Whether `&amp;` in such text stands for `&`.
    pub fn has_entities(self) -> bool {
        matches!(self, TextKind::Data | TextKind::RcData)
    }
}

/// A start or end tag. Its attributes are read from the tokenizer that returned it, before the next token.
#[derive(Clone, Copy, Debug)]
pub struct Tag<'a> {
    /// The name as written, with its prefix and case.
    pub raw: &'a str,
    /// The name to compare with: lower case, in XML mode without the namespace prefix.
    pub name: Name,
    /// `<br/>`.
    pub self_closing: bool,
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub enum Token<'a> {
    /// `<a href=x>`
    Start(Tag<'a>),
    /// `</a>`
    End(Tag<'a>),
    /// Text as written; see [`TextKind`] for whether to decode entities.
    Text(&'a str, TextKind),
    /// The inside of a comment (or what HTML reads as one).
    Comment(&'a str),
    /// The inside of `<!DOCTYPE ...>`.
    Doctype(&'a str),
    /// The inside of `<?...?>`, XML mode only.
    Instruction(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Markup,
    RcData,
    RawText,
    Script,
    PlainText,
}

/// The tokenizer: a cursor over the text, an iterator of [`Token`]s.
#[derive(Debug)]
pub struct Tokenizer<'a> {
    src: &'a str,
    pos: usize,
    token_start: usize,
    xml: bool,
    raw: Mode,
    raw_name: Name,
    /// Open `svg` and `math` elements: inside, `style` and `title` are ordinary elements and CDATA exists.
    foreign: u32,
    attrs: Vec<AttrSpan>,
}

const SPACE: [u8; 5] = [b'\t', b'\n', 0x0C, b'\r', b' '];

fn is_space(b: u8) -> bool {
    SPACE.contains(&b)
}

impl<'a> Tokenizer<'a> {
    /// Reads HTML.
    pub fn html(src: &'a str) -> Self {
        Tokenizer {
            src,
            pos: 0,
            token_start: 0,
            xml: false,
            raw: Mode::Markup,
            raw_name: Name::default(),
            foreign: 0,
            attrs: Vec::new(),
        }
    }

    /// Reads XML, or what claims to be: end tags that match nothing, bare `&` and a missing root are all let pass.
    pub fn xml(src: &'a str) -> Self {
        Tokenizer { xml: true, ..Tokenizer::html(src) }
    }

    /// Where in the source the last token was.
    pub fn span(&self) -> Range<usize> {
        self.token_start..self.pos
    }

    /// Whether the last token was within `svg` or `math`, their own start tags included.
    pub fn in_foreign(&self) -> bool {
        self.foreign > 0
    }

    /// The attributes of the last start tag, first of each name only.
    pub fn attrs(&self) -> impl Iterator<Item = Attr<'a>> + '_ {
        let src = self.src;
        self.attrs.iter().map(move |span| span.of(src))
    }

    /// The value of one attribute of the last start tag, as written. `name` is lower case. In XML mode the prefix
    /// counts (`xml:base`).
    pub fn attr_raw(&self, name: &str) -> Option<&'a str> {
        self.attrs().find(|a| a.name.eq_ignore_ascii_case(name)).map(|a| a.raw_value)
    }

    /// The value of one attribute of the last start tag, with entities decoded.
    pub fn attr(&self, name: &str) -> Option<std::borrow::Cow<'a, str>> {
        self.attr_raw(name).map(decode_attr)
    }

    fn bytes(&self) -> &'a [u8] {
        self.src.as_bytes()
    }

    fn at(&self, pos: usize) -> Option<u8> {
        self.bytes().get(pos).copied()
    }

    fn rest(&self, from: usize) -> &'a [u8] {
        self.bytes().get(from..).unwrap_or_default()
    }

    fn starts_with_ignore_case(&self, from: usize, what: &[u8]) -> bool {
        self.rest(from).get(..what.len()).is_some_and(|s| s.eq_ignore_ascii_case(what))
    }

    /// Whether markup of any kind begins at `pos`, which holds a `<`.
    fn opens_markup(&self, pos: usize) -> bool {
        match self.at(pos + 1) {
            Some(b'!' | b'?') => true,
            Some(b'/') => self.at(pos + 2).is_some(),
            Some(b) => self.starts_name(b),
            None => false,
        }
    }

    fn starts_name(&self, b: u8) -> bool {
        b.is_ascii_alphabetic() || (self.xml && (b == b'_' || b == b':' || b >= 0x80))
    }

    fn text(&mut self) -> Token<'a> {
        let start = self.pos;
        let mut from = start;
        let end = loop {
            match memchr::memchr(b'<', self.rest(from)) {
                None => break self.src.len(),
                Some(at) if self.opens_markup(from + at) => break from + at,
                Some(at) => from += at + 1,
            }
        };
        self.pos = end;
        Token::Text(&self.src[start..end], TextKind::Data)
    }

    fn markup(&mut self) -> Option<Token<'a>> {
        match self.at(self.pos + 1) {
            Some(b'!') => Some(self.declaration()),
            Some(b'?') if self.xml => Some(self.instruction()),
            Some(b'?') => Some(self.bogus_comment(self.pos + 1)),
            Some(b'/') => match self.at(self.pos + 2) {
                Some(b) if self.starts_name(b) => self.tag(self.pos + 2, true),
                _ => Some(self.bogus_comment(self.pos + 2)),
            },
            _ => self.tag(self.pos + 1, false),
        }
    }

    /// Jumps behind the next `needle`; what is before it is the content. The end of the text ends everything.
    fn until(&mut self, from: usize, needle: &[u8]) -> &'a str {
        let (end, next) = match memchr::memmem::find(self.rest(from), needle) {
            Some(at) => (from + at, from + at + needle.len()),
            None => (self.src.len(), self.src.len()),
        };
        self.pos = next;
        &self.src[from.min(end)..end]
    }

    fn bogus_comment(&mut self, from: usize) -> Token<'a> {
        Token::Comment(self.until(from, b">"))
    }

    fn instruction(&mut self) -> Token<'a> {
        Token::Instruction(self.until(self.pos + 2, b"?>"))
    }

    fn declaration(&mut self) -> Token<'a> {
        let start = self.pos + 2;
        if self.rest(start).starts_with(b"--") {
            return self.comment(start + 2);
        }
        if self.starts_with_ignore_case(start, b"doctype") {
            return Token::Doctype(self.doctype(start + 7));
        }
        if (self.xml || self.foreign > 0) && self.rest(start).starts_with(b"[CDATA[") {
            return Token::Text(self.until(start + 7, b"]]>"), TextKind::Cdata);
        }
        self.bogus_comment(start)
    }

    fn doctype(&mut self, from: usize) -> &'a str {
        let stop = memchr::memchr2(b'>', b'[', self.rest(from)).map(|at| from + at);
        match stop {
            // An internal subset: declarations that hold `>` of their own.
            Some(at) if self.xml && self.at(at) == Some(b'[') => {
                self.until(at, b"]");
                let after = self.pos;
                self.until(after, b">");
                &self.src[from..at]
            }
            _ => self.until(from, b">"),
        }
    }

    fn comment(&mut self, from: usize) -> Token<'a> {
        let rest = self.rest(from);
        if !self.xml && rest.starts_with(b">") {
            self.pos = from + 1;
            return Token::Comment("");
        }
        if !self.xml && rest.starts_with(b"->") {
            self.pos = from + 2;
            return Token::Comment("");
        }
        let mut search = from;
        while let Some(at) = memchr::memmem::find(self.rest(search), b"--") {
            let dashes = search + at;
            let after = self.rest(dashes + 2);
            let tail = if after.starts_with(b">") {
                1
            } else if !self.xml && after.starts_with(b"!>") {
                2
            } else {
                search = dashes + 1;
                continue;
            };
            self.pos = dashes + 2 + tail;
            return Token::Comment(&self.src[from..dashes]);
        }
        self.pos = self.src.len();
        Token::Comment(&self.src[from.min(self.pos)..])
    }

    fn tag(&mut self, name_start: usize, end_tag: bool) -> Option<Token<'a>> {
        let bytes = self.bytes();
        let name_end = self
            .rest(name_start)
            .iter()
            .position(|&b| is_space(b) || b == b'/' || b == b'>')
            .map_or(self.src.len(), |at| name_start + at);
        let raw = &self.src[name_start..name_end];
        self.attrs.clear();
        let Some((next, self_closing)) = attrs::scan(bytes, name_end, &mut self.attrs) else {
            // The text ends within a tag: the standard drops the tag.
            self.attrs.clear();
            self.pos = self.src.len();
            return None;
        };
        self.pos = next;
        let tag = Tag { raw, name: if self.xml { Name::local(raw) } else { Name::new(raw) }, self_closing };
        if !self.xml {
            if end_tag { self.left(tag.name) } else { self.entered(&tag) }
        }
        Some(if end_tag { Token::End(tag) } else { Token::Start(tag) })
    }

    /// What a start tag changes for the text behind it.
    fn entered(&mut self, tag: &Tag<'a>) {
        let name = tag.name.as_str();
        if self.foreign > 0 {
            if name == "foreignobject" || raw_text::breaks_out(name) {
                self.foreign = 0;
            } else {
                if matches!(name, "svg" | "math") && !tag.self_closing {
                    self.foreign += 1;
                }
                return;
            }
        }
        self.raw = match name {
            "title" | "textarea" => Mode::RcData,
            "style" | "xmp" | "iframe" | "noembed" => Mode::RawText,
            "script" => Mode::Script,
            "plaintext" => Mode::PlainText,
            _ => Mode::Markup,
        };
        self.raw_name = tag.name;
        if matches!(name, "svg" | "math") && !tag.self_closing {
            self.foreign = 1;
        }
    }

    fn left(&mut self, name: Name) {
        if matches!(name.as_str(), "svg" | "math") {
            self.foreign = self.foreign.saturating_sub(1);
        }
    }

    /// The content of a raw text element, up to its end tag.
    fn raw_text(&mut self) -> Option<Token<'a>> {
        let (mode, name) = (self.raw, self.raw_name);
        self.raw = Mode::Markup;
        let start = self.pos;
        let end = match mode {
            Mode::Markup => return None,
            Mode::PlainText => self.src.len(),
            Mode::Script => raw_text::script_end(self.bytes(), start),
            Mode::RcData | Mode::RawText => raw_text::end(self.bytes(), start, name.as_str()),
        };
        if end == start {
            return None;
        }
        self.pos = end;
        let kind = if mode == Mode::RcData { TextKind::RcData } else { TextKind::Raw };
        Some(Token::Text(&self.src[start..end], kind))
    }
}

impl<'a> Iterator for Tokenizer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.token_start = self.pos;
        if self.raw != Mode::Markup
            && let Some(text) = self.raw_text()
        {
            return Some(text);
        }
        while !self.xml && self.rest(self.pos).starts_with(b"</>") {
            // `</>` is nothing at all.
            self.pos += 3;
            self.token_start = self.pos;
        }
        if self.pos >= self.src.len() {
            return None;
        }
        if self.at(self.pos) == Some(b'<') && self.opens_markup(self.pos) {
            return self.markup();
        }
        Some(self.text())
    }
}
