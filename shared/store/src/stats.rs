//! Figures of the whole system, at a cost that does not grow with it: rows are counted up to
//! [`COUNT_MAX`], beyond that the planner's estimate stands in.

use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};

/// Counting stops here.
pub const COUNT_MAX: i64 = 10_000;

/// A number of rows or bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number.
    pub value: i64,
    /// False: an estimate, or a least value.
    pub exact: bool,
}

impl Amount {
    /// From a count that stopped after `COUNT_MAX + 1`.
    fn counted(n: i64) -> Amount {
        Amount { value: n.min(COUNT_MAX), exact: n <= COUNT_MAX }
    }

    /// The count, or the planner's estimate when there are more rows than are counted.
    fn or_estimate(n: i64, estimate: i64) -> Amount {
        if n <= COUNT_MAX { Amount::counted(n) } else { Amount { value: estimate.max(n), exact: false } }
    }
}

/// Runs of one kind.
#[derive(Debug, Clone)]
pub struct KindStats {
    /// The kind, as stored.
    pub kind: String,
    /// Waiting.
    pub queued: Amount,
    /// At work.
    pub running: i64,
    /// For how many seconds the longest waiting due run has been due, of the most urgent class.
    pub oldest_due_s: Option<f64>,
}

/// The figures.
#[derive(Debug, Clone)]
pub struct Stats {
    /// All crawls.
    pub crawls: Amount,
    /// Crawls in set-up.
    pub crawls_queued: i64,
    /// Crawls at work.
    pub crawls_started: i64,
    /// Crawls held.
    pub crawls_paused: i64,
    /// All snapshots.
    pub snapshots: Amount,
    /// Snapshots that are not over.
    pub snapshots_open: Amount,
    /// All results.
    pub results: Amount,
    /// Stored objects.
    pub objects: Amount,
    /// Their bytes.
    pub object_bytes: Amount,
    /// By kind.
    pub kinds: Vec<KindStats>,
    /// Runs that failed within a day.
    pub failed_24h: Amount,
    /// The database on disk.
    pub database_bytes: i64,
    /// When the sweep last ticked.
    pub sweep_last_tick: Option<DateTime<Utc>>,
}

/// Reads the figures.
///
/// # Errors
/// When the database fails.
pub async fn stats(c: &mut Conn) -> Result<Stats, StoreError> {
    let totals = sqlx::query!(
        r#"SELECT
             (SELECT count(*) FROM (SELECT 1 FROM crawl LIMIT $1) x) AS "crawls!",
             (SELECT count(*) FROM (SELECT 1 FROM snapshot LIMIT $1) x) AS "snapshots!",
             (SELECT count(*) FROM (SELECT 1 FROM snapshot WHERE status <> 'sealed' LIMIT $1) x) AS "open!",
             (SELECT count(*) FROM (SELECT 1 FROM archive_result LIMIT $1) x) AS "results!",
             (SELECT count(*) FROM (SELECT 1 FROM object LIMIT $1) x) AS "objects!",
             (SELECT coalesce(sum(size), 0)::bigint FROM (SELECT size FROM object LIMIT $1) x) AS "bytes!",
             (SELECT reltuples::bigint FROM pg_class WHERE oid = 'crawl'::regclass) AS "crawls_est!",
             (SELECT reltuples::bigint FROM pg_class WHERE oid = 'snapshot'::regclass) AS "snapshots_est!",
             (SELECT reltuples::bigint FROM pg_class WHERE oid = 'archive_result'::regclass) AS "results_est!",
             (SELECT reltuples::bigint FROM pg_class WHERE oid = 'object'::regclass) AS "objects_est!",
             pg_database_size(current_database()) AS "database_bytes!",
             (SELECT modified_at FROM app_setting WHERE key = 'sweep.last_tick') AS sweep_last_tick"#,
        COUNT_MAX + 1,
    )
    .fetch_one(&mut *c)
    .await?;
    let objects = Amount::or_estimate(totals.objects, totals.objects_est);
    let object_bytes = if objects.exact {
        Amount { value: totals.bytes, exact: true }
    } else {
        // The mean of those that were read, times how many there are.
        Amount { value: totals.bytes / totals.objects.max(1) * objects.value, exact: false }
    };
    let (mut queued, mut started, mut paused) = (0, 0, 0);
    for row in sqlx::query!(
        r#"SELECT status, count(*) AS "n!" FROM (SELECT status FROM crawl WHERE status <> 'sealed' LIMIT $1) x
           GROUP BY status"#,
        COUNT_MAX,
    )
    .fetch_all(&mut *c)
    .await?
    {
        match row.status.as_str() {
            "queued" => queued = row.n,
            "started" => started = row.n,
            _ => paused = row.n,
        }
    }
    Ok(Stats {
        crawls: Amount::or_estimate(totals.crawls, totals.crawls_est),
        crawls_queued: queued,
        crawls_started: started,
        crawls_paused: paused,
        snapshots: Amount::or_estimate(totals.snapshots, totals.snapshots_est),
        snapshots_open: Amount::counted(totals.open),
        results: Amount::or_estimate(totals.results, totals.results_est),
        objects,
        object_bytes,
        kinds: kinds(c).await?,
        failed_24h: failed(c).await?,
        database_bytes: totals.database_bytes,
        sweep_last_tick: totals.sweep_last_tick,
    })
}

/// Running rows are few (the concurrency cap); queued ones are counted up to the limit.
async fn kinds(c: &mut Conn) -> Result<Vec<KindStats>, StoreError> {
    let names: Vec<String> = fonds_domain::Kind::ALL.iter().map(|k| k.as_str().to_owned()).collect();
    let rows = sqlx::query!(
        r#"SELECT k.kind AS "kind!",
             (SELECT count(*) FROM (SELECT 1 FROM task_run t WHERE t.kind = k.kind AND t.status = 'queued' LIMIT $2) x)
               AS "queued!",
             (SELECT count(*) FROM task_run t WHERE t.status = 'running' AND t.kind = k.kind) AS "running!",
             (SELECT extract(epoch FROM now() - first.not_before)::float8
              FROM (SELECT t.not_before FROM task_run t WHERE t.kind = k.kind AND t.status = 'queued'
                    ORDER BY t.priority, t.not_before LIMIT 1) first
              WHERE first.not_before <= now()) AS oldest_due_s
           FROM unnest($1::text[]) WITH ORDINALITY AS k(kind, n) ORDER BY k.n"#,
        &names,
        COUNT_MAX + 1,
    )
    .fetch_all(c)
    .await?;
    Ok(rows
        .into_iter()
        .map(|r| KindStats {
            kind: r.kind,
            queued: Amount::counted(r.queued),
            running: r.running,
            oldest_due_s: r.oldest_due_s,
        })
        .collect())
}

/// The newest runs are looked at, by id, as far as a day or the limit reaches: runs live for
/// minutes, so their ids tell their age well enough.
async fn failed(c: &mut Conn) -> Result<Amount, StoreError> {
    let floor = crate::query::id_floor(Utc::now() - chrono::TimeDelta::days(1));
    let row = sqlx::query!(
        r#"SELECT count(*) AS "seen!", count(*) FILTER (WHERE status = 'failed') AS "failed!"
           FROM (SELECT status FROM task_run WHERE id >= $1 ORDER BY id DESC LIMIT $2) x"#,
        floor,
        COUNT_MAX + 1,
    )
    .fetch_one(c)
    .await?;
    Ok(Amount { value: row.failed, exact: row.seen <= COUNT_MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;

    #[test]
    fn amounts_say_whether_they_are_exact() {
        assert_eq!(Amount::or_estimate(7, 0), Amount { value: 7, exact: true });
        assert_eq!(Amount::or_estimate(COUNT_MAX + 1, 5_000_000), Amount { value: 5_000_000, exact: false });
        assert_eq!(Amount::or_estimate(COUNT_MAX + 1, -1), Amount { value: COUNT_MAX + 1, exact: false });
        assert_eq!(Amount::counted(COUNT_MAX + 1), Amount { value: COUNT_MAX, exact: false });
    }

    #[sqlx::test(migrator = "crate::MIGRATOR")]
    async fn an_empty_system_has_figures(pool: sqlx::PgPool) {
        let stats = stats(&mut Db::from_pool(pool).conn().await.unwrap()).await.unwrap();
        assert_eq!(stats.snapshots, Amount { value: 0, exact: true });
        assert_eq!(stats.kinds.len(), fonds_domain::Kind::ALL.len());
        assert!(stats.database_bytes > 0 && stats.sweep_last_tick.is_none());
    }
}
