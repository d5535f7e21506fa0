//! Task runs: what works, since when, and how it went.

use super::parsed;
use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, Kind, RunId, RunStatus};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, QueryBuilder, Row};
use uuid::Uuid;

/// A task run.
#[derive(Debug, Clone)]
pub struct Task {
    /// The row.
    pub id: RunId,
    /// Kind as stored: another version's run may be of a kind unknown here.
    pub kind: String,
    /// Where it stands.
    pub status: RunStatus,
    /// Order among its kind, smaller first.
    pub priority: i16,
    /// Its crawl.
    pub crawl_id: Option<CrawlId>,
    /// The row it works on.
    pub entity: Option<Uuid>,
    /// Slices done.
    pub step: i32,
    /// This claim's number.
    pub attempt: i32,
    /// Claims allowed.
    pub max_attempts: i32,
    /// Seconds the lease is good for; negative when it is dead. By the database's clock.
    pub lease_left_s: Option<f64>,
    /// Seconds since its first claim, while it is open.
    pub running_s: Option<f64>,
    /// Earliest next claim; none while it is held.
    pub not_before: Option<DateTime<Utc>>,
    /// Held with its paused crawl.
    pub held: bool,
    /// Enqueued.
    pub created_at: DateTime<Utc>,
    /// First claim.
    pub started_at: Option<DateTime<Utc>>,
    /// Last claim or settlement.
    pub progress_at: Option<DateTime<Utc>>,
    /// End of the phase.
    pub deadline_at: Option<DateTime<Utc>>,
    /// End.
    pub finished_at: Option<DateTime<Utc>>,
    /// Somebody asked for its end.
    pub cancel_requested: bool,
    /// Code of the last failure.
    pub error_code: Option<String>,
    /// The same in words.
    pub error: Option<String>,
}

const COLUMNS: &str = "t.id, t.kind, t.status, t.priority, t.crawl_id, t.entity, t.step, t.attempt, t.max_attempts, \
     extract(epoch FROM t.lease_expires_at - now())::float8 AS lease_left_s, \
     CASE WHEN t.finished_at IS NULL THEN extract(epoch FROM now() - t.started_at)::float8 END AS running_s, \
     CASE WHEN t.not_before < 'infinity' THEN t.not_before END AS not_before, t.not_before = 'infinity' AS held, \
     t.created_at, t.started_at, t.progress_at, t.deadline_at, t.finished_at, t.cancel_requested, t.error_code, t.error";

impl FromRow<'_, PgRow> for Task {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Task {
            id: RunId(row.try_get("id")?),
            kind: row.try_get("kind")?,
            status: parsed(row, "status")?,
            priority: row.try_get("priority")?,
            crawl_id: row.try_get::<Option<Uuid>, _>("crawl_id")?.map(CrawlId),
            entity: row.try_get("entity")?,
            step: row.try_get("step")?,
            attempt: row.try_get("attempt")?,
            max_attempts: row.try_get("max_attempts")?,
            lease_left_s: row.try_get("lease_left_s")?,
            running_s: row.try_get("running_s")?,
            not_before: row.try_get("not_before")?,
            held: row.try_get("held")?,
            created_at: row.try_get("created_at")?,
            started_at: row.try_get("started_at")?,
            progress_at: row.try_get("progress_at")?,
            deadline_at: row.try_get("deadline_at")?,
            finished_at: row.try_get("finished_at")?,
            cancel_requested: row.try_get("cancel_requested")?,
            error_code: row.try_get("error_code")?,
            error: row.try_get("error")?,
        })
    }
}

/// Which runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskFilter {
    /// In this status; none means all.
    pub status: Option<RunStatus>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// Of this crawl.
    pub crawl: Option<CrawlId>,
}

/// A page of runs, newest first, below `before`.
///
/// # Errors
/// When the database fails.
pub async fn tasks(
    c: &mut Conn,
    filter: &TaskFilter,
    before: Option<RunId>,
    limit: i64,
) -> Result<Vec<Task>, StoreError> {
    let mut q = page("", filter, before, limit);
    Ok(q.build_query_as().persistent(false).fetch_all(c).await?)
}

/// The statement; `head` is for `EXPLAIN`.
pub(super) fn page(head: &str, filter: &TaskFilter, before: Option<RunId>, limit: i64) -> QueryBuilder<sqlx::Postgres> {
    let mut q = QueryBuilder::new(format!("{head}SELECT {COLUMNS} FROM task_run t WHERE true"));
    if let Some(status) = filter.status {
        // Said literally: the indexes over queued and running rows are partial.
        q.push(format_args!(" AND t.status = '{status}'"));
    }
    if let Some(kind) = filter.kind {
        q.push(" AND t.kind = ").push_bind(kind.as_str());
    }
    if let Some(crawl) = filter.crawl {
        q.push(" AND t.crawl_id = ").push_bind(crawl.0);
    }
    if let Some(before) = before {
        q.push(" AND t.id < ").push_bind(before.0);
    }
    q.push(" ORDER BY t.id DESC LIMIT ").push_bind(limit);
    q
}
