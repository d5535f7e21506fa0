//! What the sweep looks for: rows that got stuck or outlived their time. Every statement is bounded,
//! skips what others hold, and finds nothing on a healthy system.

use crate::capture;
use crate::crawls;
use crate::idempotency;
use crate::runs::{self, NewRun, RunRef};
use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, ErrorCode, Kind, Priority};
use serde_json::{Value, json};
use uuid::Uuid;

/// Enqueues a sweep unless one is open.
///
/// # Errors
/// When the database fails.
pub async fn enqueue_sweep(c: &mut Conn) -> Result<Vec<RunRef>, StoreError> {
    let run = NewRun {
        kind: Kind::Sweep,
        crawl: None,
        // The entity of all of them is the same, so at most one is open.
        entity: Some(Uuid::nil()),
        input: Value::Null,
        priority: Priority::SUBMITTED,
    };
    runs::enqueue(c, &[run]).await
}

/// Stamps the tick, so that an operator sees that the sweep is alive.
///
/// # Errors
/// When the database fails.
pub async fn stamp(c: &mut Conn) -> Result<(), StoreError> {
    set_setting(c, "sweep.last_tick", &json!(Utc::now())).await
}

/// Reads a setting.
///
/// # Errors
/// When the database fails.
pub async fn setting(c: &mut Conn, key: &str) -> Result<Option<Value>, StoreError> {
    Ok(sqlx::query_scalar!("SELECT value FROM app_setting WHERE key = $1", key).fetch_optional(c).await?)
}

/// Writes a setting.
///
/// # Errors
/// When the database fails.
pub async fn set_setting(c: &mut Conn, key: &str, value: &Value) -> Result<(), StoreError> {
    sqlx::query!(
        r#"INSERT INTO app_setting (key, value) VALUES ($1, $2)
           ON CONFLICT (key) DO UPDATE SET value = excluded.value, modified_at = now()"#,
        key,
        value
    )
    .execute(c)
    .await?;
    Ok(())
}

/// Crawls that are over and still have open snapshots: cancelled ones whose children nobody has
/// reached yet.
///
/// # Errors
/// When the database fails.
pub async fn sealed_with_open(c: &mut Conn, limit: i64) -> Result<Vec<CrawlId>, StoreError> {
    // Open snapshots are few beside all there are; they are looked at through their partial index.
    let ids = sqlx::query_scalar!(
        r#"SELECT DISTINCT s.crawl_id FROM snapshot s JOIN crawl c ON c.id = s.crawl_id
           WHERE s.status <> 'sealed' AND c.status = 'sealed' LIMIT $1"#,
        limit
    )
    .fetch_all(c)
    .await?;
    Ok(ids.into_iter().map(CrawlId).collect())
}

/// Closes the open snapshots of a crawl that is over.
///
/// # Errors
/// When the database fails.
pub async fn close_orphans(c: &mut Conn, crawl: CrawlId, limit: i64) -> Result<u64, StoreError> {
    capture::close_queued(c, crawl, ErrorCode::CANCELLED, false, limit).await
}

/// Open crawls that nothing moves any more: no open run of theirs, no open snapshot. Their next
/// phase is enqueued.
///
/// # Errors
/// When the database fails.
pub async fn revive_crawls(c: &mut Conn, limit: i64) -> Result<Vec<RunRef>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT c.id, c.setup_done FROM crawl c
           WHERE c.status IN ('queued', 'started') AND c.modified_at < now() - interval '30 seconds'
             AND NOT EXISTS (SELECT 1 FROM task_run t WHERE t.entity = c.id AND t.status IN ('queued', 'running')
                             AND t.kind IN ('crawl-setup', 'crawl-seal'))
             AND (NOT c.setup_done
                  OR NOT EXISTS (SELECT 1 FROM snapshot s WHERE s.crawl_id = c.id AND s.status <> 'sealed'))
           ORDER BY c.id LIMIT $1"#,
        limit
    )
    .fetch_all(&mut *c)
    .await?;
    let mut rings = Vec::new();
    for row in rows {
        let crawl = CrawlId(row.id);
        if row.setup_done {
            rings.extend(crawls::maybe_seal(c, crawl).await?);
        } else {
            let run = NewRun {
                kind: Kind::CrawlSetup,
                crawl: Some(crawl),
                entity: Some(crawl.0),
                input: Value::Null,
                priority: Priority::RETRY,
            };
            rings.extend(runs::enqueue(c, &[run]).await?);
        }
    }
    Ok(rings)
}

/// Open snapshots of live crawls without an open run: they get one.
///
/// # Errors
/// When the database fails.
pub async fn revive_snapshots(c: &mut Conn, limit: i64) -> Result<Vec<RunRef>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT s.id, s.crawl_id, s.depth FROM snapshot s JOIN crawl c ON c.id = s.crawl_id
           WHERE s.status <> 'sealed' AND c.status <> 'sealed' AND s.created_at < now() - interval '30 seconds'
             AND NOT EXISTS (SELECT 1 FROM task_run t WHERE t.entity = s.id AND t.status IN ('queued', 'running')
                             AND t.kind IN ('snapshot', 'snapshot-plain'))
           LIMIT $1"#,
        limit
    )
    .fetch_all(&mut *c)
    .await?;
    let mut crawls_of: Vec<CrawlId> = rows.iter().map(|r| CrawlId(r.crawl_id)).collect();
    crawls_of.sort_unstable();
    crawls_of.dedup();
    let known = crawls::load(c, &crawls_of).await?;
    let runs: Vec<NewRun> = rows
        .iter()
        .filter_map(|row| {
            let crawl = known.iter().find(|k| k.id.0 == row.crawl_id)?;
            Some(NewRun {
                kind: crawl.snapshot_kind(),
                crawl: Some(crawl.id),
                entity: Some(row.id),
                input: Value::Null,
                priority: Priority::page(u16::try_from(row.depth).unwrap_or(0), crawl.config.scheduled),
            })
        })
        .collect();
    runs::enqueue(c, &runs).await
}

/// Started crawls past their timeout: the reason is set and up to `limit` queued pages below the
/// first are closed.
///
/// # Errors
/// When the database fails.
pub async fn stop_timed_out(c: &mut Conn, limit: i64) -> Result<Vec<RunRef>, StoreError> {
    let ids = sqlx::query_scalar!(
        r#"SELECT id FROM crawl
           WHERE status = 'started' AND timeout_s IS NOT NULL
             AND extract(epoch FROM now() - started_at) - paused_s >= timeout_s
             AND EXISTS (SELECT 1 FROM snapshot s WHERE s.crawl_id = crawl.id AND s.status <> 'sealed' AND s.depth > 0)
           ORDER BY id LIMIT 20"#
    )
    .fetch_all(&mut *c)
    .await?;
    let mut rings = Vec::new();
    for id in ids.into_iter().map(CrawlId) {
        sqlx::query!("UPDATE crawl SET stop_reason = 'crawl_timeout' WHERE id = $1 AND status = 'started'", id.0)
            .execute(&mut *c)
            .await?;
        capture::close_queued(c, id, ErrorCode::LIMIT_REACHED, true, limit).await?;
        rings.extend(crawls::maybe_seal(c, id).await?);
    }
    Ok(rings)
}

/// Deletes up to `limit` snapshots that are due: their own time, or their crawl's. Only sealed ones;
/// a crawl goes with its last snapshot. Their objects stay until nothing refers to them.
///
/// # Errors
/// When the database fails.
pub async fn expire(c: &mut Conn, limit: i64) -> Result<u64, StoreError> {
    let own = sqlx::query!(
        r#"DELETE FROM snapshot WHERE id IN (
               SELECT id FROM snapshot WHERE delete_at <= now() AND status = 'sealed' LIMIT $1 FOR UPDATE SKIP LOCKED)"#,
        limit
    )
    .execute(&mut *c)
    .await?
    .rows_affected();
    let due = sqlx::query_scalar!("SELECT id FROM crawl WHERE delete_at <= now() ORDER BY delete_at LIMIT 20")
        .fetch_all(&mut *c)
        .await?;
    let mut gone = own;
    for id in due {
        // Whatever still runs for it finds the crawl sealed and stops.
        crawls::cancel(c, CrawlId(id)).await?;
        capture::close_queued(c, CrawlId(id), ErrorCode::CANCELLED, false, limit).await?;
        gone += sqlx::query!(
            r#"DELETE FROM snapshot WHERE id IN (
                   SELECT id FROM snapshot WHERE crawl_id = $1 AND status = 'sealed' LIMIT $2 FOR UPDATE SKIP LOCKED)"#,
            id,
            limit
        )
        .execute(&mut *c)
        .await?
        .rows_affected();
        sqlx::query!(
            "DELETE FROM crawl c WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM snapshot s WHERE s.crawl_id = c.id)",
            id
        )
        .execute(&mut *c)
        .await?;
    }
    Ok(gone)
}

/// Objects that no snapshot refers to any more, to be deleted from the blob store before their rows.
///
/// # Errors
/// When the database fails.
pub async fn unreferenced(c: &mut Conn, after: &str, limit: i64) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"SELECT key FROM (SELECT key FROM object WHERE key > $1 ORDER BY key LIMIT $2) o
           WHERE NOT EXISTS (SELECT 1 FROM object_ref r WHERE r.object_key = o.key)"#,
        after,
        limit
    )
    .fetch_all(c)
    .await?)
}

/// The last key of a page of the walk over objects; none at the end.
///
/// # Errors
/// When the database fails.
pub async fn walk_objects(c: &mut Conn, after: &str, limit: i64) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "SELECT max(key) FROM (SELECT key FROM object WHERE key > $1 ORDER BY key LIMIT $2) o",
        after,
        limit
    )
    .fetch_one(c)
    .await?)
}

/// Forgets objects that are still unreferenced, and their entries in the dedup index. Before the
/// bytes go: from here on no capture can refer to them.
///
/// # Errors
/// When the database fails.
pub async fn forget_objects(c: &mut Conn, keys: &[String]) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"DELETE FROM object o WHERE key = ANY($1) AND NOT EXISTS (SELECT 1 FROM object_ref r WHERE r.object_key = o.key)
           RETURNING key"#,
        keys
    )
    .fetch_all(c)
    .await?)
}

/// Which of these keys have a row. What lies in the blob store without one is the loser of a race
/// or the leftover of a crash.
///
/// # Errors
/// When the database fails.
pub async fn known_objects(c: &mut Conn, keys: &[String]) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!("SELECT key FROM object WHERE key = ANY($1)", keys).fetch_all(c).await?)
}

/// Deletes up to `limit` finished runs past their time: 14 days, 30 for failed ones. Walks by id,
/// since ids sort by creation.
///
/// # Errors
/// When the database fails.
pub async fn expire_runs(c: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<u64, StoreError> {
    let ends = id_of_time(now - chrono::TimeDelta::days(14));
    Ok(sqlx::query!(
        r#"DELETE FROM task_run WHERE id IN (
               SELECT id FROM (SELECT id, status, finished_at FROM task_run WHERE id < $1 ORDER BY id LIMIT $2) old
               WHERE status IN ('succeeded', 'cancelled', 'discarded') AND finished_at < now() - interval '14 days'
                  OR status = 'failed' AND finished_at < now() - interval '30 days')"#,
        ends,
        limit
    )
    .execute(c)
    .await?
    .rows_affected())
}

/// Deletes up to `limit` remembered submissions older than a week, and tokens long expired.
///
/// # Errors
/// When the database fails.
pub async fn expire_keys(c: &mut Conn, limit: i64) -> Result<u64, StoreError> {
    const WEEK_S: f64 = 7.0 * 86_400.0;
    let keys = idempotency::expire(c, WEEK_S, limit).await?;
    let tokens = sqlx::query!("DELETE FROM api_token WHERE expires_at < now() - interval '30 days'")
        .execute(c)
        .await?
        .rows_affected();
    Ok(keys + tokens)
}

/// The smallest version 7 UUID of a moment.
fn id_of_time(at: DateTime<Utc>) -> Uuid {
    let millis = u64::try_from(at.timestamp_millis()).unwrap_or(0);
    Uuid::from_u128(u128::from(millis) << 80)
}
