use fonds_warc::http_head::{HeadError, StoredBody, raw_head, request, response};
use proptest::prelude::*;

#[track_caller]
fn check(raw: &str, stored: StoredBody, expected: &str) {
    let head = response(raw.as_bytes(), stored).unwrap();
    let text = String::from_utf8_lossy(head.bytes()).replace("\r\n", "\n");
    assert_eq!(text, format!("{expected}\n"), "for {raw:?}");
}

#[test]
fn a_clean_head_keeps_every_byte() {
    let raw = b"HTTP/1.1 200 OK\r\nSERVER:x\r\nset-cookie:  a=b  \r\nSet-Cookie: c\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(response(raw, StoredBody::as_sent(5)).unwrap().bytes(), raw);
}

#[test]
fn framing_of_the_wire_is_renamed() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n";
    check(
        chunked,
        StoredBody::as_sent(7),
        "HTTP/1.1 200 OK\nx-orig-Transfer-Encoding: chunked\nContent-Length: 7\nX: y\n",
    );
    let shorter = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n";
    check(shorter, StoredBody::as_sent(7), "HTTP/1.1 200 OK\nx-orig-content-length: 10\nContent-Length: 7\n");
    let both = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\ntransfer-encoding: chunked\r\n\r\n";
    check(both, StoredBody::as_sent(7), "HTTP/1.1 200 OK\ncontent-length: 7\nx-orig-transfer-encoding: chunked\n");
    check("HTTP/1.1 200 OK\r\nA: b\r\n\r\n", StoredBody::as_sent(7), "HTTP/1.1 200 OK\nA: b\n");
}

#[test]
fn a_decoded_body_loses_its_content_coding() {
    let raw = "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\n";
    check(
        raw,
        StoredBody::decoded(9),
        "HTTP/1.1 200 OK\nx-orig-Content-Encoding: br\nx-orig-Content-Length: 3\nContent-Length: 9\n",
    );
    check(raw, StoredBody::as_sent(3), "HTTP/1.1 200 OK\nContent-Encoding: br\nContent-Length: 3\n");
}

#[test]
fn a_content_coding_that_is_none_is_set_aside() {
    let plain = b"hello";
    let gzip = [0x1f, 0x8b, 8, 0, 0];
    for (coding, body, kept) in [
        ("gzip", gzip.as_slice(), true),
        ("br, GZIP", &gzip, true),
        ("gzip", b"", true),
        ("gzip", plain, false),
        ("br, x-gzip", plain, false),
        ("gzip, br", plain, true),
        ("br", plain, true),
        ("Identity", plain, true),
        ("", plain, false),
        ("utf-8", plain, false),
        ("gzip,none", plain, false),
    ] {
        let raw = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n");
        let stored = StoredBody::as_sent(body.len() as u64).starting_with(body);
        let head = response(raw.as_bytes(), stored).unwrap();
        let name = if kept { "Content-Encoding" } else { "x-orig-Content-Encoding" };
        assert_eq!(String::from_utf8_lossy(head.bytes()), format!("HTTP/1.1 200 OK\r\n{name}: {coding}\r\n\r\n"));
    }
}

#[test]
fn newer_protocols_get_a_status_line() {
    for (line, expected, protocol) in [
        ("HTTP/2 200", "HTTP/1.1 200 OK", Some("h2")),
        ("HTTP/2.0 404 ", "HTTP/1.1 404 Not Found", Some("h2")),
        ("HTTP/3 301", "HTTP/1.1 301 Moved Permanently", Some("h3")),
        ("http/1.0 200 Fine", "HTTP/1.0 200 Fine", None),
        ("HTTP/1.1 200", "HTTP/1.1 200 OK", None),
        ("HTTP/1.1  999  Odd", "HTTP/1.1 999 Odd", None),
    ] {
        let head = response(line.as_bytes(), StoredBody::as_sent(0)).unwrap();
        assert_eq!(String::from_utf8_lossy(head.bytes()), format!("{expected}\r\n\r\n"));
        assert_eq!(head.protocol(), protocol, "{line}");
    }
    for line in
        ["", "\r\n\r\n", "GET / HTTP/1.1", "HTTP/1.1", "HTTP/1.1 OK", "HTTP/1.1 20", "HTTP/1.1 200OK", "HTTP/9 200 OK"]
    {
        assert_eq!(response(line.as_bytes(), StoredBody::as_sent(0)), Err(HeadError::NoStatusLine), "{line}");
    }
}

#[test]
fn broken_lines_are_made_safe() {
    let raw =
        "HTTP/1.1 200 OK\nA: 1\n folded\n\ttwice\nno colon\n: nameless\nBad Name: x\nSpaced : y\nNul: a\0b\rc\n\nbody";
    check(
        raw,
        StoredBody::as_sent(4),
        "HTTP/1.1 200 OK\nA: 1 folded twice\nx-orig-malformed: no colon\nx-orig-malformed: Bad Name: x\nSpaced: y\nNul: a b c\n",
    );
}

#[test]
fn a_control_at_the_end_of_a_value_leaves_nothing_to_trim() {
    check(
        "HTTP/1.1 200 \r\nContent-Length: 5\u{e}\n",
        StoredBody::as_sent(0),
        "HTTP/1.1 200 OK\nx-orig-Content-Length: 5\nContent-Length: 0\n",
    );
    check("HTTP/1.1 200 OK\r\nA: b\u{1}\u{2}\n", StoredBody::as_sent(0), "HTTP/1.1 200 OK\nA: b\n");
}

#[test]
fn requests_are_stored_as_http_1() {
    let raw = b"POST /a b HTTP/2\r\n:method: POST\r\n:authority: example.com\r\nContent-Length: 3\r\n\r\n";
    let head = request(raw, StoredBody::as_sent(3)).unwrap();
    let expected = "POST /a%20b HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(head.bytes()), expected);
    assert_eq!(head.protocol(), Some("h2"));
    for raw in ["", "GET", "G(T / HTTP/1.1"] {
        assert_eq!(request(raw.as_bytes(), StoredBody::as_sent(0)), Err(HeadError::NoRequestLine), "{raw}");
    }
}

#[test]
fn the_index_learns_status_and_type() {
    let raw = raw_head("HTTP/1.1 203 x", [("Content-Type", " text/HTML ; charset=x\r\ny: z"), ("content-type", "a/b")]);
    let head = response(&raw, StoredBody::as_sent(0)).unwrap();
    assert_eq!((head.status(), head.mime()), (Some(203), Some("text/HTML")));
}

fn head_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"\n ".to_vec()),
        Just(b": ".to_vec()),
        Just(b"Content-Length: 5".to_vec()),
        Just(b"transfer-encoding:chunked".to_vec()),
        Just(b"content-encoding: gzip".to_vec()),
        Just(b":authority: x".to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| [b"HTTP/1.1 200 ", pieces.concat().as_slice()].concat())
}

proptest! {
    #[test]
    fn any_head_becomes_clean_lines(raw in head_bytes(), len in 0u64..10, decoded: bool) {
        let stored = if decoded { StoredBody::decoded(len) } else { StoredBody::as_sent(len) };
        let head = response(&raw, stored).unwrap();
        let text = head.bytes();
        prop_assert!(text.ends_with(b"\r\n\r\n"));
        let lines: Vec<&[u8]> = text[..text.len() - 4].split(|&b| b == b'\n').collect();
        for (i, line) in lines.iter().enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            prop_assert!(line.iter().all(|&b| b == b'\t' || (b >= 0x20 && b != 0x7f)), "{line:?}");
            let name = line.iter().position(|&b| b == b':').map(|at| &line[..at]);
            prop_assert!(i == 0 || name.is_some_and(|n| !n.is_empty() && !n.contains(&b' ')), "{line:?}");
            if name.is_some_and(|n| n.eq_ignore_ascii_case(b"content-length")) {
                prop_assert!(line.ends_with(len.to_string().as_bytes()), "{line:?}");
            }
        }
        // A stored head is stored again unchanged, as exports do.
        let again = response(text, StoredBody::as_sent(len)).unwrap();
        prop_assert_eq!(again.bytes(), text);
    }

    #[test]
    fn no_bytes_panic(raw in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = response(&raw, StoredBody::as_sent(1));
        let _ = request(&raw, StoredBody::decoded(1));
    }
}
