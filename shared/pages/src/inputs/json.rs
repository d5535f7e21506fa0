//! JSON: any nesting of objects, some of which have a URL. Read as it streams by, so that a library of articles with
//! their full text costs no more memory than its links.

mod item;
mod walk;

use super::Format;
use super::plain;
use super::sink::Sink;
use crate::codes;
use walk::Walk;

/// Reads a document, or a value a line. Says which it was.
pub(super) fn read(text: &str, format: Format, sink: &mut Sink<'_>) -> Format {
    if format == Format::JsonLines {
        lines(text, sink);
        return format;
    }
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
    let mut values = 0;
    let mut stream = serde_json::Deserializer::from_str(text);
    loop {
        match Walk::new(sink).document(&mut stream) {
            Ok(()) => values += 1,
            Err(e) if e.is_eof() && values > 0 && rest_is_blank(text, &e) => break,
            Err(e) => {
                if values == 1 && !sink.is_full() {
                    // A first line that is a whole value, and more lines behind it.
                    return reread_as_lines(text, sink, &e);
                }
                malformed(sink, &e);
                break;
            }
        }
        if stream.end().is_ok() || sink.is_full() {
            break;
        }
    }
    if values > 1 { Format::JsonLines } else { Format::Json }
}

fn rest_is_blank(text: &str, error: &serde_json::Error) -> bool {
    text.lines().skip(error.line()).all(|line| line.trim().is_empty())
}

fn reread_as_lines(text: &str, sink: &mut Sink<'_>, error: &serde_json::Error) -> Format {
    if text.lines().nth(1).is_none() {
        malformed(sink, error);
        return Format::Json;
    }
    sink.drop_range(0..usize::MAX);
    lines(text, sink);
    Format::JsonLines
}

fn malformed(sink: &mut Sink<'_>, error: &serde_json::Error) {
    if sink.is_full() {
        return;
    }
    sink.fault(codes::MALFORMED_JSON);
    sink.reject("", codes::MALFORMED_JSON, &error.to_string());
}

fn lines(text: &str, sink: &mut Sink<'_>) {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if sink.is_full() {
            return;
        }
        let trimmed = line.trim().trim_end_matches(',');
        if trimmed.starts_with(['{', '[', '"']) {
            let start = sink.len();
            if !read_line(trimmed, sink) {
                sink.reject_at(trimmed, codes::MALFORMED_JSON, "this line is no JSON", Some(offset));
            }
            if sink.len() > start {
                let number = sink.line(offset);
                sink.since(start).iter_mut().for_each(|url| url.line = Some(number));
            }
        } else if !matches!(trimmed, "" | "]") && !trimmed.starts_with('#') {
            plain::read(trimmed, sink);
        }
        offset += line.len();
    }
}

/// Reads one value. Says whether it was JSON.
pub(super) fn read_line(line: &str, sink: &mut Sink<'_>) -> bool {
    let mut stream = serde_json::Deserializer::from_str(line);
    Walk::new(sink).document(&mut stream).is_ok()
}
