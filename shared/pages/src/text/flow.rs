//! The text of a page as a reader sees it: white space collapsed, blocks on lines of their own.

use crate::tokens::{Name, Tag, TextKind, decode_text_into};

/// Elements whose text nobody reads.
fn is_unread(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "noscript"
            | "template"
            | "title"
            | "svg"
            | "select"
            | "datalist"
            | "iframe"
            | "noembed"
            | "audio"
            | "video"
            | "canvas"
            | "textarea"
    )
}

/// How many newlines stand before and after an element; 0 for one within a line.
fn breaks(name: &str) -> u8 {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" | "pre" | "ul" | "ol" | "dl" | "table"
        | "figure" | "section" | "article" | "aside" | "header" | "footer" | "nav" | "main" | "hr" | "form"
        | "fieldset" | "details" | "body" | "xmp" | "listing" => 2,
        "div" | "li" | "dt" | "dd" | "tr" | "caption" | "figcaption" | "summary" | "legend" | "address" | "center"
        | "thead" | "tbody" | "tfoot" | "option" | "dialog" | "hgroup" | "search" | "menu" | "dir" => 1,
        _ => 0,
    }
}

/// Collects text, capped.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    out: String,
    cap: usize,
    truncated: bool,
    newlines: u8,
    space: bool,
    tab: bool,
    pre: u32,
    skip: Option<(Name, u32)>,
    scratch: String,
}

impl Flow {
    pub(crate) fn new(cap: usize) -> Flow {
        Flow { cap, ..Flow::default() }
    }

    pub(crate) fn start(&mut self, tag: &Tag<'_>) {
        let name = tag.name;
        // In HTML `<script/>` is open; in SVG a slash closes, and `svg` itself is SVG.
        let closed = tag.self_closing && name.as_str() == "svg";
        if let Some((skipped, depth)) = &mut self.skip {
            if *skipped == name && !closed {
                *depth += 1;
            }
            return;
        }
        let word = name.as_str();
        if is_unread(word) {
            if !closed {
                self.skip = Some((name, 1));
            }
            return;
        }
        match word {
            "br" => self.newlines = self.newlines.saturating_add(1).min(2),
            "td" | "th" => self.tab = true,
            "pre" | "xmp" | "listing" => self.pre += 1,
            _ => {}
        }
        self.newlines = self.newlines.max(breaks(word));
    }

    pub(crate) fn end(&mut self, name: Name) {
        if let Some((skipped, depth)) = &mut self.skip {
            if *skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skip = None;
                }
            }
            return;
        }
        let word = name.as_str();
        if matches!(word, "pre" | "xmp" | "listing") {
            self.pre = self.pre.saturating_sub(1);
        }
        self.newlines = self.newlines.max(breaks(word));
    }

    /// Text as written. Says whether it is read by anyone.
    pub(crate) fn text(&mut self, raw: &str, kind: TextKind) -> bool {
        if self.skip.is_some() {
            return false;
        }
        if self.cap == 0 || self.truncated {
            return true;
        }
        if kind.has_entities() && raw.contains('&') {
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.clear();
            decode_text_into(&mut scratch, raw);
            self.push(&scratch);
            self.scratch = scratch;
        } else {
            self.push(raw);
        }
        true
    }

    fn push(&mut self, text: &str) {
        if self.pre > 0 {
            self.push_preformatted(text);
            return;
        }
        for (i, word) in text.split(is_collapsible).enumerate() {
            if i > 0 {
                self.space = true;
            }
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    fn push_preformatted(&mut self, text: &str) {
        for (i, line) in text.split('\n').enumerate() {
            if i > 0 && !self.out.is_empty() {
                self.newlines = 0;
                self.space = false;
                self.append("\n");
            }
            let line = line.trim_end_matches('\r');
            if !line.is_empty() {
                self.separate();
                self.append(line);
            }
        }
    }

    fn word(&mut self, word: &str) {
        self.separate();
        self.append(word);
    }

    /// What stands between the last word and the next.
    fn separate(&mut self) {
        let (newlines, space, tab) = (self.newlines, self.space, self.tab);
        (self.newlines, self.space, self.tab) = (0, false, false);
        if self.out.is_empty() {
            return;
        }
        if newlines > 0 {
            let have = self.out.bytes().rev().take_while(|b| *b == b'\n').take(2).count();
            for _ in have..usize::from(newlines) {
                self.append("\n");
            }
        } else if !self.out.ends_with('\n') {
            if tab {
                self.append("\t");
            } else if space && !self.out.ends_with([' ', '\t']) {
                self.append(" ");
            }
        }
    }

    fn append(&mut self, piece: &str) {
        let room = self.cap.saturating_sub(self.out.len());
        if piece.len() <= room {
            self.out.push_str(piece);
            return;
        }
        self.out.push_str(crate::search_text::cut(piece, room));
        self.truncated = true;
        self.cap = self.out.len();
    }

    /// Nothing more will be taken.
    pub(crate) fn is_full(&self) -> bool {
        self.truncated || self.cap == 0
    }

    pub(crate) fn finish(mut self) -> (String, bool) {
        let end = self.out.trim_end().len();
        self.out.truncate(end);
        (self.out, self.truncated)
    }
}

/// HTML's white space, and the no-break space, which readers cannot tell from it.
fn is_collapsible(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{C}' | '\u{A0}' | '\0')
}

/// Appends `text` with runs of white space made one space.
pub(crate) fn push_collapsed(out: &mut String, text: &str, cap: usize) {
    for (i, word) in text.split(is_collapsible).enumerate() {
        if i > 0 && !out.is_empty() && !out.ends_with(' ') && out.len() < cap {
            out.push(' ');
        }
        if word.is_empty() {
            continue;
        }
        let room = cap.saturating_sub(out.len());
        out.push_str(crate::search_text::cut(word, room));
        if word.len() > room {
            return;
        }
    }
}

/// `text` with white space collapsed and trimmed, or nothing if nothing is left.
pub(crate) fn collapsed(text: &str, cap: usize) -> Option<String> {
    let mut out = String::new();
    push_collapsed(&mut out, text, cap);
    let end = out.trim_end().len();
    out.truncate(end);
    (!out.is_empty()).then_some(out)
}
