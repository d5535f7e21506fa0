//! Connections of the fetcher: guarded, perhaps TLS, and taking notes.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::recorder::{Heads, Recorder};
use super::tls::{TlsClient, TlsFailure, TlsInfo, VERDICT, Verdict};
use crate::dial::{DialError, Dialer};

/// What is known about a connection.
#[derive(Debug)]
pub(super) struct ConnInfo {
    pub(super) remote: SocketAddr,
    pub(super) tls: Option<Arc<TlsInfo>>,
    pub(super) is_h2: bool,
    pub(super) recorder: Recorder,
}

/// Hangs on every response, carrying the heads of *its* exchange.
///
/// The client copies this value onto the response while the exchange still owns the connection; an
/// instant later the connection may serve someone else. So the copy itself is the moment to take the
/// heads off the recorder, which is why `Clone` is written by hand.
#[derive(Debug)]
pub(super) struct ConnTag {
    pub(super) info: Arc<ConnInfo>,
    pub(super) heads: Heads,
}

impl Clone for ConnTag {
    fn clone(&self) -> Self {
        Self { heads: self.info.recorder.heads(), info: Arc::clone(&self.info) }
    }
}

/// Opens the fetcher's connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) dialer: Dialer,
    pub(super) tls: Arc<TlsClient>,
    pub(super) tls_timeout: Duration,
    pub(super) max_header_bytes: usize,
}

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Tls(#[from] TlsFailure),
    #[error("the connection broke at once: {0}")]
    Io(#[from] io::Error),
}

impl ConnectError {
    /// The part a caller looks for: `transparent` would hide it from a walk along the sources.
    fn into_boxed(self) -> Box<dyn std::error::Error + Send + Sync> {
        match self {
            Self::Dial(error) => error.into(),
            Self::Tls(error) => error.into(),
            Self::Io(error) => error.into(),
        }
    }
}

impl Connector {
    async fn connect(self, uri: Uri) -> Result<TokioIo<WebConnection>, ConnectError> {
        let host = uri.host().unwrap_or_default();
        let is_tls = uri.scheme() == Some(&Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tcp = self.dialer.connect(host, port).await?;
        let remote = tcp.peer_addr()?;
        let (stream, tls) = if is_tls {
            let (stream, info) = self.handshake(tcp, host).await?;
            (Stream::Tls(Box::new(stream)), Some(Arc::new(info)))
        } else {
            (Stream::Plain(tcp), None)
        };
        let info = ConnInfo { remote, is_h2: stream.is_h2(), tls, recorder: Recorder::new(self.max_header_bytes) };
        Ok(TokioIo::new(WebConnection { stream, info: Arc::new(info) }))
    }

    async fn handshake(&self, tcp: TcpStream, host: &str) -> Result<(TlsStream<TcpStream>, TlsInfo), ConnectError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        let name = ServerName::try_from(bare).map_err(|_| DialError::BadHost(host.to_owned()))?.to_owned();
        let connector = TlsConnector::from(Arc::clone(&self.tls.config));
        let shaken = VERDICT.scope(RefCell::new(Verdict::default()), async {
            let shaken = timeout(self.tls_timeout, connector.connect(name.clone(), tcp)).await;
            (shaken, VERDICT.with(|cell| *cell.borrow()))
        });
        match shaken.await {
            (Ok(Ok(stream)), verdict) => {
                let info = self.tls.describe(stream.get_ref().1, &name, verdict);
                Ok((stream, info))
            }
            (Ok(Err(error)), verdict) => Err(TlsFailure::of(error, verdict.problem).into()),
            (Err(_), _) => Err(TlsFailure::Timeout(self.tls_timeout).into()),
        }
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<WebConnection>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.clone().connect(uri);
        Box::pin(async move { connecting.await.map_err(ConnectError::into_boxed) })
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    fn is_h2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

/// A connection to a web server.
pub(super) struct WebConnection {
    stream: Stream,
    info: Arc<ConnInfo>,
}

impl Connection for WebConnection {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(ConnTag { info: Arc::clone(&self.info), heads: Heads::default() });
        match self.info.is_h2 {
            true => connected.negotiated_h2(),
            false => connected,
        }
    }
}

impl AsyncRead for WebConnection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = match &mut this.stream {
            Stream::Plain(s) => ready!(Pin::new(s).poll_read(cx, buf)),
            Stream::Tls(s) => ready!(Pin::new(s).poll_read(cx, buf)),
        };
        match read {
            Ok(()) => {}
            // Many servers end TLS by closing the socket. HTTP's own framing tells whether the
            // message was whole, so this is an end like any other.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(e) => return Poll::Ready(Err(e)),
        }
        if !this.info.is_h2 {
            this.info.recorder.read(&buf.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WebConnection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let n = match &mut this.stream {
            Stream::Plain(s) => ready!(Pin::new(s).poll_write(cx, buf)),
            Stream::Tls(s) => ready!(Pin::new(s).poll_write(cx, buf)),
        }?;
        if !this.info.is_h2 {
            this.info.recorder.wrote(&buf[..n]);
        }
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(s) => Pin::new(s).poll_flush(cx),
            Stream::Tls(s) => Pin::new(s).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Tls(s) => Pin::new(s).poll_shutdown(cx),
        }
    }
}
