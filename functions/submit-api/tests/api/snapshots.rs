//! Snapshots: one, changes, deletion.

use crate::harness::{Api, Page, bare_crawl, result};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_single_snapshot_shows_every_result_and_what_to_do(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = bare_crawl(&api).await;
    let page = Page { error: Some("CONNECT_TIMEOUT"), title: Some("T".into()), ..Page::new("https://ex.org/") };
    let id = page.insert(&api, crawl).await;
    result(
        &api,
        id,
        "title",
        "succeeded",
        json!([{"path": "title/title.txt", "mime": "text/plain", "size": 1, "sha256": "aa",
        "object": "snapshots/x", "offset": 9, "length": 1}]),
    )
    .await;
    result(&api, id, "screenshot", "failed", json!(null)).await;
    result(&api, id, "from-the-future", "skipped", json!([])).await;
    sqlx::query("UPDATE archive_result SET error_code = 'TOOL_MISSING', error = 'chromium', attempt = 2 WHERE extractor = 'screenshot'")
        .execute(&api.pool).await.unwrap();
    sqlx::query("INSERT INTO archive_result_attempt VALUES ($1, 'screenshot', 1, 'PAGE_CRASHED', 'boom', now())")
        .bind(id)
        .execute(&api.pool)
        .await
        .unwrap();

    let shown = api.get(&format!("/v1/snapshots/{id}")).await.ok();
    assert_eq!(shown["error"]["code"], "CONNECT_TIMEOUT");
    assert!(shown["error"]["advice"].as_str().unwrap().contains("did not answer"));
    assert_eq!(shown["wacz"], json!(null));
    let results = shown["results"].as_array().unwrap();
    let names: Vec<_> = results.iter().map(|r| r["extractor"].as_str().unwrap()).collect();
    assert_eq!(names, ["title", "screenshot", "from-the-future"]);
    assert_eq!(
        results[0]["files"][0],
        json!({"path": "title/title.txt", "mime": "text/plain", "size": 1, "sha256": "aa",
        "href": format!("http://fonds.test/v1/snapshots/{id}/files/title/title.txt")})
    );
    assert_eq!(results[1]["error"]["code"], "TOOL_MISSING");
    assert_eq!(results[1]["error"]["detail"], "chromium");
    assert_eq!(results[1]["attempts"][0]["error"]["code"], "PAGE_CRASHED");
    assert_eq!(results[1]["stage"], "render");
    assert_eq!(results[2]["stage"], json!(null));
    let listed = &api.get("/v1/snapshots").await.ok()["items"][0];
    assert!(listed.get("results").is_none() && listed["title"] == "T");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn tags_are_edited_and_found(pool: PgPool) {
    let api = Api::new(pool).await;
    let page = Page { tags: vec!["a".into()], text: Some("words".into()), ..Page::new("https://ex.org/") };
    let id = page.insert(&api, bare_crawl(&api).await).await;
    let path = format!("/v1/snapshots/{id}");
    assert_eq!(
        api.patch(&path, json!({"add_tags": ["zebra"], "remove_tags": ["a"]})).await.ok()["tags"],
        json!(["zebra"])
    );
    assert_eq!(api.get("/v1/snapshots?tag=zebra").await.ok()["items"].as_array().unwrap().len(), 1);
    assert_eq!(api.get("/v1/search?q=zebra").await.ok()["items"][0]["match"], "text", "search finds new tags");
    assert!(api.patch(&path, json!({"delete_after": "1w"})).await.ok()["delete_at"].is_string());
    assert_eq!(api.patch(&path, json!({})).await.problem(422, "INVALID_FIELD")["field"], "body");
    assert_eq!(api.patch(&path, json!({"label": "x"})).await.problem(422, "INVALID_FIELD")["field"], "label");
    api.patch(&format!("/v1/snapshots/{}", Uuid::now_v7()), json!({"tags": []})).await.problem(404, "NOT_FOUND");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn only_what_is_over_is_deleted(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = bare_crawl(&api).await;
    let sealed = Page::new("https://ex.org/").insert(&api, crawl).await;
    let open = Page { status: "started", ..Page::new("https://ex.org/2") }.insert(&api, crawl).await;
    let answer = api.delete(&format!("/v1/snapshots/{sealed}")).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (202, json!({"id": sealed.to_string(), "status": "deleting"})));
    api.delete(&format!("/v1/snapshots/{sealed}")).await.problem(404, "NOT_FOUND");
    let problem = api.delete(&format!("/v1/snapshots/{open}")).await.problem(409, "CONFLICT");
    assert!(problem["detail"].as_str().unwrap().contains("started"));
    for id in ["x", "0", &Uuid::now_v7().to_string()] {
        api.delete(&format!("/v1/snapshots/{id}")).await.problem(404, "NOT_FOUND");
        api.get(&format!("/v1/snapshots/{id}")).await.problem(404, "NOT_FOUND");
    }
}
