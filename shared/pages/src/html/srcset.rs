//! `srcset` (WHATWG HTML, "parsing a srcset attribute").

/// One image candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// As written.
    pub url: &'a str,
    /// `2x`, `640w`; empty when there is none.
    pub descriptor: &'a str,
}

/// The candidates of a `srcset`, in order. A URL may hold commas; it ends at white space.
pub fn parse_srcset(value: &str) -> Vec<Candidate<'_>> {
    let mut out = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return out;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, behind) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        if bare.len() < url.len() {
            out.push(Candidate { url: bare, descriptor: "" });
            rest = behind;
            continue;
        }
        let stop = descriptor_end(behind);
        let (descriptor, next) = behind.split_at(stop);
        out.push(Candidate { url, descriptor: descriptor.trim() });
        rest = next;
    }
}

/// A descriptor ends at the next comma that is not within parentheses.
fn descriptor_end(text: &str) -> usize {
    let mut depth = 0u32;
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_split_where_browsers_split_them() {
        for (value, expected) in [
            ("a.jpg", &[("a.jpg", "")][..]),
            ("a.jpg 1x, b.jpg 2x", &[("a.jpg", "1x"), ("b.jpg", "2x")]),
            ("a.jpg, b.jpg 640w", &[("a.jpg", ""), ("b.jpg", "640w")]),
            (" a.jpg?x=1,2 100w ,\n b.jpg 2x , ", &[("a.jpg?x=1,2", "100w"), ("b.jpg", "2x")]),
            ("data:image/png;base64,AAAA 1x, b 2x", &[("data:image/png;base64,AAAA", "1x"), ("b", "2x")]),
            ("a 1x,b 2x", &[("a", "1x"), ("b", "2x")]),
            (",,", &[]),
            ("", &[]),
        ] {
            let found: Vec<_> = parse_srcset(value).iter().map(|c| (c.url, c.descriptor)).collect();
            assert_eq!(found, expected, "{value}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(value in "[ a,()\\PC]{0,60}") {
            parse_srcset(&value);
        }
    }
}
