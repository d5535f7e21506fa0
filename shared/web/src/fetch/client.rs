//! The fetcher: a client with a pool, and the walk along redirects.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST,
    HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, TRANSFER_ENCODING, USER_AGENT,
};
use http::{Method, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::percent_decode_str;
use tokio::time::Instant;
use url::Url;

use super::connector::Connector;
use super::cookies::Jar;
use super::error::FetchError;
use super::exchange::{Exchange, HttpClient};
use super::redirect::{Step, next_method, step};
use super::tls::TlsClient;
use super::{FetchRequest, FetchResult, FetcherConfig};
use crate::code::FetchCode;
use crate::dial::Dialer;

/// A configuration no fetcher can be made of.
#[derive(Debug, thiserror::Error)]
pub enum FetcherError {
    /// A root certificate cannot be read.
    #[error("TLS set-up: {0}")]
    Tls(#[from] rustls::Error),
    /// A header value with control characters.
    #[error("the value of {0} is not a header value")]
    Header(&'static str),
}

impl FetcherError {
    /// Always: the configuration must change.
    pub const fn is_permanent(&self) -> bool {
        true
    }
}

/// Fetches URLs. One per process is right: clones share connections.
#[derive(Clone)]
pub struct Fetcher {
    inner: Arc<Inner>,
}

struct Inner {
    config: FetcherConfig,
    client: HttpClient,
    /// Sent with every request, in this order, after `Host`.
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Fetcher {
    /// A fetcher that behaves as `config` says.
    pub fn new(config: FetcherConfig) -> Result<Self, FetcherError> {
        let tls = TlsClient::new(config.http2, config.accept_invalid_certs, &config.extra_roots)?;
        let connector = Connector {
            dialer: Dialer::new(config.guard.clone(), Arc::clone(&config.resolver), config.dial.clone()),
            tls: Arc::new(tls),
            tls_timeout: config.tls_timeout,
            max_header_bytes: config.max_header_bytes,
        };
        let mut headers = Vec::new();
        for (name, text) in [
            (USER_AGENT, &config.user_agent),
            (ACCEPT, &config.accept),
            (ACCEPT_LANGUAGE, &config.accept_language),
            (ACCEPT_ENCODING, &config.accept_encoding),
        ] {
            if !text.is_empty() {
                let value = HeaderValue::from_str(text);
                let value = value.map_err(|_| FetcherError::Header("a default header"))?;
                headers.push((name, value));
            }
        }
        Ok(Self { inner: Arc::new(Inner { client: client(&config, connector), headers, config }) })
    }

    /// What it was made with.
    pub fn config(&self) -> &FetcherConfig {
        &self.inner.config
    }

    /// Fetches one URL, following redirects. Every exchange that got a response is in the result.
    pub async fn fetch(&self, request: FetchRequest) -> FetchResult {
        // Boxed: the future holds an exchange's state, and callers hold many futures.
        Box::pin(Walk::new(&self.inner, request).run()).await
    }
}

fn client(config: &FetcherConfig, connector: Connector) -> HttpClient {
    let max_head = config.max_header_bytes.max(8192);
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(config.pool_idle_timeout)
        .pool_max_idle_per_host(config.pool_max_idle_per_host)
        // As browsers write them; some old servers know no other case.
        .http1_title_case_headers(true)
        // As forgiving as browsers are: what is odd is still to be archived.
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true)
        .http1_max_buf_size(max_head)
        .http1_max_headers(512)
        .http2_max_header_list_size(u32::try_from(max_head).unwrap_or(u32::MAX))
        .http2_initial_stream_window_size(Some(2 << 20))
        .http2_initial_connection_window_size(Some(4 << 20))
        // A connection that died while this process was frozen gives no sign of it otherwise.
        .http2_keep_alive_interval(Some(Duration::from_secs(15)))
        .http2_keep_alive_timeout(Duration::from_secs(10))
        .build(connector)
}

/// One fetch on its way.
struct Walk<'a> {
    inner: &'a Inner,
    request: FetchRequest,
    deadline: Instant,
    jar: Jar,
    /// What was asked before: the URL and the cookies it was asked with. A site that redirects to
    /// itself after setting a cookie is no loop.
    seen: Vec<(Method, Url, Option<String>)>,
    result: FetchResult,
}

impl<'a> Walk<'a> {
    fn new(inner: &'a Inner, mut request: FetchRequest) -> Self {
        let latest = Instant::now() + inner.config.total_timeout;
        let deadline = request.deadline.map_or(latest, |d| d.min(latest));
        if let Some(value) = basic_auth(&request.url) {
            request.headers.entry(AUTHORIZATION).or_insert(value);
        }
        for (name, text) in [(IF_NONE_MATCH, &request.if_none_match), (IF_MODIFIED_SINCE, &request.if_modified_since)] {
            if let Some(value) = text.as_ref().and_then(|t| HeaderValue::from_str(t).ok()) {
                request.headers.insert(name, value);
            }
        }
        Self {
            inner,
            deadline,
            request,
            jar: Jar::default(),
            seen: Vec::new(),
            result: FetchResult { hops: Vec::new(), error: None },
        }
    }

    async fn run(mut self) -> FetchResult {
        while let Some(next) = self.one().await {
            if let Err(error) = self.turn_to(next) {
                self.result.error = Some(*error);
                break;
            }
        }
        self.result
    }

    /// One exchange. The URL to go on with, if any.
    async fn one(&mut self) -> Option<Url> {
        let url = wire_url(&self.request.url);
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            let detail = "not an http or https URL with a host";
            self.result.error = Some(FetchError::new(FetchCode::UrlInvalid, &url, detail));
            return None;
        }
        let cookie = self.jar.header_for(&url);
        let headers = match self.headers(&url, cookie.as_deref()) {
            Ok(headers) => headers,
            Err(error) => {
                self.result.error = Some(*error);
                return None;
            }
        };
        let method = self.request.method.clone();
        self.seen.push((method.clone(), url.clone(), cookie));
        let config = &self.inner.config;
        let exchange = Exchange {
            client: &self.inner.client,
            config,
            url: &url,
            method: &method,
            headers,
            body: &self.request.body,
            body_cap: self.request.body_cap.unwrap_or(config.body_cap),
            follow: self.request.follow_redirects,
            deadline: self.deadline,
        };
        let (hop, cut) = match exchange.run().await {
            Ok(exchanged) => exchanged,
            Err(error) => {
                self.result.error = Some(error);
                return None;
            }
        };
        self.jar.take(&hop.headers, &url);
        let step = match self.request.follow_redirects {
            true => step(hop.status, &hop.headers, &self.request.url),
            false => Step::Stop,
        };
        let status = hop.status;
        self.result.hops.push(hop);
        match step {
            // The body of a redirect is kept as far as it came, but nobody waits for it.
            Step::Follow(next) => {
                self.follow_method(status);
                Some(next)
            }
            Step::Stop => {
                self.result.error = cut;
                None
            }
            Step::Fail(code, detail) => {
                self.result.error = Some(FetchError::new(code, &url, detail));
                None
            }
        }
    }

    fn headers(&self, url: &Url, cookie: Option<&str>) -> Result<HeaderMap, Box<FetchError>> {
        let given = &self.request.headers;
        let mut headers = HeaderMap::with_capacity(8 + given.len());
        // First, as RFC 9110 section 7.2 asks. HTTP/2 says it in `:authority`, so where that may be
        // spoken the client adds it once it knows.
        if url.scheme() == "http" || !self.inner.config.http2 {
            let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
            let host = HeaderValue::from_str(host)
                .map_err(|e| Box::new(FetchError::new(FetchCode::UrlInvalid, url, e.to_string())))?;
            headers.insert(HOST, host);
        }
        for (name, value) in &self.inner.headers {
            if !given.contains_key(name) {
                headers.insert(name.clone(), value.clone());
            }
        }
        for (name, value) in given {
            // Framing and routing are the client's.
            if ![HOST, CONNECTION, TRANSFER_ENCODING, CONTENT_LENGTH].contains(name) {
                headers.append(name.clone(), value.clone());
            }
        }
        if let Some(cookie) = cookie {
            let all = match given.get(COOKIE).and_then(|v| v.to_str().ok()) {
                Some(given) => format!("{given}; {cookie}"),
                None => cookie.to_owned(),
            };
            if let Ok(value) = HeaderValue::from_str(&all) {
                headers.insert(COOKIE, value);
            }
        }
        Ok(headers)
    }

    fn follow_method(&mut self, status: StatusCode) {
        let method = next_method(status, &self.request.method);
        if method != self.request.method {
            self.request.body = Bytes::new();
            for name in [CONTENT_LENGTH, CONTENT_TYPE] {
                self.request.headers.remove(name);
            }
        }
        self.request.method = method;
    }

    /// Makes `next` the URL to ask, unless that leads nowhere.
    fn turn_to(&mut self, next: Url) -> Result<(), Box<FetchError>> {
        let target = wire_url(&next);
        let limit = self.request.max_redirects;
        let limit = limit.unwrap_or(self.inner.config.max_redirects);
        if self.seen.len() > limit {
            let detail = format!("more than {limit} redirects");
            return Err(Box::new(FetchError::new(FetchCode::TooManyRedirects, &target, detail)));
        }
        let again = (self.request.method.clone(), target, self.jar.header_for(&wire_url(&next)));
        if self.seen.contains(&again) {
            let detail = "redirected to where it came from";
            return Err(Box::new(FetchError::new(FetchCode::RedirectLoop, &again.1, detail)));
        }
        if next.origin() != self.request.url.origin() {
            self.request.headers.remove(AUTHORIZATION);
            self.request.headers.remove(COOKIE);
        }
        if let Some(value) = basic_auth(&next) {
            self.request.headers.insert(AUTHORIZATION, value);
        }
        self.request.headers.remove(IF_NONE_MATCH);
        self.request.headers.remove(IF_MODIFIED_SINCE);
        self.request.url = next;
        Ok(())
    }
}

/// What goes on the wire and into the record: no fragment, no password.
fn wire_url(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    // Both fail only for URLs without a host, which are refused later.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

/// RFC 7617 credentials of a URL with a user name.
fn basic_auth(url: &Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}
