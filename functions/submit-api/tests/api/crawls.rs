//! Crawls: one, changes, deletion.

use crate::harness::{Api, Page, blob};
use http::StatusCode;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn actions_move_a_crawl_as_its_status_allows(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = api.crawl(json!({"urls": ["https://ex.org/"]})).await;
    let path = format!("/v1/crawls/{crawl}");
    let act = |action: &'static str| {
        let (api, path) = (&api, &path);
        async move { api.patch(path, json!({"action": action})).await }
    };
    for (action, status) in [("pause", "paused"), ("pause", "paused"), ("resume", "queued"), ("resume", "queued")] {
        assert_eq!(act(action).await.ok()["status"], status, "{action}");
    }
    let sealed = act("cancel").await.ok();
    assert_eq!((sealed["status"].as_str(), sealed["stop_reason"].as_str()), (Some("sealed"), Some("cancelled")));
    assert_eq!(sealed["progress"], 1.0);
    assert_eq!(act("cancel").await.ok()["status"], "sealed");
    for action in ["pause", "resume"] {
        let problem = act(action).await.problem(409, "CONFLICT");
        assert!(problem["detail"].as_str().unwrap().contains("sealed"), "{problem}");
    }
    // All or nothing: the tags of a refused change are not kept.
    api.patch(&path, json!({"tags": ["x"], "action": "resume"})).await.problem(409, "CONFLICT");
    api.patch(&path, json!({"limits": {"max_urls": 5}})).await.problem(409, "CONFLICT");
    let now = api.get(&path).await.ok();
    assert_eq!(now["tags"], json!([]));
    assert_eq!(act("jump").await.problem(422, "INVALID_FIELD")["field"], "action");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn edits_change_what_they_name(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = api.crawl(json!({"urls": ["https://ex.org/"], "tags": ["a", "b"], "label": "l", "notes": "n"})).await;
    let path = format!("/v1/crawls/{crawl}");
    let edited = api.patch(&path, json!({"add_tags": ["c", "a"], "remove_tags": ["b"], "label": "L"})).await.ok();
    assert_eq!(edited["tags"], json!(["a", "c"]));
    assert_eq!((edited["label"].as_str(), edited["notes"].as_str()), (Some("L"), Some("n")));
    let edited = api.patch(&path, json!({"tags": ["z"], "delete_after": "2d", "limits": {"max_urls": 7}})).await.ok();
    assert_eq!(edited["tags"], json!(["z"]));
    assert_eq!(edited["limits"]["max_urls"], 7);
    assert!(edited["delete_at"].is_string());
    let edited = api.patch(&path, json!({"delete_at": null})).await.ok();
    assert_eq!(edited["delete_at"], Value::Null);
    assert_eq!(edited["limits"]["max_urls"], 7);

    let many: Vec<String> = (0..100).map(|i| format!("t{i}")).collect();
    let problem = api.patch(&path, json!({"add_tags": many})).await.problem(422, "INVALID_FIELD");
    assert_eq!(problem["field"], "add_tags");
    assert_eq!(api.get(&path).await.ok()["tags"], json!(["z"]));
    for (body, field) in [
        (json!({}), "body"),
        (json!({"delete_at": "2001-01-01T00:00:00Z"}), "delete_at"),
        (json!({"delete_at": null, "delete_after": "1d"}), "delete_after"),
        (json!({"limits": {"max_depth": 65}}), "limits.max_depth"),
        (json!({"label": "a\u{7}"}), "label"),
        (json!({"status": "sealed"}), "status"),
    ] {
        assert_eq!(api.patch(&path, body.clone()).await.problem(422, "INVALID_FIELD")["field"], field, "{body}");
    }
    api.patch(&format!("/v1/crawls/{}", Uuid::now_v7()), json!({"label": "x"})).await.problem(404, "NOT_FOUND");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_deleted_crawl_is_gone_for_every_read(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = api.crawl(json!({"urls": ["https://ex.org/"]})).await;
    let snapshot = Page { text: Some("unmistakable".into()), ..Page::new("https://ex.org/") }.insert(&api, crawl).await;
    let path = format!("/v1/crawls/{crawl}");
    let answer = api.delete(&path).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.json(), json!({"id": crawl.to_string(), "status": "deleting"}));
    api.delete(&path).await.problem(404, "NOT_FOUND");
    api.get(&path).await.problem(404, "NOT_FOUND");
    api.patch(&path, json!({"label": "x"})).await.problem(404, "NOT_FOUND");
    api.patch(&path, json!({"action": "pause"})).await.problem(404, "NOT_FOUND");
    api.get(&format!("/v1/snapshots/{snapshot}")).await.problem(404, "NOT_FOUND");
    assert_eq!(api.get("/v1/crawls").await.ok()["items"], json!([]));
    assert_eq!(api.get("/v1/snapshots").await.ok()["items"], json!([]));
    assert_eq!(api.get("/v1/search?q=unmistakable").await.ok()["items"], json!([]));
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_single_crawl_shows_everything(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = api.crawl(json!({"urls": ["https://ex.org/"]})).await;
    let files = json!([{"path": "index.jsonl", "mime": "application/jsonl", "size": 5, "sha256": "ab", "object": "crawls/x/index.jsonl"}]);
    sqlx::query(
        "UPDATE crawl SET n_snapshots = 4, n_sealed = 3, n_failed = 1, n_results = 30, bytes = 99, files = $2,
                 setup_report = '{\"urls\": 4}', error_code = 'STALLED', error = 'why' WHERE id = $1",
    )
    .bind(crawl)
    .bind(files)
    .execute(&api.pool)
    .await
    .unwrap();
    blob(&api, "crawls/x/index.jsonl", b"hello".to_vec()).await;
    let shown = api.get(&format!("/v1/crawls/{crawl}")).await.ok();
    assert_eq!(
        shown["counts"],
        json!({"snapshots": 4, "open": 1, "sealed": 3, "failed": 1, "skipped": 0, "results": 30,
        "results_failed": 0, "bytes": 99})
    );
    assert_eq!(shown["progress"], 0.75);
    assert_eq!(shown["setup_report"]["urls"], 4);
    assert_eq!(shown["error"]["code"], "STALLED");
    assert!(shown["error"]["advice"].as_str().unwrap().contains("Retry"));
    let href = shown["files"][0]["href"].as_str().unwrap();
    assert_eq!(href, format!("http://fonds.test/v1/crawls/{crawl}/files/index.jsonl"));
    let answer = api.get(href.strip_prefix("http://fonds.test").unwrap()).await;
    assert_eq!(answer.status, StatusCode::FOUND);
    let file = api.fetch(http::Method::GET, answer.header("location"), &[]).await;
    assert_eq!(&file.bytes[..], b"hello");
    assert_eq!(file.header("content-type"), "application/jsonl");
    api.get(&format!("/v1/crawls/{crawl}/files/nope")).await.problem(404, "NOT_FOUND");
    let listed = &api.get("/v1/crawls").await.ok()["items"][0];
    assert!(listed.get("config").is_none() && listed.get("notes").is_none() && listed["counts"]["bytes"] == 99);
}
