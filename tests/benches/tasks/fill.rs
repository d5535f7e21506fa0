//! Tables as they are after years: finished runs and sealed snapshots, made by the server itself.

use crate::common::Database;
use sqlx::PgConnection;
use std::time::{Duration, Instant};

/// Snapshots at most; runs may be more, since a snapshot may have had several.
pub(crate) const SNAPSHOTS: i64 = 1_000_000;
/// Rows a statement.
const CHUNK: i64 = 250_000;

/// Ids that sort by creation, as ours do.
const V7: &str = "CREATE FUNCTION v7(at timestamptz, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0')
            || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid $$";

/// Row `n` was made 10 ms after the one before it, all of them in January.
const AT: &str = "timestamptz '2026-01-01' + make_interval(secs => n * 0.01)";

const CRAWLS: &str = "INSERT INTO crawl (id, status, config, stop_reason, sealed_at, setup_done)
    SELECT v7({AT}, n), 'sealed', '{}', 'completed', now(), true
    FROM generate_series(($1::bigint / 10000) * 10000, $2::bigint, 10000) n ON CONFLICT DO NOTHING";

const SNAPSHOT_ROWS: &str =
    "INSERT INTO snapshot (id, crawl_id, url, url_key, host, title, status, http_status, mime, size,
                          n_ok, created_at, downloaded_at, sealed_at)
    SELECT v7({AT}, n), v7({CRAWL}, (n / 10000) * 10000), 'https://host' || n % 5000 || '.example/page/' || n,
           decode(md5(n::text), 'hex'), 'host' || n % 5000 || '.example', 'Page ' || n, 'sealed', 200, 'text/html',
           20000, 8, {AT}, {AT}, {AT}
    FROM generate_series($1::bigint, $2::bigint - 1) n";

const RUNS: &str = "INSERT INTO task_run (id, kind, status, crawl_id, entity, attempt, max_attempts, not_before, rung_at,
                          created_at, started_at, progress_at, deadline_at, finished_at)
    SELECT v7({AT}, n), CASE WHEN n % 100 = 0 THEN 'crawl-setup' WHEN n % 10 < 3 THEN 'snapshot' ELSE 'snapshot-plain' END,
           CASE WHEN n % 200 = 7 THEN 'failed' ELSE 'succeeded' END, v7({CRAWL}, (n / 10000) * 10000),
           v7({AT}, n % 1000000), 1, 3, {AT}, {AT}, {AT}, {AT}, {AT}, {AT} + interval '12 minutes', {AT}
    FROM generate_series($1::bigint, $2::bigint - 1) n";

/// Fills both tables up to this many runs. Answers how long it took.
pub(crate) async fn up_to(database: &Database, level: i64) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let mut conn = database.connect().await?;
    let known: Option<String> = sqlx::query_scalar("SELECT to_regproc('v7')::text").fetch_one(&mut conn).await?;
    if known.is_none() {
        sqlx::query(V7).execute(&mut conn).await?;
    }
    let runs =
        filled(&mut conn, "SELECT count(*) FROM task_run WHERE entity IS NOT NULL AND created_at < '2026-02-01'")
            .await?;
    let snapshots = filled(&mut conn, "SELECT count(*) FROM snapshot WHERE created_at < '2026-02-01'").await?;
    chunks(&mut conn, &[CRAWLS, SNAPSHOT_ROWS], snapshots, level.min(SNAPSHOTS)).await?;
    chunks(&mut conn, &[RUNS], runs, level).await?;
    // Also for the visibility map, which a table that has been there for a while would have.
    sqlx::query("VACUUM (ANALYZE) task_run, snapshot, crawl").execute(&mut conn).await?;
    sqlx::query("CHECKPOINT").execute(&mut conn).await.ok();
    Ok(began.elapsed())
}

async fn filled(conn: &mut PgConnection, sql: &'static str) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar(sql).fetch_one(conn).await?)
}

async fn chunks(conn: &mut PgConnection, statements: &[&str], from: i64, to: i64) -> anyhow::Result<()> {
    let mut at = from;
    while at < to {
        let end = (at + CHUNK).min(to);
        for sql in statements {
            let sql = sql.replace("{CRAWL}", &AT.replace("n *", "(n / 10000) * 10000 *")).replace("{AT}", AT);
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(at).bind(end).execute(&mut *conn).await?;
        }
        at = end;
    }
    Ok(())
}

/// What is always in flight: runs that wait for a later time, runs that others hold.
pub(crate) async fn in_flight(database: &Database) -> anyhow::Result<()> {
    let waiting = "INSERT INTO task_run (id, kind, entity, max_attempts, not_before)
        SELECT gen_random_uuid(), kind, gen_random_uuid(), 3, now() + make_interval(hours => 1, secs => n)
        FROM generate_series(1, 500) n, unnest(ARRAY['crawl-setup', 'snapshot-plain', 'snapshot']) kind";
    let running =
        "INSERT INTO task_run (id, kind, status, entity, max_attempts, attempt, lease, lease_expires_at, deadline_at)
        SELECT gen_random_uuid(), kind, 'running', gen_random_uuid(), 3, 1, gen_random_uuid(), now() + interval '1 day',
               now() + interval '1 day'
        FROM generate_series(1, 30) n, unnest(ARRAY['crawl-setup', 'snapshot-plain', 'snapshot']) kind";
    for sql in [waiting, running] {
        sqlx::query(sql).execute(database.db.pool()).await?;
    }
    Ok(())
}
