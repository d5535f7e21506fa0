//! An API to call, and rows to find.

use axum::body::{Body, Bytes};
use fonds_blobs::memory::MemoryBlobs;
use fonds_blobs::{BlobKey, BlobStore};
use fonds_domain::{CrawlId, SnapshotId, TokenId};
use fonds_queues::RecordingBell;
use fonds_store::Db;
use fonds_store::tokens::{self, Scope};
use fonds_submit_api::{ApiConfig, ApiState, router};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value;
use sqlx::PgPool;
use std::sync::Arc;
use tower::ServiceExt;
use uuid::Uuid;

pub(crate) struct Api {
    pub(crate) router: axum::Router,
    pub(crate) pool: PgPool,
    pub(crate) blobs: MemoryBlobs,
    pub(crate) bell: Arc<RecordingBell>,
    pub(crate) read: String,
    pub(crate) write: String,
    pub(crate) admin: String,
    pub(crate) admin_id: TokenId,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|e| panic!("{e}: {:?} {:?}", self.status, self.bytes))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.status.is_success(), "{} {:?}", self.status, self.bytes);
        self.json()
    }

    /// A problem of this status and code; every member a problem must have is there.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{:?}", self.bytes);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], "about:blank");
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        for member in ["title", "detail", "advice"] {
            assert!(problem[member].as_str().is_some_and(|s| !s.is_empty()), "{member}: {problem}");
        }
        problem
    }
}

impl Api {
    pub(crate) async fn new(pool: PgPool) -> Api {
        Api::with(pool, |_| ()).await
    }

    pub(crate) async fn with(pool: PgPool, change: impl FnOnce(&mut ApiConfig)) -> Api {
        let db = Db::from_pool(pool.clone());
        let mut config = ApiConfig::new(vec![7; 32]);
        config.token_rate.burst = 1e6;
        change(&mut config);
        let mut c = db.conn().await.unwrap();
        let (_, read) = tokens::create(&mut c, "read", &[Scope::Read], None).await.unwrap();
        let (_, write) = tokens::create(&mut c, "write", &[Scope::Write], None).await.unwrap();
        let (admin_id, admin) = tokens::create(&mut c, "admin", &[Scope::Admin], None).await.unwrap();
        drop(c);
        let (blobs, bell) = (MemoryBlobs::new(), Arc::new(RecordingBell::new()));
        let state = ApiState::new(db, Arc::new(blobs.clone()), bell.clone(), config).unwrap();
        Api { router: router(state), pool, blobs, bell, read, write, admin, admin_id }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        Answer { status: parts.status, headers: parts.headers, bytes }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, Some(&self.read)).body(Body::empty()).unwrap()).await
    }

    /// Without a token, with these headers.
    pub(crate) async fn fetch(&self, method: Method, url: &str, headers: &[(&str, &str)]) -> Answer {
        let path = url.strip_prefix("http://fonds.test").unwrap_or(url);
        let mut builder = request(method, path, None);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        self.send(builder.body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> Answer {
        self.call_as(&self.write, method, path, body, &[]).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.call(Method::PATCH, path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, Some(&self.write)).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn call_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut builder = request(method, path, Some(token)).header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        self.send(builder.body(Body::from(body.to_string())).unwrap()).await
    }

    /// A submitted crawl.
    pub(crate) async fn crawl(&self, body: Value) -> Uuid {
        let made = self.post("/v1/crawls", body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{:?}", made.bytes);
        made.json()["id"].as_str().unwrap().parse().unwrap()
    }

    /// A crawl that is over, without having to run one.
    pub(crate) async fn seal(&self, crawl: Uuid) {
        sqlx::query(
            "UPDATE crawl SET status = 'sealed', stop_reason = 'done', sealed_at = now(), setup_done = true WHERE id = $1",
        )
        .bind(crawl)
        .execute(&self.pool)
        .await
        .unwrap();
    }

    /// Every page of a list, by its `next`.
    pub(crate) async fn all(&self, path: &str) -> Vec<Value> {
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let join = if path.contains('?') { '&' } else { '?' };
            let page = match &cursor {
                Some(cursor) => self.get(&format!("{path}{join}cursor={cursor}")).await.ok(),
                None => self.get(path).await.ok(),
            };
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return items,
            }
        }
    }
}

pub(crate) fn request(method: Method, path: &str, token: Option<&str>) -> http::request::Builder {
    let builder = Request::builder().method(method).uri(path).header(HOST, "fonds.test");
    match token {
        Some(token) => builder.header(AUTHORIZATION, format!("Bearer {token}")),
        None => builder,
    }
}

/// A sealed snapshot.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) depth: i32,
    pub(crate) error: Option<&'static str>,
    pub(crate) n_failed: i32,
    pub(crate) text: Option<String>,
    pub(crate) status: &'static str,
}

impl Page {
    pub(crate) fn new(url: &str) -> Page {
        Page {
            url: url.to_owned(),
            title: None,
            tags: Vec::new(),
            depth: 0,
            error: None,
            n_failed: 0,
            text: None,
            status: "sealed",
        }
    }

    pub(crate) async fn insert(&self, api: &Api, crawl: Uuid) -> Uuid {
        let id = SnapshotId::fresh().0;
        let url = fonds_pages::urls::PageUrl::parse(&self.url).unwrap();
        let host = url.as_url().host_str().unwrap().to_owned();
        let host = url.as_url().port().map_or_else(|| host.clone(), |p| format!("{host}:{p}"));
        sqlx::query(
            "INSERT INTO snapshot (id, crawl_id, url, url_key, host, depth, title, tags, status, sealed_at, error_code, n_failed)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, CASE WHEN $9 = 'sealed' THEN now() END, $10, $11)",
        )
        .bind(id)
        .bind(crawl)
        .bind(&self.url)
        .bind(&fonds_store::query::url_key(url.identity(false))[..])
        .bind(host)
        .bind(self.depth)
        .bind(&self.title)
        .bind(&self.tags)
        .bind(self.status)
        .bind(self.error)
        .bind(self.n_failed)
        .execute(&api.pool)
        .await
        .unwrap();
        if let Some(text) = &self.text {
            sqlx::query(
                "INSERT INTO snapshot_text (snapshot_id, label, body, tsv)
                 SELECT s.id, coalesce(s.title, '') || ' ' || s.url, $2, $3
                 FROM snapshot s WHERE s.id = $1",
            )
            .bind(id)
            .bind(text)
            .bind(fonds_store::search::vector(self.title.as_deref().unwrap_or_default(), &self.url, &self.tags, text))
            .execute(&api.pool)
            .await
            .unwrap();
        }
        id
    }
}

/// A crawl row as crawl-setup would leave it, without the API.
pub(crate) async fn bare_crawl(api: &Api) -> Uuid {
    let id = CrawlId::fresh().0;
    sqlx::query("INSERT INTO crawl (id, config) VALUES ($1, '{}')").bind(id).execute(&api.pool).await.unwrap();
    id
}

/// A result of a snapshot with its files; `files` as stored.
pub(crate) async fn result(api: &Api, snapshot: Uuid, extractor: &str, status: &str, files: Value) {
    sqlx::query(
        "INSERT INTO archive_result (snapshot_id, extractor, status, files, tool) VALUES ($1, $2, $3, $4, 'test 1')",
    )
    .bind(snapshot)
    .bind(extractor)
    .bind(status)
    .bind(files)
    .execute(&api.pool)
    .await
    .unwrap();
}

pub(crate) async fn blob(api: &Api, key: &str, bytes: Vec<u8>) {
    let key = BlobKey::parse(key).unwrap();
    api.blobs.put_if_absent(&key, bytes.into(), "application/wacz+zip").await.unwrap();
}
