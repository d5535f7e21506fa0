//! The fault catalogue: what origins do to crawlers, one path each.
//!
//! All below `/faults/`. Redirects: `redirect/N`, `loop`, `loop/a`, `cookie-wall`, `redirect-to?URL`,
//! `redirect-utf8`, `redirect-nowhere`, `redirect-bad`, `redirect-ftp`, `redirect-endless`. Codings:
//! `gzip`, `gzip-broken`, `gzip-plain`, `deflate`, `charset`. Bodies: `zero`, `big/BYTES`, `endless`,
//! `drip`, `stall`, `short`, `reset`, `chunked`, `chunked-cut`, `chunked-bad`, `until-close`. Heads:
//! `silent`, `empty-reply`, `http09`, `garbage`, `huge-head/BYTES`, `many-headers/N`, `endless-head`,
//! `half-head`, `two-lengths`, `odd-head`, `lf-only`, `http10`, `hints`. Connections: `race` (closed right
//! after a reply that promised to keep it). Others: `status/N`, `busy`, `echo`, `etag`, `basic`.

use std::io::Write as _;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use percent_encoding::percent_decode_str;

use super::origin::Seen;
use super::reply::{Act, Message, Reply};

/// The text behind `gzip`, `deflate`, `chunked` and the like.
pub const TEXT: &str = "The quick brown fox jumps over the lazy dog, again and again and again.\n";

/// A head no parser would print like this: case, order, spaces, a reason phrase of its own.
pub const ODD_HEAD: &str = "HTTP/1.1 200 Everything is Awesome\r\nServer:odd\r\nX-UPPER:  two spaces\r\n\
     content-TYPE: text/plain\r\nx-upper: again\r\nX-Latin: caf\u{e9}\r\nContent-Length: 4\r\n\r\n";

/// The reply to a path below `/faults/`, or `None`.
pub fn reply(seen: &Seen) -> Option<Reply> {
    let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
    let name = path.strip_prefix("/faults/")?;
    let (name, argument) = name.split_once('/').unwrap_or((name, ""));
    redirects(name, argument, query, seen)
        .or_else(|| codings(name))
        .or_else(|| bodies(name, argument))
        .or_else(|| heads(name, argument))
        .or_else(|| others(name, argument, seen))
}

fn redirects(name: &str, argument: &str, query: &str, seen: &Seen) -> Option<Reply> {
    Some(match name {
        "redirect" => match argument.parse::<u32>().ok()? {
            0 => Reply::html("<title>Arrived</title>"),
            n => Reply::redirect(302, &format!("/faults/redirect/{}", n - 1)),
        },
        "loop" => match argument {
            "a" => Reply::redirect(301, "/faults/loop/b"),
            "b" => Reply::redirect(301, "/faults/loop/a"),
            _ => Reply::redirect(302, "/faults/loop"),
        },
        "cookie-wall" => match seen.header("cookie") {
            Some(cookie) if cookie.contains("seen=yes") => Reply::html("<title>Let in</title>"),
            _ => {
                let message = Message::new(302, "text/plain", "first a cookie\n")
                    .with("Location", "/faults/cookie-wall")
                    .with("Set-Cookie", "seen=yes; Path=/; HttpOnly");
                Reply::Message(message)
            }
        },
        "redirect-to" => {
            let status = argument.parse().unwrap_or(302);
            Reply::redirect(status, &percent_decode_str(query).decode_utf8_lossy())
        }
        "redirect-utf8" => Reply::redirect(302, "/faults/echo/caf\u{e9}?\u{fc}"),
        "redirect-nowhere" => Reply::Message(Message::new(302, "text/plain", "where to?\n")),
        "redirect-bad" => Reply::redirect(302, "http://[broken/"),
        "redirect-ftp" => Reply::redirect(302, "ftp://127.0.0.1/file"),
        "redirect-endless" => Reply::Script(vec![
            send("HTTP/1.1 302 Found\r\nLocation: /faults/redirect/0\r\n\r\n"),
            Act::Repeat(Bytes::from(vec![b'x'; 16384]), None, Duration::ZERO),
        ]),
        _ => return None,
    })
}

fn codings(name: &str) -> Option<Reply> {
    let encoded = |coding: &str, body: Vec<u8>| {
        let message = Message::new(200, "text/plain", body);
        Some(Reply::Message(message.with("Content-Encoding", coding)))
    };
    match name {
        "gzip" => encoded("gzip", gzip(TEXT.as_bytes())),
        "gzip-broken" => {
            let mut body = gzip(TEXT.as_bytes());
            body.truncate(body.len() - 6);
            encoded("gzip", body)
        }
        "gzip-plain" => encoded("gzip", TEXT.into()),
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            let _ = encoder.write_all(TEXT.as_bytes());
            encoded("deflate", encoder.finish().unwrap_or_default())
        }
        "charset" => {
            // Latin-1 bytes under a UTF-8 label.
            let body = b"<title>caf\xe9</title><p>na\xefve</p>".to_vec();
            Some(Reply::ok("text/html; charset=utf-8", body))
        }
        _ => None,
    }
}

fn bodies(name: &str, argument: &str) -> Option<Reply> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
    let filler = || Bytes::from(vec![b'x'; 64 * 1024]);
    let acts = match name {
        "zero" => return Some(Reply::ok("text/plain", "")),
        "big" => {
            let size: u64 = argument.parse().ok()?;
            let piece = filler();
            let (whole, rest) = (size / piece.len() as u64, size % piece.len() as u64);
            vec![
                send(format!("{head}Content-Length: {size}\r\n\r\n")),
                Act::Repeat(piece.clone(), Some(whole), Duration::ZERO),
                Act::Send(piece.slice(..usize::try_from(rest).ok()?)),
                Act::KeepAlive,
            ]
        }
        "endless" => vec![send(format!("{head}\r\n")), Act::Repeat(filler(), None, Duration::ZERO)],
        "drip" => vec![
            send(format!("{head}Content-Length: 100000\r\n\r\n")),
            Act::Repeat("x".into(), None, Duration::from_millis(20)),
        ],
        "stall" => vec![send(format!("{head}Content-Length: 1000\r\n\r\nonly this much")), Act::Hang],
        "short" => vec![send(format!("{head}Content-Length: 1000\r\n\r\nonly this much"))],
        "reset" => vec![
            send(format!("{head}Content-Length: 1000\r\n\r\nonly this much")),
            Act::Wait(Duration::from_millis(50)),
            Act::Reset,
        ],
        "chunked" => vec![
            send(format!("{head}Transfer-Encoding: chunked\r\n\r\n")),
            send(format!("{:x};ext=1\r\n{}\r\n", 20, &TEXT[..20])),
            send(format!("{:X}\r\n{}\r\n", TEXT.len() - 20, &TEXT[20..])),
            send("0\r\nX-Trailer: yes\r\n\r\n"),
            Act::KeepAlive,
        ],
        "chunked-cut" => vec![
            send(format!("{head}Transfer-Encoding: chunked\r\n\r\n")),
            send(format!("{:x}\r\n{}\r\n", 20, &TEXT[..20])),
        ],
        "chunked-bad" => vec![
            send(format!("{head}Transfer-Encoding: chunked\r\n\r\n")),
            send(format!("{:x}\r\n{}\r\nnot a size\r\n", 20, &TEXT[..20])),
        ],
        "until-close" => vec![send(format!("{head}\r\n{TEXT}"))],
        _ => return None,
    };
    Some(Reply::Script(acts))
}

fn heads(name: &str, argument: &str) -> Option<Reply> {
    let acts = match name {
        "silent" => vec![Act::Hang],
        "empty-reply" => vec![],
        "http09" => vec![send("<html><body>no head at all</body></html>\n")],
        "garbage" => vec![Act::Send(Bytes::from_static(b"\x00\xff\x16\x03\x01 \r\n\x80\x81\r\n\r\n"))],
        "huge-head" => {
            let size: usize = argument.parse().ok()?;
            let line = format!("X-Huge: {}\r\n", "h".repeat(size));
            vec![send(format!("HTTP/1.1 200 OK\r\n{line}Content-Length: 2\r\n\r\nok")), Act::KeepAlive]
        }
        "many-headers" => {
            let count: usize = argument.parse().ok()?;
            let lines: String = (0..count).map(|n| format!("X-{n}: {n}\r\n")).collect();
            vec![send(format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 2\r\n\r\nok")), Act::KeepAlive]
        }
        "endless-head" => {
            vec![send("HTTP/1.1 200 OK\r\n"), Act::Repeat("X-More: and more\r\n".into(), None, Duration::ZERO)]
        }
        "half-head" => vec![send("HTTP/1.1 200 OK\r\nContent-Type: text/pl")],
        "two-lengths" => vec![send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")],
        "odd-head" => {
            // Latin-1 on the wire, as the constant's letters say.
            let head: Vec<u8> = ODD_HEAD.chars().map(|c| c as u8).collect();
            vec![Act::Send(head.into()), send("body"), Act::KeepAlive]
        }
        "lf-only" => vec![send("HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 4\n\nbody"), Act::KeepAlive],
        "http10" => vec![send("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold")],
        "hints" => vec![
            send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"),
            send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhints"),
            Act::KeepAlive,
        ],
        // The promise of keep-alive and the close travel together.
        "race" => vec![send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\nrace")],
        _ => return None,
    };
    Some(Reply::Script(acts))
}

fn others(name: &str, argument: &str, seen: &Seen) -> Option<Reply> {
    Some(match name {
        "status" => {
            let status = argument.parse().ok()?;
            Reply::Message(Message::new(status, "text/plain", format!("{status}\n")))
        }
        "busy" => {
            let message = Message::new(429, "text/plain", "not so fast\n");
            Reply::Message(message.with("Retry-After", "7"))
        }
        "echo" => Reply::ok("text/plain", seen.head.clone()),
        "etag" => match seen.header("if-none-match") {
            Some("\"v1\"") => Reply::Message(Message::new(304, "text/plain", "").with("ETag", "\"v1\"")),
            _ => Reply::Message(Message::new(200, "text/plain", "v1").with("ETag", "\"v1\"")),
        },
        "basic" => {
            let wanted = base64::engine::general_purpose::STANDARD.encode("user:p@ss");
            match seen.header("authorization") {
                Some(value) if value == format!("Basic {wanted}") => Reply::ok("text/plain", "in"),
                _ => Reply::Message(Message::new(401, "text/plain", "out")),
            }
        }
        _ => return None,
    })
}

fn send(text: impl Into<String>) -> Act {
    Act::Send(text.into().into())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}
