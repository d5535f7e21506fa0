//! The server behind the tests.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::reply::{Act, Message, Reply};
use super::{faults, files, site};

/// A reply computed from a request.
pub type Handler = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

/// What an origin serves.
#[derive(Clone, Default)]
pub struct OriginConfig {
    /// Where to listen; a free port of 127.0.0.1 by default.
    pub bind: Option<SocketAddr>,
    /// A directory to serve from `/`.
    pub files: Option<PathBuf>,
    /// Pages of the generated site below `/site/`; 0 for none.
    pub pages: usize,
    /// Keep the heads of requests, for [`Origin::requests`].
    pub record: bool,
    /// Wait before each reply.
    pub latency: Duration,
    /// TLS; `None` is plain HTTP. Clients that choose `h2` get HTTP/2.
    pub tls: Option<Arc<ServerConfig>>,
    /// Replies by path; filled by [`Self::route`] and [`Self::handle`].
    pub routes: HashMap<String, Handler>,
}

impl OriginConfig {
    /// Serves the fault catalogue only.
    pub fn new() -> Self {
        Self::default()
    }

    /// A fixed reply to a path (without query).
    #[must_use]
    pub fn route(self, path: &str, reply: impl Into<Reply>) -> Self {
        let reply = reply.into();
        self.handle(path, move |_| reply.clone())
    }

    /// A computed reply to a path (without query).
    #[must_use]
    pub fn handle(mut self, path: &str, handler: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        self.routes.insert(path.to_owned(), Arc::new(handler));
        self
    }
}

/// A request as the origin saw it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Method.
    pub method: String,
    /// Path and query as sent.
    pub target: String,
    /// Request line and headers, empty line included.
    pub head: Bytes,
    /// Body.
    pub body: Bytes,
}

impl Seen {
    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or(&self.target)
    }

    /// The value of a header, trimmed; the first if there are more.
    pub fn header(&self, name: &str) -> Option<&str> {
        let text = std::str::from_utf8(&self.head).ok()?;
        text.lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }
}

/// A running origin. Dropping it closes everything.
pub struct Origin {
    addr: SocketAddr,
    is_tls: bool,
    state: Arc<State>,
    stop: CancellationToken,
}

struct State {
    config: OriginConfig,
    connections: AtomicU64,
    served: AtomicU64,
    hits: Mutex<HashMap<String, u64>>,
    requests: Mutex<Vec<Seen>>,
}

impl Origin {
    /// Starts serving.
    pub async fn start(config: OriginConfig) -> io::Result<Self> {
        let bind = config.bind.unwrap_or((Ipv4Addr::LOCALHOST, 0).into());
        let listener = TcpListener::bind(bind).await?;
        let addr = listener.local_addr()?;
        let stop = CancellationToken::new();
        let acceptor = config.tls.clone().map(TlsAcceptor::from);
        let state = Arc::new(State {
            connections: AtomicU64::new(0),
            served: AtomicU64::new(0),
            hits: Mutex::default(),
            requests: Mutex::default(),
            config,
        });
        let accepting = accept(listener, acceptor.clone(), Arc::clone(&state), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(accepting));
        Ok(Self { addr, is_tls: acceptor.is_some(), state, stop })
    }

    /// Where it listens.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A URL of this origin. TLS origins are called `localhost`, as their certificates are.
    ///
    /// # Panics
    /// When `path` makes no URL: the test is wrong.
    #[expect(clippy::expect_used, reason = "a wrong path must fail its test")]
    pub fn url(&self, path: &str) -> Url {
        let base = match self.is_tls {
            true => format!("https://localhost:{}", self.addr.port()),
            false => format!("http://{}", self.addr),
        };
        format!("{base}{path}").parse().expect("a URL")
    }

    /// Requests for a path, whatever the query.
    pub fn hits(&self, path: &str) -> u64 {
        lock(&self.state.hits).get(path).copied().unwrap_or(0)
    }

    /// All requests.
    pub fn served(&self) -> u64 {
        self.state.served.load(Ordering::Relaxed)
    }

    /// Connections accepted.
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// The requests so far, if [`OriginConfig::record`] is set.
    pub fn requests(&self) -> Vec<Seen> {
        lock(&self.state.requests).clone()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, state: Arc<State>, stop: CancellationToken) {
    loop {
        let Ok((tcp, _)) = listener.accept().await else {
            continue;
        };
        state.connections.fetch_add(1, Ordering::Relaxed);
        let _ = tcp.set_nodelay(true);
        let serving = serve(tcp, acceptor.clone(), Arc::clone(&state));
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
    }
}

async fn serve(tcp: TcpStream, acceptor: Option<TlsAcceptor>, state: Arc<State>) {
    let Some(acceptor) = acceptor else {
        serve_h1(tcp, &state).await;
        return;
    };
    let Ok(tls) = acceptor.accept(tcp).await else {
        return;
    };
    if tls.get_ref().1.alpn_protocol() == Some(b"h2") {
        serve_h2(tls, state).await;
    } else {
        serve_h1(tls, &state).await;
    }
}

/// Sockets that can be made to end in a reset.
trait Wire: AsyncRead + AsyncWrite + Unpin {
    fn prepare_reset(&self);
}

impl Wire for TcpStream {
    fn prepare_reset(&self) {
        // A close with a linger time of zero is a reset.
        let _ = self.set_zero_linger();
    }
}

impl Wire for tokio_rustls::server::TlsStream<TcpStream> {
    fn prepare_reset(&self) {
        self.get_ref().0.prepare_reset();
    }
}

async fn serve_h1(mut wire: impl Wire, state: &State) {
    let mut buffer = BytesMut::with_capacity(8192);
    while let Ok(Some(seen)) = next_request(&mut wire, &mut buffer).await {
        if !state.config.latency.is_zero() {
            tokio::time::sleep(state.config.latency).await;
        }
        let reply = state.reply(&seen);
        let head_only = seen.method == "HEAD";
        let goes_on = match reply {
            Reply::Message(message) => wire.write_all(&message.to_h1(head_only)).await.is_ok(),
            Reply::Script(acts) => play(&mut wire, acts).await,
        };
        if !goes_on {
            break;
        }
    }
    let _ = wire.shutdown().await;
}

/// Plays a script; whether the connection goes on.
async fn play(wire: &mut impl Wire, acts: Vec<Act>) -> bool {
    let mut goes_on = false;
    for act in acts {
        let done = match act {
            Act::Send(bytes) => wire.write_all(&bytes).await,
            Act::Repeat(bytes, times, pause) => repeat(wire, &bytes, times, pause).await,
            Act::Wait(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Act::Hang => {
                let mut sink = [0; 256];
                while matches!(wire.read(&mut sink).await, Ok(n) if n > 0) {}
                Err(io::ErrorKind::BrokenPipe.into())
            }
            Act::Reset => {
                wire.prepare_reset();
                return false;
            }
            Act::KeepAlive => {
                goes_on = true;
                Ok(())
            }
        };
        if done.is_err() {
            return false;
        }
    }
    goes_on
}

async fn repeat(wire: &mut impl Wire, bytes: &[u8], times: Option<u64>, pause: Duration) -> io::Result<()> {
    let mut count = 0;
    while times.is_none_or(|times| count < times) {
        wire.write_all(bytes).await?;
        wire.flush().await?;
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        count += 1;
    }
    Ok(())
}

/// The next request, or `None` at the end of the connection.
async fn next_request(wire: &mut impl Wire, buffer: &mut BytesMut) -> io::Result<Option<Seen>> {
    loop {
        if let Some((mut seen, length)) = parse(buffer)? {
            while buffer.len() < length {
                if wire.read_buf(buffer).await? == 0 {
                    return Ok(None);
                }
            }
            seen.body = buffer.split_to(length).freeze();
            return Ok(Some(seen));
        }
        if buffer.len() > 1 << 20 || wire.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// Takes a whole head off the buffer; the length of the body that follows.
fn parse(buffer: &mut BytesMut) -> io::Result<Option<(Seen, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(buffer);
    let parsed = parsed.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
    let httparse::Status::Complete(end) = parsed else {
        return Ok(None);
    };
    let length = request
        .headers
        .iter()
        .find(|h| h.name.eq_ignore_ascii_case("content-length"))
        .and_then(|h| std::str::from_utf8(h.value).ok()?.trim().parse().ok())
        .unwrap_or(0);
    let seen = Seen {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        head: Bytes::copy_from_slice(&buffer[..end]),
        body: Bytes::new(),
    };
    buffer.advance(end);
    Ok(Some((seen, length)))
}

impl State {
    fn reply(&self, seen: &Seen) -> Reply {
        self.served.fetch_add(1, Ordering::Relaxed);
        let path = seen.path();
        {
            let mut hits = lock(&self.hits);
            match hits.get_mut(path) {
                Some(count) => *count += 1,
                None => {
                    hits.insert(path.to_owned(), 1);
                }
            }
        }
        if self.config.record {
            lock(&self.requests).push(seen.clone());
        }
        if let Some(handler) = self.config.routes.get(path) {
            return handler(seen);
        }
        if let Some(reply) = faults::reply(seen) {
            return reply;
        }
        let file = self.config.files.as_ref();
        let message = file
            .and_then(|root| files::serve(root, path, seen.header("if-none-match")))
            .or_else(|| site::serve(self.config.pages, path));
        Reply::Message(
            message.unwrap_or_else(|| Message::new(404, "text/html; charset=utf-8", "<title>Not here</title>\n")),
        )
    }
}

/// HTTP/2: proper messages only; a script cannot be played in frames.
async fn serve_h2(tls: tokio_rustls::server::TlsStream<TcpStream>, state: Arc<State>) {
    let service = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let state = Arc::clone(&state);
        async move {
            let mut head = format!("{} {} HTTP/2\r\n", request.method(), request.uri());
            for (name, value) in request.headers() {
                head.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
            }
            let target = request.uri().path_and_query().map_or("/", |p| p.as_str());
            let seen = Seen {
                method: request.method().to_string(),
                target: target.to_owned(),
                head: head.into(),
                body: Bytes::new(),
            };
            let message = match state.reply(&seen) {
                Reply::Message(message) => message,
                Reply::Script(_) => Message::new(501, "text/plain", "not in HTTP/2\n"),
            };
            let mut response = http::Response::builder().status(message.status);
            for (name, value) in &message.headers {
                response = response.header(name, value);
            }
            response.body(Full::new(message.body))
        }
    });
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(tls), service)
        .await;
}
