//! What a task is: a kind, what it reads, where it stopped, and what it answers.

use crate::Cx;
use fonds_domain::{CrawlId, ErrorCode, Kind};
use fonds_store::runs::RunRef;
use fonds_store::{Conn, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use uuid::Uuid;

/// A task of one kind. Its dependencies are its own fields, built once per process.
pub trait Task: Send + Sync + Sized + 'static {
    /// Names the queue, the policy row, the metric dimension and the span.
    const KIND: Kind;
    /// What a run carries beside its entity; `()` when the entity says it all.
    type Input: DeserializeOwned + Send + Sync + 'static;
    /// Where a slice stopped; `()` when there is only one.
    type Cursor: Serialize + DeserializeOwned + Default + Send + Sync + 'static;
    /// What a slice wants written in the settle transaction; `()` when nothing.
    type Effect: Send + Sync + 'static;

    /// Works on one run until it is done or the budget is used up.
    fn run(
        &self,
        cx: &Cx,
        input: &Self::Input,
        cursor: Self::Cursor,
    ) -> impl Future<Output = Result<Outcome<Self>, TaskError>> + Send;

    /// Works on a set of runs; an item that is missing from the answer counts as a failed attempt.
    /// Set-based kinds override this; for the others each item goes its own way.
    fn run_batch(&self, items: &[Item<Self>]) -> impl Future<Output = Vec<Result<Outcome<Self>, TaskError>>> + Send {
        async move {
            let each = items.iter().map(|item| {
                caught(async {
                    let cursor = item.take_cursor()?;
                    self.run(&item.cx, &item.input, cursor).await
                })
            });
            futures_util::future::join_all(each).await
        }
    }

    /// Writes effects in the settle transaction, for runs whose lease was still held. Answers the
    /// runs to ring after the commit. May be called again with fewer effects after a failure.
    fn apply(
        &self,
        conn: &mut Conn,
        effects: &[&Self::Effect],
    ) -> impl Future<Output = Result<Vec<RunRef>, StoreError>> + Send {
        let _ = (conn, effects);
        async { Ok(Vec::new()) }
    }
}

/// Runs a future and turns a panic into an error that names it.
pub(crate) async fn caught<T>(work: impl Future<Output = Result<T, TaskError>>) -> Result<T, TaskError> {
    match futures_util::FutureExt::catch_unwind(AssertUnwindSafe(work)).await {
        Ok(result) => result,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("a panic without a message");
            Err(TaskError::permanent(ErrorCode::PANICKED, anyhow::anyhow!("{text}")))
        }
    }
}

/// How a slice ended.
pub enum Outcome<T: Task> {
    /// The work is done.
    Done(T::Effect),
    /// Another slice is needed, from this cursor on; it must differ from the last one.
    Continue(T::Cursor, Option<T::Effect>),
    /// Not now: again after this long, without costing an attempt.
    Snooze(Duration),
    /// Not while the crawl is paused; its resumption releases the run.
    Hold,
    /// No longer wanted.
    Cancel(Option<T::Effect>),
    /// There was nothing to do.
    Discard(&'static str),
}

/// How a slice failed.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// May go away: tried again with backoff, as often as the policy says.
    #[error("{source:#}")]
    Transient {
        /// The code shown if attempts run out.
        code: ErrorCode,
        /// What happened.
        source: anyhow::Error,
    },
    /// Will not go away.
    #[error("{source:#}")]
    Permanent {
        /// The code shown.
        code: ErrorCode,
        /// What happened.
        source: anyhow::Error,
    },
}

impl TaskError {
    /// A failure that trying again cannot mend.
    pub fn permanent(code: ErrorCode, source: impl Into<anyhow::Error>) -> Self {
        TaskError::Permanent { code, source: source.into() }
    }

    /// A failure worth trying again.
    pub fn transient(code: ErrorCode, source: impl Into<anyhow::Error>) -> Self {
        TaskError::Transient { code, source: source.into() }
    }
}

impl From<anyhow::Error> for TaskError {
    // A retry is cheap, a lost run is not.
    fn from(source: anyhow::Error) -> Self {
        TaskError::Transient { code: ErrorCode::INTERNAL, source }
    }
}

impl From<StoreError> for TaskError {
    fn from(e: StoreError) -> Self {
        let permanent = e.is_permanent();
        let source = anyhow::Error::new(e);
        if permanent {
            TaskError::Permanent { code: ErrorCode::INTERNAL, source }
        } else {
            TaskError::Transient { code: ErrorCode::INTERNAL, source }
        }
    }
}

/// One claimed run of a set.
pub struct Item<T: Task> {
    /// Budget, signal and database of this run.
    pub cx: Cx,
    /// Its input.
    pub input: T::Input,
    pub(crate) cursor: Option<serde_json::Value>,
}

impl<T: Task> Item<T> {
    /// The row it works on.
    #[must_use]
    pub fn entity(&self) -> Option<Uuid> {
        self.cx.entity
    }

    /// Its crawl.
    #[must_use]
    pub fn crawl(&self) -> Option<CrawlId> {
        self.cx.crawl
    }

    /// The cursor of the last slice, or the default one.
    ///
    /// # Errors
    /// When a stored cursor cannot be read by this version.
    pub fn take_cursor(&self) -> Result<T::Cursor, TaskError> {
        match &self.cursor {
            None => Ok(T::Cursor::default()),
            Some(stored) => {
                serde_json::from_value(stored.clone()).map_err(|e| TaskError::permanent(ErrorCode::BAD_INPUT, e))
            }
        }
    }
}
