//! What may be built into a tree.
//!
//! Tree builders and what walks their trees recurse, so the depth of a page is a stack overflow in the hands of whoever
//! wrote it; and a tree takes ten to twenty times the memory of its source. Here a page is measured on its tokens first,
//! and tags that would nest too deep are dropped from its text: what they hold stays.

use super::TextError;
use crate::codes;
use crate::tokens::{Name, Token, Tokenizer};
use std::borrow::Cow;
use std::collections::HashMap;

/// The largest document built into a tree, in bytes.
pub const MAX_TREE_BYTES: usize = 8 << 20;
/// The most elements. The largest pages of encyclopedias and manuals have about half of that.
pub const MAX_TREE_ELEMENTS: usize = 120_000;
/// The deepest nesting. Browsers stop at 512; hand-written pages stay below 60.
pub const MAX_TREE_DEPTH: usize = 200;
/// What reads a tree takes time for each element times its depth, so a page of very many elements may nest less deep.
const MAX_TREE_WORK: usize = 4_000_000;
const MIN_TREE_DEPTH: usize = 32;
/// Formatting elements are opened again in every block that follows while they are not closed, so this many at most.
const MAX_FORMATTING: usize = 24;

/// The page, fit for a tree: no deeper than [`MAX_TREE_DEPTH`]. Borrowed when nothing had to be changed.
///
/// # Errors
/// `DOCUMENT_TOO_LARGE`, `TOO_MANY_ELEMENTS`.
pub fn bounded(html: &str) -> Result<Cow<'_, str>, TextError> {
    bounded_without(html, &[])
}

/// [`bounded`], and without the tags (not the content) of some elements.
///
/// # Errors
/// As [`bounded`].
pub(super) fn bounded_without<'a>(html: &'a str, unwanted: &[&str]) -> Result<Cow<'a, str>, TextError> {
    let max_depth = depth_for(html)?;
    let mut guard = Guard { max_depth, ..Guard::default() };
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut tokens = Tokenizer::html(html);
    while let Some(token) = tokens.next() {
        let keep = match token {
            Token::Start(tag) if unwanted.contains(&tag.name.as_str()) => guard.leave_out(Open::new(tag.name, tag.raw)),
            Token::Start(tag) => guard.start(tag.name, tag.raw, tag.self_closing && tokens.in_foreign()),
            Token::End(tag) => guard.end(tag.name, tag.raw),
            _ => true,
        };
        if !keep {
            let span = tokens.span();
            let out = out.get_or_insert_with(|| String::with_capacity(html.len()));
            out.push_str(html.get(copied..span.start).unwrap_or(""));
            copied = span.end;
        }
    }
    Ok(match out {
        None => Cow::Borrowed(html),
        Some(mut out) => {
            out.push_str(html.get(copied..).unwrap_or(""));
            Cow::Owned(out)
        }
    })
}

/// How deep this page may nest.
fn depth_for(html: &str) -> Result<usize, TextError> {
    if html.len() > MAX_TREE_BYTES {
        let message = format!("{} bytes of HTML, at most {MAX_TREE_BYTES} are built into a tree", html.len());
        return Err(TextError { code: codes::DOCUMENT_TOO_LARGE, message });
    }
    let elements = Tokenizer::html(html).filter(|token| matches!(token, Token::Start(_))).count();
    if elements > MAX_TREE_ELEMENTS {
        let message = format!("{elements} elements, at most {MAX_TREE_ELEMENTS} are built into a tree");
        return Err(TextError { code: codes::TOO_MANY_ELEMENTS, message });
    }
    Ok((MAX_TREE_WORK / elements.max(1)).clamp(MIN_TREE_DEPTH, MAX_TREE_DEPTH))
}

#[derive(Default)]
struct Guard {
    open: Vec<Open>,
    formatting: usize,
    max_depth: usize,
    /// Start tags left out whose end tags are still to come, by the hash of their names.
    dropped: HashMap<u32, usize>,
}

#[derive(Clone, Copy, PartialEq)]
struct Open {
    name: Name,
    /// Tells apart names too long for [`Name`].
    hash: u32,
}

impl Open {
    fn new(name: Name, raw: &str) -> Open {
        let hash =
            raw.bytes().fold(0x811C_9DC5_u32, |h, b| (h ^ u32::from(b.to_ascii_lowercase())).wrapping_mul(0x0100_0193));
        Open { name, hash }
    }
}

impl Guard {
    /// Whether the tag may stay.
    fn start(&mut self, name: Name, raw: &str, closed: bool) -> bool {
        let word = name.as_str();
        if closed || is_void(word) {
            return true;
        }
        self.imply_ends(word);
        let open = Open::new(name, raw);
        if self.open.len() >= self.max_depth || (is_formatting(word) && self.formatting >= MAX_FORMATTING) {
            // Raw text must stay within its element, whatever the depth.
            if is_raw(word) {
                return true;
            }
            return self.leave_out(open);
        }
        self.formatting += usize::from(is_formatting(word));
        self.open.push(open);
        true
    }

    /// Drops a start tag, and its end tag when that comes.
    fn leave_out(&mut self, open: Open) -> bool {
        *self.dropped.entry(open.hash).or_default() += 1;
        false
    }

    /// Whether the end tag may stay: it must when its start tag did.
    fn end(&mut self, name: Name, raw: &str) -> bool {
        let wanted = Open::new(name, raw);
        if let Some(count) = self.dropped.get_mut(&wanted.hash).filter(|count| **count > 0) {
            *count -= 1;
            return false;
        }
        self.pop_to(wanted);
        true
    }

    fn pop_to(&mut self, wanted: Open) {
        let Some(at) = self.open.iter().rposition(|open| *open == wanted) else { return };
        // An end tag of a formatting element leaves the blocks within it open.
        if is_formatting(wanted.name.as_str()) {
            self.open.remove(at);
            self.formatting -= 1;
            return;
        }
        let gone = self.open.drain(at..).filter(|open| is_formatting(open.name.as_str())).count();
        self.formatting -= gone;
    }

    /// The end tags that HTML lets authors leave out.
    fn imply_ends(&mut self, word: &str) {
        let (ends, scope): (&[&str], &[&str]) = match word {
            "li" => (&["li"], &["ul", "ol", "menu"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "tr" => (&["tr", "td", "th"], &["table"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot", "tr", "td", "th"], &["table"]),
            "option" => (&["option"], &["select"]),
            "rt" | "rp" => (&["rt", "rp"], &["ruby"]),
            _ if closes_p(word) => (&["p"], &["button", "td", "th", "table", "caption"]),
            _ => return,
        };
        let found = self.open.iter().rposition(|open| {
            let name = open.name.as_str();
            ends.contains(&name) || scope.contains(&name)
        });
        let Some(mut at) = found else { return };
        if !self.open.get(at).is_some_and(|open| ends.contains(&open.name.as_str())) {
            return;
        }
        // `<td>` within `<tr>`: the outermost of the run that ends.
        while at > 0 && self.open.get(at - 1).is_some_and(|open| ends.contains(&open.name.as_str())) {
            at -= 1;
        }
        let gone = self.open.drain(at..).filter(|open| is_formatting(open.name.as_str())).count();
        self.formatting -= gone;
    }
}

fn closes_p(word: &str) -> bool {
    matches!(
        word,
        "p" | "div"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "ul"
            | "ol"
            | "dl"
            | "table"
            | "blockquote"
            | "pre"
            | "section"
            | "article"
            | "aside"
            | "header"
            | "footer"
            | "nav"
            | "main"
            | "form"
            | "fieldset"
            | "figure"
            | "hr"
            | "address"
            | "center"
            | "details"
    )
}

fn is_void(word: &str) -> bool {
    matches!(
        word,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
            | "frame"
            | "keygen"
            | "bgsound"
            | "basefont"
    )
}

fn is_raw(word: &str) -> bool {
    matches!(word, "script" | "style" | "title" | "textarea" | "xmp" | "iframe" | "noembed" | "plaintext")
}

fn is_formatting(word: &str) -> bool {
    matches!(
        word,
        "a" | "b" | "big" | "code" | "em" | "font" | "i" | "nobr" | "s" | "small" | "strike" | "strong" | "tt" | "u"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_pages_are_left_alone() {
        let list = format!("<ul>{}</ul>", "<li>x<p>y".repeat(5_000));
        let table = format!("<table>{}</table>", "<tr><td>a<td>b".repeat(5_000));
        let prose = "<p>a <b>b</b> <p>c".repeat(5_000);
        for html in [list, table, prose] {
            assert!(matches!(bounded(&html), Ok(Cow::Borrowed(_))), "{}", &html[..40]);
        }
    }

    #[test]
    fn deep_pages_lose_tags_but_no_text() {
        for tag in ["div", "span", "b", "blockquote", "my-very-long-element-name", "font color=red"] {
            let name = tag.split(' ').next().unwrap();
            let html =
                format!("{}deep{}<p>after</p>", format!("<{tag}>").repeat(50_000), format!("</{name}>").repeat(50_000));
            let out = bounded(&html).unwrap();
            assert!(out.len() < 20_000 && out.contains("deep") && out.contains("<p>after</p>"), "{tag}");
        }
    }

    #[test]
    fn too_much_is_refused_with_a_code() {
        assert_eq!(bounded(&"x".repeat(MAX_TREE_BYTES + 1)).unwrap_err().code, codes::DOCUMENT_TOO_LARGE);
        assert_eq!(bounded(&"<i>".repeat(MAX_TREE_ELEMENTS + 1)).unwrap_err().code, codes::TOO_MANY_ELEMENTS);
    }
}
