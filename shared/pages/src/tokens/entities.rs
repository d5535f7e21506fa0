//! Character references (WHATWG HTML, section 13.2.5.72 and on).

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};
use std::borrow::Cow;

/// Decodes the entities of text.
pub fn decode_text(raw: &str) -> Cow<'_, str> {
    decode(raw, false)
}

/// Decodes the entities of an attribute's value: there `&copy=1` is no entity, so that query strings survive.
pub fn decode_attr(raw: &str) -> Cow<'_, str> {
    decode(raw, true)
}

/// [`decode_text`], appending.
pub fn decode_text_into(out: &mut String, raw: &str) {
    decode_into(out, raw, false);
}

/// [`decode_attr`], appending.
pub fn decode_attr_into(out: &mut String, raw: &str) {
    decode_into(out, raw, true);
}

fn decode(raw: &str, attr: bool) -> Cow<'_, str> {
    if memchr::memchr(b'&', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    decode_into(&mut out, raw, attr);
    Cow::Owned(out)
}

fn decode_into(out: &mut String, raw: &str, attr: bool) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let used = match rest.as_bytes().first() {
            Some(b'#') => numeric(out, rest),
            Some(b) if b.is_ascii_alphanumeric() => named(out, rest, attr),
            _ => None,
        };
        match used {
            Some(len) => rest = &rest[len..],
            None => out.push('&'),
        }
    }
    out.push_str(rest);
}

/// `rest` begins with `#`. Returns how much of it the reference took.
fn numeric(out: &mut String, rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let (radix, start) = match bytes.get(1) {
        Some(b'x' | b'X') => (16, 2),
        _ => (10, 1),
    };
    let digits = bytes.get(start..)?.iter().take_while(|b| char::from(**b).is_digit(radix)).count();
    if digits == 0 {
        return None;
    }
    let end = start + digits;
    // Any number of digits may come; all numbers too large are alike.
    let number = u32::from_str_radix(&rest[start..end], radix).unwrap_or(u32::MAX);
    out.push(code_point(number));
    Some(if bytes.get(end) == Some(&b';') { end + 1 } else { end })
}

fn code_point(number: u32) -> char {
    match number {
        0 => '\u{FFFD}',
        0x80..=0x9F => C1_REPLACEMENTS
            .get((number - 0x80) as usize)
            .copied()
            .flatten()
            .or_else(|| char::from_u32(number))
            .unwrap_or('\u{FFFD}'),
        _ => char::from_u32(number).unwrap_or('\u{FFFD}'),
    }
}

/// The longest entity name is 31 letters and `;`.
const MAX_NAME: usize = 40;

fn named(out: &mut String, rest: &str, attr: bool) -> Option<usize> {
    let common = [("amp;", '&'), ("lt;", '<'), ("gt;", '>'), ("quot;", '"'), ("nbsp;", '\u{A0}')];
    if let Some((name, c)) = common.iter().find(|(name, _)| rest.starts_with(name)) {
        out.push(*c);
        return Some(name.len());
    }
    let bytes = rest.as_bytes();
    let mut found = None;
    for (i, b) in bytes.iter().enumerate().take(MAX_NAME) {
        if !b.is_ascii_alphanumeric() && *b != b';' {
            break;
        }
        // The table holds every prefix of a name, with zeroes where the prefix is no name itself.
        match NAMED_ENTITIES.get(&rest[..=i]) {
            None => break,
            Some((0, _)) => {}
            Some(chars) => found = Some((i + 1, chars)),
        }
    }
    let (len, &(first, second)) = found?;
    let bare = bytes.get(len - 1) != Some(&b';');
    let next_continues = bytes.get(len).is_some_and(|b| *b == b'=' || b.is_ascii_alphanumeric());
    if attr && bare && next_continues {
        return None;
    }
    out.extend(char::from_u32(first));
    if second != 0 {
        out.extend(char::from_u32(second));
    }
    Some(len)
}
