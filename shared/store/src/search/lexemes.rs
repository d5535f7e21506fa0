//! Documents and questions as Postgres takes them: the binary form of `tsvector` (a quarter of the
//! work that its text form is for the server) and the text form of `tsquery`.

use super::words::words;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo};
use sqlx::{Encode, Postgres, Type};
use std::borrow::Cow;
use std::collections::HashMap;

/// Positions end here (Postgres, "Text Search Limitations").
const LAST_POSITION: usize = 16_383;
/// Positions of one lexeme that are kept.
const POSITIONS: usize = 255;
/// Postgres refuses a vector of 1 MiB.
const LARGEST: usize = 1_000_000;

/// Titles and tags.
const A: u16 = 3 << 14;
/// Addresses.
const B: u16 = 2 << 14;
/// Texts.
const D: u16 = 0;

/// A document as Postgres compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector(Vec<u8>);

/// What is compared when a page is searched: its title and tags before its address before its text.
#[must_use]
pub fn vector(title: &str, url: &str, tags: &[String], body: &str) -> Vector {
    let mut places: HashMap<Cow<'_, str>, Vec<u16>> = HashMap::with_capacity(body.len() / 12);
    let (mut position, mut bytes) = (0, 0);
    let tags = tags.iter().map(|tag| (tag.as_str(), A));
    for (text, weight) in std::iter::once((title, A)).chain(tags).chain([(cut(url), B), (body, D)]) {
        for word in words(text) {
            position += 1;
            let here = u16::try_from(position.min(LAST_POSITION)).unwrap_or(u16::MAX) | weight;
            let cost = word.text.len() + 8;
            let known = places.get_mut(&word.text);
            if bytes + cost > LARGEST {
                continue;
            }
            match known {
                // At the last position there may be only one of a word.
                Some(at) if at.len() < POSITIONS && at.last() != Some(&here) => {
                    at.push(here);
                    bytes += 2;
                }
                Some(_) => {}
                None => {
                    places.insert(word.text, vec![here]);
                    bytes += cost;
                }
            }
        }
        // No phrase reaches over the end of a field.
        position += 1;
    }
    // In the server's order, which spares it sorting them.
    let mut places: Vec<(Cow<'_, str>, Vec<u16>)> = places.into_iter().collect();
    places.sort_unstable_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    let mut out = Vec::with_capacity(bytes + 8);
    out.extend(u32::try_from(places.len()).unwrap_or(0).to_be_bytes());
    for (word, at) in &places {
        out.extend(word.as_bytes());
        out.push(0);
        out.extend(u16::try_from(at.len()).unwrap_or(0).to_be_bytes());
        out.extend(at.iter().flat_map(|position| position.to_be_bytes()));
    }
    Vector(out)
}

impl Type<Postgres> for Vector {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("tsvector")
    }
}

impl PgHasArrayType for Vector {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("_tsvector")
    }
}

impl Encode<'_, Postgres> for Vector {
    fn encode_by_ref(&self, out: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }
}

fn cut(url: &str) -> &str {
    url.get(..url.floor_char_boundary(2000)).unwrap_or_default()
}

/// One thing that must, or must not, be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    /// Words that follow each other; one for a word alone.
    pub(crate) phrase: Vec<String>,
    /// The last word may go on.
    pub(crate) prefix: bool,
    /// It must not be there.
    pub(crate) not: bool,
}

/// A question as it is typed: words that must all be there, `"phrases"`, `-not`, `begin*`, and `or`
/// between alternatives. Anything at all is a question; what has no words finds nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Question {
    /// Alternatives, of which each is a list of terms.
    pub(crate) any: Vec<Vec<Term>>,
}

impl Question {
    /// Reads what was typed.
    pub(crate) fn read(text: &str) -> Question {
        let mut any: Vec<Vec<Term>> = vec![Vec::new()];
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let not = rest.starts_with('-');
            let body = rest.strip_prefix('-').unwrap_or(rest);
            let (piece, tail, quoted) = match body.strip_prefix('"') {
                Some(quote) => {
                    let (inside, after) = quote.split_once('"').unwrap_or((quote, ""));
                    (inside, after, true)
                }
                None => {
                    let end = body.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(body.len());
                    (&body[..end], &body[end..], false)
                }
            };
            rest = tail.trim_start();
            if !quoted && !not && piece.eq_ignore_ascii_case("or") {
                any.push(Vec::new());
                continue;
            }
            let phrase: Vec<String> = words(piece).map(|w| w.text.into_owned()).collect();
            if let (false, Some(terms)) = (phrase.is_empty(), any.last_mut()) {
                let prefix = !quoted && piece.ends_with('*');
                terms.push(Term { phrase, prefix, not });
            }
        }
        any.retain(|terms| !terms.is_empty());
        Question { any }
    }

    /// As a `tsquery`; empty when there is nothing to look for.
    pub(crate) fn tsquery(&self) -> String {
        let all = |terms: &Vec<Term>| terms.iter().map(Term::tsquery).collect::<Vec<_>>().join(" & ");
        self.any.iter().map(all).collect::<Vec<_>>().join(" | ")
    }

    /// What is to be marked in a text.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &Term> {
        self.any.iter().flatten().filter(|term| !term.not)
    }
}

impl Term {
    fn tsquery(&self) -> String {
        let last = self.phrase.len().saturating_sub(1);
        let words = self.phrase.iter().enumerate().map(|(n, word)| {
            let more = if self.prefix && n == last { ":*" } else { "" };
            format!("'{word}'{more}")
        });
        let phrase = words.collect::<Vec<_>>().join(" <-> ");
        if self.not { format!("!({phrase})") } else { format!("({phrase})") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_become_queries() {
        for (typed, expected) in [
            ("harbour lamp", "('harbour') & ('lamp')"),
            ("\"Build shelves\" -oak", "('build' <-> 'shelves') & !('oak')"),
            ("a OR b c", "('a') | ('b') & ('c')"),
            ("arch* x", "('arch':*) & ('x')"),
            ("os.path", "('os' <-> 'path')"),
            ("漢字", "('漢' <-> '字')"),
            ("-\"a b\"", "!('a' <-> 'b')"),
            ("or", ""),
            ("- '' \\ \"", ""),
            ("'; DROP TABLE x; --", "('drop') & ('table') & ('x')"),
            ("\"unclosed phrase", "('unclosed' <-> 'phrase')"),
            ("a\"b c\"d", "('a') & ('b' <-> 'c') & ('d')"),
        ] {
            assert_eq!(Question::read(typed).tsquery(), expected, "{typed}");
        }
    }

    /// As Postgres would print it.
    fn printed(Vector(bytes): &Vector) -> String {
        let (count, mut rest) = bytes.split_at(4);
        let mut out = Vec::new();
        while !rest.is_empty() {
            let end = rest.iter().position(|b| *b == 0).unwrap();
            let word = std::str::from_utf8(&rest[..end]).unwrap();
            let places = usize::from(u16::from_be_bytes([rest[end + 1], rest[end + 2]]));
            let (list, tail) = rest[end + 3..].split_at(places * 2);
            let list = list.chunks(2).map(|p| u16::from_be_bytes([p[0], p[1]]));
            let list: Vec<String> =
                list.map(|p| format!("{}{}", p & 0x3fff, ["", "C", "B", "A"][usize::from(p >> 14)])).collect();
            out.push(format!("{word}:{}", list.join(",")));
            rest = tail;
        }
        assert_eq!(out.len() as u32, u32::from_be_bytes(count.try_into().unwrap()));
        out.join(" ")
    }

    #[test]
    fn documents_become_vectors() {
        let made = vector("A Page", "https://h/a", &["tag".to_owned()], "a b a");
        assert_eq!(printed(&made), "a:1A,8B,10,12 b:11 h:7B https:6B page:2A tag:4A");
        let many = vector("", "", &[], &"x ".repeat(20_000));
        assert_eq!(printed(&many).split(',').count(), POSITIONS);
        let late = vector("", "", &[], &format!("{} z z", "y ".repeat(17_000)));
        assert!(printed(&late).ends_with("z:16383"), "one position at the end");
        let huge: String = (0..400_000).map(|n| format!("w{n} ")).collect();
        assert!(vector("", "", &[], &huge).0.len() < LARGEST);
        assert_eq!(printed(&vector("", "", &[], "")), "");
    }
}
