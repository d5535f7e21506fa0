//! The queue of record: enqueue, claim, settle, and what the sweep does with runs.
//!
//! One claim and one settle exist, and both are set-based; a single run is a set of one. Postgres's
//! `now()` is the only clock that decides a lease.

use crate::{Conn, StoreError};
use fonds_domain::{CrawlId, ErrorCode, Kind, Priority, RunId};
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// A run that wants a doorbell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunRef {
    /// The run.
    pub id: RunId,
    /// Its kind, which names its queue.
    pub kind: Kind,
}

/// A run to be inserted in the caller's transaction.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// What is to be done.
    pub kind: Kind,
    /// The crawl it belongs to.
    pub crawl: Option<CrawlId>,
    /// The row it works on. With an entity, a second open run of the same kind is not made.
    pub entity: Option<Uuid>,
    /// What the task needs beyond its entity.
    pub input: Value,
    /// Order among queued runs of its kind.
    pub priority: Priority,
}

/// Inserts runs. Those that have an open twin are left out of the answer.
///
/// # Errors
/// When the database fails.
pub async fn enqueue(c: &mut Conn, runs: &[NewRun]) -> Result<Vec<RunRef>, StoreError> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = runs.iter().map(|_| RunId::fresh().0).collect();
    let kinds: Vec<String> = runs.iter().map(|r| r.kind.as_str().to_owned()).collect();
    let crawls: Vec<Option<Uuid>> = runs.iter().map(|r| r.crawl.map(|c| c.0)).collect();
    let entities: Vec<Option<Uuid>> = runs.iter().map(|r| r.entity).collect();
    let inputs: Vec<Value> = runs.iter().map(|r| r.input.clone()).collect();
    let priorities: Vec<i16> = runs.iter().map(|r| r.priority.0).collect();
    let attempts: Vec<i32> = runs.iter().map(|r| r.kind.policy().attempts).collect();
    let rows = sqlx::query!(
        r#"INSERT INTO task_run (id, kind, crawl_id, entity, input, priority, max_attempts)
           SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::jsonb[], $6::smallint[], $7::int[])
           ON CONFLICT (entity, kind) WHERE status IN ('queued', 'running') DO NOTHING
           RETURNING id, kind"#,
        &ids,
        &kinds,
        &crawls as &[Option<Uuid>],
        &entities as &[Option<Uuid>],
        &inputs,
        &priorities,
        &attempts,
    )
    .fetch_all(c)
    .await?;
    rows.into_iter().map(|r| Ok(RunRef { id: RunId(r.id), kind: r.kind.parse()? })).collect()
}

/// Which runs to claim.
#[derive(Debug, Clone)]
pub enum Select {
    /// Those a message named.
    Ids(Vec<RunId>),
    /// The next due ones, most urgent first.
    Next(u32),
}

/// A run held under a lease.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The run.
    pub id: RunId,
    /// Its crawl.
    pub crawl: Option<CrawlId>,
    /// The row it works on.
    pub entity: Option<Uuid>,
    /// The fence: a settle with another token does nothing.
    pub lease: Uuid,
    /// Input as stored.
    pub input: Value,
    /// Cursor of the last `Continue`.
    pub cursor: Option<Value>,
    /// Slices completed.
    pub step: i32,
    /// This claim's number, from one.
    pub attempt: i32,
    /// Claims allowed.
    pub max_attempts: i32,
    /// Seconds until the phase ends.
    pub phase_left_s: f64,
    /// Somebody asked for its end.
    pub cancel_requested: bool,
}

/// Claims runs of one kind: queued and due, or running under a dead lease with attempts left.
/// An empty answer means that someone else has them or that they are finished.
///
/// # Errors
/// When the database fails.
pub async fn claim(c: &mut Conn, kind: Kind, select: &Select) -> Result<Vec<Claimed>, StoreError> {
    let policy = kind.policy();
    let (ids, next): (Vec<Uuid>, i64) = match select {
        Select::Ids(ids) => (ids.iter().map(|r| r.0).collect(), 0),
        Select::Next(n) => (Vec::new(), i64::from(*n)),
    };
    let lease = Uuid::new_v4();
    // The priorities present are walked one by one, so that runs waiting for a later time in one
    // class do not have to be passed over to reach the due ones of another.
    let rows = sqlx::query!(
        r#"WITH RECURSIVE class(priority) AS (
               (SELECT priority FROM task_run WHERE kind = $1 AND status = 'queued' AND $3::bigint > 0
                ORDER BY priority LIMIT 1)
               UNION ALL
               SELECT (SELECT t.priority FROM task_run t
                       WHERE t.kind = $1 AND t.status = 'queued' AND t.priority > class.priority
                       ORDER BY t.priority LIMIT 1)
               FROM class WHERE class.priority IS NOT NULL
           ), wanted AS (
               SELECT id FROM unnest($2::uuid[]) AS id
               UNION ALL
               (SELECT due.id FROM class, LATERAL (
                    SELECT t.id FROM task_run t
                    WHERE t.kind = $1 AND t.status = 'queued' AND t.priority = class.priority AND t.not_before <= now()
                    ORDER BY t.not_before, t.id LIMIT $3) due
                LIMIT $3)
           ), picked AS (
               SELECT id FROM task_run
               WHERE id = ANY (ARRAY(SELECT id FROM wanted)) AND kind = $1
                 AND (status = 'queued' AND not_before <= now()
                      OR status = 'running' AND lease_expires_at < now() AND attempt < max_attempts)
                 AND (deadline_at IS NULL OR deadline_at > now())
               FOR UPDATE SKIP LOCKED
           )
           UPDATE task_run r
           SET status = 'running', lease = $4, lease_expires_at = now() + make_interval(secs => $5),
               attempt = r.attempt + 1, started_at = coalesce(r.started_at, now()), progress_at = now(),
               deadline_at = coalesce(r.deadline_at, now() + make_interval(secs => $6))
           FROM picked WHERE r.id = picked.id
           RETURNING r.id, r.crawl_id, r.entity, r.input, r.cursor, r.step, r.attempt, r.max_attempts,
                     r.cancel_requested, extract(epoch FROM r.deadline_at - now())::float8 AS "phase_left_s!""#,
        kind.as_str(),
        &ids,
        next,
        lease,
        policy.lease().as_secs_f64(),
        policy.phase.as_secs_f64(),
    )
    .fetch_all(c)
    .await?;
    Ok(rows
        .into_iter()
        .map(|r| Claimed {
            id: RunId(r.id),
            crawl: r.crawl_id.map(CrawlId),
            entity: r.entity,
            lease,
            input: r.input,
            cursor: r.cursor,
            step: r.step,
            attempt: r.attempt,
            max_attempts: r.max_attempts,
            phase_left_s: r.phase_left_s,
            cancel_requested: r.cancel_requested,
        })
        .collect())
}

/// Renews the lease of running runs: the sign of life of the function that holds them.
///
/// # Errors
/// When the database fails.
pub async fn renew(c: &mut Conn, kind: Kind, lease: Uuid, runs: &[RunId]) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = runs.iter().map(|r| r.0).collect();
    sqlx::query!(
        r#"UPDATE task_run SET lease_expires_at = now() + make_interval(secs => $3)
           WHERE id = ANY($1) AND lease = $2 AND status = 'running'"#,
        &ids,
        lease,
        kind.policy().lease().as_secs_f64()
    )
    .execute(c)
    .await?;
    Ok(())
}

/// Ends every lease: for a host that owns its database alone and has just started, so that what its
/// killed predecessor held is rescued at once.
///
/// # Errors
/// When the database fails.
pub async fn end_leases(c: &mut Conn) -> Result<u64, StoreError> {
    Ok(sqlx::query!("UPDATE task_run SET lease_expires_at = now() WHERE status = 'running'")
        .execute(c)
        .await?
        .rows_affected())
}

/// How a slice ended, for the row.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// Done.
    Succeeded,
    /// There was nothing to do; the reason is kept.
    Discarded(&'static str),
    /// No longer wanted.
    Cancelled,
    /// Given up.
    Failed {
        /// The code.
        code: ErrorCode,
        /// What happened.
        error: String,
    },
    /// To be tried again after a while.
    Retry {
        /// The wait.
        delay: Duration,
        /// The code.
        code: ErrorCode,
        /// What happened.
        error: String,
    },
    /// Another slice, at once; attempts start anew because there was progress.
    Continue(Value),
    /// Not now; the attempt is given back.
    Snooze(Duration),
    /// Not until its crawl is resumed; the attempt is given back.
    Hold,
}

/// One run's settlement.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The run.
    pub run: RunId,
    /// The lease it was claimed under.
    pub lease: Uuid,
    /// How the slice ended.
    pub verdict: Verdict,
}

/// Longest error text kept on a run, in bytes.
const ERROR_MAX: usize = 4000;

/// Cuts an error text to what a row keeps; Postgres refuses NUL in text.
#[must_use]
pub fn error_text(error: &str) -> String {
    let mut end = error.len().min(ERROR_MAX);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error[..end].replace('\0', "\u{fffd}")
}

/// Settles runs under their fence. The answer names those whose lease was still held; only their
/// effects may be applied, in the same transaction.
///
/// # Errors
/// When the database fails.
pub async fn settle(c: &mut Conn, settlements: &[Settlement]) -> Result<Vec<RunId>, StoreError> {
    #[derive(Default)]
    struct Columns {
        id: Vec<Uuid>,
        lease: Vec<Uuid>,
        status: Vec<String>,
        cursor: Vec<Option<Value>>,
        delay: Vec<f64>,
        give_back: Vec<bool>,
        code: Vec<Option<String>>,
        error: Vec<Option<String>>,
    }
    let mut col = Columns::default();
    for s in settlements {
        // A negative delay stands for "held until released".
        let (status, cursor, delay, give_back, code, error) = match &s.verdict {
            Verdict::Succeeded => ("succeeded", None, 0.0, false, None, None),
            Verdict::Discarded(why) => ("discarded", None, 0.0, false, None, Some((*why).to_owned())),
            Verdict::Cancelled => ("cancelled", None, 0.0, false, Some(ErrorCode::CANCELLED), None),
            Verdict::Failed { code, error } => ("failed", None, 0.0, false, Some(*code), Some(error_text(error))),
            Verdict::Retry { delay, code, error } => {
                ("queued", None, delay.as_secs_f64(), false, Some(*code), Some(error_text(error)))
            }
            Verdict::Continue(cursor) => ("queued", Some(cursor.clone()), 0.0, true, None, None),
            Verdict::Snooze(delay) => ("queued", None, delay.as_secs_f64(), true, None, None),
            Verdict::Hold => ("queued", None, -1.0, true, None, None),
        };
        col.id.push(s.run.0);
        col.lease.push(s.lease);
        col.status.push(status.to_owned());
        col.cursor.push(cursor);
        col.delay.push(delay);
        col.give_back.push(give_back);
        col.code.push(code.map(|c| c.as_str().to_owned()));
        col.error.push(error);
    }
    let rows = sqlx::query_scalar!(
        r#"UPDATE task_run r
           SET status = s.status, lease = NULL, lease_expires_at = NULL,
               cursor = coalesce(s.cursor, r.cursor),
               step = r.step + (s.cursor IS NOT NULL)::int,
               attempt = CASE WHEN s.cursor IS NOT NULL THEN 0 WHEN s.give_back THEN r.attempt - 1 ELSE r.attempt END,
               -- Waiting on purpose is no part of the phase.
               deadline_at = CASE WHEN s.give_back AND s.cursor IS NULL THEN NULL ELSE r.deadline_at END,
               not_before = CASE WHEN s.status <> 'queued' THEN r.not_before WHEN s.delay < 0 THEN 'infinity'
                                 ELSE now() + make_interval(secs => s.delay) END,
               rung_at = now(), progress_at = now(),
               finished_at = CASE WHEN s.status <> 'queued' THEN now() END,
               error_code = s.code, error = s.error
           FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::jsonb[], $5::float8[], $6::bool[], $7::text[], $8::text[])
                AS s(id, lease, status, cursor, delay, give_back, code, error)
           WHERE r.id = s.id AND r.lease = s.lease AND r.status = 'running'
           RETURNING r.id"#,
        &col.id,
        &col.lease,
        &col.status,
        &col.cursor as &[Option<Value>],
        &col.delay,
        &col.give_back,
        &col.code as &[Option<String>],
        &col.error as &[Option<String>],
    )
    .fetch_all(c)
    .await?;
    Ok(rows.into_iter().map(RunId).collect())
}

/// What a task sees when it asks whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Go on.
    Go,
    /// The crawl is paused: end here, to be continued.
    Pause,
    /// The crawl is sealed or the run is no longer wanted.
    Cancel,
    /// The lease is lost: someone else has the run, nothing of ours will be taken.
    Lost,
}

/// Reads the signal of a running run.
///
/// # Errors
/// When the database fails.
pub async fn signal(c: &mut Conn, run: RunId, lease: Uuid) -> Result<Signal, StoreError> {
    let row = sqlx::query!(
        r#"SELECT r.cancel_requested, r.crawl_id, c.status AS "crawl_status?"
           FROM task_run r LEFT JOIN crawl c ON c.id = r.crawl_id
           WHERE r.id = $1 AND r.lease = $2 AND r.status = 'running'"#,
        run.0,
        lease,
    )
    .fetch_optional(c)
    .await?;
    Ok(match row {
        None => Signal::Lost,
        Some(r) if r.cancel_requested => Signal::Cancel,
        Some(r) if r.crawl_id.is_none() => Signal::Go,
        Some(r) => match r.crawl_status.as_deref() {
            Some("paused") => Signal::Pause,
            None | Some("sealed") => Signal::Cancel,
            Some(_) => Signal::Go,
        },
    })
}

/// Seconds until the next queued run of this kind is due; none when nothing is queued.
///
/// # Errors
/// When the database fails.
pub async fn next_due_s(c: &mut Conn, kind: Kind) -> Result<Option<f64>, StoreError> {
    let due = sqlx::query_scalar!(
        r#"WITH RECURSIVE class(priority) AS (
               (SELECT priority FROM task_run WHERE kind = $1 AND status = 'queued' ORDER BY priority LIMIT 1)
               UNION ALL
               SELECT (SELECT t.priority FROM task_run t
                       WHERE t.kind = $1 AND t.status = 'queued' AND t.priority > class.priority
                       ORDER BY t.priority LIMIT 1)
               FROM class WHERE class.priority IS NOT NULL
           )
           SELECT extract(epoch FROM min(first.not_before) - now())::float8
           FROM class, LATERAL (
               SELECT t.not_before FROM task_run t
               WHERE t.kind = $1 AND t.status = 'queued' AND t.priority = class.priority AND t.not_before < 'infinity'
               ORDER BY t.not_before LIMIT 1) first"#,
        kind.as_str(),
    )
    .fetch_one(c)
    .await?;
    Ok(due)
}

/// A run whose failure its domain rows must learn of.
#[derive(Debug, Clone)]
pub struct FailedRun {
    /// The run.
    pub id: RunId,
    /// Its kind.
    pub kind: Kind,
    /// Its crawl.
    pub crawl: Option<CrawlId>,
    /// The row it worked on.
    pub entity: Option<Uuid>,
    /// Why.
    pub code: ErrorCode,
    /// Why, in words.
    pub error: String,
}

/// What one pass over dead leases did.
#[derive(Debug, Clone, Default)]
pub struct Rescued {
    /// Queued again: ring them.
    pub requeued: Vec<RunRef>,
    /// Given up.
    pub failed: Vec<FailedRun>,
    /// Cancelled, because that had been asked for.
    pub cancelled: usize,
}

/// Rescues up to `limit` runs under a dead lease and fails those past their phase. Cancel wins
/// over retry.
///
/// # Errors
/// When the database fails.
pub async fn rescue(c: &mut Conn, limit: i64) -> Result<Rescued, StoreError> {
    let rows = sqlx::query!(
        r#"WITH dead AS (
               SELECT id, 'LEASE_EXPIRED' AS code FROM task_run
               WHERE status = 'running' AND lease_expires_at < now()
               ORDER BY lease_expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
           )
           UPDATE task_run r
           SET status = CASE WHEN r.cancel_requested THEN 'cancelled'
                             WHEN r.deadline_at <= now() OR r.attempt >= r.max_attempts THEN 'failed'
                             ELSE 'queued' END,
               lease = NULL, lease_expires_at = NULL, not_before = now(), rung_at = now(),
               finished_at = CASE WHEN r.cancel_requested OR r.deadline_at <= now() OR r.attempt >= r.max_attempts
                                  THEN now() END,
               error_code = CASE WHEN r.cancel_requested THEN 'CANCELLED'
                                 WHEN r.deadline_at <= now() THEN 'PHASE_TIMEOUT' ELSE dead.code END,
               error = 'the function that held this run ended without settling it'
           FROM dead WHERE r.id = dead.id
           RETURNING r.id, r.kind, r.status, r.crawl_id, r.entity, r.error_code"#,
        limit,
    )
    .fetch_all(c)
    .await?;
    let mut out = Rescued::default();
    for r in rows {
        let (id, kind) = (RunId(r.id), r.kind.parse::<Kind>()?);
        match r.status.as_str() {
            "queued" => out.requeued.push(RunRef { id, kind }),
            "failed" => out.failed.push(FailedRun {
                id,
                kind,
                crawl: r.crawl_id.map(CrawlId),
                entity: r.entity,
                code: ErrorCode::named(r.error_code.as_deref().unwrap_or_default()),
                error: "the function that held this run ended without settling it".to_owned(),
            }),
            _ => out.cancelled += 1,
        }
    }
    Ok(out)
}

/// Fails up to `limit` queued runs whose phase is over.
///
/// # Errors
/// When the database fails.
pub async fn fail_overdue(c: &mut Conn, limit: i64) -> Result<Vec<FailedRun>, StoreError> {
    let rows = sqlx::query!(
        r#"WITH late AS (
               SELECT id FROM task_run
               WHERE status = 'queued' AND deadline_at <= now() AND not_before < 'infinity'
               ORDER BY deadline_at LIMIT $1 FOR UPDATE SKIP LOCKED
           )
           UPDATE task_run r
           SET status = 'failed', finished_at = now(), error_code = 'PHASE_TIMEOUT',
               error = coalesce(r.error, 'the phase ended before the work did')
           FROM late WHERE r.id = late.id
           RETURNING r.id, r.kind, r.crawl_id, r.entity, r.error AS "error!""#,
        limit,
    )
    .fetch_all(c)
    .await?;
    rows.into_iter()
        .map(|r| {
            Ok(FailedRun {
                id: RunId(r.id),
                kind: r.kind.parse()?,
                crawl: r.crawl_id.map(CrawlId),
                entity: r.entity,
                code: ErrorCode::PHASE_TIMEOUT,
                error: r.error,
            })
        })
        .collect()
}

/// Due runs that were not rung for a minute: the row is the outbox. Marks them rung.
///
/// # Errors
/// When the database fails.
pub async fn unrung(c: &mut Conn, kind: Kind, limit: i64) -> Result<Vec<RunRef>, StoreError> {
    let rows = sqlx::query_scalar!(
        r#"WITH quiet AS (
               SELECT id FROM task_run
               WHERE kind = $1 AND status = 'queued' AND not_before <= now()
                 AND rung_at < now() - interval '60 seconds'
               ORDER BY priority, not_before LIMIT $2 FOR UPDATE SKIP LOCKED
           )
           UPDATE task_run r SET rung_at = now() FROM quiet WHERE r.id = quiet.id RETURNING r.id"#,
        kind.as_str(),
        limit,
    )
    .fetch_all(c)
    .await?;
    Ok(rows.into_iter().map(|id| RunRef { id: RunId(id), kind }).collect())
}

/// Releases up to `limit` held runs of crawls that are not paused.
///
/// # Errors
/// When the database fails.
pub async fn release_held(c: &mut Conn, limit: i64) -> Result<Vec<RunRef>, StoreError> {
    let rows = sqlx::query!(
        r#"WITH held AS (
               SELECT t.id FROM task_run t
               WHERE t.status = 'queued' AND t.not_before = 'infinity'
                 AND NOT EXISTS (SELECT 1 FROM crawl c WHERE c.id = t.crawl_id AND c.status = 'paused')
               LIMIT $1 FOR UPDATE SKIP LOCKED
           )
           UPDATE task_run r SET not_before = now(), rung_at = now() FROM held WHERE r.id = held.id
           RETURNING r.id, r.kind"#,
        limit,
    )
    .fetch_all(c)
    .await?;
    rows.into_iter().map(|r| Ok(RunRef { id: RunId(r.id), kind: r.kind.parse()? })).collect()
}

/// Lets `ahead` pass for every run: waits, leases and phases end that much earlier. For tests, which
/// must not sleep; nothing else calls it.
///
/// # Errors
/// When the database fails.
#[doc(hidden)]
pub async fn shift_time(c: &mut Conn, ahead: Duration) -> Result<(), StoreError> {
    sqlx::query!(
        r#"UPDATE task_run SET
               not_before = CASE WHEN not_before < 'infinity' THEN not_before - make_interval(secs => $1) ELSE not_before END,
               lease_expires_at = lease_expires_at - make_interval(secs => $1),
               deadline_at = deadline_at - make_interval(secs => $1),
               rung_at = rung_at - make_interval(secs => $1)
           WHERE status IN ('queued', 'running')"#,
        ahead.as_secs_f64()
    )
    .execute(c)
    .await?;
    Ok(())
}

/// Forwards doorbells between processes: announces the kinds on the `fonds_runs` channel.
///
/// # Errors
/// When the database fails.
pub async fn notify(c: &mut Conn, kinds: &[Kind]) -> Result<(), StoreError> {
    let names: Vec<String> = kinds.iter().map(|k| k.as_str().to_owned()).collect();
    sqlx::query!("SELECT pg_notify('fonds_runs', k) FROM unnest($1::text[]) AS k", &names).fetch_all(c).await?;
    Ok(())
}

/// Listens for doorbells of other processes.
pub struct RunListener(sqlx::postgres::PgListener);

impl RunListener {
    /// Subscribes.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn connect(db: &crate::Db) -> Result<RunListener, StoreError> {
        let mut listener = sqlx::postgres::PgListener::connect_with(db.pool()).await?;
        listener.listen("fonds_runs").await?;
        Ok(RunListener(listener))
    }

    /// The next announced kind; names of other versions are passed over. Reconnects by itself.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn next(&mut self) -> Result<Kind, StoreError> {
        loop {
            if let Ok(kind) = self.0.recv().await?.payload().parse() {
                return Ok(kind);
            }
        }
    }
}
