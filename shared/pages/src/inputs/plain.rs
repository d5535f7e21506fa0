//! Text with URLs in it.

use super::json;
use super::sink::{Item, Sink};
use crate::codes;

/// Reads text. When every line begins with a URL it is a list: lines that begin with `#` are comments, and a URL alone
/// on its line is taken to its last character. Otherwise it is prose, where a URL ends before the punctuation of its
/// sentence.
pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let list = is_list(text);
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if sink.is_full() {
            return;
        }
        read_line(line, offset, list, sink);
        offset += line.len();
    }
}

fn is_list(text: &str) -> bool {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).all(|line| {
        starts_url(line) || line.starts_with('{') || !line.contains(char::is_whitespace) && find_url(line, 0).is_none()
    })
}

fn read_line(line: &str, offset: usize, list: bool, sink: &mut Sink<'_>) {
    let trimmed = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
    let at = offset + line.find(trimmed).unwrap_or(0);
    // In prose `# ` begins a heading.
    let comment = trimmed.starts_with('#') && (list || !trimmed.trim_start_matches('#').starts_with(' '));
    if trimmed.is_empty() || comment {
        return;
    }
    if trimmed.starts_with('{') && trimmed.ends_with('}') && json::read_line(trimmed, sink) {
        return;
    }
    let before = sink.len();
    let alone = list && !trimmed.contains(char::is_whitespace);
    let mut from = 0;
    while let Some(start) = find_url(trimmed, from) {
        let end = url_end(trimmed, start, alone);
        let title = markdown_title(trimmed, start).map(str::to_owned);
        let item = Item { title, offset: Some(at + start), ..Item::default() };
        sink.add(&trimmed[start..end], item);
        from = end.max(start + 1);
        while !trimmed.is_char_boundary(from) {
            from += 1;
        }
    }
    if sink.len() == before && from == 0 {
        reject_lone_word(trimmed, at, sink);
    }
}

/// A line of one word that someone may have meant as a URL is named rather than passed over.
fn reject_lone_word(word: &str, at: usize, sink: &mut Sink<'_>) {
    if word.contains(char::is_whitespace) || word.len() > 4_096 {
        return;
    }
    let scheme = word.split_once(':').filter(|(scheme, rest)| {
        scheme.len() > 1
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            && !rest.is_empty()
            && !rest.bytes().all(|b| b.is_ascii_digit())
    });
    if scheme.is_some_and(|(s, _)| s.eq_ignore_ascii_case("http") || s.eq_ignore_ascii_case("https")) {
        sink.add(word, Item { offset: Some(at), ..Item::default() });
    } else if scheme.is_some() {
        sink.reject_at(word, codes::UNSUPPORTED_SCHEME, "only http and https can be archived", Some(at));
    } else if word.contains('.') && word.starts_with(|c: char| c.is_alphanumeric()) && !word.ends_with('.') {
        sink.reject_at(word, codes::RELATIVE_URL, "a URL begins with http:// or https://", Some(at));
    }
}

fn starts_url(text: &str) -> bool {
    scheme_len(text.as_bytes(), 0).is_some()
}

/// The length of `http://` or `https://` at `at`.
fn scheme_len(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    ["https://", "http://"]
        .iter()
        .find(|scheme| rest.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme.as_bytes())))
        .map(|scheme| scheme.len())
}

/// The next URL's start.
fn find_url(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        let colon = at + memchr::memchr(b':', bytes.get(at..)?)?;
        let start = ["https", "http"]
            .iter()
            .filter_map(|s| colon.checked_sub(s.len()))
            .find(|&start| start >= from && scheme_len(bytes, start).is_some_and(|len| start + len == colon + 3));
        match start {
            // `xhttp://` is no URL, `view-source:http://` holds one.
            Some(start) if !ends_word(bytes.get(..start).unwrap_or_default()) => return Some(start),
            _ => at = colon + 1,
        }
    }
}

/// Whether text ends within a word; the letter of an escape (`\\n`) is none.
fn ends_word(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => false,
        [.., last] => last.is_ascii_alphanumeric(),
        [] => false,
    }
}

/// Characters no URL holds as they are, and those that end a sentence where no spaces are written.
fn ends_url(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '<' | '>' | '"' | '`' | '\u{FEFF}' | '\u{200B}' | '“' | '”' | '„' | '«' | '»' | '‹' | '›')
        || matches!(
            c,
            '。' | '，'
                | '、'
                | '；'
                | '：'
                | '！'
                | '？'
                | '（'
                | '）'
                | '「'
                | '」'
                | '『'
                | '』'
                | '【'
                | '】'
                | '《'
                | '》'
                | '〈'
                | '〉'
                | '…'
        )
}

fn url_end(text: &str, start: usize, alone: bool) -> usize {
    let bytes = text.as_bytes();
    let quote = text[..start].chars().next_back();
    let scheme = scheme_len(bytes, start).unwrap_or(0);
    let mut brackets: Vec<char> = Vec::new();
    let mut end = text.len();
    for (i, c) in text[start..].char_indices() {
        let at = start + i;
        if ends_url(c) || (quote == Some('\'') && c == '\'') || (quote == Some('‘') && c == '’') {
            end = at;
            break;
        }
        // Escapes of whatever the text was written in.
        let escape = (c == '\\' && !alone) || (c == '&' && is_escaped_quote(&text[at..]));
        if escape {
            end = at;
            break;
        }
        // `a,b` of which b is a URL are two; `?to=http://b` and `/web/2020/http://b` are one.
        let separator = i > scheme && matches!(c, ',' | ';' | '|');
        if separator && scheme_len(bytes, at + c.len_utf8()).is_some() {
            end = at;
            break;
        }
        match c {
            '(' | '[' | '{' => brackets.push(c),
            ')' | ']' | '}' => {
                let open = match c {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                // What closes a bracket that was opened before the URL ends the URL.
                if brackets.pop() != Some(open) && i >= scheme {
                    end = at;
                    break;
                }
            }
            _ => {}
        }
    }
    trim_end(text, start, end, alone, quote)
}

/// A quote or bracket of HTML that was escaped, never a part of a query.
fn is_escaped_quote(text: &str) -> bool {
    ["&quot;", "&lt;", "&gt;", "&#34;", "&#39;"].iter().any(|entity| text.starts_with(entity))
}

fn trim_end(text: &str, start: usize, end: usize, alone: bool, before: Option<char>) -> usize {
    let mut url = &text[start..end];
    loop {
        let trimmed = if alone {
            url.trim_end_matches([',', ';'])
        } else {
            url.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '"', '’', '|', '\\'])
        };
        // Emphasis around the URL; `_` and `*` may well end one otherwise.
        let trimmed = match before {
            Some(mark @ ('*' | '_' | '~')) => trimmed.trim_end_matches(mark),
            _ => trimmed,
        };
        if trimmed.len() == url.len() {
            return start + url.len();
        }
        url = trimmed;
    }
}

/// The text of `[text](url)`.
fn markdown_title(line: &str, start: usize) -> Option<&str> {
    let before = line[..start].strip_suffix('<').unwrap_or(&line[..start]).strip_suffix("](")?;
    let mut depth = 0usize;
    for (at, c) in before.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 0 => return before.get(at + 1..).filter(|t| !t.is_empty()),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::inputs::{Format, Hint, Limits, parse};

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let hint = Hint { format: Some(Format::Text), ..Hint::default() };
        let out = parse(text.as_bytes(), &hint, &Limits::default());
        assert_eq!(out.urls.iter().map(|u| u.url.as_str()).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn prose_ends_a_url_before_its_own_punctuation() {
        for (text, expected) in [
            ("See https://x.org/a. Or not?", &["https://x.org/a"][..]),
            (
                "See https://x.org/a, https://x.org/b; and (https://x.org/c).",
                &["https://x.org/a", "https://x.org/b", "https://x.org/c"],
            ),
            ("Look (at https://x.org/a_(b)) now", &["https://x.org/a_(b)"]),
            ("a [link](https://x.org/a_(b)) b", &["https://x.org/a_(b)"]),
            ("a [link](https://x.org/a \"title\") b", &["https://x.org/a"]),
            ("a [link](<https://x.org/a>) b", &["https://x.org/a"]),
            ("![i](https://x.org/i.png)[l](https://x.org/l)", &["https://x.org/i.png", "https://x.org/l"]),
            (
                "<https://x.org/a> \"https://x.org/b\" 'https://x.org/c' `https://x.org/d`",
                &["https://x.org/a", "https://x.org/b", "https://x.org/c", "https://x.org/d"],
            ),
            ("**https://x.org/a** and _https://x.org/b_ .", &["https://x.org/a", "https://x.org/b"]),
            ("at https://x.org/?q=what's", &["https://x.org/?q=what%27s"]),
            ("HTTPS://X.org/A and HtTp://y.org", &["https://x.org/A", "http://y.org/"]),
            ("xhttp://no.org view-source:https://x.org/", &["https://x.org/"]),
            ("<a href=\"https://x.org/a\">https://x.org/b</a>", &["https://x.org/a", "https://x.org/b"]),
            ("参照：https://x.org/日本。次", &["https://x.org/%E6%97%A5%E6%9C%AC"]),
            ("sum: https://x.org/a… and «https://x.org/b»", &["https://x.org/a", "https://x.org/b"]),
            ("http:// https:// http://? nothing", &[]),
            ("{\"text\": \"https://x.org/a\", more", &["https://x.org/a"]),
            ("&lt;a href=&quot;https://x.org/a?b=1&amp;c&quot;&gt;", &["https://x.org/a?b=1&amp;c"]),
            ("\"https://x.org/a\\nhttps://x.org/b\" so", &["https://x.org/a", "https://x.org/b"]),
            (
                "<https://x.org/a> and [https://x.org/b Title] [[https://x.org/c][T]] \\url{https://x.org/d}",
                &["https://x.org/a", "https://x.org/b", "https://x.org/c", "https://x.org/d"],
            ),
            ("# A heading with https://x.org/a\nand text", &["https://x.org/a"]),
            ("#https://x.org/a\nand text", &[]),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn lists_are_taken_to_the_letter() {
        for (text, expected) in [
            ("https://en.wikipedia.org/wiki/Washington,_D.C.", &["https://en.wikipedia.org/wiki/Washington,_D.C."][..]),
            (
                "# my list\nhttps://x.org/a\n\n  https://x.org/b?c=d#e  \r\n# https://x.org/no\nhttps://x.org/f! A title\n",
                &["https://x.org/a", "https://x.org/b?c=d#e", "https://x.org/f"],
            ),
            (
                "https://x.org/a,https://x.org/b;https://x.org/c|https://x.org/d",
                &["https://x.org/a", "https://x.org/b", "https://x.org/c", "https://x.org/d"],
            ),
            ("https://x.org/a,\nhttps://x.org/b,\n", &["https://x.org/a", "https://x.org/b"]),
            ("https://web.archive.org/web/2020/https://x.org/a", &["https://web.archive.org/web/2020/https://x.org/a"]),
            ("https://x.org/?to=https://y.org/,z", &["https://x.org/?to=https://y.org/,z"]),
            ("https://x.org/%2F%252F%92", &["https://x.org/%2F%252F%92"]),
            ("https://user:pw@x.org/a", &["https://x.org/a"]),
            ("https://x.org/a https://x.org/b", &["https://x.org/a", "https://x.org/b"]),
            (
                "{\"url\": \"https://x.org/j\", \"tags\": \"a b\"}\nhttps://x.org/k",
                &["https://x.org/j", "https://x.org/k"],
            ),
            ("http://[::1]:8000/a", &["http://[::1]:8000/a"]),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn what_someone_may_have_meant_is_named() {
        let text = "https://x.org/\nftp://x.org/a\njavascript:alert(1)\nexample.com/a\nmailto:a@x.org\nhttp://\nnote\n";
        let out = parse(text.as_bytes(), &Hint::default(), &Limits::default());
        let rejected: Vec<_> = out.rejected.iter().map(|r| (r.text.as_str(), r.code.as_str(), r.line)).collect();
        assert_eq!(
            rejected,
            [
                ("ftp://x.org/a", "UNSUPPORTED_SCHEME", Some(2)),
                ("javascript:alert(1)", "UNSUPPORTED_SCHEME", Some(3)),
                ("example.com/a", "RELATIVE_URL", Some(4)),
                ("mailto:a@x.org", "UNSUPPORTED_SCHEME", Some(5)),
                ("http://", "NO_HOST", Some(6)),
            ]
        );
    }

    #[test]
    fn titles_and_lines_are_kept() {
        let text = "Intro\n- [One [1]](https://x.org/a)\n- https://x.org/b\n";
        let out = parse(text.as_bytes(), &Hint::default(), &Limits::default());
        let found: Vec<_> = out.urls.iter().map(|u| (u.title.as_deref(), u.line)).collect();
        assert_eq!(found, [(Some("One [1]"), Some(2)), (None, Some(3))]);
    }
}
