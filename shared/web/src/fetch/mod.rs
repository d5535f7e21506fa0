//! The HTTP path: one URL in, every exchange on the way out, byte for byte.
//!
//! [`Fetcher::fetch`] follows redirects and gives back a [`Hop`] per exchange: the exact heads sent
//! and received, the body as sent but for the chunked framing, its SHA-256, where it came from and how
//! long it took. It never fails as a whole: what was had before something went wrong is in
//! [`FetchResult::hops`], what went wrong in [`FetchResult::error`].

mod body;
mod client;
mod connector;
mod cookies;
mod decode;
mod der;
pub(crate) mod error;
mod exchange;
mod recorder;
mod redirect;
mod tls;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, Method, StatusCode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::Instant;
use url::Url;

pub use body::Body;
pub use client::{Fetcher, FetcherError};
pub use decode::{Decoded, decode_body};
pub use error::FetchError;
pub use redirect::refresh_target;
pub use tls::{TlsInfo, TlsProblem};

use crate::dial::{DialerConfig, Resolver, SystemResolver};
use crate::guard::Guard;

/// How a [`Fetcher`] behaves, for all its fetches.
#[derive(Clone)]
pub struct FetcherConfig {
    /// What may be connected to.
    pub guard: Guard,
    /// Name look-ups.
    pub resolver: Arc<dyn Resolver>,
    /// Time limits of look-up and connection.
    pub dial: DialerConfig,
    /// Value of `User-Agent`.
    pub user_agent: String,
    /// Value of `Accept`.
    pub accept: String,
    /// Value of `Accept-Language`; empty sends none.
    pub accept_language: String,
    /// Value of `Accept-Encoding`: codings [`decode_body`] knows.
    pub accept_encoding: String,
    /// For the TLS handshake.
    pub tls_timeout: Duration,
    /// From the request to the response head.
    pub header_timeout: Duration,
    /// How long a body may stand still.
    pub idle_timeout: Duration,
    /// For a whole fetch, redirects included.
    pub total_timeout: Duration,
    /// A body slower than this is cut.
    pub min_rate: MinRate,
    /// Largest response head, bytes (at least 8,192).
    pub max_header_bytes: usize,
    /// Largest body kept, bytes as sent.
    pub body_cap: u64,
    /// Largest body kept of a response that redirects.
    pub redirect_body_cap: u64,
    /// Bodies above this go to a temporary file, bytes.
    pub memory_cap: usize,
    /// Where temporary files go; `None` for the system's place.
    pub spool_dir: Option<PathBuf>,
    /// Redirects followed.
    pub max_redirects: usize,
    /// Offer HTTP/2 on TLS connections.
    pub http2: bool,
    /// Go on when a certificate is invalid, and record what is wrong with it.
    pub accept_invalid_certs: bool,
    /// Trusted besides the public roots, DER.
    pub extra_roots: Vec<CertificateDer<'static>>,
    /// How long an unused connection is kept.
    pub pool_idle_timeout: Duration,
    /// Unused connections kept per host.
    pub pool_max_idle_per_host: usize,
}

/// A minimum speed: after `grace`, a body must have averaged `bytes_per_second`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinRate {
    /// 0 switches the check off.
    pub bytes_per_second: u64,
    /// Nothing is asked of the first moments.
    pub grace: Duration,
}

impl FetcherConfig {
    /// Defaults under `guard`: what a web archive wants, with time limits of a patient browser.
    pub fn new(guard: Guard) -> Self {
        Self {
            guard,
            resolver: Arc::new(SystemResolver::default()),
            dial: DialerConfig::default(),
            user_agent: format!("Mozilla/5.0 (compatible; fonds/{}; web archive)", env!("CARGO_PKG_VERSION")),
            accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".to_owned(),
            accept_language: "en;q=0.8,*;q=0.5".to_owned(),
            accept_encoding: "gzip, br".to_owned(),
            tls_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(300),
            min_rate: MinRate { bytes_per_second: 100, grace: Duration::from_secs(20) },
            max_header_bytes: 256 * 1024,
            body_cap: 1 << 30,
            redirect_body_cap: 1 << 20,
            memory_cap: 2 << 20,
            spool_dir: None,
            max_redirects: 20,
            http2: true,
            accept_invalid_certs: false,
            extra_roots: Vec::new(),
            pool_idle_timeout: Duration::from_secs(10),
            pool_max_idle_per_host: 8,
        }
    }

    /// Trusts the certificates of a PEM file besides the public roots (an intranet's authority). Gives
    /// back how many there were.
    pub fn trust_pem(&mut self, pem: &[u8]) -> Result<usize, rustls::pki_types::pem::Error> {
        let certs: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
        let count = certs.len();
        self.extra_roots.extend(certs);
        Ok(count)
    }
}

/// One thing to fetch.
#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// http or https. A fragment stays here; a user name and password become `Authorization`.
    pub url: Url,
    /// Usually GET.
    pub method: Method,
    /// Sent besides, and instead of, the fetcher's own headers. `Authorization` and `Cookie` do not
    /// follow a redirect to another origin.
    pub headers: HeaderMap,
    /// Request body; with 307 and 308 it is sent again.
    pub body: Bytes,
    /// Ends the fetch even before [`FetcherConfig::total_timeout`].
    pub deadline: Option<Instant>,
    /// Instead of [`FetcherConfig::body_cap`].
    pub body_cap: Option<u64>,
    /// Instead of [`FetcherConfig::max_redirects`].
    pub max_redirects: Option<usize>,
    /// `false` hands a redirect back as it is.
    pub follow_redirects: bool,
    /// Sent as `If-None-Match`; a 304 is then a final answer.
    pub if_none_match: Option<String>,
    /// Sent as `If-Modified-Since`.
    pub if_modified_since: Option<String>,
}

impl FetchRequest {
    /// A plain GET.
    pub fn get(url: Url) -> Self {
        Self {
            url,
            method: Method::GET,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            deadline: None,
            body_cap: None,
            max_redirects: None,
            follow_redirects: true,
            if_none_match: None,
            if_modified_since: None,
        }
    }
}

/// Everything a fetch saw.
#[derive(Debug)]
pub struct FetchResult {
    /// One per exchange that got a response head, in order; the last is the answer.
    pub hops: Vec<Hop>,
    /// Why there is no answer, or why it is not whole.
    pub error: Option<FetchError>,
}

impl FetchResult {
    /// The last exchange; the answer, unless [`Self::error`] says the next one failed.
    pub fn last(&self) -> Option<&Hop> {
        self.hops.last()
    }

    /// The answer: the last hop of a fetch that did not break off before it.
    ///
    /// A body cut by a limit or a closed connection is still an answer.
    pub fn answer(&self) -> Option<&Hop> {
        let last = self.hops.last()?;
        match &self.error {
            Some(error) if error.url != last.url || last.truncated.is_none() => None,
            _ => Some(last),
        }
    }
}

/// One request and its response.
#[derive(Debug)]
pub struct Hop {
    /// What was asked for, without fragment, user name and password.
    pub url: Url,
    /// The request's method.
    pub method: Method,
    /// When the exchange began (before any look-up).
    pub started_at: DateTime<Utc>,
    /// Request line and headers, empty line included. HTTP/1.1: the bytes sent. HTTP/2: the same
    /// request as HTTP/1.1 would put it.
    pub request_head: Bytes,
    /// The request's body.
    pub request_body: Bytes,
    /// Status line and headers, empty line included. HTTP/1.1: the bytes received. HTTP/2: written
    /// as HTTP/1.1.
    pub response_head: Bytes,
    /// `http/1.0`, `http/1.1` or `h2`, as the response says.
    pub protocol: &'static str,
    /// Response status.
    pub status: StatusCode,
    /// Response headers, parsed.
    pub headers: HeaderMap,
    /// The address connected to.
    pub remote_addr: SocketAddr,
    /// The TLS side, shared by the hops of one connection.
    pub tls: Option<Arc<TlsInfo>>,
    /// The body as sent, without the chunked framing, Content-Encoding untouched.
    pub body: Body,
    /// SHA-256 of [`Self::body`].
    pub body_sha256: [u8; 32],
    /// Set when the body is not all of it. On a hop that was followed this is no error: its body was
    /// cut by [`FetcherConfig::redirect_body_cap`] or after a few seconds.
    pub truncated: Option<Truncated>,
    /// Milliseconds from [`Self::started_at`] to the response head.
    pub ttfb_ms: u64,
    /// Milliseconds from [`Self::started_at`] to the end of the body.
    pub total_ms: u64,
}

impl Hop {
    /// [`Self::body_sha256`] as lower-case hex.
    pub fn body_sha256_hex(&self) -> String {
        hex::encode(self.body_sha256)
    }

    /// Media type of `Content-Type`, lower case, without parameters.
    pub fn media_type(&self) -> Option<String> {
        let value = self.headers.get(http::header::CONTENT_TYPE)?;
        let text = String::from_utf8_lossy(value.as_bytes());
        let media = text.split(';').next()?.trim().to_ascii_lowercase();
        (!media.is_empty()).then_some(media)
    }
}

/// Why a body ends early; the words of WARC-Truncated (WARC 1.1 section 5.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truncated {
    /// Larger than the cap.
    Length,
    /// Too slow.
    Time,
    /// The connection ended.
    Disconnect,
}

impl Truncated {
    /// The value of WARC-Truncated.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
        }
    }
}
