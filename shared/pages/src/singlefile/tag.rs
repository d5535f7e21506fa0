//! A start tag that is being changed.

use crate::tokens::{Attr, Tag, Tokenizer};

/// What becomes of one attribute.
#[derive(Debug)]
enum Change {
    Set(String),
    Remove,
}

/// Collects changes to the last start tag of a tokenizer, and writes the tag if there were any.
#[derive(Debug, Default)]
pub(super) struct Edit {
    changes: Vec<(String, Change)>,
}

impl Edit {
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.put(name, Change::Set(value.into()));
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.put(name, Change::Remove);
    }

    fn put(&mut self, name: &str, change: Change) {
        self.changes.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.changes.push((name.to_owned(), change));
    }

    fn of(&self, attr: &Attr<'_>) -> Option<&Change> {
        self.changes.iter().find(|(name, _)| attr.name.eq_ignore_ascii_case(name)).map(|(_, change)| change)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Writes the tag with its changes; new attributes stand behind the old.
    pub(super) fn write(&self, out: &mut String, tag: &Tag<'_>, tokens: &Tokenizer<'_>) {
        out.push('<');
        out.push_str(tag.raw);
        for attr in tokens.attrs() {
            match self.of(&attr) {
                Some(Change::Remove) => {}
                Some(Change::Set(value)) => push_attr(out, attr.name, value),
                None => push_attr(out, attr.name, &attr.value()),
            }
        }
        for (name, change) in &self.changes {
            if let Change::Set(value) = change
                && tokens.attr_raw(name).is_none()
            {
                push_attr(out, name, value);
            }
        }
        out.push_str(if tag.self_closing { " />" } else { ">" });
    }
}

pub(super) fn push_attr(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    let mut copied = 0;
    for at in memchr::memchr2_iter(b'&', b'"', value.as_bytes()) {
        out.push_str(&value[copied..at]);
        out.push_str(if value.as_bytes()[at] == b'&' { "&amp;" } else { "&quot;" });
        copied = at + 1;
    }
    out.push_str(&value[copied..]);
    out.push('"');
}

/// The length of a value in its attribute.
pub(super) fn escaped_len(value: &str) -> usize {
    value.bytes().fold(0, |sum, b| {
        sum + match b {
            b'&' => 5,
            b'"' => 6,
            _ => 1,
        }
    })
}
