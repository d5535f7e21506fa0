//! POST /v1/crawls.

use crate::harness::{Api, Page, bare_crawl, request};
use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::json;
use sqlx::PgPool;

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_submission_is_stored_whole_and_rung_for(pool: PgPool) {
    let api = Api::new(pool).await;
    let body = json!({"urls": ["https://ex.org/a", "https://ex.org/b#c"], "depth": 2,
        "limits": {"max_urls": 10, "max_size": 1_000_000_000_000u64}, "config": {"scope": "domain", "only_new": true},
        "tags": [" b", "a", "b"], "label": "A label", "notes": "Some\nnotes", "delete_after": "30d"});
    let answer = api.post("/v1/crawls", body).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let crawl = answer.json();
    let id = crawl["id"].as_str().unwrap();
    assert_eq!(answer.header("location"), format!("http://fonds.test/v1/crawls/{id}"));
    assert_eq!(crawl["href"], answer.header("location"));
    assert_eq!(crawl["status"], "queued");
    assert_eq!(crawl["tags"], json!(["a", "b"]));
    assert_eq!(crawl["limits"]["max_depth"], 2);
    assert_eq!(crawl["limits"]["max_size"], 1_000_000_000_000u64);
    assert_eq!(crawl["limits"]["timeout_s"], json!(null));
    assert_eq!(crawl["config"]["scope"], "domain");
    assert_eq!(crawl["config"]["input_format"], "jsonl");
    assert_eq!(crawl["notes"], "Some\nnotes");
    assert_eq!(crawl["progress"], 0.0);
    assert!(crawl["delete_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(crawl["plan"].as_array().unwrap().len(), 2);

    let input: String = sqlx::query_scalar("SELECT body FROM crawl_input").fetch_one(&api.pool).await.unwrap();
    assert_eq!(input, "{\"url\":\"https://ex.org/a\"}\n{\"url\":\"https://ex.org/b#c\"}\n");
    let rings = api.bell.take();
    assert_eq!(rings.len(), 1);
    let run: (uuid::Uuid, String) = sqlx::query_as("SELECT id, kind FROM task_run WHERE crawl_id = $1::uuid")
        .bind(id.parse::<uuid::Uuid>().unwrap())
        .fetch_one(&api.pool)
        .await
        .unwrap();
    assert_eq!((rings[0].run, rings[0].kind.as_ref()), (run.0, "crawl-setup"));
    assert_eq!(run.1, "crawl-setup");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn any_input_text_is_taken(pool: PgPool) {
    let api = Api::new(pool).await;
    let big = format!("see https://ex.org/ {}", "x".repeat(9_900_000));
    for body in [json!({"input": "<DL><A HREF=\"https://a/\">a</A></DL>"}), json!({"input": big})] {
        let answer = api.post("/v1/crawls", body).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{:?}", answer.bytes);
        assert_eq!(answer.json()["plan"], json!([]));
    }
    let too_big = json!({"input": "x".repeat(10_000_001)});
    assert_eq!(api.post("/v1/crawls", too_big).await.problem(422, "INVALID_FIELD")["field"], "input");
    let bigger = json!({"input": "x".repeat(13_000_000)});
    api.post("/v1/crawls", bigger).await.problem(413, "BODY_TOO_LARGE");
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM crawl").fetch_one(&api.pool).await.unwrap();
    assert_eq!(rows, 2);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn refusals_name_what_is_wrong_and_store_nothing(pool: PgPool) {
    let api = Api::new(pool).await;
    for (body, code, field) in [
        (json!({}), "NO_URLS", "urls"),
        (json!({"urls": ["https://a/"], "colour": 1}), "INVALID_FIELD", "colour"),
        (json!({"urls": ["https://a/"], "limits": {"max_urls": "x"}}), "INVALID_FIELD", "limits.max_urls"),
        (json!({"urls": ["https://a/"], "config": {"scopes": "any"}}), "INVALID_FIELD", "config.scopes"),
        (json!({"urls": ["https://a/"], "config": {"scope": "all"}}), "INVALID_FIELD", "config.scope"),
        (json!({"urls": ["https://a/"], "config": {"deny": ["a", "(b"]}}), "INVALID_PATTERN", "config.deny[1]"),
        (json!({"urls": ["https://a/"], "depth": 99}), "INVALID_FIELD", "depth"),
        (json!({"urls": ["https://a/"], "depth": -1}), "INVALID_FIELD", "depth"),
        (json!({"urls": "https://a/"}), "INVALID_FIELD", "urls"),
        (json!([1]), "INVALID_FIELD", "body"),
    ] {
        let problem = api.post("/v1/crawls", body.clone()).await.problem(422, code);
        assert_eq!(problem["field"], field, "{body}");
    }
    let urls: Vec<String> =
        (0..200).map(|i| if i % 2 == 0 { format!("https://a/{i}") } else { format!("a/{i}") }).collect();
    let problem = api.post("/v1/crawls", json!({"urls": urls})).await.problem(422, "INVALID_URL");
    assert_eq!(problem["field"], "urls[1]");
    let errors = problem["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 100);
    assert_eq!(errors[1]["field"], "urls[3]");
    assert!(problem["detail"].as_str().unwrap().starts_with("100 of 200"), "{problem}");
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM crawl").fetch_one(&api.pool).await.unwrap();
    assert_eq!(rows, 0);
    assert!(api.bell.take().is_empty());
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn the_plan_tells_what_will_happen_to_each_url(pool: PgPool) {
    let api = Api::new(pool).await;
    let old = bare_crawl(&api).await;
    Page::new("https://ex.org/seen#x").insert(&api, old).await;
    let newest = Page::new("https://ex.org/twice").insert(&api, bare_crawl(&api).await).await;
    let failed = Page { error: Some("DNS_FAILED"), ..Page::new("https://ex.org/failed") };
    failed.insert(&api, old).await;
    let urls = [
        "https://ex.org/seen",
        "https://ex.org/twice",
        "https://ex.org/failed",
        "https://ex.org/new",
        "https://ex.org/new#again",
        "https://bad.org/",
    ];
    let outcomes = |only_new: bool| {
        let body = json!({"urls": urls, "config": {"only_new": only_new, "deny": ["bad.org"]}});
        let answer = api.post("/v1/crawls", body);
        async move {
            let answer = answer.await.ok();
            let plan = answer["plan"].as_array().unwrap().clone();
            (plan.iter().map(|p| p["outcome"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), plan)
        }
    };
    let (names, plan) = outcomes(true).await;
    assert_eq!(names, ["already_archived", "already_archived", "capture", "capture", "duplicate", "denied"]);
    assert_eq!(plan[1]["snapshot_id"], newest.to_string());
    assert_eq!(plan[2]["snapshot_id"], json!(null));
    assert_eq!(outcomes(false).await.0, ["capture", "capture", "capture", "capture", "duplicate", "denied"]);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_key_makes_a_submission_once(pool: PgPool) {
    let api = Api::new(pool).await;
    let body = json!({"urls": ["https://ex.org/"]});
    let submit = |token: String, key: &'static str, body: serde_json::Value| {
        let api = &api;
        async move { api.call_as(&token, Method::POST, "/v1/crawls", body, &[("idempotency-key", key)]).await }
    };
    let first = submit(api.write.clone(), "k1", body.clone()).await;
    assert_eq!(first.status, StatusCode::CREATED);
    let again = submit(api.write.clone(), "k1", body.clone()).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.json(), first.json());
    assert_eq!(api.bell.take().len(), 1, "a replay rings for nothing");

    let other = json!({"urls": ["https://ex.org/2"]});
    let problem = submit(api.write.clone(), "k1", other.clone()).await.problem(422, "IDEMPOTENCY_MISMATCH");
    assert_eq!(problem["field"], "Idempotency-Key");
    assert_eq!(submit(api.admin.clone(), "k1", other).await.status, StatusCode::CREATED, "keys are per token");
    for bad in ["", "a b", "ü"] {
        let answer =
            api.call_as(&api.write, Method::POST, "/v1/crawls", body.clone(), &[("idempotency-key", bad)]).await;
        assert_eq!(answer.problem(422, "INVALID_FIELD")["field"], "Idempotency-Key");
    }
    // A refused submission does not use its key up.
    submit(api.write.clone(), "k2", json!({"urls": []})).await.problem(422, "NO_URLS");
    assert_eq!(submit(api.write.clone(), "k2", body.clone()).await.status, StatusCode::CREATED);

    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(api.delete(&format!("/v1/crawls/{id}")).await.status, StatusCode::ACCEPTED);
    submit(api.write.clone(), "k1", body).await.problem(410, "GONE");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn concurrent_duplicates_make_one_crawl(pool: PgPool) {
    let api = Api::new(pool).await;
    let send = |n: usize| {
        let body = json!({"urls": ["https://ex.org/"], "label": if n % 4 == 3 { "other" } else { "" }});
        let api = &api;
        async move { api.call_as(&api.write, Method::POST, "/v1/crawls", body, &[("idempotency-key", "same")]).await }
    };
    let answers = futures_util::future::join_all((0..12).map(send)).await;
    let count = |status: u16| answers.iter().filter(|a| a.status.as_u16() == status).count();
    assert_eq!(count(201), 1);
    assert_eq!(count(201) + count(200) + count(422), 12, "{:?}", answers.iter().map(|a| a.status).collect::<Vec<_>>());
    assert!(matches!(count(422), 3 | 9), "one body wins, the other is refused: {}", count(422));
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM crawl").fetch_one(&api.pool).await.unwrap();
    assert_eq!(rows, 1);
    assert_eq!(api.bell.take().len(), 1);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_bell_that_fails_is_no_error(pool: PgPool) {
    let api = Api::new(pool).await;
    api.bell.fail_next(1);
    api.crawl(json!({"urls": ["https://ex.org/"]})).await;
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn what_is_no_json_is_told_apart(pool: PgPool) {
    let api = Api::new(pool).await;
    let send = |content_type: Option<&'static str>, body: &'static [u8]| {
        let mut builder = request(Method::POST, "/v1/crawls", Some(&api.write));
        if let Some(content_type) = content_type {
            builder = builder.header("content-type", content_type);
        }
        api.send(builder.body(Body::from(body)).unwrap())
    };
    send(None, b"{}").await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    send(Some("text/plain"), b"{}").await.problem(415, "UNSUPPORTED_MEDIA_TYPE");
    send(Some("application/json"), b"").await.problem(400, "BAD_JSON");
    send(Some("application/json"), b"{\"urls\":[").await.problem(400, "BAD_JSON");
    send(Some("application/json"), b"{\"label\":\"\xff\"}").await.problem(400, "BAD_JSON");
    send(Some("application/vnd.x+json; charset=utf-8"), b"{}").await.problem(422, "NO_URLS");
}
