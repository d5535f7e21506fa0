//! One proxied request: a tunnel, or a forwarded http message.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::Either;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use http::uri::Scheme;
use http::{Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{Either as EitherBody, Full};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::meter::MeteredBody;
use super::tunnel::{End, splice};
use super::{EGRESS_HEADER, Failure, ProxyConfig, Shared};
use crate::code::FetchCode;
use crate::dial::{DialError, Dialer};
use crate::fetch::error::{chain_text, code_of_client_error, find_source};

type ProxyBody = EitherBody<MeteredBody, Full<Bytes>>;

/// Answers one request of the browser.
pub(super) async fn handle(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<ProxyBody>, Infallible> {
    let target = target_of(&request);
    let answered = if shared.is_capped() {
        Err(Failure::new(FetchCode::BodyTooLarge, "the byte cap of this capture is reached"))
    } else if request.method() == Method::CONNECT {
        connect(&shared, request, &target).await
    } else {
        forward(&shared, request, &target).await
    };
    Ok(answered.unwrap_or_else(|failure| {
        shared.record(&target, &failure);
        refusal_response(&failure)
    }))
}

fn target_of(request: &Request<Incoming>) -> String {
    match request.uri().authority() {
        Some(authority) if request.method() == Method::CONNECT => authority.to_string(),
        _ => request.uri().to_string(),
    }
}

fn refusal_response(failure: &Failure) -> Response<ProxyBody> {
    let status = match failure.code {
        FetchCode::EgressRefused | FetchCode::BodyTooLarge => StatusCode::FORBIDDEN,
        FetchCode::UrlInvalid => StatusCode::BAD_REQUEST,
        FetchCode::ConnectTimeout | FetchCode::HeaderTimeout => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    };
    let text = format!("{}: {}\n", failure.code, failure.reason);
    let mut response = Response::new(EitherBody::Right(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static(EGRESS_HEADER), HeaderValue::from_static(failure.code.as_str()));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

async fn connect(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
    target: &str,
) -> Result<Response<ProxyBody>, Failure> {
    let (host, port) = request
        .uri()
        .authority()
        .and_then(|a| Some((a.host().to_owned(), a.port_u16()?)))
        .ok_or_else(|| Failure::new(FetchCode::UrlInvalid, "CONNECT wants host:port"))?;
    let web = shared.dialer.connect(&host, port).await.map_err(|error| Failure::from(&error))?;
    let browser = hyper::upgrade::on(request);
    spawn_splice(shared, target.to_owned(), browser, Either::Left(web));
    Ok(Response::new(EitherBody::Right(Full::default())))
}

/// Joins the two ends once the browser's (and the origin's) side has switched protocols.
fn spawn_splice(shared: &Arc<Shared>, target: String, browser: OnUpgrade, web: Either<TcpStream, OnUpgrade>) {
    let shared = Arc::clone(shared);
    let stop = shared.stop.clone();
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        let Ok(browser) = browser.await else { return };
        let browser = TokioIo::new(browser);
        let end = match web {
            Either::Left(stream) => splice(&shared, browser, stream).await,
            Either::Right(upgrade) => match upgrade.await {
                Ok(web) => splice(&shared, browser, TokioIo::new(web)).await,
                Err(_) => End::Closed,
            },
        };
        let failure = match end {
            End::Closed => return,
            End::Idle => Failure::new(FetchCode::BodyTimeout, "the tunnel stood still"),
            End::Capped => Failure::new(FetchCode::BodyTooLarge, "the byte cap is reached"),
        };
        shared.record(&target, &failure);
    }));
}

async fn forward(
    shared: &Arc<Shared>,
    mut request: Request<Incoming>,
    target: &str,
) -> Result<Response<ProxyBody>, Failure> {
    let absolute = request.uri().scheme() == Some(&Scheme::HTTP) && request.uri().host().is_some();
    if !absolute {
        return Err(Failure::new(FetchCode::UrlInvalid, "a proxy takes CONNECT or an absolute http URL"));
    }
    let upgrade = wanted_upgrade(request.headers());
    strip_hop_by_hop(request.headers_mut());
    let browser_side = upgrade.map(|protocol| {
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
        hyper::upgrade::on(&mut request)
    });
    *request.version_mut() = Version::HTTP_11;
    let mut response = shared.forwarder.send(request).await?;
    // Only this proxy speaks with this header; an origin that sends it is lying.
    response.headers_mut().remove(EGRESS_HEADER);
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let Some(browser) = browser_side else {
            return Err(Failure::new(FetchCode::HttpMalformed, "the origin switched protocols unasked"));
        };
        let web = hyper::upgrade::on(&mut response);
        spawn_splice(shared, target.to_owned(), browser, Either::Right(web));
    }
    Ok(response.map(|body| EitherBody::Left(MeteredBody::new(body, Arc::clone(shared)))))
}

/// The protocol a request wants to switch to (RFC 9110 section 7.8).
fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|token| token.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(UPGRADE).filter(|_| asks).cloned()
}

/// RFC 9110 section 7.6.1: these end at this proxy.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|token| token.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in ["connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "upgrade"] {
        headers.remove(name);
    }
}

/// The client side of forwarded http messages: one connection pool per proxy.
pub(super) struct Forwarder {
    client: Client<PlainConnector, Incoming>,
    header_timeout: Duration,
}

impl Forwarder {
    pub(super) fn new(dialer: Dialer, config: &ProxyConfig) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(10))
            .http1_preserve_header_case(true)
            .http1_max_buf_size(config.max_header_bytes.max(8192))
            .http1_max_headers(512)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_ignore_invalid_headers_in_responses(true)
            .build(PlainConnector { dialer });
        Self { client, header_timeout: config.header_timeout }
    }

    async fn send(&self, request: Request<Incoming>) -> Result<Response<Incoming>, Failure> {
        match timeout(self.header_timeout, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(match find_source::<DialError>(&error) {
                Some(dial) => Failure::from(dial),
                None => Failure::new(code_of_client_error(&error), chain_text(&error)),
            }),
            Err(_) => Err(Failure::new(FetchCode::HeaderTimeout, "no response head in time")),
        }
    }
}

/// Opens guarded plain TCP connections for the forwarding client.
#[derive(Clone)]
struct PlainConnector {
    dialer: Dialer,
}

impl tower_service::Service<Uri> for PlainConnector {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.dialer.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let port = uri.port_u16().unwrap_or(80);
            Ok(TokioIo::new(dialer.connect(host, port).await?))
        })
    }
}
