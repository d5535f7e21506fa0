//! The contract over S3's protocol, spoken by MiniStack, and what only S3 has: prefixes, foreign keys, answers that lie.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fonds_blobs::contract::{Answer, Client, Subject};
use fonds_blobs::s3::{Keys, S3Blobs, S3Config};
use fonds_blobs::{BlobError, BlobKey, BlobStore, PresignGet, Presigned};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::TokioExecutor;

fn config(endpoint: &str, prefix: &str) -> S3Config {
    let (id, secret) = fonds_ministack::CREDENTIALS;
    S3Config {
        prefix: prefix.to_owned(),
        region: Some(fonds_ministack::REGION.to_owned()),
        endpoint: Some(endpoint.to_owned()),
        keys: Some(Keys { id: id.to_owned(), secret: secret.to_owned() }),
        ..S3Config::bucket(fonds_ministack::unique("blobs"))
    }
}

async fn store(prefix: &str) -> Option<S3Blobs> {
    let store = S3Blobs::connect(config(fonds_ministack::endpoint()?, prefix)).await.unwrap();
    store.ensure_bucket().await.unwrap();
    Some(store)
}

struct HttpClient;

#[async_trait::async_trait]
impl Client for HttpClient {
    async fn send(&self, request: &Presigned, body: Bytes) -> Answer {
        let mut builder = http::Request::builder().method(request.method).uri(request.url.as_str());
        for (name, value) in &request.headers {
            // The length sent is that of the body; whether it is the one signed is S3's to find out.
            if name != "content-length" {
                builder = builder.header(name, value);
            }
        }
        let client = HyperClient::builder(TokioExecutor::new()).build_http();
        let answer = client.request(builder.body(Full::new(body)).unwrap()).await.unwrap();
        let headers = answer
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        let (status, headers) = (answer.status().as_u16(), headers.collect());
        Answer { status, headers, body: answer.into_body().collect().await.unwrap().to_bytes() }
    }
}

async fn whole_bucket() -> Option<Subject> {
    Some(Subject {
        store: Arc::new(store("").await?),
        client: Box::new(HttpClient),
        keep: Box::new(()),
        refuses_small_parts: false,
    })
}

async fn below_a_prefix() -> Option<Subject> {
    Some(Subject {
        store: Arc::new(store("some/place").await?),
        client: Box::new(HttpClient),
        keep: Box::new(()),
        refuses_small_parts: false,
    })
}

fonds_blobs::blob_contract!(contract, super::whole_bucket);
fonds_blobs::blob_contract!(contract_below_a_prefix, super::below_a_prefix);

#[tokio::test]
async fn a_missing_bucket_and_a_dead_endpoint_are_told_apart() {
    let Some(endpoint) = fonds_ministack::endpoint() else { return };
    let key = BlobKey::parse("a").unwrap();
    let missing = S3Blobs::connect(config(endpoint, "")).await.unwrap();
    let error = missing.get(&key).await.unwrap_err();
    assert!(matches!(error, BlobError::Invalid(_)) && error.is_permanent(), "{error:?}");
    // Port 9 (discard) has no listener.
    let dead = S3Blobs::connect(config("http://127.0.0.1:9", "")).await.unwrap();
    let error = dead.get(&key).await.unwrap_err();
    assert!(matches!(error, BlobError::Unavailable { .. }) && !error.is_permanent(), "{error:?}");
}

#[tokio::test]
async fn foreign_keys_are_reported_and_paged_over() {
    let Some(store) = store("").await else { return };
    let signed =
        store.presign_get(&BlobKey::parse("x").unwrap(), Duration::from_secs(60), PresignGet::default()).await.unwrap();
    // Unsigned PUTs of names that are no keys of ours, as another program or the console makes them.
    for name in ["folder/", "folder//x", "folder/../x", "folder/good"] {
        let mut url = signed.url.clone();
        let path = url.path().strip_suffix('x').unwrap().to_owned() + &name.replace("..", "%2E%2E");
        url.set_query(None);
        let put = Presigned {
            method: "PUT",
            headers: Vec::new(),
            url: format!("{}{path}", url.origin().ascii_serialization()).parse().unwrap(),
            ..signed.clone()
        };
        HttpClient.send(&put, Bytes::from_static(b"x")).await;
    }
    let (mut keys, mut skipped, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = store.list("folder", after.as_ref(), 1).await.unwrap();
        keys.extend(page.entries.iter().map(|entry| entry.key.to_string()));
        skipped.extend(page.skipped);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(keys, ["folder/good"]);
    assert!(skipped.contains(&"folder/".to_owned()) && skipped.contains(&"folder//x".to_owned()), "{skipped:?}");
}
