//! Where a text says what was asked for.

use super::Piece;
use super::lexemes::Question;
use super::words::{Word, words};

/// Words of one fragment.
const SPAN: usize = 18;
/// Fragments of one snippet.
const FRAGMENTS: usize = 2;
/// Between fragments, and where the text goes on.
const GAP: &str = " … ";

/// Cuts the fragments with the most different hits out of a text and marks the hits. Pieces are data,
/// never markup. Without a hit it is the beginning of the text.
pub(crate) fn snippet(text: &str, question: &Question) -> Vec<Piece> {
    let all: Vec<Word<'_>> = words(text).collect();
    let hits = hits(&all, question);
    let mut chosen: Vec<usize> = Vec::new();
    for _ in 0..FRAGMENTS {
        if let Some(start) = best_start(&hits, all.len(), &chosen) {
            chosen.push(start);
        }
    }
    chosen.sort_unstable();
    if chosen.is_empty() && !all.is_empty() {
        chosen.push(0);
    }
    let mut out = Vec::new();
    for start in chosen {
        let end = (start + SPAN).min(all.len());
        let (Some(first), Some(last)) = (all.get(start), all.get(end - 1)) else { continue };
        if start > 0 || !out.is_empty() {
            let gap = if out.is_empty() { GAP.trim_start() } else { GAP };
            push(&mut out, gap, false);
        }
        let mut at = first.at.start;
        for n in start..end {
            let (Some(Some(_)), Some(word)) = (hits.get(n), all.get(n)) else { continue };
            push(&mut out, text.get(at..word.at.start).unwrap_or_default(), false);
            push(&mut out, text.get(word.at.clone()).unwrap_or_default(), true);
            at = word.at.end;
        }
        // The mark that ends a sentence belongs to its last word.
        let tail = text.get(last.at.end..).unwrap_or_default();
        let stop = last.at.end + tail.chars().next().filter(|c| ".!?…)\"".contains(*c)).map_or(0, char::len_utf8);
        push(&mut out, text.get(at..stop).unwrap_or_default(), false);
    }
    out
}

fn push(out: &mut Vec<Piece>, text: &str, hit: bool) {
    if !text.is_empty() {
        out.push(Piece { text: text.to_owned(), hit });
    }
}

/// Which term each word is part of. A phrase counts only where it stands whole.
fn hits(all: &[Word<'_>], question: &Question) -> Vec<Option<usize>> {
    let mut hits = vec![None; all.len()];
    for (number, term) in question.wanted().enumerate() {
        let last = term.phrase.len() - 1;
        for start in 0..all.len().saturating_sub(last) {
            let here = term.phrase.iter().enumerate().all(|(n, wanted)| {
                all.get(start + n).is_some_and(|word| {
                    if term.prefix && n == last { word.text.starts_with(wanted.as_str()) } else { word.text == *wanted }
                })
            });
            if here {
                hits.iter_mut().skip(start).take(last + 1).for_each(|hit| *hit = Some(number));
            }
        }
    }
    hits
}

/// The start of the fragment with the most different terms, then the most hits, that overlaps none
/// chosen before.
fn best_start(hits: &[Option<usize>], words: usize, chosen: &[usize]) -> Option<usize> {
    let mut best: Option<(usize, usize, usize)> = None;
    for first in (0..words).filter(|n| hits.get(*n).is_some_and(Option::is_some)) {
        // Some words before the hit say what it is about.
        let start = first.saturating_sub(5).min(words.saturating_sub(SPAN));
        if chosen.iter().any(|other| start < other + SPAN && *other < start + SPAN) {
            continue;
        }
        let within: Vec<usize> = hits.iter().skip(start).take(SPAN).flatten().copied().collect();
        let mut kinds = within.clone();
        kinds.sort_unstable();
        kinds.dedup();
        if best.is_none_or(|(k, n, _)| (kinds.len(), within.len()) > (k, n)) {
            best = Some((kinds.len(), within.len(), start));
        }
    }
    best.map(|(_, _, start)| start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, typed: &str) -> String {
        let pieces = snippet(text, &Question::read(typed));
        pieces.iter().map(|p| if p.hit { format!("[{}]", p.text) } else { p.text.clone() }).collect()
    }

    #[test]
    fn hits_are_marked_in_their_sentence() {
        let text = "How to build shelves. An archivist needs many shelves, says the carpenter <b>loudly</b>.";
        assert_eq!(
            marked(text, "carpenter"),
            "How to build shelves. An archivist needs many shelves, says the [carpenter] <b>loudly</b"
        );
        assert!(
            marked(text, "\"build shelves\"").contains("[build] [shelves]. An"),
            "{}",
            marked(text, "\"build shelves\"")
        );
        assert!(marked(text, "arch*").contains("[archivist]"));
        assert_eq!(marked("Ein Satz ohne.", "nichts"), "Ein Satz ohne.");
        assert_eq!(marked("", "x"), "");
        assert_eq!(marked("漢字の本", "字の"), "漢[字][の]本");
    }

    #[test]
    fn two_places_of_a_long_text_are_shown() {
        let filler = "word ".repeat(100);
        let text = format!("{filler}first needle here {filler}second thread needle {filler}");
        let said = marked(&text, "needle thread");
        assert!(
            said.starts_with("… word") && said.contains("[thread] [needle]") && said.contains("first [needle]"),
            "{said}"
        );
        assert!(said.contains(GAP));
    }

    proptest::proptest! {
        #[test]
        fn any_text_and_question_give_pieces_of_the_text(text in "\\PC{0,120}", typed in "\\PC{0,20}") {
            for piece in snippet(&text, &Question::read(&typed)) {
                assert!(text.contains(&piece.text) || piece.text.contains('…'));
            }
        }
    }
}
