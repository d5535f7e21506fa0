//! A forwarded body that is counted, capped and not allowed to stand still.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::{io, time::Duration};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::Shared;

/// A body from the web on its way to the browser.
pub(super) struct MeteredBody {
    inner: Incoming,
    shared: Arc<Shared>,
    idle: Duration,
    /// Armed only while the body is awaited: most bodies are there at once.
    timer: Option<Pin<Box<Sleep>>>,
}

impl MeteredBody {
    pub(super) fn new(inner: Incoming, shared: Arc<Shared>) -> Self {
        Self { inner, idle: shared.config.idle_timeout, shared, timer: None }
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let idle = self.idle;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(idle)));
        timer.as_mut().poll(cx)
    }
}

impl Body for MeteredBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.shared.is_capped() {
            return Poll::Ready(Some(Err(io::ErrorKind::QuotaExceeded.into())));
        }
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.shared.down.fetch_add(data.len() as u64, Ordering::Relaxed);
                }
                let until = Instant::now() + self.idle;
                if let Some(timer) = &mut self.timer {
                    timer.as_mut().reset(until);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(io::Error::other(error)))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.poll_idle(cx) {
                Poll::Ready(()) => Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into()))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
