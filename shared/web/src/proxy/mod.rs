//! The egress guard as an HTTP proxy: the only way out for a browser tab.
//!
//! One proxy listens on a loopback port per tab (a listener is cheap), so that what it refuses is
//! attributed to the page that asked. It takes `CONNECT` tunnels and absolute-form http requests; both
//! go through the guarded [`Dialer`]. A failure is answered with a small response that carries the
//! code in [`EGRESS_HEADER`]: 403 for a refusal, 504 for a time limit, 502 for the rest.

mod forward;
mod meter;
mod tunnel;

#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::code::FetchCode;
use crate::dial::{DialError, Dialer, DialerConfig, Resolver, SystemResolver};
use crate::guard::{Guard, OwnPort};

/// Response header that carries the code of a failed request.
pub const EGRESS_HEADER: &str = "x-fonds-egress";

/// How a proxy behaves.
#[derive(Clone)]
pub struct ProxyConfig {
    /// Name look-ups.
    pub resolver: Arc<dyn Resolver>,
    /// Time limits of opening a connection.
    pub dial: DialerConfig,
    /// How long an origin may take to send a response head (absolute-form requests).
    pub header_timeout: Duration,
    /// How long a tunnel or body may stand still.
    pub idle_timeout: Duration,
    /// Bytes from the web, over all connections, after which everything is cut.
    pub byte_cap: Option<u64>,
    /// Larger heads are refused, bytes.
    pub max_header_bytes: usize,
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver::default()),
            dial: DialerConfig::default(),
            header_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(120),
            byte_cap: None,
            max_header_bytes: 256 * 1024,
        }
    }
}

/// Something the proxy did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalRecord {
    /// The URL (absolute-form) or `host:port` (tunnel) as asked for.
    pub target: String,
    /// The address refused, when there was one.
    pub addr: Option<SocketAddr>,
    /// [`FetchCode::EgressRefused`], or what else went wrong.
    pub code: FetchCode,
    /// The class of the refusal, or the error's text.
    pub reason: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// Bytes that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProxyBytes {
    /// From the browser to the web.
    pub up: u64,
    /// From the web to the browser.
    pub down: u64,
}

/// A running proxy. Dropping it closes the listener and every connection.
pub struct GuardProxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
    _own: OwnPort,
}

impl GuardProxy {
    /// Listens on a fresh loopback port, which `guard` refuses from then on.
    pub async fn start(guard: Guard, config: ProxyConfig) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let own = guard.own(addr);
        let stop = CancellationToken::new();
        let dialer = Dialer::new(guard, Arc::clone(&config.resolver), config.dial.clone());
        let shared = Arc::new(Shared {
            forwarder: forward::Forwarder::new(dialer.clone(), &config),
            dialer,
            config,
            stop: stop.clone(),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            failures: Mutex::new(Vec::new()),
        });
        tokio::spawn(stop.clone().run_until_cancelled_owned(accept(listener, Arc::clone(&shared))));
        Ok(Self { addr, shared, stop, _own: own })
    }

    /// Where it listens: always a loopback address.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The value for a browser's proxy setting, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// What the guard refused so far, oldest first (the first 1,000).
    pub fn refusals(&self) -> Vec<RefusalRecord> {
        let mut list = self.failures();
        list.retain(|record| record.code == FetchCode::EgressRefused);
        list
    }

    /// Everything that failed so far, refusals included, oldest first (the first 1,000).
    pub fn failures(&self) -> Vec<RefusalRecord> {
        self.shared.lock_failures().clone()
    }

    /// Bytes that passed so far.
    pub fn bytes(&self) -> ProxyBytes {
        ProxyBytes { up: self.shared.up.load(Ordering::Relaxed), down: self.shared.down.load(Ordering::Relaxed) }
    }

    /// Whether the byte cap was reached and connections were cut.
    pub fn is_capped(&self) -> bool {
        self.shared.is_capped()
    }
}

impl Drop for GuardProxy {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What the connections of one proxy share.
struct Shared {
    dialer: Dialer,
    forwarder: forward::Forwarder,
    config: ProxyConfig,
    stop: CancellationToken,
    up: AtomicU64,
    down: AtomicU64,
    failures: Mutex<Vec<RefusalRecord>>,
}

impl Shared {
    const MAX_RECORDS: usize = 1000;

    fn lock_failures(&self) -> std::sync::MutexGuard<'_, Vec<RefusalRecord>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_capped(&self) -> bool {
        self.config.byte_cap.is_some_and(|cap| self.down.load(Ordering::Relaxed) >= cap)
    }

    fn record(&self, target: &str, failure: &Failure) {
        tracing::debug!(target_url = target, code = %failure.code, reason = failure.reason, "egress failed");
        let mut list = self.lock_failures();
        if list.len() < Self::MAX_RECORDS {
            list.push(RefusalRecord {
                target: target.to_owned(),
                addr: failure.addr,
                code: failure.code,
                reason: failure.reason.clone(),
                at: Utc::now(),
            });
        }
    }
}

/// Why a request was not carried out.
#[derive(Debug)]
struct Failure {
    code: FetchCode,
    addr: Option<SocketAddr>,
    reason: String,
}

impl Failure {
    fn new(code: FetchCode, reason: impl Into<String>) -> Self {
        Self { code, addr: None, reason: reason.into() }
    }
}

impl From<&DialError> for Failure {
    fn from(error: &DialError) -> Self {
        match error.refusal() {
            Some(refusal) => Self { code: refusal.code(), addr: Some(refusal.addr), reason: refusal.reason.to_owned() },
            None => Self::new(error.code(), error.to_string()),
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                let stop = shared.stop.clone();
                tokio::spawn(stop.run_until_cancelled_owned(serve(stream, Arc::clone(&shared))));
            }
            // Out of descriptors, most likely: give the others a moment to finish.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: tokio::net::TcpStream, shared: Arc<Shared>) {
    let max_buf = shared.config.max_header_bytes.max(8192);
    let service = service_fn(move |request| forward::handle(Arc::clone(&shared), request));
    // Headers pass as they came: case, order and absence of Date are part of what is archived.
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .preserve_header_case(true)
        .auto_date_header(false)
        .half_close(false)
        .max_buf_size(max_buf)
        .max_headers(512)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::trace!(%error, "proxy connection ended");
    }
}
