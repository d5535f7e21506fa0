//! Tasks, figures, health.

use crate::harness::{Api, Page, bare_crawl};
use http::Method;
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn tasks_tell_what_runs_and_for_how_long(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = api.crawl(json!({"urls": ["https://ex.org/"]})).await;
    let run = |kind: &'static str, status: &'static str, extra: &'static str| {
        let sql = format!(
            "INSERT INTO task_run (id, kind, max_attempts, crawl_id, status, {}) VALUES ($1, $2, 3, $3, $4, {})",
            extra.split('|').next().unwrap(),
            extra.split('|').nth(1).unwrap()
        );
        let pool = api.pool.clone();
        async move {
            let id = Uuid::now_v7();
            sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(id)
                .bind(kind)
                .bind(crawl)
                .bind(status)
                .execute(&pool)
                .await
                .unwrap();
            id.to_string()
        }
    };
    let running = run("snapshot", "running", "attempt, lease, lease_expires_at, started_at|2, gen_random_uuid(), now() + interval '90 s', now() - interval '10 s'").await;
    let dead =
        run("snapshot", "running", "attempt, lease, lease_expires_at|1, gen_random_uuid(), now() - interval '5 s'")
            .await;
    let held = run("snapshot", "queued", "not_before|'infinity'").await;
    let failed = run("crawl-seal", "failed", "finished_at, error_code, error|now(), 'STALLED', 'no move'").await;
    let discarded = run("crawl-seal", "discarded", "finished_at, error|now(), 'nothing to do'").await;

    let list = |query: &'static str| {
        let api = &api;
        async move { api.all(&format!("/v1/tasks{query}")).await }
    };
    let now = list("").await;
    assert_eq!(now.iter().map(|t| t["id"].as_str().unwrap()).collect::<Vec<_>>(), [&dead, &running]);
    assert!((80.0..=90.0).contains(&now[1]["lease_left_s"].as_f64().unwrap()));
    assert!((10.0..60.0).contains(&now[1]["running_s"].as_f64().unwrap()));
    assert_eq!(now[1]["attempt"], 2);
    assert!(now[0]["lease_left_s"].as_f64().unwrap() < 0.0);
    let queued = list("?status=queued&kind=snapshot").await;
    assert_eq!(queued[0]["id"], held.as_str());
    assert_eq!((&queued[0]["held"], &queued[0]["not_before"]), (&json!(true), &json!(null)));
    let over = list("?status=failed").await;
    assert_eq!(over[0]["id"], failed.as_str());
    assert_eq!(over[0]["error"]["code"], "STALLED");
    assert!(over[0]["error"]["advice"].as_str().unwrap().contains("Retry"));
    assert_eq!(list("?status=discarded").await[0]["id"], discarded.as_str());
    assert_eq!(list("?status=all&limit=2").await.len(), 6);
    assert_eq!(api.all(&format!("/v1/tasks?crawl={crawl}")).await.len(), 2);
    assert!(list("?kind=sweep&status=all").await.is_empty());
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn stats_and_health_tell_how_it_is(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = bare_crawl(&api).await;
    Page::new("https://ex.org/").insert(&api, crawl).await;
    Page { status: "started", ..Page::new("https://ex.org/2") }.insert(&api, crawl).await;
    api.crawl(json!({"urls": ["https://ex.org/"]})).await;
    sqlx::query("INSERT INTO object (key, size, sha256) VALUES ('a', 5, ''), ('b', 7, '')")
        .execute(&api.pool)
        .await
        .unwrap();
    let stats = api.get("/v1/system/stats").await.ok();
    assert_eq!(stats["crawls"], json!({"total": {"value": 2, "exact": true}, "queued": 2, "started": 0, "paused": 0}));
    assert_eq!(stats["snapshots"], json!({"total": {"value": 2, "exact": true}, "open": {"value": 1, "exact": true}}));
    assert_eq!(stats["objects"]["bytes"], json!({"value": 12, "exact": true}));
    let setup = stats["tasks"].as_array().unwrap().iter().find(|t| t["kind"] == "crawl-setup").unwrap();
    assert_eq!(setup["queued"], json!({"value": 1, "exact": true}));
    assert!(setup["oldest_due_s"].as_f64().unwrap() >= 0.0);
    assert!(stats["database_bytes"].as_i64().unwrap() > 0);

    let health = api.fetch(Method::GET, "/v1/health", &[]).await.ok();
    assert_eq!((health["status"].as_str(), health["database"].as_str()), (Some("ok"), Some("ok")));
    assert_eq!(health["version"], stats["version"]);
}
