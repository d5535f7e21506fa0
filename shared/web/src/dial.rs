//! Names to addresses to sockets. The one place of this crate where a connection is opened.
//!
//! The address the guard checks is the address the socket is opened to, on every connection, so an
//! answer that changes between two look-ups (DNS rebinding) gains nothing.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use url::Host;

use crate::code::FetchCode;
use crate::guard::{Guard, Refusal};

/// Turns a name into addresses. Never asked for address literals or `localhost`.
#[async_trait::async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// The addresses of `name` (lower case, punycode), best first. An empty list means none.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The platform's resolver (hosts file, search list, name service switch), with a short memory.
pub struct SystemResolver {
    memory: Mutex<HashMap<String, (Instant, Vec<IpAddr>)>>,
    ttl: Duration,
}

impl SystemResolver {
    const MAX_NAMES: usize = 4096;

    /// A resolver that repeats an answer for `ttl` before asking again.
    pub fn new(ttl: Duration) -> Self {
        Self { memory: Mutex::new(HashMap::new()), ttl }
    }

    fn remembered(&self, name: &str) -> Option<Vec<IpAddr>> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, ips) = memory.get(name)?;
        (*until > Instant::now()).then(|| ips.clone())
    }

    fn remember(&self, name: &str, ips: &[IpAddr]) {
        let now = Instant::now();
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.len() >= Self::MAX_NAMES {
            memory.retain(|_, (until, _)| *until > now);
            if memory.len() >= Self::MAX_NAMES {
                memory.clear();
            }
        }
        memory.insert(name.to_owned(), (now + self.ttl, ips.to_vec()));
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new(Duration::from_secs(30))
    }
}

#[async_trait::async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        if let Some(ips) = self.remembered(name) {
            return Ok(ips);
        }
        let mut ips = Vec::new();
        for addr in tokio::net::lookup_host((name, 0)).await? {
            if !ips.contains(&addr.ip()) {
                ips.push(addr.ip());
            }
        }
        if !ips.is_empty() {
            self.remember(name, &ips);
        }
        Ok(ips)
    }
}

/// Why no connection was opened.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The host is neither a name nor an address.
    #[error("\"{0}\" is no host")]
    BadHost(String),
    /// Every address of the host is refused; this is the first of them.
    #[error("{host}: {refusal}")]
    Refused {
        /// The host as asked for.
        host: String,
        /// The guard's answer.
        refusal: Refusal,
    },
    /// No address.
    #[error("{host}: no address ({reason})")]
    Dns {
        /// The name looked up.
        host: String,
        /// The resolver's words.
        reason: String,
    },
    /// No permitted address took the connection.
    #[error("{addr}: {source}")]
    Connect {
        /// The last address tried.
        addr: SocketAddr,
        /// The system's words.
        source: io::Error,
    },
    /// No permitted address answered in time.
    #[error("{addr}: no answer in {after:?}")]
    Timeout {
        /// The first address tried.
        addr: SocketAddr,
        /// The limit.
        after: Duration,
    },
}

impl DialError {
    /// The stable code.
    pub const fn code(&self) -> FetchCode {
        match self {
            Self::BadHost(_) => FetchCode::UrlInvalid,
            Self::Refused { .. } => FetchCode::EgressRefused,
            Self::Dns { .. } => FetchCode::DnsFailed,
            Self::Connect { .. } => FetchCode::ConnectFailed,
            Self::Timeout { .. } => FetchCode::ConnectTimeout,
        }
    }

    /// Whether asking again cannot help.
    pub const fn is_permanent(&self) -> bool {
        self.code().is_permanent()
    }

    /// The refusal, if it was one.
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}

/// Time limits of opening a connection.
#[derive(Debug, Clone)]
pub struct DialerConfig {
    /// For the look-up.
    pub dns_timeout: Duration,
    /// For the connection, over all addresses.
    pub connect_timeout: Duration,
    /// How long one address is tried alone before the next joins (RFC 8305 section 5).
    pub stagger: Duration,
}

impl Default for DialerConfig {
    fn default() -> Self {
        Self {
            dns_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            stagger: Duration::from_millis(250),
        }
    }
}

/// Opens guarded TCP connections. Cheap to clone.
#[derive(Clone)]
pub struct Dialer {
    guard: Guard,
    resolver: Arc<dyn Resolver>,
    config: Arc<DialerConfig>,
}

impl Dialer {
    /// A dialer under `guard`.
    pub fn new(guard: Guard, resolver: Arc<dyn Resolver>, config: DialerConfig) -> Self {
        Self { guard, resolver, config: Arc::new(config) }
    }

    /// The guard it asks.
    pub const fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Connects to `host` (a name, an address, a bracketed IPv6 address, or any spelling of an IPv4
    /// address the WHATWG URL standard knows) at `port`.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let addrs = self.permitted(host, port).await?;
        let first = addrs[0];
        let limit = self.config.connect_timeout;
        let stream = match timeout(limit, race(&addrs, self.config.stagger)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err((addr, source))) => return Err(DialError::Connect { addr, source }),
            Err(_) => {
                return Err(DialError::Timeout { addr: first, after: limit });
            }
        };
        // Small writes (heads, TLS records) must not wait for an ACK; failing to say so is harmless.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    /// The addresses of `host` the guard lets through, in the order to try; never empty.
    async fn permitted(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        let parsed = Host::parse(host).map_err(|_| DialError::BadHost(host.to_owned()))?;
        let ips = match parsed {
            Host::Ipv4(ip) => vec![IpAddr::V4(ip)],
            Host::Ipv6(ip) => vec![IpAddr::V6(ip)],
            Host::Domain(name) => self.look_up(&name).await?,
        };
        let mut refused = None;
        let mut addrs = Vec::with_capacity(ips.len());
        for ip in ips {
            match self.guard.check(ip, port) {
                Ok(()) => addrs.push(SocketAddr::new(ip, port)),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        match (addrs.is_empty(), refused) {
            (false, _) => Ok(alternate_families(addrs)),
            (true, Some(refusal)) => Err(DialError::Refused { host: host.to_owned(), refusal }),
            (true, None) => Err(DialError::Dns { host: host.to_owned(), reason: "the answer is empty".to_owned() }),
        }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, DialError> {
        // RFC 6761 section 6.3: these never leave the machine, whatever a resolver says.
        let bare = name.strip_suffix('.').unwrap_or(name);
        if bare == "localhost" || bare.ends_with(".localhost") {
            return Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
        }
        let failed = |reason: String| DialError::Dns { host: name.to_owned(), reason };
        if bare.is_empty() || bare.len() > 253 || bare.split('.').any(|l| l.len() > 63) {
            return Err(failed("the name is not a DNS name".to_owned()));
        }
        match timeout(self.config.dns_timeout, self.resolver.resolve(name)).await {
            Ok(Ok(ips)) => Ok(ips),
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed("the look-up timed out".to_owned())),
        }
    }
}

/// RFC 8305 section 4: families alternate, starting with the resolver's favourite.
fn alternate_families(addrs: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v4 = addrs.first().is_some_and(SocketAddr::is_ipv4);
    let (mut a, mut b): (Vec<_>, Vec<_>) = addrs.into_iter().partition(|x| x.is_ipv4() == first_is_v4);
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.drain(..), b.drain(..));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return out,
            (x, y) => out.extend(x.into_iter().chain(y)),
        }
    }
}

/// Tries the addresses in turn, each joined by the next after `stagger` or upon failure.
async fn race(addrs: &[SocketAddr], stagger: Duration) -> Result<TcpStream, (SocketAddr, io::Error)> {
    if let [only] = addrs {
        return TcpStream::connect(*only).await.map_err(|e| (*only, e));
    }
    let mut queue = addrs.iter().copied();
    let mut running = FuturesUnordered::new();
    let mut last = None;
    loop {
        if let Some(addr) = queue.next() {
            running.push(async move { TcpStream::connect(addr).await.map_err(|e| (addr, e)) });
        }
        let waiting = queue.len() > 0;
        let next = if waiting {
            match timeout(stagger, running.next()).await {
                Ok(next) => next,
                Err(_) => continue,
            }
        } else {
            running.next().await
        };
        match next {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => last = Some(error),
            None => {
                return Err(last.unwrap_or_else(|| {
                    let none = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
                    (none, io::ErrorKind::AddrNotAvailable.into())
                }));
            }
        }
    }
}
