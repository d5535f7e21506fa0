//! The references of a style sheet (CSS Syntax Level 3): `url(...)` and `@import`.

use std::borrow::Cow;
use std::ops::Range;

/// One reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CssRef<'a> {
    /// The bytes of the style sheet that hold it: all of `url(...)`, or the quoted string of an `@import`.
    pub span: Range<usize>,
    /// The URL, escapes resolved.
    pub url: Cow<'a, str>,
    /// It is what an `@import` names.
    pub import: bool,
}

/// Whether looking for references is worth it.
pub fn may_have_refs(css: &str) -> bool {
    let bytes = css.as_bytes();
    memchr::memmem::find(bytes, b"(").is_some() || memchr::memchr(b'@', bytes).is_some()
}

/// All references, in order. Comments and strings that are no URLs are passed over; `url()` in broken CSS is found as
/// far as browsers would find it.
pub fn refs(css: &str) -> Vec<CssRef<'_>> {
    let mut scan = Scan { src: css, bytes: css.as_bytes(), pos: 0, importing: false, in_set: 0, out: Vec::new() };
    if may_have_refs(css) {
        scan.run();
    }
    scan.out
}

struct Scan<'a> {
    src: &'a str,
    bytes: &'a [u8],
    pos: usize,
    /// Behind `@import`, before its URL.
    importing: bool,
    /// Parentheses that are open within an `image-set(`, whose strings are URLs; 0 outside.
    in_set: u32,
    out: Vec<CssRef<'a>>,
}

impl<'a> Scan<'a> {
    fn run(&mut self) {
        while let Some(&b) = self.bytes.get(self.pos) {
            match b {
                b'/' if self.bytes.get(self.pos + 1) == Some(&b'*') => self.comment(),
                b'"' | b'\'' => self.string(b),
                b'@' => self.at_rule(),
                b'u' | b'U' => self.maybe_url(),
                b'\\' => self.pos += 2,
                b';' | b'{' | b'}' => {
                    (self.importing, self.in_set) = (false, 0);
                    self.pos += 1;
                }
                b'(' | b')' if self.in_set > 0 => {
                    self.in_set = if b == b'(' { self.in_set.saturating_add(1) } else { self.in_set - 1 };
                    self.pos += 1;
                }
                _ if is_ident(b) => self.ident(),
                _ => self.pos += 1,
            }
        }
    }

    fn comment(&mut self) {
        let from = self.pos + 2;
        let rest = self.bytes.get(from..).unwrap_or_default();
        self.pos = memchr::memmem::find(rest, b"*/").map_or(self.bytes.len(), |at| from + at + 2);
    }

    /// The end of a quoted string (behind its quote) and of its content. A newline ends it, as in browsers.
    fn string_end(&self, from: usize, quote: u8) -> (usize, usize) {
        let mut at = from;
        while let Some(&b) = self.bytes.get(at) {
            match b {
                b'\\' => at += 2,
                b'\n' => return (at, at),
                _ if b == quote => return (at, at + 1),
                _ => at += 1,
            }
        }
        (self.bytes.len(), self.bytes.len())
    }

    fn string(&mut self, quote: u8) {
        let start = self.pos;
        let (end, next) = self.string_end(start + 1, quote);
        self.pos = next;
        // Within `image-set(` a function may have strings of its own: `type("image/avif")`.
        if self.importing || self.in_set == 1 {
            let import = std::mem::take(&mut self.importing);
            let url = self.src.get(start + 1..end).map(unescape);
            self.out.extend(url.map(|url| CssRef { span: start..next, url, import }));
        }
    }

    fn at_rule(&mut self) {
        let word = self.bytes.get(self.pos + 1..self.pos + 7).unwrap_or_default();
        self.importing = word.eq_ignore_ascii_case(b"import");
        self.pos += 1;
        self.ident();
    }

    fn ident(&mut self) {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let len = rest.iter().position(|&b| !is_ident(b)).unwrap_or(rest.len());
        let word = rest.get(..len).unwrap_or_default();
        self.pos += len;
        let set = word.len() >= 9 && word.get(len - 9..).is_some_and(|w| w.eq_ignore_ascii_case(b"image-set"));
        if set && rest.get(len) == Some(&b'(') {
            self.pos += 1;
            self.in_set = 1;
        }
    }

    fn maybe_url(&mut self) {
        let start = self.pos;
        let word = self.bytes.get(start..start + 4).unwrap_or_default();
        if !word.eq_ignore_ascii_case(b"url(") {
            self.ident();
            return;
        }
        let inner = start + 4 + spaces(self.bytes, start + 4);
        let (content, next) = match self.bytes.get(inner) {
            Some(&quote @ (b'"' | b'\'')) => {
                let (end, after) = self.string_end(inner + 1, quote);
                let close = after + spaces(self.bytes, after);
                // `url("a" something)` is no URL token, but nothing else either.
                let close = if self.bytes.get(close) == Some(&b')') { close + 1 } else { after };
                (inner + 1..end, close)
            }
            _ => {
                let end = self.unquoted_end(inner);
                (inner..end, (end + 1).min(self.bytes.len()))
            }
        };
        self.pos = next.max(start + 4);
        let import = std::mem::take(&mut self.importing);
        if let Some(text) = self.src.get(content) {
            let url = unescape(text.trim_matches(|c: char| c.is_ascii_whitespace()));
            if !url.is_empty() && self.src.is_char_boundary(self.pos) {
                self.out.push(CssRef { span: start..self.pos, url, import });
            }
        }
    }

    fn unquoted_end(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(&b) = self.bytes.get(at) {
            match b {
                b')' => return at,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }
}

fn spaces(bytes: &[u8], from: usize) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_whitespace()).count()
}

fn is_ident(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b >= 0x80
}

/// Resolves CSS escapes (CSS Syntax, 4.3.7).
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let mut hex = String::new();
        while hex.len() < 6
            && let Some(digit) = chars.next_if(char::is_ascii_hexdigit)
        {
            hex.push(digit);
        }
        if hex.is_empty() {
            // An escaped newline is nothing; anything else stands for itself.
            out.extend(chars.next().filter(|c| *c != '\n'));
        } else {
            chars.next_if(char::is_ascii_whitespace);
            let code = u32::from_str_radix(&hex, 16).unwrap_or(0);
            out.push(char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{FFFD}'));
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_where_browsers_see_them() {
        for (css, expected) in [
            ("a{background:url(x.png)}", &[("x.png", false)][..]),
            ("a{background:URL( 'x y.png' ) no-repeat, url(\"z\")}", &[("x y.png", false), ("z", false)]),
            (
                "@import 'a.css'; @import url(b.css) screen; @IMPORT url('c.css');",
                &[("a.css", true), ("b.css", true), ("c.css", true)],
            ),
            ("@import/**/\"a.css\" layer(x) supports(display:grid);", &[("a.css", true)]),
            ("/* url(no) @import 'no'; */ a{content:'url(no)'}", &[]),
            ("a{background:url(a\\)b.png)}", &[("a)b.png", false)]),
            ("a{background:url(\\64 ata.png)}", &[("data.png", false)]),
            ("a{background:url()} b{background:url('')}", &[]),
            (
                "a{background:-webkit-image-set('x' 1x, url(y) 2x, 'z' type('image/avif') 3x);content:'no'}",
                &[("x", false), ("y", false), ("z", false)],
            ),
            ("curl(x) my-url(y)", &[]),
            ("@font-face{src:url(f.woff2)format('woff2'),local('x')}", &[("f.woff2", false)]),
            ("a{background:url(x", &[("x", false)]),
            ("@charset 'utf-8'; @namespace 'x';", &[]),
            ("@import 'a'", &[("a", true)]),
        ] {
            let found: Vec<_> = refs(css).into_iter().map(|r| (r.url.into_owned(), r.import)).collect();
            let found: Vec<_> = found.iter().map(|(u, i)| (u.as_str(), *i)).collect();
            assert_eq!(found, expected, "{css}");
        }
    }

    #[test]
    fn the_span_is_what_to_replace() {
        let css = "a{b:url( 'x' )} @import \"y\";";
        let spans: Vec<_> = refs(css).into_iter().map(|r| &css[r.span]).collect();
        assert_eq!(spans, ["url( 'x' )", "\"y\""]);
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_spans_are_whole(css in "(url\\(|@import|['\"()\\\\ ;{}/*]|\\PC){0,40}") {
            for r in refs(&css) {
                assert!(css.get(r.span).is_some());
            }
        }
    }
}
