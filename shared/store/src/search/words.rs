//! How a text falls into words, for what is stored and for what is asked alike.
//!
//! Postgres's own parser is not used: it takes a run of Chinese or Thai for one word, keeps `a.b` and
//! `a-b` in several spellings, and costs as much as everything else that is written for a page.

use std::borrow::Cow;
use std::ops::Range;

/// Longer ones are no words but data. In bytes.
const LONGEST: usize = 128;

/// A word of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    /// In lower case.
    pub(crate) text: Cow<'a, str>,
    /// Where it stands.
    pub(crate) at: Range<usize>,
}

/// The words in their order: runs of letters, digits and marks. Scripts that do not set words apart
/// give one word a character, so that a phrase finds them.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        loop {
            let tail = text.get(rest..)?;
            let start = rest + tail.find(is_letter)?;
            let end = end_of_word(text, start);
            rest = end;
            let word = text.get(start..end)?;
            if word.len() <= LONGEST {
                return Some(Word { text: lower(word), at: start..end });
            }
        }
    })
}

fn end_of_word(text: &str, start: usize) -> usize {
    let tail = text.get(start..).unwrap_or_default();
    let mut chars = tail.char_indices();
    let alone = chars.next().is_some_and(|(_, c)| is_unspaced(c));
    let end = chars.find(|&(_, c)| {
        let goes_on = if alone { is_mark(c) } else { (is_letter(c) && !is_unspaced(c)) || is_mark(c) };
        !goes_on
    });
    start + end.map_or(tail.len(), |(at, _)| at)
}

fn lower(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(word.to_lowercase())
    }
}

fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() }
}

/// Marks that belong to the letter before them and are not letters themselves (general categories Mn
/// and Mc), and the joiners within words of Arabic and Indic scripts.
fn is_mark(c: char) -> bool {
    if c < '\u{300}' {
        return false;
    }
    let mark = matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6ed}' | '\u{900}'..='\u{963}' | '\u{970}'..='\u{df3}'
        | '\u{e31}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' | '\u{eb1}'..='\u{ebc}' | '\u{ec8}'..='\u{ecd}'
        | '\u{f71}'..='\u{f84}' | '\u{102b}'..='\u{103e}' | '\u{17b4}'..='\u{17d3}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{200c}' | '\u{200d}' | '\u{20d0}'..='\u{20ff}' | '\u{3099}' | '\u{309a}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}');
    mark && !c.is_alphanumeric() || matches!(c, '\u{93e}'..='\u{94c}' | '\u{e31}'..='\u{e3a}')
}

/// Letters of scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana, Han.
fn is_unspaced(c: char) -> bool {
    c >= '\u{e00}'
        && matches!(c,
            '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        words(text).map(|w| w.text.into_owned()).collect()
    }

    #[test]
    fn texts_fall_into_words() {
        for (text, expected) in [
            ("The archive's Page-3, v1.2!", &["the", "archive", "s", "page", "3", "v1", "2"][..]),
            ("ÄRGER straße École e\u{301}te", &["ärger", "straße", "école", "e\u{301}te"]),
            ("Архив хранит", &["архив", "хранит"]),
            ("漢字とカナ v2", &["漢", "字", "と", "カ", "ナ", "v2"]),
            ("ที่นี่", &["ที่", "นี่"]),
            ("हिन्दी में", &["हिन्दी", "में"]),
            ("foo_bar::baz", &["foo", "bar", "baz"]),
            ("https://example.org/a%20b?q=1", &["https", "example", "org", "a", "20b", "q", "1"]),
            ("한국어 문서", &["한국어", "문서"]),
            ("  \u{0} — …", &[]),
        ] {
            assert_eq!(list(text), expected, "{text}");
        }
        assert_eq!(list(&format!("a {} b", "x".repeat(500))), ["a", "b"], "data is no word");
    }

    proptest::proptest! {
        #[test]
        fn words_stand_where_they_say(text in "\\PC{0,80}") {
            let mut last = 0;
            for word in words(&text) {
                assert!(word.at.start >= last && word.at.end > word.at.start);
                assert_eq!(text[word.at.clone()].to_lowercase(), word.text);
                assert!(!word.text.contains(['\'', '\\', ' ']));
                last = word.at.end;
            }
        }
    }
}
