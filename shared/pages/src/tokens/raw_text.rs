//! Where the content of `script`, `style`, `title` and their like ends.

/// Whether a start tag of this name ends an open `svg` or `math` (WHATWG HTML, section 13.2.6.5).
pub(super) fn breaks_out(name: &str) -> bool {
    matches!(
        name,
        "b" | "big"
            | "blockquote"
            | "body"
            | "br"
            | "center"
            | "code"
            | "dd"
            | "div"
            | "dl"
            | "dt"
            | "em"
            | "embed"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "head"
            | "hr"
            | "i"
            | "img"
            | "li"
            | "listing"
            | "menu"
            | "meta"
            | "nobr"
            | "ol"
            | "p"
            | "pre"
            | "ruby"
            | "s"
            | "small"
            | "span"
            | "strong"
            | "strike"
            | "sub"
            | "sup"
            | "table"
            | "tt"
            | "u"
            | "ul"
            | "var"
    )
}

/// Whether `</name` stands at `pos` and is a whole end tag name.
fn end_tag_at(src: &[u8], pos: usize, name: &[u8]) -> bool {
    let Some(rest) = src.get(pos..) else { return false };
    rest.starts_with(b"</") && name_at(rest, 2, name)
}

fn name_at(src: &[u8], pos: usize, name: &[u8]) -> bool {
    src.get(pos..pos + name.len()).is_some_and(|s| s.eq_ignore_ascii_case(name))
        && src.get(pos + name.len()).is_some_and(|&b| super::is_space(b) || b == b'/' || b == b'>')
}

/// The position of the end tag that closes a `title`, `style`, ... whose content begins at `from`.
pub(super) fn end(src: &[u8], from: usize, name: &str) -> usize {
    let mut pos = from;
    while let Some(at) = src.get(pos..).and_then(|rest| memchr::memchr(b'<', rest)) {
        if end_tag_at(src, pos + at, name.as_bytes()) {
            return pos + at;
        }
        pos += at + 1;
    }
    src.len()
}

/// The same for `script`, whose content has states of its own: within `<!-- ... -->` a nested `<script>` hides the
/// next `</script>` (WHATWG HTML, sections 13.2.5.15 to 13.2.5.31).
pub(super) fn script_end(src: &[u8], from: usize) -> usize {
    #[derive(PartialEq)]
    enum State {
        Plain,
        Escaped,
        DoubleEscaped,
    }
    let mut state = State::Plain;
    let mut pos = from;
    while let Some(at) = src.get(pos..).and_then(|rest| memchr::memchr2(b'<', b'-', rest)) {
        let here = pos + at;
        let rest = src.get(here..).unwrap_or_default();
        pos = here + 1;
        if rest.starts_with(b"-->") {
            state = State::Plain;
            pos = here + 3;
        } else if rest.starts_with(b"<!--") && state == State::Plain {
            state = State::Escaped;
            // The dashes may belong to a `-->` that follows at once, so they are looked at again.
            pos = here + 2;
        } else if rest.starts_with(b"</") && name_at(rest, 2, b"script") {
            if state == State::DoubleEscaped {
                state = State::Escaped;
            } else {
                return here;
            }
        } else if state == State::Escaped && name_at(rest, 1, b"script") && rest.starts_with(b"<") {
            state = State::DoubleEscaped;
        }
    }
    src.len()
}
