//! What an origin does with a request.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

/// An answer.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A proper message; the connection goes on.
    Message(Message),
    /// Exactly these acts; the connection is closed after them unless the last is [`Act::KeepAlive`].
    Script(Vec<Act>),
}

/// One step of a scripted answer.
#[derive(Debug, Clone)]
pub enum Act {
    /// Writes bytes.
    Send(Bytes),
    /// Writes bytes again and again, with pauses. `None` never ends.
    Repeat(Bytes, Option<u64>, Duration),
    /// Does nothing for a while.
    Wait(Duration),
    /// Does nothing until the peer goes.
    Hang,
    /// Ends the connection with a reset instead of a close.
    Reset,
    /// Goes on with the next request.
    KeepAlive,
}

/// A proper HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Status code.
    pub status: u16,
    /// Headers in order, without `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Bytes,
}

impl Message {
    /// A message with a body of a type.
    pub fn new(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self { status, headers: vec![("Content-Type".to_owned(), content_type.to_owned())], body: body.into() }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// As HTTP/1.1 bytes.
    pub fn to_h1(&self, head_only: bool) -> Bytes {
        let mut out = BytesMut::with_capacity(256 + self.body.len());
        let status = http::StatusCode::from_u16(self.status).ok();
        let reason = status.and_then(|s| s.canonical_reason()).unwrap_or("Odd");
        let _ = write!(out, "HTTP/1.1 {} {reason}\r\n", self.status);
        for (name, value) in &self.headers {
            let _ = write!(out, "{name}: {value}\r\n");
        }
        if self.status != 304 && self.status >= 200 {
            let _ = write!(out, "Content-Length: {}\r\n", self.body.len());
        }
        out.extend_from_slice(b"\r\n");
        if !head_only && self.status != 304 {
            out.extend_from_slice(&self.body);
        }
        out.freeze()
    }
}

impl Reply {
    /// 200 with a body.
    pub fn ok(content_type: &str, body: impl Into<Bytes>) -> Self {
        Self::Message(Message::new(200, content_type, body))
    }

    /// 200 with an HTML body.
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::ok("text/html; charset=utf-8", body)
    }

    /// A redirect.
    pub fn redirect(status: u16, location: &str) -> Self {
        let message = Message::new(status, "text/plain", format!("to {location}\n"));
        Self::Message(message.with("Location", location))
    }

    /// Bytes, then the end of the connection.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::Script(vec![Act::Send(bytes.into())])
    }

    /// Bytes that are a whole message; the connection goes on.
    pub fn raw_keep_alive(bytes: impl Into<Bytes>) -> Self {
        Self::Script(vec![Act::Send(bytes.into()), Act::KeepAlive])
    }
}

impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        Self::Message(message)
    }
}
