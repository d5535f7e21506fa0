//! The exact bytes of request and response heads, taken off the connection.
//!
//! An HTTP library gives headers back parsed: case, order across names, spaces and the reason phrase
//! are gone. The archive wants what was on the wire, so the connection itself takes notes: from the
//! first byte of a request to the empty line, and from the first byte that answers it to the empty
//! line. Requests are not pipelined, so one note at a time is enough.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// The heads of one exchange, as on the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Heads {
    pub(super) request: Bytes,
    pub(super) response: Bytes,
}

/// Takes notes of one HTTP/1.1 connection.
#[derive(Debug)]
pub(super) struct Recorder(Mutex<Notes>);

impl Recorder {
    /// Heads are kept up to `limit` bytes each; the parser refuses longer ones anyway.
    pub(super) fn new(limit: usize) -> Self {
        Self(Mutex::new(Notes {
            limit,
            requests: 0,
            writing: Writing::Between,
            reading: Reading::Passed,
            request: Vec::new(),
            response: Vec::new(),
        }))
    }

    /// The heads of the exchange the connection is at.
    pub(super) fn heads(&self) -> Heads {
        let notes = self.lock();
        Heads { request: Bytes::copy_from_slice(&notes.request), response: Bytes::copy_from_slice(&notes.response) }
    }

    /// Whether the connection had served a request before and has not answered the current one:
    /// the peer may have closed it as we wrote, and asking again on a fresh one is right.
    pub(super) fn is_stale(&self) -> bool {
        let notes = self.lock();
        notes.requests > 1 && notes.reading == Reading::Head && notes.response.is_empty()
    }

    pub(super) fn wrote(&self, bytes: &[u8]) {
        self.lock().wrote(bytes);
    }

    pub(super) fn read(&self, bytes: &[u8]) {
        let mut notes = self.lock();
        if notes.reading == Reading::Head {
            notes.read(bytes);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    /// The next byte starts a request.
    Between,
    Head,
    /// This many body bytes are still to come.
    Body(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Head,
    Passed,
}

#[derive(Debug)]
struct Notes {
    limit: usize,
    requests: u64,
    writing: Writing,
    reading: Reading,
    request: Vec<u8>,
    response: Vec<u8>,
}

impl Notes {
    fn wrote(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.writing {
                Writing::Between => {
                    self.requests += 1;
                    self.request.clear();
                    self.response.clear();
                    self.reading = Reading::Head;
                    self.writing = Writing::Head;
                }
                Writing::Head => {
                    let before = self.request.len();
                    self.request.extend_from_slice(bytes);
                    let Some(end) = head_end(&self.request, before) else {
                        return;
                    };
                    self.request.truncate(end);
                    bytes = &bytes[end - before..];
                    self.writing = match content_length(&self.request) {
                        0 => Writing::Between,
                        n => Writing::Body(n),
                    };
                }
                Writing::Body(left) => {
                    let n = left.min(bytes.len() as u64);
                    bytes = &bytes[usize::try_from(n).unwrap_or(bytes.len())..];
                    self.writing = match left - n {
                        0 => Writing::Between,
                        left => Writing::Body(left),
                    };
                }
            }
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        let mut before = self.response.len();
        self.response.extend_from_slice(bytes);
        loop {
            if before == 0 {
                // RFC 9112 section 2.2: empty lines before a message are skipped.
                let blank = |b: &&u8| matches!(**b, b'\r' | b'\n');
                let skip = self.response.iter().take_while(blank).count();
                self.response.drain(..skip);
            }
            match head_end(&self.response, before) {
                Some(end) if is_interim(&self.response) => {
                    self.response.drain(..end);
                    before = 0;
                }
                Some(end) => {
                    self.response.truncate(end);
                    self.reading = Reading::Passed;
                    return;
                }
                None => {
                    if self.response.len() > self.limit {
                        self.response.clear();
                        self.reading = Reading::Passed;
                    }
                    return;
                }
            }
        }
    }
}

/// Where the head ends (after its empty line), when only bytes from `from` on are new. A lone LF
/// ends a line too, as the parser takes it.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    // The end may have begun up to three bytes before the new ones.
    let mut at = from.saturating_sub(3);
    while let Some(newline) = bytes.get(at..)?.iter().position(|b| *b == b'\n') {
        at += newline + 1;
        match &bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// A 1xx response that another one follows; 101 is final.
fn is_interim(head: &[u8]) -> bool {
    let code = head.split(|b| *b == b' ').nth(1).unwrap_or_default();
    matches!(code.get(..3), Some([b'1', a, b]) if a.is_ascii_digit() && b.is_ascii_digit() && (*a, *b) != (b'0', b'1'))
}

/// The length announced in a head we wrote ourselves.
fn content_length(head: &[u8]) -> u64 {
    head.split(|b| *b == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok()?.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays writes (`>`) and reads (`<`) byte by byte, then in one piece, and compares the notes.
    fn check(script: &[(char, &str)], request: &str, response: &str) {
        for piecewise in [false, true] {
            let recorder = Recorder::new(1000);
            for (way, text) in script {
                let size = if piecewise { 1 } else { text.len().max(1) };
                for piece in text.as_bytes().chunks(size) {
                    match way {
                        '>' => recorder.wrote(piece),
                        _ => recorder.read(piece),
                    }
                }
            }
            let heads = recorder.heads();
            assert_eq!(heads.request, request, "piecewise: {piecewise}");
            assert_eq!(heads.response, response, "piecewise: {piecewise}");
        }
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    #[test]
    fn heads_end_at_the_empty_line() {
        let head = "HTTP/1.1 200 Fine, thanks\r\nX-ODD:  two spaces \r\nx-odd: again\r\n\r\n";
        check(&[('>', GET), ('<', head), ('<', "body\r\n\r\n")], GET, head);
    }

    #[test]
    fn the_second_request_replaces_the_first() {
        let (a, b) = ("HTTP/1.1 200 A\r\n\r\n", "HTTP/1.1 404 B\r\n\r\n");
        let second = "GET /2 HTTP/1.1\r\n\r\n";
        check(&[('>', GET), ('<', a), ('<', "xx"), ('>', second), ('<', b)], second, b);
    }

    #[test]
    fn interim_responses_and_blank_lines_are_skipped() {
        let last = "HTTP/1.0 200\r\nA: b\r\n\r\n";
        let all = format!("\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100\r\n\r\n{last}");
        check(&[('>', GET), ('<', &all)], GET, last);
        let switch = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
        check(&[('>', GET), ('<', switch)], GET, switch);
    }

    #[test]
    fn lone_line_feeds_end_lines() {
        let head = "HTTP/1.1 200 OK\nA: b\n\n";
        check(&[('>', GET), ('<', head), ('<', "body")], GET, head);
    }

    #[test]
    fn request_bodies_are_not_heads() {
        let post = "POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\n";
        let head = "HTTP/1.1 200 OK\r\n\r\n";
        check(&[('>', post), ('>', "a=1"), ('<', head), ('>', "&b="), ('>', GET)], GET, "");
    }

    #[test]
    fn stale_means_used_before_and_unanswered() {
        let recorder = Recorder::new(1000);
        recorder.wrote(GET.as_bytes());
        assert!(!recorder.is_stale());
        recorder.read(b"HTTP/1.1 200 OK\r\n\r\n");
        recorder.wrote(GET.as_bytes());
        assert!(recorder.is_stale());
        recorder.read(b"H");
        assert!(!recorder.is_stale());
    }

    #[test]
    fn an_endless_head_is_given_up() {
        let recorder = Recorder::new(100);
        recorder.wrote(GET.as_bytes());
        recorder.read(&[b'a'; 500]);
        assert_eq!(recorder.heads().response, "");
    }
}
