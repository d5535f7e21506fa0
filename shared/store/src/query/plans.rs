//! Which index a page goes by. A filter that falls back to reading the table would be fast in every
//! small test and slow in every large library.

use super::crawls::{CrawlFilter, page as crawl_page};
use super::snapshots::{SnapshotFilter, page as snapshot_page};
use super::tasks::{TaskFilter, page as task_page};
use super::url_key;
use fonds_domain::{CrawlId, CrawlStatus, Kind, RunStatus, SnapshotId, SnapshotStatus};
use sqlx::{PgPool, QueryBuilder};

const EXPLAIN: &str = "EXPLAIN ";

async fn plan(pool: &PgPool, mut q: QueryBuilder<sqlx::Postgres>) -> String {
    let lines: Vec<String> = q.build_query_scalar().persistent(false).fetch_all(pool).await.unwrap();
    lines.join("\n")
}

async fn fill(pool: &PgPool) {
    for sql in [
        "INSERT INTO crawl (id, config, status, stop_reason, sealed_at, tags)
         SELECT lpad(to_hex(i), 32, '0')::uuid, '{}', CASE WHEN i % 500 = 0 THEN 'paused' ELSE 'sealed' END, 'done', now(),
                ARRAY['t' || i]
         FROM generate_series(1, 2000) i",
        "INSERT INTO snapshot (id, crawl_id, url, url_key, host, status, sealed_at, tags, error_code)
         SELECT lpad(to_hex(i), 32, '0')::uuid, lpad(to_hex(1 + i / 20), 32, '0')::uuid, 'https://h' || i % 997 || '.org/' || i,
                substr(sha256(('https://h' || i % 997 || '.org/' || i)::bytea), 1, 16), 'h' || i % 997 || '.org',
                CASE WHEN i % 5000 = 0 THEN 'started' ELSE 'sealed' END, CASE WHEN i % 5000 <> 0 THEN now() END,
                CASE WHEN i % 3000 = 0 THEN ARRAY['rare'] ELSE '{}' END, CASE WHEN i % 4000 = 0 THEN 'DNS_FAILED' END
         FROM generate_series(1, 20000) i",
        "INSERT INTO task_run (id, kind, max_attempts, status, lease, lease_expires_at, finished_at)
         SELECT lpad(to_hex(i), 32, '0')::uuid, 'snapshot', 3,
                CASE WHEN i % 4000 = 0 THEN 'running' WHEN i % 4000 = 1 THEN 'queued' ELSE 'succeeded' END,
                CASE WHEN i % 4000 = 0 THEN gen_random_uuid() END, CASE WHEN i % 4000 = 0 THEN now() END,
                CASE WHEN i % 4000 > 1 THEN now() END
         FROM generate_series(1, 20000) i",
        "ANALYZE",
    ] {
        sqlx::query(sql).execute(pool).await.unwrap();
    }
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn every_filter_has_an_index_to_go_by(pool: PgPool) {
    fill(&pool).await;
    let crawl = CrawlId(uuid::Uuid::from_u128(77));
    let snapshot = SnapshotFilter::default;
    let cases = [
        ("snapshot_pkey", snapshot()),
        ("snapshot_pkey", SnapshotFilter { status: Some(SnapshotStatus::Sealed), ..snapshot() }),
        ("snapshot_by_crawl", SnapshotFilter { crawl: Some(crawl), ..snapshot() }),
        ("snapshot_by_crawl", SnapshotFilter { crawl: Some(crawl), failed_results: Some(true), ..snapshot() }),
        ("snapshot_open", SnapshotFilter { status: Some(SnapshotStatus::Started), ..snapshot() }),
        ("snapshot_tags", SnapshotFilter { tag: Some("rare".into()), ..snapshot() }),
        ("snapshot_by_host", SnapshotFilter { host: Some("h7.org".into()), ..snapshot() }),
        (
            "snapshot_by_host",
            SnapshotFilter { host: Some("h7.org".into()), url_prefix: Some("https://h7.org/1".into()), ..snapshot() },
        ),
        ("snapshot_by_url", SnapshotFilter { url_keys: vec![url_key("https://h7.org/7")], ..snapshot() }),
        ("snapshot_failed", SnapshotFilter { failed: Some(true), ..snapshot() }),
    ];
    for (index, filter) in cases {
        let plan = plan(&pool, snapshot_page(EXPLAIN, &filter, Some(SnapshotId(uuid::Uuid::max())), 51)).await;
        assert!(plan.contains(index) && !plan.contains("Seq Scan on snapshot"), "{filter:?}\n{plan}");
    }
    for (index, filter) in [
        ("crawl_pkey", CrawlFilter::default()),
        ("crawl_open", CrawlFilter { status: Some(CrawlStatus::Paused), ..CrawlFilter::default() }),
        ("crawl_tags", CrawlFilter { tag: Some("t9".into()), ..CrawlFilter::default() }),
    ] {
        let plan = plan(&pool, crawl_page(EXPLAIN, &filter, None, 51)).await;
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{filter:?}\n{plan}");
    }
    for (index, status) in [
        ("task_run_pkey", None),
        ("task_run_lease", Some(RunStatus::Running)),
        ("task_run_due", Some(RunStatus::Queued)),
    ] {
        let filter = TaskFilter { status, kind: status.map(|_| Kind::Snapshot), crawl: None };
        let plan = plan(&pool, task_page(EXPLAIN, &filter, None, 51)).await;
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{filter:?}\n{plan}");
    }
}
