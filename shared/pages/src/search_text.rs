//! Text made fit for an index.

/// The most bytes of one document that are indexed. A Postgres `tsvector` may hold 1 MiB; text rarely fills more than a
/// half of its own size with distinct lexemes.
pub const DEFAULT_MAX_BYTES: usize = 1 << 20;

/// The longest word indexed, in bytes: Postgres refuses lexemes over 2,046, and nobody searches for a base64 blob.
const MAX_WORD: usize = 512;

/// Collapses all white space to single spaces, drops control characters (Postgres refuses NUL) and words too long for
/// an index, and cuts at `max_bytes` on a character's boundary.
pub fn index_text(text: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_bytes));
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        if word.len() > MAX_WORD {
            continue;
        }
        let gap = usize::from(!out.is_empty());
        let room = max_bytes.saturating_sub(out.len() + gap);
        if room == 0 {
            break;
        }
        if gap == 1 {
            out.push(' ');
        }
        let piece = cut(word, room);
        out.push_str(piece);
        if piece.len() < word.len() {
            break;
        }
    }
    let end = out.trim_end().len();
    out.truncate(end);
    out
}

/// The longest prefix of `text` that has at most `max_bytes` and does not split a character.
pub fn cut(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or("")
}

/// `text` without NUL, which Postgres's `text` and `jsonb` refuse.
pub fn without_nul(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_collapsed_and_cut() {
        for (text, max, expected) in [
            ("  a\n\n b\t\u{a0}c ", 100, "a b c"),
            ("a\0b\u{7}c", 100, "a b c"),
            ("grün und blau", 3, "gr"),
            ("grün und blau", 4, "grü"),
            ("aa bb", 3, "aa"),
            ("aa bb", 4, "aa b"),
            ("", 10, ""),
            ("abc", 0, ""),
            ("日本語", 7, "日本"),
        ] {
            assert_eq!(index_text(text, max), expected, "{text:?} {max}");
        }
        assert_eq!(index_text(&format!("a {} b", "x".repeat(3_000)), 9_999), "a b");
        assert_eq!(without_nul("a\0b"), "ab");
    }

    proptest::proptest! {
        #[test]
        fn fits_and_is_clean(text in "\\PC{0,60}|[ \\x00-\\x1f日本ü]{0,60}", max in 0usize..80) {
            let out = index_text(&text, max);
            assert!(out.len() <= max && !out.contains('\0') && !out.contains("  "));
        }
    }
}
