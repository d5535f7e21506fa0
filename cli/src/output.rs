//! What commands print: text for people, JSON lines for programs, on standard output; everything
//! that is not the answer goes to standard error.

use serde_json::Value;
use std::fmt;
use std::io::{IsTerminal, Write};

/// Where a command's answer goes.
#[derive(Debug, Clone, Copy)]
pub struct Out {
    /// Whether answers are JSON lines.
    pub json: bool,
}

impl Out {
    /// One line of text; nothing in JSON mode.
    pub fn line(self, text: impl fmt::Display) {
        if !self.json {
            write_out(&text.to_string());
        }
    }

    /// One JSON line; nothing in text mode.
    pub fn value(self, value: &Value) {
        if self.json {
            write_out(&value.to_string());
        }
    }

    /// Rows as JSON lines, or as a table.
    pub fn rows(self, rows: &[Value], headers: &[&str], cells: impl Fn(&Value) -> Vec<String>) {
        if self.json {
            rows.iter().for_each(|row| self.value(row));
        } else {
            let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
            for line in table(headers, &cells) {
                write_out(&line);
            }
        }
    }

    /// A remark for people, beside the answer.
    pub fn note(self, text: impl fmt::Display) {
        if !self.json {
            eprint_line(&text.to_string());
        }
    }
}

/// Whether a person sees standard error.
#[must_use]
pub fn on_terminal() -> bool {
    std::io::stderr().is_terminal()
}

fn write_out(line: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        // The reader has seen enough (`| head`), or the disk is full: either way nobody reads on.
        std::process::exit(0);
    }
}

/// A line on standard error; whether anyone reads it does not matter.
pub fn eprint_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Text from the web made harmless for a terminal: no control characters, no directional overrides, no line breaks.
#[must_use]
pub fn clean(text: &str) -> String {
    let harmless = |c: char| match c {
        '\t' | '\n' | '\r' => ' ',
        // Bidirectional controls could make a line read as another.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(harmless).collect::<String>().trim().to_owned()
}

/// At most `width` characters, the cut marked.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    let clean = clean(text);
    if clean.chars().count() <= width {
        return clean;
    }
    let mut short: String = clean.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Columns as wide as their widest cell, the last one open. A table without rows is one line that says so.
#[must_use]
pub fn table(headers: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    if rows.is_empty() {
        return vec!["(none)".to_owned()];
    }
    let header: Vec<String> = headers.iter().map(|h| (*h).to_owned()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
    let widths: Vec<usize> = (0..headers.len())
        .map(|i| all.iter().filter_map(|row| row.get(i)).map(|c| c.chars().count()).max().unwrap_or(0))
        .collect();
    all.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
}

/// `2025-01-02T03:04:05.678Z` as `2025-01-02 03:04`.
#[must_use]
pub fn moment(stamp: &str) -> String {
    stamp.get(..16).map_or_else(|| stamp.to_owned(), |s| s.replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_the_web_cannot_drive_a_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\r\nc\u{202e}d\u{7}"), "a\u{fffd}[2Jb  c\u{fffd}d\u{fffd}");
        assert_eq!(cut("fünf Zeichen", 5), "fünf…");
        assert_eq!(cut("kurz", 5), "kurz");
        assert_eq!(cut("x", 0), "…");
    }

    #[test]
    fn columns_line_up() {
        let rows = [
            vec!["1".to_owned(), "é".to_owned(), "x".to_owned()],
            vec!["22".to_owned(), "bb".to_owned(), String::new()],
        ];
        assert_eq!(table(&["N", "NAME", "Z"], &rows), ["N   NAME  Z", "1   é     x", "22  bb"]);
        assert_eq!(table(&["N"], &[]), ["(none)"]);
    }

    #[test]
    fn a_moment_is_shown_to_the_minute() {
        assert_eq!(moment("2025-01-02T03:04:05.678Z"), "2025-01-02 03:04");
        assert_eq!(moment("odd"), "odd");
    }
}
