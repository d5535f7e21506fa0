//! What holds for every answer.

use crate::harness::{Api, Page, bare_crawl, request, result};
use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::json;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn errors_of_no_handler_are_problems_too(pool: PgPool) {
    let api = Api::new(pool).await;
    for path in ["/", "/v1", "/v2/crawls", "/v1/crawls/", "/v1/crawls/x/y", "/.env", "/%ff", "/v1/crawls/%ff"] {
        api.get(path).await.problem(404, "NOT_FOUND");
    }
    for (method, path, allow) in [
        (Method::PUT, "/v1/crawls", "GET,HEAD,POST"),
        (Method::POST, "/v1/crawls/0195ad90-0000-7000-8000-000000000000", "GET,HEAD,PATCH,DELETE"),
        (Method::DELETE, "/v1/search", "GET,HEAD"),
        (Method::OPTIONS, "/v1/crawls", "GET,HEAD,POST"),
        (Method::POST, "/openapi.json", "GET,HEAD"),
    ] {
        let answer = api.send(request(method.clone(), path, Some(&api.read)).body(Body::empty()).unwrap()).await;
        answer.problem(405, "METHOD_NOT_ALLOWED");
        let mut allowed: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
        let mut expected: Vec<_> = allow.split(',').collect();
        allowed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(allowed, expected, "{method} {path}");
    }
    api.get(&format!("/v1/crawls?tag={}", "x".repeat(20_000))).await.problem(414, "URI_TOO_LONG");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn every_answer_has_an_id_and_safe_headers(pool: PgPool) {
    let api = Api::new(pool).await;
    for path in ["/v1/crawls", "/nope", "/openapi.json", "/v1/health"] {
        let answer = api.get(path).await;
        assert!(!answer.header("x-request-id").is_empty(), "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert!(answer.header("content-security-policy").contains("default-src 'none'"), "{path}");
    }
    let mine = request(Method::GET, "/v1/crawls", Some(&api.read))
        .header("x-request-id", "my-id.1")
        .body(Body::empty())
        .unwrap();
    assert_eq!(api.send(mine).await.header("x-request-id"), "my-id.1");
    let odd =
        request(Method::GET, "/v1/crawls", Some(&api.read)).header("x-request-id", "<b>").body(Body::empty()).unwrap();
    assert_ne!(api.send(odd).await.header("x-request-id"), "<b>");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_slow_database_and_an_absent_one_are_told_apart(pool: PgPool) {
    let api = Api::with(pool, |c| c.list_timeout_ms = 200).await;
    let mut lock = api.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE crawl IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let answer = api.get("/v1/crawls").await;
    answer.problem(503, "TOO_SLOW");
    assert!(!answer.header("retry-after").is_empty());
    lock.rollback().await.unwrap();
    assert_eq!(api.get("/v1/crawls").await.status, StatusCode::OK);

    api.pool.close().await;
    for path in ["/v1/crawls", "/v1/health"] {
        let problem = api.get(path).await.problem(503, "DATABASE_UNAVAILABLE");
        assert!(!problem.to_string().contains("pool"), "what it is made of is not told: {problem}");
    }
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn inner_errors_are_hidden(pool: PgPool) {
    let api = Api::new(pool).await;
    let id = Page::new("https://ex.org/").insert(&api, bare_crawl(&api).await).await;
    result(&api, id, "dom", "succeeded", json!({"secret": "detail"})).await;
    let problem = api.get(&format!("/v1/snapshots/{id}")).await.problem(500, "INTERNAL");
    assert!(!problem.to_string().contains("secret") && !problem.to_string().contains("files"), "{problem}");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn links_begin_with_the_public_address(pool: PgPool) {
    let api = Api::with(pool, |c| c.public_base_url = Some("https://archive.example/prod/".parse().unwrap())).await;
    let crawl = api.crawl(json!({"urls": ["https://ex.org/"]})).await;
    let shown = api.get(&format!("/v1/crawls/{crawl}")).await.ok();
    assert_eq!(shown["href"], format!("https://archive.example/prod/v1/crawls/{crawl}"));
}

/// A Lambda function has one connection: a handler that held one while it asks for another would
/// wait for itself.
#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn one_connection_is_enough(options: PgPoolOptions, connect: PgConnectOptions) {
    let pool = options.max_connections(1).acquire_timeout(std::time::Duration::from_secs(5)).connect_with(connect);
    let api = Api::new(pool.await.unwrap()).await;
    let key = [("idempotency-key", "k")];
    let body = json!({"urls": ["https://ex.org/"], "config": {"only_new": true}});
    let made = api.call_as(&api.write, Method::POST, "/v1/crawls", body.clone(), &key).await.ok();
    api.call_as(&api.write, Method::POST, "/v1/crawls", body, &key).await.ok();
    let crawl = made["id"].as_str().unwrap().parse().unwrap();
    let id = Page { text: Some("word".into()), ..Page::new("https://ex.org/") }.insert(&api, crawl).await;
    api.patch(&format!("/v1/crawls/{crawl}"), json!({"action": "pause", "tags": ["a"], "limits": {}})).await.ok();
    api.patch(&format!("/v1/snapshots/{id}"), json!({"tags": ["a"]})).await.ok();
    for path in
        ["/v1/crawls", "/v1/snapshots", "/v1/tasks", "/v1/search?q=word", "/v1/search?q=wrod", "/v1/system/stats"]
    {
        api.get(path).await.ok();
    }
    api.get(&format!("/v1/snapshots/{id}/wacz")).await.problem(404, "NO_WACZ");
    api.delete(&format!("/v1/snapshots/{id}")).await.ok();
    api.delete(&format!("/v1/crawls/{crawl}")).await.ok();
}
