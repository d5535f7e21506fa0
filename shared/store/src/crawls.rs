//! The life of a crawl: create, pause, resume, cancel, limits, seal.
//!
//! A crawl row is locked (`FOR NO KEY UPDATE`) by whatever changes its counters or decides that it
//! is over; no status moves but by one of the conditional updates here.

use crate::runs::{self, FailedRun, NewRun, RunRef};
use crate::{Conn, StoreError, capture};
use chrono::{DateTime, Utc};
use fonds_domain::{
    CrawlConfig, CrawlId, CrawlLimits, CrawlStatus, ErrorCode, Kind, Priority, SnapshotId, StopReason, TokenId,
};
use serde_json::Value;

/// A crawl to be created.
#[derive(Debug, Clone)]
pub struct NewCrawl {
    /// The submitted text: URLs or any format crawl-setup reads.
    pub input: String,
    /// Frozen from now on.
    pub config: CrawlConfig,
    /// May be changed later.
    pub limits: CrawlLimits,
    /// Short name for people.
    pub label: String,
    /// Longer text for people.
    pub notes: String,
    /// Tags, inherited by every snapshot.
    pub tags: Vec<String>,
    /// Whose token submitted it.
    pub created_by: Option<TokenId>,
    /// When it and its snapshots are to be deleted.
    pub delete_at: Option<DateTime<Utc>>,
}

/// What became of a request to change a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Changed; ring these.
    Done(Vec<RunRef>),
    /// It was so already.
    Already,
    /// There is no such crawl.
    NotFound,
    /// Not possible in this status.
    Refused(CrawlStatus),
}

/// Creates the crawl and its set-up run. The commit is made durable before the caller answers,
/// whatever the connection's default.
///
/// # Errors
/// When the database fails.
pub async fn create(c: &mut Conn, new: &NewCrawl) -> Result<(CrawlId, Vec<RunRef>), StoreError> {
    let id = CrawlId::fresh();
    let config = to_json(&new.config)?;
    let l = &new.limits;
    sqlx::query!("SELECT set_config('synchronous_commit', 'on', true) AS ok").fetch_one(&mut *c).await?;
    sqlx::query!(
        r#"INSERT INTO crawl (id, config, label, notes, tags, created_by, delete_at,
                              max_depth, max_urls, max_size, timeout_s, snapshot_max_size, max_concurrent)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"#,
        id.0,
        config,
        new.label,
        new.notes,
        &new.tags,
        new.created_by.map(|t| t.0),
        new.delete_at,
        i32::from(l.max_depth),
        l.max_urls.map(to_i64),
        l.max_size.map(to_i64),
        l.timeout_s.map(to_i32),
        l.snapshot_max_size.map(to_i64),
        l.max_concurrent.map(to_i32),
    )
    .execute(&mut *c)
    .await?;
    sqlx::query!("INSERT INTO crawl_input (crawl_id, body) VALUES ($1, $2)", id.0, new.input.replace('\0', " "))
        .execute(&mut *c)
        .await?;
    let runs = runs::enqueue(
        c,
        &[NewRun {
            kind: Kind::CrawlSetup,
            crawl: Some(id),
            entity: Some(id.0),
            input: Value::Null,
            priority: Priority::page(0, new.config.scheduled),
        }],
    )
    .await?;
    Ok((id, runs))
}

/// Holds a crawl: what runs ends its stage, nothing new starts.
///
/// # Errors
/// When the database fails.
pub async fn pause(c: &mut Conn, id: CrawlId) -> Result<Change, StoreError> {
    let done = sqlx::query!(
        "UPDATE crawl SET status = 'paused', paused_at = now(), modified_at = now()
         WHERE id = $1 AND status IN ('queued', 'started')",
        id.0
    )
    .execute(&mut *c)
    .await?
    .rows_affected();
    if done == 1 { Ok(Change::Done(Vec::new())) } else { unchanged(c, id, CrawlStatus::Paused).await }
}

/// Lets a paused crawl go on. The pause does not count towards its timeout.
///
/// # Errors
/// When the database fails.
pub async fn resume(c: &mut Conn, id: CrawlId) -> Result<Change, StoreError> {
    let row = sqlx::query!(
        r#"UPDATE crawl SET status = CASE WHEN setup_done THEN 'started' ELSE 'queued' END,
                  paused_s = paused_s + extract(epoch FROM now() - paused_at), paused_at = NULL, modified_at = now()
           WHERE id = $1 AND status = 'paused' RETURNING id"#,
        id.0
    )
    .fetch_optional(&mut *c)
    .await?;
    if row.is_none() {
        return unchanged(c, id, CrawlStatus::Started).await;
    }
    // A bounded number here, so that the caller waits a bounded time; the sweep releases the rest.
    let released = sqlx::query!(
        r#"UPDATE task_run SET not_before = now(), rung_at = now()
           WHERE id IN (SELECT id FROM task_run
                        WHERE crawl_id = $1 AND status = 'queued' AND not_before = 'infinity' LIMIT 1000)
           RETURNING id, kind"#,
        id.0
    )
    .fetch_all(&mut *c)
    .await?;
    let mut rings = Vec::with_capacity(released.len());
    for r in released {
        rings.push(RunRef { id: r.id.into(), kind: r.kind.parse()? });
    }
    rings.extend(maybe_seal(c, id).await?);
    Ok(Change::Done(rings))
}

/// Ends a crawl. One row changes; its snapshots are closed by their own next checkpoint and by the
/// sweep.
///
/// # Errors
/// When the database fails.
pub async fn cancel(c: &mut Conn, id: CrawlId) -> Result<Change, StoreError> {
    let done = sqlx::query!(
        "UPDATE crawl SET status = 'sealed', stop_reason = 'cancelled', sealed_at = now(), modified_at = now()
         WHERE id = $1 AND status <> 'sealed'",
        id.0
    )
    .execute(&mut *c)
    .await?
    .rows_affected();
    if done == 1 { Ok(Change::Done(Vec::new())) } else { unchanged(c, id, CrawlStatus::Sealed).await }
}

/// Marks a crawl for deletion, ending it first. The sweep removes rows and objects.
///
/// # Errors
/// When the database fails.
pub async fn delete(c: &mut Conn, id: CrawlId) -> Result<Change, StoreError> {
    let change = cancel(c, id).await?;
    if change == Change::NotFound {
        return Ok(change);
    }
    sqlx::query!("UPDATE crawl SET delete_at = now(), modified_at = now() WHERE id = $1", id.0).execute(c).await?;
    Ok(Change::Done(Vec::new()))
}

/// Replaces the limits. A reason that came from a limit is cleared, and set again if it still holds.
///
/// # Errors
/// When the database fails.
pub async fn set_limits(c: &mut Conn, id: CrawlId, l: &CrawlLimits) -> Result<Change, StoreError> {
    let done = sqlx::query!(
        r#"UPDATE crawl SET max_depth = $2, max_urls = $3, max_size = $4, timeout_s = $5, snapshot_max_size = $6,
                  max_concurrent = $7, modified_at = now(),
                  stop_reason = CASE WHEN stop_reason IN ('crawl_max_urls', 'crawl_max_size', 'crawl_timeout')
                                     THEN NULL ELSE stop_reason END
           WHERE id = $1 AND status <> 'sealed'"#,
        id.0,
        i32::from(l.max_depth),
        l.max_urls.map(to_i64),
        l.max_size.map(to_i64),
        l.timeout_s.map(to_i32),
        l.snapshot_max_size.map(to_i64),
        l.max_concurrent.map(to_i32),
    )
    .execute(&mut *c)
    .await?
    .rows_affected();
    if done == 1 {
        return Ok(Change::Done(Vec::new()));
    }
    match status(c, id).await? {
        None => Ok(Change::NotFound),
        Some(s) => Ok(Change::Refused(s)),
    }
}

async fn unchanged(c: &mut Conn, id: CrawlId, wanted: CrawlStatus) -> Result<Change, StoreError> {
    Ok(match status(c, id).await? {
        None => Change::NotFound,
        Some(CrawlStatus::Queued) if wanted == CrawlStatus::Started => Change::Already,
        Some(s) if s == wanted => Change::Already,
        Some(s) => Change::Refused(s),
    })
}

async fn status(c: &mut Conn, id: CrawlId) -> Result<Option<CrawlStatus>, StoreError> {
    let row = sqlx::query_scalar!("SELECT status FROM crawl WHERE id = $1", id.0).fetch_optional(c).await?;
    Ok(row.map(|s| s.parse()).transpose()?)
}

/// A crawl as the functions that work on it see it.
#[derive(Debug, Clone)]
pub struct Crawl {
    /// Its id.
    pub id: CrawlId,
    /// Its status when it was read.
    pub status: CrawlStatus,
    /// Why it stops, when it does.
    pub stop_reason: Option<StopReason>,
    /// What was asked for.
    pub config: CrawlConfig,
    /// The limits now.
    pub limits: CrawlLimits,
    /// Short name for people.
    pub label: String,
    /// Inherited by its snapshots.
    pub tags: Vec<String>,
    /// Snapshots admitted.
    pub n_snapshots: u64,
    /// Bytes stored.
    pub bytes: u64,
    /// Whether crawl-setup is through.
    pub setup_done: bool,
    /// Seconds since the first admission, pauses not counted.
    pub active_s: f64,
    /// When it was submitted.
    pub created_at: DateTime<Utc>,
}

impl Crawl {
    /// The limit that is reached, if any: then nothing is discovered and queued pages below the
    /// first are not captured.
    #[must_use]
    pub fn exhausted(&self) -> Option<StopReason> {
        if self.limits.max_size.is_some_and(|max| self.bytes >= max) {
            Some(StopReason::MaxSize)
        } else if self.limits.timeout_s.is_some_and(|max| self.active_s >= f64::from(max)) {
            Some(StopReason::Timeout)
        } else {
            None
        }
    }

    /// The kind of run its snapshots need.
    #[must_use]
    pub fn snapshot_kind(&self) -> Kind {
        if self.config.needs_browser() { Kind::Snapshot } else { Kind::SnapshotPlain }
    }
}

/// Reads crawls by id.
///
/// # Errors
/// When the database fails, or a stored configuration cannot be read.
pub async fn load(c: &mut Conn, ids: &[CrawlId]) -> Result<Vec<Crawl>, StoreError> {
    let ids: Vec<_> = ids.iter().map(|i| i.0).collect();
    let rows = sqlx::query!(
        r#"SELECT id, status, stop_reason, config, label, tags, n_snapshots, bytes, setup_done, created_at,
                  max_depth, max_urls, max_size, timeout_s, snapshot_max_size, max_concurrent,
                  coalesce(extract(epoch FROM coalesce(paused_at, now()) - started_at) - paused_s, 0)::float8 AS "active_s!"
           FROM crawl WHERE id = ANY($1)"#,
        &ids
    )
    .fetch_all(c)
    .await?;
    rows.into_iter()
        .map(|r| {
            Ok(Crawl {
                id: CrawlId(r.id),
                status: r.status.parse()?,
                stop_reason: r.stop_reason.map(|s| s.parse()).transpose()?,
                config: serde_json::from_value(r.config)
                    .map_err(|e| StoreError::Stored(format!("crawl.config: {e}")))?,
                limits: CrawlLimits {
                    max_depth: u16::try_from(r.max_depth).unwrap_or(CrawlLimits::MAX_DEPTH),
                    max_urls: r.max_urls.map(to_u64),
                    max_size: r.max_size.map(to_u64),
                    timeout_s: r.timeout_s.map(to_u32),
                    snapshot_max_size: r.snapshot_max_size.map(to_u64),
                    max_concurrent: r.max_concurrent.map(to_u32),
                },
                label: r.label,
                tags: r.tags,
                n_snapshots: to_u64(r.n_snapshots),
                bytes: to_u64(r.bytes),
                setup_done: r.setup_done,
                active_s: r.active_s,
                created_at: r.created_at,
            })
        })
        .collect()
}

/// The submitted text.
///
/// # Errors
/// When the database fails.
pub async fn input(c: &mut Conn, id: CrawlId) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar!("SELECT body FROM crawl_input WHERE crawl_id = $1", id.0).fetch_optional(c).await?)
}

/// Ends the set-up: records its report and seals a crawl that has nothing to capture.
///
/// # Errors
/// When the database fails.
pub async fn finish_setup(c: &mut Conn, id: CrawlId, report: &Value) -> Result<Vec<RunRef>, StoreError> {
    sqlx::query!(
        r#"UPDATE crawl SET setup_done = true, setup_report = $2, modified_at = now(),
                  status = CASE WHEN status = 'queued' THEN 'started' ELSE status END
           WHERE id = $1"#,
        id.0,
        report
    )
    .execute(&mut *c)
    .await?;
    maybe_seal(c, id).await
}

/// Under the crawl's lock: when set-up is through and no snapshot is open, enqueues the seal.
///
/// # Errors
/// When the database fails.
pub async fn maybe_seal(c: &mut Conn, id: CrawlId) -> Result<Vec<RunRef>, StoreError> {
    let over = sqlx::query_scalar!(
        r#"WITH locked AS (SELECT id, status, setup_done FROM crawl WHERE id = $1 FOR NO KEY UPDATE)
           SELECT (setup_done AND status = 'started') AS "over!" FROM locked"#,
        id.0
    )
    .fetch_optional(&mut *c)
    .await?;
    // A statement of its own: its snapshot of the data is taken after the lock was had.
    if over != Some(true) || capture::any_open(c, id).await? {
        return Ok(Vec::new());
    }
    let run = NewRun {
        kind: Kind::CrawlSeal,
        crawl: Some(id),
        entity: Some(id.0),
        input: Value::Null,
        priority: Priority::SUBMITTED,
    };
    runs::enqueue(c, &[run]).await
}

/// Seals a started crawl that has no open snapshot. False when that is not so (any more).
///
/// # Errors
/// When the database fails.
pub async fn seal(c: &mut Conn, id: CrawlId, files: &Value) -> Result<bool, StoreError> {
    let locked = sqlx::query_scalar!("SELECT status FROM crawl WHERE id = $1 FOR NO KEY UPDATE", id.0)
        .fetch_optional(&mut *c)
        .await?;
    if locked.as_deref() != Some("started") || capture::any_open(c, id).await? {
        return Ok(false);
    }
    sqlx::query!(
        r#"UPDATE crawl SET status = 'sealed', sealed_at = now(), modified_at = now(), files = $2,
                  stop_reason = coalesce(stop_reason, CASE WHEN n_snapshots = 0 THEN 'no_viable_urls' ELSE 'done' END)
           WHERE id = $1"#,
        id.0,
        files
    )
    .execute(c)
    .await?;
    Ok(true)
}

/// What the domain rows must learn when runs are given up: nothing stays open behind a failed run.
///
/// # Errors
/// When the database fails.
pub async fn runs_failed(c: &mut Conn, failed: &[FailedRun]) -> Result<Vec<RunRef>, StoreError> {
    let mut rings = Vec::new();
    for run in failed {
        match (run.kind, run.crawl, run.entity) {
            (Kind::Snapshot | Kind::SnapshotPlain, Some(crawl), Some(snapshot)) => {
                rings.extend(capture::close_unrun(c, crawl, &[SnapshotId(snapshot)], run.code, &run.error).await?);
            }
            (Kind::CrawlSetup, Some(crawl), _) => {
                set_error(c, crawl, run.code, &run.error).await?;
                let report = serde_json::json!({ "error": { "code": run.code, "detail": run.error } });
                rings.extend(finish_setup(c, crawl, &report).await?);
            }
            (Kind::CrawlSeal, Some(crawl), _) => {
                set_error(c, crawl, run.code, &run.error).await?;
                seal(c, crawl, &Value::Array(Vec::new())).await?;
            }
            _ => {}
        }
    }
    Ok(rings)
}

async fn set_error(c: &mut Conn, id: CrawlId, code: ErrorCode, error: &str) -> Result<(), StoreError> {
    sqlx::query!(
        "UPDATE crawl SET error_code = $2, error = $3, modified_at = now() WHERE id = $1",
        id.0,
        code.as_str(),
        runs::error_text(error)
    )
    .execute(c)
    .await?;
    Ok(())
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Result<Value, StoreError> {
    serde_json::to_value(value).map_err(|e| StoreError::Stored(e.to_string()))
}

pub(crate) fn to_i64(v: u64) -> i64 {
    i64::try_from(v).unwrap_or(i64::MAX)
}

pub(crate) fn to_u64(v: i64) -> u64 {
    u64::try_from(v).unwrap_or(0)
}

fn to_i32(v: u32) -> i32 {
    i32::try_from(v).unwrap_or(i32::MAX)
}

fn to_u32(v: i32) -> u32 {
    u32::try_from(v).unwrap_or(0)
}
