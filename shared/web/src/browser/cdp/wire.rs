//! Framing and the envelope of messages.

use bytes::{Bytes, BytesMut};
use serde::Deserialize;

/// Splits a byte stream into NUL-ended frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: BytesMut,
    scanned: usize,
}

impl Frames {
    /// Room for the next read.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        // Grown in proportion to what is already there: a message of 100 MB must not be copied once
        // a read.
        let want = (self.buffer.len() / 2).clamp(256 * 1024, 8 * 1024 * 1024);
        self.buffer.reserve(want);
        &mut self.buffer
    }

    /// The next whole frame, without its NUL.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let fresh = self.buffer.get(self.scanned..)?;
        let Some(offset) = memchr::memchr(0, fresh) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut frame = self.buffer.split_to(self.scanned + offset + 1);
        frame.truncate(frame.len() - 1);
        self.scanned = 0;
        Some(frame.freeze())
    }

    /// Bytes held of a frame that has not ended.
    pub(super) fn pending(&self) -> usize {
        self.buffer.len()
    }
}

/// What a message is, before its parameters are looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Peek<'a> {
    Reply { id: u64 },
    Event { method: &'a str, session: Option<&'a str> },
    Unknown,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<&'a str>,
}

/// Reads the envelope. Chromium writes `id` or `method` first and `sessionId` last, which makes this
/// a matter of a few bytes; any other order is read by the slow way.
pub(super) fn peek(frame: &[u8]) -> Peek<'_> {
    if let Some(id) = leading_id(frame) {
        return Peek::Reply { id };
    }
    if let Some(method) = leading_method(frame) {
        return Peek::Event { method, session: trailing_session(frame) };
    }
    match serde_json::from_slice::<Envelope<'_>>(frame) {
        Ok(Envelope { id: Some(id), .. }) => Peek::Reply { id },
        Ok(Envelope { method: Some(method), session, .. }) => Peek::Event { method, session },
        _ => Peek::Unknown,
    }
}

fn leading_id(frame: &[u8]) -> Option<u64> {
    let rest = frame.strip_prefix(b"{\"id\":")?;
    let end = rest.iter().take(20).position(|b| !b.is_ascii_digit())?;
    if rest.get(end) != Some(&b',') {
        return None;
    }
    std::str::from_utf8(rest.get(..end)?).ok()?.parse().ok()
}

fn leading_method(frame: &[u8]) -> Option<&str> {
    let rest = frame.strip_prefix(b"{\"method\":\"")?;
    let end = rest.iter().take(120).position(|b| !(b.is_ascii_alphanumeric() || *b == b'.'))?;
    if rest.get(end) != Some(&b'"') {
        return None;
    }
    std::str::from_utf8(rest.get(..end)?).ok()
}

/// The session of an event whose last member is `sessionId`. A text inside the parameters cannot
/// imitate it: they end in a brace of their own, and quotes inside JSON strings are escaped.
fn trailing_session(frame: &[u8]) -> Option<&str> {
    let rest = frame.strip_suffix(b"\"}")?;
    let start = rest.iter().rposition(|b| !b.is_ascii_alphanumeric()).map_or(0, |i| i + 1);
    if !rest.get(..start)?.ends_with(b",\"sessionId\":\"") {
        return None;
    }
    std::str::from_utf8(rest.get(start..)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn envelopes() {
        let cases: &[(&str, Peek<'_>)] = &[
            (r#"{"id":7,"result":{}}"#, Peek::Reply { id: 7 }),
            (r#"{"result":{},"id":7}"#, Peek::Reply { id: 7 }),
            (r#"{"id":7}"#, Peek::Reply { id: 7 }),
            (
                r#"{"method":"A.b","params":{"x":"\",\"sessionId\":\"FF"}}"#,
                Peek::Event { method: "A.b", session: None },
            ),
            (
                r#"{"method":"Target.detachedFromTarget","params":{"a":1,"sessionId":"FF"}}"#,
                Peek::Event { method: "Target.detachedFromTarget", session: None },
            ),
            (r#"{"method":"A.b","params":{},"sessionId":"FF"}"#, Peek::Event { method: "A.b", session: Some("FF") }),
            (r#"{"sessionId":"FF","method":"A.b","params":{}}"#, Peek::Event { method: "A.b", session: Some("FF") }),
            ("", Peek::Unknown),
            ("{", Peek::Unknown),
            (r#"{"id":-1,"result":{}}"#, Peek::Unknown),
            (r#"{"id":99999999999999999999,"result":{}}"#, Peek::Unknown),
        ];
        for (text, want) in cases {
            assert_eq!(&peek(text.as_bytes()), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn frames_survive_any_split(
            texts in proptest::collection::vec("[a-z]{0,40}", 0..12),
            cuts in proptest::collection::vec(1_usize..17, 1..60),
        ) {
            let stream: Vec<u8> = texts.iter().flat_map(|t| t.bytes().chain([0])).collect();
            let mut frames = Frames::default();
            let mut got = Vec::new();
            let mut rest = stream.as_slice();
            let mut cuts = cuts.into_iter().cycle();
            while !rest.is_empty() {
                let n = cuts.next().unwrap_or(1).min(rest.len());
                frames.buffer().extend_from_slice(&rest[..n]);
                rest = &rest[n..];
                while let Some(frame) = frames.next() {
                    got.push(String::from_utf8(frame.to_vec()).unwrap());
                }
            }
            prop_assert_eq!(got, texts);
            prop_assert_eq!(frames.pending(), 0);
        }

        #[test]
        fn no_frame_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            peek(&bytes);
        }
    }
}
