//! Bytes both ways, until an end, a standstill or the cap.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::{io, time::Duration};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};
use tokio::time::{Instant, sleep_until};

use super::Shared;

const BUFFER: usize = 16 * 1024;

/// Why a tunnel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Both sides finished, or one failed.
    Closed,
    /// Nothing moved for the idle limit.
    Idle,
    /// The proxy's byte cap is reached.
    Capped,
}

/// Carries bytes between the browser and the web.
pub(super) async fn splice<A, B>(shared: &Arc<Shared>, browser: A, web: B) -> End
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let clock = Activity::new();
    let mut browser = Metered::new(browser, shared, Side::Browser, &clock);
    let mut web = Metered::new(web, shared, Side::Web, &clock);
    tokio::select! {
        _ = copy_bidirectional_with_sizes(&mut browser, &mut web, BUFFER, BUFFER) => {
            if shared.is_capped() { End::Capped } else { End::Closed }
        }
        () = clock.stands_still(shared.config.idle_timeout) => End::Idle,
    }
}

/// When bytes last moved, in milliseconds since the tunnel opened.
struct Activity {
    opened: Instant,
    last_ms: AtomicU64,
}

impl Activity {
    fn new() -> Self {
        Self { opened: Instant::now(), last_ms: AtomicU64::new(0) }
    }

    fn mark(&self) {
        let ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(ms, Ordering::Relaxed);
    }

    async fn stands_still(&self, limit: Duration) {
        loop {
            let last = self.opened + Duration::from_millis(self.last_ms.load(Ordering::Relaxed));
            if last.elapsed() >= limit {
                return;
            }
            sleep_until(last + limit).await;
        }
    }
}

#[derive(Clone, Copy)]
enum Side {
    Browser,
    Web,
}

/// Counts what is read from one side.
struct Metered<'a, S> {
    inner: S,
    shared: &'a Shared,
    side: Side,
    clock: &'a Activity,
}

impl<'a, S> Metered<'a, S> {
    fn new(inner: S, shared: &'a Shared, side: Side, clock: &'a Activity) -> Self {
        Self { inner, shared, side, clock }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<'_, S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.shared.is_capped() {
            return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let n = (buf.filled().len() - before) as u64;
        let counter = match self.side {
            Side::Browser => &self.shared.up,
            Side::Web => &self.shared.down,
        };
        counter.fetch_add(n, Ordering::Relaxed);
        self.clock.mark();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<'_, S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let n = ready!(Pin::new(&mut self.inner).poll_write(cx, buf))?;
        self.clock.mark();
        Poll::Ready(Ok(n))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
