//! Commands out, answers and events in.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::error::CdpError;
use super::wire::{Frames, Peek, peek};

/// A message larger than this ends the connection: the browser would have to hold as much again.
const MAX_FRAME: usize = 512 * 1024 * 1024;

/// A connection to one browser. Clones share it.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    next_id: AtomicU64,
    out: mpsc::UnboundedSender<Vec<u8>>,
    routes: Mutex<Routes>,
    /// Set when no answer can come any more.
    gone: CancellationToken,
    /// Asks both pipe tasks to end.
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Routes {
    calls: HashMap<u64, oneshot::Sender<Bytes>>,
    /// By session; the browser itself is the empty one.
    events: HashMap<String, EventSink>,
}

impl Connection {
    /// Takes over the two pipes and starts to read.
    pub fn start(reader: pipe::Receiver, writer: pipe::Sender) -> Self {
        let (out, queue) = mpsc::unbounded_channel();
        let inner = Arc::new(Inner {
            next_id: AtomicU64::new(1),
            out,
            routes: Mutex::default(),
            gone: CancellationToken::new(),
            stop: CancellationToken::new(),
        });
        tokio::spawn(inner.stop.clone().run_until_cancelled_owned(write_all(writer, queue)));
        tokio::spawn(read_all(reader, Arc::downgrade(&inner), inner.stop.clone(), inner.gone.clone()));
        Self(inner)
    }

    /// The browser itself, for commands of no page.
    pub fn root(&self) -> Session {
        Session { connection: self.clone(), id: None }
    }

    /// The session of an attached target.
    pub fn session(&self, id: &str) -> Session {
        Session { connection: self.clone(), id: Some(id.into()) }
    }

    /// Whether the browser can still answer.
    pub fn is_alive(&self) -> bool {
        !self.0.gone.is_cancelled()
    }

    /// Returns when the browser is gone.
    pub async fn gone(&self) {
        self.0.gone.cancelled().await;
    }

    /// Closes both pipes; the browser ends itself when it sees that. Pending calls fail.
    pub fn close(&self) {
        self.0.stop.cancel();
        self.0.fail_all();
    }
}

impl Inner {
    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail_all(&self) {
        self.gone.cancel();
        let mut routes = self.routes();
        // Dropping the senders is what tells those who wait.
        routes.calls.clear();
        routes.events.clear();
    }

    fn dispatch(&self, frame: Bytes) {
        match peek(&frame) {
            Peek::Reply { id } => {
                let waiting = self.routes().calls.remove(&id);
                if let Some(waiting) = waiting {
                    let _ = waiting.send(frame);
                }
            }
            Peek::Event { method, session } => {
                let routes = self.routes();
                let Some(sink) = routes.events.get(session.unwrap_or_default()) else {
                    return;
                };
                let Some(method) = sink.methods.iter().find(|known| **known == method) else {
                    return;
                };
                sink.push(method, frame);
            }
            Peek::Unknown => tracing::debug!(bytes = frame.len(), "unreadable browser message"),
        }
    }
}

async fn write_all(mut pipe: pipe::Sender, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, 64).await > 0 {
        // Small commands go out together: each write wakes the browser's reader.
        let mut joined = batch.drain(..);
        let Some(mut bytes) = joined.next() else {
            continue;
        };
        for more in joined {
            bytes.extend_from_slice(&more);
        }
        if pipe.write_all(&bytes).await.is_err() {
            // The reader sees the end of its own pipe and tells everyone.
            return;
        }
    }
}

async fn read_all(
    mut pipe: pipe::Receiver,
    inner: std::sync::Weak<Inner>,
    stop: CancellationToken,
    gone: CancellationToken,
) {
    let mut frames = Frames::default();
    loop {
        let read = tokio::select! {
            () = stop.cancelled() => break,
            read = pipe.read_buf(frames.buffer()) => read,
        };
        let Some(inner) = inner.upgrade() else { break };
        match read {
            Ok(n) if n > 0 => {
                while let Some(frame) = frames.next() {
                    inner.dispatch(frame);
                }
                if frames.pending() > MAX_FRAME {
                    tracing::warn!("a browser message exceeds {MAX_FRAME} bytes");
                    break;
                }
            }
            _ => break,
        }
    }
    gone.cancel();
    if let Some(inner) = inner.upgrade() {
        inner.stop.cancel();
        inner.fail_all();
    }
}

/// One session: the browser, a page, or a worker.
#[derive(Clone, Debug)]
pub struct Session {
    connection: Connection,
    id: Option<Arc<str>>,
}

#[derive(Serialize)]
struct Command<'a, P> {
    id: u64,
    method: &'static str,
    params: &'a P,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

impl Session {
    /// The connection it belongs to.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Its id, none for the browser itself.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Sends a command at once, in the order of these calls; the answer is awaited with the returned
    /// future, or not at all.
    pub fn send<P: Serialize>(&self, method: &'static str, params: &P) -> PendingCall {
        let inner = &self.connection.0;
        let id = inner.next_id.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        let mut call = PendingCall { id, method, answer: rx, failed: None, inner: Arc::clone(inner) };
        let command = Command { id, method, params, session: self.id() };
        let mut bytes = match serde_json::to_vec(&command) {
            Ok(bytes) => bytes,
            Err(error) => {
                call.failed = Some(CdpError::Malformed { method, detail: error.to_string() });
                return call;
            }
        };
        bytes.push(0);
        inner.routes().calls.insert(id, tx);
        // Checked after the insert, so that a connection lost in between cannot leave it waiting.
        if inner.gone.is_cancelled() || inner.out.send(bytes).is_err() {
            inner.routes().calls.remove(&id);
        }
        call
    }

    /// Sends a command and waits for its answer.
    pub async fn call<P: Serialize>(
        &self,
        method: &'static str,
        params: &P,
        limit: Duration,
    ) -> Result<Reply, CdpError> {
        self.send(method, params).within(limit).await
    }

    /// Receives the events of this session whose method is listed; `max_bytes` bounds what may wait
    /// unread, beyond which events are dropped and [`Events::overflowed`] is set.
    pub fn subscribe(&self, methods: &'static [&'static str], max_bytes: usize) -> Events {
        let (tx, rx) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let overflow = Arc::new(AtomicBool::new(false));
        let sink =
            EventSink { methods, tag: 0, tx, max_bytes, queued: Arc::clone(&queued), overflow: Arc::clone(&overflow) };
        self.route(&sink, 0);
        Events { rx, queued, overflow, sink }
    }

    /// Sends the events of this session to an existing subscription, marked with `tag`.
    pub fn route(&self, sink: &EventSink, tag: u32) {
        let mut sink = sink.clone();
        sink.tag = tag;
        let inner = &self.connection.0;
        let mut routes = inner.routes();
        // Once gone nobody clears the table any more: a late entry would keep its channel open.
        if !inner.gone.is_cancelled() {
            routes.events.insert(self.id().unwrap_or_default().to_owned(), sink);
        }
    }

    /// Ends the delivery of this session's events.
    pub fn unroute(&self) {
        self.connection.0.routes().events.remove(self.id().unwrap_or_default());
    }
}

/// An answer that has not come yet. Dropping it forgets it.
#[derive(Debug)]
pub struct PendingCall {
    id: u64,
    method: &'static str,
    answer: oneshot::Receiver<Bytes>,
    failed: Option<CdpError>,
    inner: Arc<Inner>,
}

impl PendingCall {
    /// The answer, or [`CdpError::Timeout`].
    pub async fn within(self, limit: Duration) -> Result<Reply, CdpError> {
        let method = self.method;
        tokio::time::timeout(limit, self).await.unwrap_or(Err(CdpError::Timeout { method, limit }))
    }
}

impl Future for PendingCall {
    type Output = Result<Reply, CdpError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        let method = self.method;
        Pin::new(&mut self.answer).poll(cx).map(|answer| match answer {
            Ok(frame) => Reply { method, frame }.checked(),
            Err(_) => Err(CdpError::Gone),
        })
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.inner.routes().calls.remove(&self.id);
    }
}

/// A successful answer, not decoded yet.
#[derive(Debug, Clone)]
pub struct Reply {
    method: &'static str,
    frame: Bytes,
}

#[derive(Deserialize)]
struct ReplyEnvelope<T> {
    result: T,
}

#[derive(Deserialize)]
struct ErrorEnvelope {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    code: i64,
    message: String,
}

impl Reply {
    fn checked(self) -> Result<Self, CdpError> {
        // `{"id":N,"error":...`: known from the first bytes; a result may be hundreds of megabytes.
        let head = self.frame.get(..self.frame.len().min(40)).unwrap_or_default();
        if !head.windows(8).any(|w| w == b"\"error\":") {
            return Ok(self);
        }
        match serde_json::from_slice::<ErrorEnvelope>(&self.frame) {
            Ok(ErrorEnvelope { error }) => {
                Err(CdpError::Refused { method: self.method, code: error.code, message: error.message })
            }
            Err(_) => Ok(self),
        }
    }

    /// The `result`, which may borrow from the message.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CdpError> {
        serde_json::from_slice::<ReplyEnvelope<T>>(&self.frame)
            .map(|envelope| envelope.result)
            .map_err(|error| CdpError::Malformed { method: self.method, detail: error.to_string() })
    }

    /// Bytes of the whole message.
    pub fn len(&self) -> usize {
        self.frame.len()
    }

    /// Whether the message is empty, which it never is.
    pub fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }
}

/// Where the events of one or more sessions go.
#[derive(Clone, Debug)]
pub struct EventSink {
    methods: &'static [&'static str],
    tag: u32,
    tx: mpsc::UnboundedSender<Event>,
    max_bytes: usize,
    queued: Arc<AtomicUsize>,
    overflow: Arc<AtomicBool>,
}

impl EventSink {
    fn push(&self, method: &'static str, frame: Bytes) {
        let size = frame.len();
        if self.queued.fetch_add(size, Ordering::Relaxed) + size > self.max_bytes {
            self.queued.fetch_sub(size, Ordering::Relaxed);
            self.overflow.store(true, Ordering::Relaxed);
            return;
        }
        let _ = self.tx.send(Event { method, tag: self.tag, frame });
    }
}

/// A subscription.
#[derive(Debug)]
pub struct Events {
    rx: mpsc::UnboundedReceiver<Event>,
    queued: Arc<AtomicUsize>,
    overflow: Arc<AtomicBool>,
    sink: EventSink,
}

impl Events {
    /// The next event. Pending for ever once the browser is gone: see [`Connection::gone`].
    pub async fn recv(&mut self) -> Option<Event> {
        let event = self.rx.recv().await?;
        self.queued.fetch_sub(event.frame.len(), Ordering::Relaxed);
        Some(event)
    }

    /// For [`Session::route`].
    pub const fn sink(&self) -> &EventSink {
        &self.sink
    }

    /// Whether events were dropped because too many waited.
    pub fn overflowed(&self) -> bool {
        self.overflow.load(Ordering::Relaxed)
    }
}

/// An event, not decoded yet.
#[derive(Debug, Clone)]
pub struct Event {
    /// Which.
    pub method: &'static str,
    /// Of which session: the number given to [`Session::route`].
    pub tag: u32,
    frame: Bytes,
}

#[derive(Deserialize)]
struct EventEnvelope<T> {
    params: T,
}

impl Event {
    /// The `params`, which may borrow from the message.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CdpError> {
        serde_json::from_slice::<EventEnvelope<T>>(&self.frame)
            .map(|envelope| envelope.params)
            .map_err(|error| CdpError::Malformed { method: self.method, detail: error.to_string() })
    }
}
