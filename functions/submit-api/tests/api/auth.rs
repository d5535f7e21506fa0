//! Who may do what.

use crate::harness::{Api, request};
use axum::body::Body;
use chrono::{TimeDelta, Utc};
use fonds_store::Db;
use fonds_store::tokens::{self, Scope};
use fonds_submit_api::Rate;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::PgPool;

/// Every documented operation with the scope it needs.
fn operations() -> Vec<(Method, String, Option<Scope>)> {
    let document = serde_json::to_value(fonds_submit_api::openapi()).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Ok(method) = method.to_uppercase().parse::<Method>() else { continue };
            let free =
                operation["security"].as_array().is_some_and(|s| s.iter().all(|s| s.as_object().unwrap().is_empty()));
            let scope = match (&method, path.as_str()) {
                _ if free => None,
                (_, p) if p.starts_with("/v1/tokens") => Some(Scope::Admin),
                (&Method::GET, _) => Some(Scope::Read),
                _ => Some(Scope::Write),
            };
            let path = path
                .replace("{id}", "0195ad90-0000-7000-8000-000000000000")
                .replace("{*path}", "a/b")
                .replace("{*key}", "a")
                .replace("{name}", "a")
                .replace("{path}", "a/b")
                .replace("{key}", "a");
            all.push((method, path, scope));
        }
    }
    assert!(all.len() >= 18, "{}", all.len());
    all
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn every_operation_asks_for_its_scope_and_answers(pool: PgPool) {
    let api = Api::new(pool).await;
    for (method, path, scope) in operations() {
        let send = |token: Option<String>| {
            let body = if method == Method::GET || method == Method::DELETE { Body::empty() } else { Body::from("{}") };
            let request = request(method.clone(), &path, token.as_deref()).header("content-type", "application/json");
            api.send(request.body(body).unwrap())
        };
        let what = format!("{method} {path}");
        let anonymous = send(None).await;
        let Some(scope) = scope else {
            assert_ne!(anonymous.status, StatusCode::UNAUTHORIZED, "{what}");
            continue;
        };
        anonymous.problem(401, "UNAUTHENTICATED");
        assert!(anonymous.header("www-authenticate").starts_with("Bearer"), "{what}");
        for (has, token) in [(Scope::Read, &api.read), (Scope::Write, &api.write), (Scope::Admin, &api.admin)] {
            let answer = send(Some(token.clone())).await;
            if has < scope {
                let problem = answer.problem(403, "FORBIDDEN");
                assert!(problem["detail"].as_str().unwrap().contains(scope.as_str()), "{what}");
            } else {
                assert!(!matches!(answer.status.as_u16(), 401 | 403 | 405 | 500..), "{what}: {}", answer.status);
                if answer.status == StatusCode::NOT_FOUND {
                    assert_ne!(answer.json()["detail"], "there is no such route", "{what}");
                }
            }
        }
    }
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn only_a_valid_bearer_is_let_in(pool: PgPool) {
    let api = Api::new(pool).await;
    let db = Db::from_pool(api.pool.clone());
    let past = Utc::now() - TimeDelta::seconds(1);
    let (_, expired) = tokens::create(&mut db.conn().await.unwrap(), "old", &[Scope::Admin], Some(past)).await.unwrap();
    for header in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer fonds_nope",
        &format!("Basic {}", api.admin),
        &format!("Bearer {expired}"),
        &format!("Bearer {}x", api.admin),
        &api.admin,
    ] {
        let request = http::Request::get("/v1/crawls").header("authorization", header).body(Body::empty()).unwrap();
        api.send(request).await.problem(401, "UNAUTHENTICATED");
    }
    let request = http::Request::get("/v1/crawls").header("authorization", format!("bEARER  {}", api.read));
    assert_eq!(api.send(request.body(Body::empty()).unwrap()).await.status, StatusCode::OK);
    // A token in the query would end up in logs; it is no parameter.
    assert_eq!(
        api.fetch(Method::GET, &format!("/v1/crawls?token={}", api.read), &[]).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn tokens_are_made_used_listed_and_revoked(pool: PgPool) {
    let api = Api::new(pool).await;
    let admin = |method: Method, path: &'static str, body: Value| api.call_as(&api.admin, method, path, body, &[]);
    let made = admin(
        Method::POST,
        "/v1/tokens",
        json!({"name": " ci ", "scopes": ["write", "read", "read"], "expires_after": "90d"}),
    )
    .await;
    assert_eq!(made.status, StatusCode::CREATED);
    let made = made.json();
    assert_eq!((made["name"].as_str(), &made["scopes"]), (Some("ci"), &json!(["read", "write"])));
    assert!(made["expires_at"].is_string());
    let secret = made["secret"].as_str().unwrap().to_owned();
    let use_it = || api.send(request(Method::GET, "/v1/crawls", Some(&secret)).body(Body::empty()).unwrap());
    assert_eq!(use_it().await.status, StatusCode::OK);

    let listed = admin(Method::GET, "/v1/tokens", json!({})).await.ok();
    let mine = listed["items"].as_array().unwrap().iter().find(|t| t["id"] == made["id"]).unwrap();
    assert!(mine["last_used_at"].is_string() && mine.get("secret").is_none());
    assert!(!String::from_utf8_lossy(&admin(Method::GET, "/v1/tokens", json!({})).await.bytes).contains(&secret));
    let stored: Vec<u8> = sqlx::query_scalar("SELECT convert_to(t::text, 'UTF8') FROM api_token t WHERE name = 'ci'")
        .fetch_one(&api.pool)
        .await
        .unwrap();
    assert!(!String::from_utf8_lossy(&stored).contains(&secret[6..]));

    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    for _ in 0..2 {
        assert_eq!(api.call_as(&api.admin, Method::DELETE, &path, json!({}), &[]).await.status, StatusCode::NO_CONTENT);
    }
    use_it().await.problem(401, "UNAUTHENTICATED");
    let own = format!("/v1/tokens/{}", api.admin_id);
    api.call_as(&api.admin, Method::DELETE, &own, json!({}), &[]).await.problem(409, "CONFLICT");
    api.call_as(&api.admin, Method::DELETE, "/v1/tokens/0195ad90-0000-7000-8000-000000000000", json!({}), &[])
        .await
        .problem(404, "NOT_FOUND");
    for (body, field) in [
        (json!({"name": "", "scopes": ["read"]}), "name"),
        (json!({"name": "x", "scopes": []}), "scopes"),
        (json!({"name": "x", "scopes": ["root"]}), "scopes[0]"),
        (json!({"name": "x", "scopes": ["read"], "expires_after": "soon"}), "expires_after"),
        (json!({"scopes": ["read"]}), "name"),
    ] {
        let problem = admin(Method::POST, "/v1/tokens", body.clone()).await.problem(422, "INVALID_FIELD");
        assert_eq!(problem["field"], field, "{body}");
    }
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_loop_that_runs_wild_is_slowed_down(pool: PgPool) {
    let api = Api::with(pool, |c| {
        c.token_rate = Rate { per_second: 0.1, burst: 3.0 };
        c.anonymous_rate = Rate { per_second: 0.1, burst: 2.0 };
    })
    .await;
    for _ in 0..3 {
        assert_eq!(api.get("/v1/crawls").await.status, StatusCode::OK);
    }
    let refused = api.get("/v1/crawls").await;
    refused.problem(429, "TOO_MANY_REQUESTS");
    assert!((1..=10).contains(&refused.header("retry-after").parse::<u32>().unwrap()));
    assert_eq!(api.delete("/v1/crawls/x").await.status, StatusCode::NOT_FOUND, "another token is not held up");
    for expected in [401, 401, 429] {
        assert_eq!(api.fetch(Method::GET, "/v1/crawls", &[]).await.status.as_u16(), expected);
    }
    api.fetch(Method::GET, "/v1/health", &[]).await.problem(429, "TOO_MANY_REQUESTS");
}
