//! The bell as callers see it.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

/// One doorbell to ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    /// The run whose row is due.
    pub run: Uuid,
    /// Its kind, which names the queue.
    pub kind: Cow<'static, str>,
    /// How long the message is to be held back. The row's own due time decides; this only spares an empty claim, so it
    /// is cut where the transport cannot wait that long.
    pub delay: Option<Duration>,
}

impl Ring {
    /// At once.
    pub fn new(run: Uuid, kind: impl Into<Cow<'static, str>>) -> Self {
        Self { run, kind: kind.into(), delay: None }
    }

    /// Later.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }
}

/// Some doorbells were not rung. Never a reason to fail what was committed: the rows are due, and the sweep rings for
/// rows nobody answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} doorbells not rung: {reason}", unrung.len())]
pub struct BellError {
    /// The runs not rung for; the others were.
    pub unrung: Vec<Uuid>,
    /// The first reason met.
    pub reason: String,
    /// Whether ringing again cannot help (no such queue, not allowed).
    pub permanent: bool,
}

impl BellError {
    /// Whether ringing again for the same runs would fail for the same reason.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }
}

/// Tells workers that rows are due. Object-safe: used as `Arc<dyn Bell>`.
#[async_trait]
pub trait Bell: Send + Sync + 'static {
    /// Rings for every run, any number of any kinds; to be called after the rows were committed. Ringing twice is
    /// harmless.
    async fn ring(&self, rings: &[Ring]) -> Result<(), BellError>;
}

/// Rings nowhere: for hosts whose workers only poll.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBell;

#[async_trait]
impl Bell for NoBell {
    async fn ring(&self, _: &[Ring]) -> Result<(), BellError> {
        Ok(())
    }
}

/// Remembers what was rung and can be told to fail, for tests.
#[derive(Debug, Default)]
pub struct RecordingBell {
    state: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    rings: Vec<Ring>,
    failures: u32,
}

impl RecordingBell {
    /// A silent bell.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything rung since the last call, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Ring> {
        std::mem::take(&mut self.lock().rings)
    }

    /// Fails the next `calls` calls, as if the queue could not be reached.
    pub fn fail_next(&self, calls: u32) {
        self.lock().failures = calls;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recorded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Bell for RecordingBell {
    async fn ring(&self, rings: &[Ring]) -> Result<(), BellError> {
        let mut state = self.lock();
        if state.failures > 0 {
            state.failures -= 1;
            let unrung = rings.iter().map(|ring| ring.run).collect();
            return Err(BellError { unrung, reason: "failure asked for by the test".to_owned(), permanent: false });
        }
        state.rings.extend_from_slice(rings);
        Ok(())
    }
}
