//! One exchange: a request sent, a response read.

use std::convert::Infallible;
use std::fmt::Write;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use chrono::Utc;
use http::header::HOST;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use tokio::time::{Instant, Sleep, sleep, timeout_at};
use url::Url;

use super::body::Spool;
use super::connector::{ConnTag, Connector};
use super::error::{FetchError, chain_text, code_of_client_error};
use super::redirect::{Step, step};
use super::{FetcherConfig, Hop, Truncated};
use crate::code::FetchCode;

pub(super) type HttpClient = Client<Connector, Full<Bytes>>;

/// One request, ready to go out, perhaps twice.
pub(super) struct Exchange<'a> {
    pub(super) client: &'a HttpClient,
    pub(super) config: &'a FetcherConfig,
    pub(super) url: &'a Url,
    pub(super) method: &'a Method,
    pub(super) headers: HeaderMap,
    pub(super) body: &'a Bytes,
    pub(super) body_cap: u64,
    pub(super) follow: bool,
    pub(super) deadline: Instant,
}

/// How long the body of a redirect is waited for: nobody reads it, but it is part of the record.
const REDIRECT_BODY_PATIENCE: Duration = Duration::from_secs(5);

/// The hop, and why its body is not whole.
pub(super) type Exchanged = (Hop, Option<FetchError>);

impl Exchange<'_> {
    pub(super) async fn run(mut self) -> Result<Exchanged, FetchError> {
        let uri = Uri::try_from(self.url.as_str())
            .map_err(|e| FetchError::new(FetchCode::UrlInvalid, self.url, e.to_string()))?;
        let (started_at, started) = (Utc::now(), Instant::now());
        let mut response = match self.send(&uri).await {
            // The peer closed a kept connection just as we wrote on it (RFC 9112 section 9.3.1).
            Err(Sent::Stale) => self.send(&uri).await.map_err(|s| self.failed(s))?,
            Err(sent) => return Err(self.failed(sent)),
            Ok(response) => response,
        };
        let ttfb_ms = elapsed_ms(started);
        let tag = response.extensions_mut().remove::<ConnTag>();
        let Some(ConnTag { info, heads }) = tag else {
            return Err(FetchError::new(FetchCode::LocalIo, self.url, "the connection is unknown"));
        };
        let (parts, incoming) = response.into_parts();
        let (request_head, response_head) = if info.is_h2 {
            (request_as_h1(self.method, &uri, &self.headers), response_as_h1(parts.status, &parts.headers))
        } else {
            (heads.request, heads.response)
        };
        if self.follow && matches!(step(parts.status, &parts.headers, self.url), Step::Follow(_)) {
            self.body_cap = self.body_cap.min(self.config.redirect_body_cap);
            self.deadline = self.deadline.min(Instant::now() + REDIRECT_BODY_PATIENCE);
        }
        let mut spool = Spool::new(self.config.memory_cap, self.config.spool_dir.clone());
        let cut = self.read_body(incoming, &mut spool).await;
        let io = |e: std::io::Error| FetchError::new(FetchCode::LocalIo, self.url, e.to_string());
        let (body, body_sha256) = spool.finish().await.map_err(io)?;
        let (truncated, error) = match cut {
            None => (None, None),
            Some((truncated, error)) => (Some(truncated), Some(error)),
        };
        let hop = Hop {
            url: self.url.clone(),
            method: self.method.clone(),
            started_at,
            request_head,
            request_body: self.body.clone(),
            response_head,
            protocol: match (info.is_h2, parts.version) {
                (true, _) => "h2",
                (false, Version::HTTP_10) => "http/1.0",
                (false, _) => "http/1.1",
            },
            status: parts.status,
            headers: parts.headers,
            remote_addr: info.remote,
            tls: info.tls.clone(),
            body,
            body_sha256,
            truncated,
            ttfb_ms,
            total_ms: elapsed_ms(started),
        };
        Ok((hop, error))
    }

    async fn send(&self, uri: &Uri) -> Result<Response<Incoming>, Sent> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = self.headers.clone();
        let connection = capture_connection(&mut request);
        let answered = HeadDeadline {
            response: self.client.request(request),
            connection,
            limit: self.config.header_timeout,
            timer: Box::pin(sleep(self.config.header_timeout)),
        };
        match timeout_at(self.deadline, answered).await {
            Ok(Some(Ok(response))) => Ok(response),
            Ok(Some(Err(error))) => {
                let mut extensions = http::Extensions::new();
                if let Some(connected) = error.connect_info() {
                    connected.get_extras(&mut extensions);
                }
                let stale = extensions.get::<ConnTag>().is_some_and(|tag| match tag.info.is_h2 {
                    // An HTTP/2 connection may end under any of its streams (RFC 9113 section 8.7).
                    true => code_of_client_error(&error) == FetchCode::ConnectionClosed,
                    false => tag.info.recorder.is_stale(),
                });
                if stale && self.method.is_idempotent() {
                    return Err(Sent::Stale);
                }
                Err(Sent::Failed(error))
            }
            Ok(None) => Err(Sent::NoHead),
            Err(_) => Err(Sent::NoTime),
        }
    }

    fn failed(&self, sent: Sent) -> FetchError {
        match sent {
            Sent::Failed(error) => FetchError::of_client(self.url, &error),
            Sent::Stale => FetchError::new(FetchCode::ConnectionClosed, self.url, "closed twice before a response"),
            Sent::NoHead => FetchError::new(
                FetchCode::HeaderTimeout,
                self.url,
                format!("no response head in {:?}", self.config.header_timeout),
            ),
            Sent::NoTime => FetchError::new(FetchCode::FetchTimeout, self.url, "out of time before the response head"),
        }
    }

    /// Reads to the end, or says why not.
    async fn read_body(&self, mut incoming: Incoming, spool: &mut Spool) -> Option<(Truncated, FetchError)> {
        let cut = |truncated, code, detail: String| Some((truncated, FetchError::new(code, self.url, detail)));
        let began = Instant::now();
        loop {
            let idle = Instant::now() + self.config.idle_timeout;
            let frame = match timeout_at(idle.min(self.deadline), incoming.frame()).await {
                Ok(None) => return None,
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    let code = code_of_client_error(&error);
                    return cut(Truncated::Disconnect, code, chain_text(&error));
                }
                Err(_) if idle < self.deadline => {
                    let detail = format!("the body stood still for {:?}", self.config.idle_timeout);
                    return cut(Truncated::Time, FetchCode::BodyTimeout, detail);
                }
                Err(_) => {
                    let detail = "out of time in the body".to_owned();
                    return cut(Truncated::Time, FetchCode::FetchTimeout, detail);
                }
            };
            // Trailers carry no bytes of the body.
            let Ok(mut piece) = frame.into_data() else {
                continue;
            };
            let room = self.body_cap - spool.len();
            let over = piece.len() as u64 > room;
            piece.truncate(usize::try_from(room).unwrap_or(usize::MAX));
            if let Err(error) = spool.push(piece).await {
                return cut(Truncated::Length, FetchCode::LocalIo, error.to_string());
            }
            if over {
                let detail = format!("the body is larger than {} bytes", self.body_cap);
                return cut(Truncated::Length, FetchCode::BodyTooLarge, detail);
            }
            if self.is_slow(spool.len(), began.elapsed()) {
                let detail = format!("{} bytes in {:?}", spool.len(), began.elapsed());
                return cut(Truncated::Time, FetchCode::SlowBody, detail);
            }
        }
    }

    fn is_slow(&self, bytes: u64, elapsed: Duration) -> bool {
        let rate = &self.config.min_rate;
        elapsed > rate.grace && (bytes as f64) < elapsed.as_secs_f64() * rate.bytes_per_second as f64
    }
}

enum Sent {
    Failed(hyper_util::client::legacy::Error),
    Stale,
    NoHead,
    NoTime,
}

/// Waits for a response head, but counts its time from the connection on: look-up, connection and
/// handshake have limits of their own. `None` when the head did not come.
struct HeadDeadline<F> {
    response: F,
    connection: CaptureConnection,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl<F: Future + Unpin> Future for HeadDeadline<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = Pin::new(&mut self.response).poll(cx) {
            return Poll::Ready(Some(output));
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.connection.connection_metadata().is_some() {
                return Poll::Ready(None);
            }
            let again = Instant::now() + self.limit;
            self.timer.as_mut().reset(again);
        }
        Poll::Pending
    }
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// An HTTP/2 request as HTTP/1.1 would put it.
fn request_as_h1(method: &Method, uri: &Uri, headers: &HeaderMap) -> Bytes {
    let path = uri.path_and_query().map_or("/", |p| p.as_str());
    let mut head = BytesMut::new();
    write_str(&mut head, format_args!("{method} {path} HTTP/1.1\r\n"));
    if !headers.contains_key(HOST) {
        let host = uri.authority().map_or("", |a| a.as_str());
        write_str(&mut head, format_args!("Host: {host}\r\n"));
    }
    put_headers(&mut head, headers);
    head.freeze()
}

/// An HTTP/2 response as HTTP/1.1 would put it; it has no reason phrase.
fn response_as_h1(status: StatusCode, headers: &HeaderMap) -> Bytes {
    let mut head = BytesMut::new();
    write_str(&mut head, format_args!("HTTP/1.1 {} \r\n", status.as_u16()));
    put_headers(&mut head, headers);
    head.freeze()
}

fn put_headers(head: &mut BytesMut, headers: &HeaderMap) {
    for (name, value) in headers {
        head.put_slice(name.as_str().as_bytes());
        head.put_slice(b": ");
        head.put_slice(value.as_bytes());
        head.put_slice(b"\r\n");
    }
    head.put_slice(b"\r\n");
}

fn write_str(head: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    // Growing memory cannot fail.
    let _: Result<(), Infallible> = head.write_fmt(text).or(Ok(()));
}
