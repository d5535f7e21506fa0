//! The attributes of a tag (WHATWG HTML, sections 13.2.5.32 to 13.2.5.40).

use super::{decode_attr, is_space};
use std::borrow::Cow;

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr<'a> {
    /// The name as written.
    pub name: &'a str,
    /// The value as written, without its quotes; empty when there is none.
    pub raw_value: &'a str,
}

impl<'a> Attr<'a> {
    /// The value with entities decoded.
    pub fn value(&self) -> Cow<'a, str> {
        decode_attr(self.raw_value)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AttrSpan {
    name: (usize, usize),
    value: (usize, usize),
}

impl AttrSpan {
    pub(super) fn of<'a>(&self, src: &'a str) -> Attr<'a> {
        Attr {
            name: src.get(self.name.0..self.name.1).unwrap_or(""),
            raw_value: src.get(self.value.0..self.value.1).unwrap_or(""),
        }
    }
}

/// A tag with more attributes than this is an attack on the duplicate check, which is quadratic.
const MAX_ATTRS: usize = 256;

/// Reads attributes from behind the tag's name to behind its `>`: the position there, and whether the tag is
/// self-closing. `None` when the text ends first.
pub(super) fn scan(src: &[u8], mut pos: usize, out: &mut Vec<AttrSpan>) -> Option<(usize, bool)> {
    loop {
        match *src.get(pos)? {
            b'>' => return Some((pos + 1, false)),
            b'/' if src.get(pos + 1) == Some(&b'>') => return Some((pos + 2, true)),
            b if is_space(b) || b == b'/' => pos += 1,
            _ => {
                let (span, next) = one(src, pos)?;
                let name = &src[span.name.0..span.name.1];
                let seen = out.iter().any(|a| src[a.name.0..a.name.1].eq_ignore_ascii_case(name));
                if !seen && out.len() < MAX_ATTRS {
                    out.push(span);
                }
                pos = next;
            }
        }
    }
}

fn skip_space(src: &[u8], from: usize) -> usize {
    src.get(from..).and_then(|s| s.iter().position(|&b| !is_space(b))).map_or(src.len(), |at| from + at)
}

fn one(src: &[u8], start: usize) -> Option<(AttrSpan, usize)> {
    // The first byte belongs to the name whatever it is, even `=`.
    let name_end = src
        .get(start + 1..)?
        .iter()
        .position(|&b| is_space(b) || matches!(b, b'/' | b'>' | b'='))
        .map(|at| start + 1 + at)?;
    let name = (start, name_end);
    let after = skip_space(src, name_end);
    if src.get(after) != Some(&b'=') {
        return Some((AttrSpan { name, value: (name_end, name_end) }, after));
    }
    let value_start = skip_space(src, after + 1);
    match *src.get(value_start)? {
        quote @ (b'"' | b'\'') => {
            let from = value_start + 1;
            let end = from + memchr::memchr(quote, src.get(from..)?)?;
            Some((AttrSpan { name, value: (from, end) }, end + 1))
        }
        b'>' => Some((AttrSpan { name, value: (value_start, value_start) }, value_start)),
        _ => {
            let end = value_start + src.get(value_start..)?.iter().position(|&b| is_space(b) || b == b'>')?;
            Some((AttrSpan { name, value: (value_start, end) }, end))
        }
    }
}
