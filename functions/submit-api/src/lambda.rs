//! The API behind API Gateway (REST, Lambda proxy).
//!
//! Two things differ from a server of our own. The stage is part of the address but not of the
//! routes. And an answer has at most 6 MB, in base64: files are handed out up to 4 MiB and beyond
//! that by redirect, see [`ApiConfig::max_file_answer`].
//!
//! | variable | what |
//! | --- | --- |
//! | `FONDS_DATABASE_URL` | Postgres |
//! | `FONDS_BLOBS` | `s3://bucket/prefix` |
//! | `FONDS_QUEUE_PREFIX` | what the names of the queues begin with |
//! | `FONDS_PUBLIC_URL` | what links begin with; else the gateway's own address |

use crate::{ApiConfig, ApiState, RequestBase, router};
use axum::response::Response;
use fonds_blobs::s3::{S3Blobs, S3Config};
use fonds_queues::{QueueNames, SqsBell, SqsConfig};
use fonds_store::{Db, DbConfig};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http_body_util::BodyExt;
use lambda_http::request::RequestContext;
use lambda_http::{Body, Error, IntoResponse, Request, RequestExt, service_fn};
use std::pin::Pin;
use std::sync::Arc;
use tower::ServiceExt;

/// A file in one answer: base64 makes a third more of it, and the headers want room in 6 MB.
const MAX_FILE_ANSWER: u64 = 4 * 1024 * 1024;

/// Serves the Lambda runtime until the environment ends.
///
/// # Errors
/// When a variable is missing, or the runtime API cannot be reached.
pub async fn run() -> Result<(), Error> {
    fonds_telemetry::init(Some(fonds_telemetry::Format::Json));
    let router = router(state().await?);
    lambda_http::run(service_fn(move |request| serve(router.clone(), request))).await
}

async fn state() -> Result<ApiState, Error> {
    let var = |name: &str| std::env::var(name).map_err(|_| Error::from(format!("{name} is not set")));
    // One request at a time in an environment: one connection.
    let db = Db::connect_lazy(&DbConfig { url: var("FONDS_DATABASE_URL")?, max_connections: 1 })?;
    let blobs = S3Blobs::connect(S3Config::from_url(&var("FONDS_BLOBS")?)?).await?;
    let names = QueueNames { prefix: Some(var("FONDS_QUEUE_PREFIX")?), ..QueueNames::default() };
    let bell = SqsBell::connect(&SqsConfig::default(), names).await;
    let key = fonds_store::tokens::signing_key(&mut *db.conn().await?).await?;
    let public = std::env::var("FONDS_PUBLIC_URL").ok().filter(|u| !u.is_empty());
    let config = ApiConfig {
        public_base_url: public.map(|u| u.parse()).transpose()?,
        max_file_answer: Some(MAX_FILE_ANSWER),
        // API Gateway gives up after 29 s.
        request_timeout: std::time::Duration::from_secs(25),
        ..ApiConfig::new(key.to_vec())
    };
    Ok(ApiState::new(db, Arc::new(blobs), Arc::new(bell), config)?)
}

async fn serve(router: axum::Router, request: Request) -> Result<Exact, Error> {
    let base = base(&request);
    let stageless = without_stage(&request)?;
    let (mut parts, body) = request.into_parts();
    parts.uri = stageless;
    if let Some(base) = base {
        parts.extensions.insert(base);
    }
    let request = http::Request::from_parts(parts, axum::body::Body::from(body.to_vec()));
    answer(router.oneshot(request).await.unwrap_or_else(|never| match never {})).await
}

/// Host and stage as the gateway names them.
fn base(request: &Request) -> Option<RequestBase> {
    let RequestContext::ApiGatewayV1(context) = request.request_context_ref()? else { return None };
    let host = context.domain_name.as_deref()?;
    // Behind a domain of one's own the path of the event begins with its mapping, not the stage.
    let mapped = context.path.as_deref().and_then(|p| p.strip_suffix(request.raw_http_path()));
    Some(RequestBase(format!("https://{host}{}", mapped.unwrap_or_default())))
}

/// The address without the stage that `lambda_http` puts before the path.
fn without_stage(request: &Request) -> Result<http::Uri, Error> {
    let path = Some(request.raw_http_path()).filter(|p| p.starts_with('/')).unwrap_or("/");
    let target = match request.uri().query() {
        Some(query) => format!("{}?{query}", encoded(path)),
        None => encoded(path),
    };
    Ok(target.parse()?)
}

/// The gateway decodes the path of an event; what may not stand in an address is encoded again.
fn encoded(path: &str) -> String {
    use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
    const PATH: &AsciiSet =
        &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'`').add(b'{').add(b'}').add(b'|');
    utf8_percent_encode(path, PATH).to_string()
}

/// An answer that is passed on byte by byte. Left to itself `lambda_http` decodes whatever calls
/// itself text by its charset, and archived text would no longer be what was archived.
struct Exact(http::Response<Body>);

impl IntoResponse for Exact {
    fn into_response(self) -> Pin<Box<dyn Future<Output = http::Response<Body>> + Send>> {
        Box::pin(std::future::ready(self.0))
    }
}

/// Our own JSON goes as text, everything else as bytes.
async fn answer(response: Response) -> Result<Exact, Error> {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let json =
        parts.headers.get(CONTENT_TYPE).is_some_and(|t| t == "application/json" || t == "application/problem+json");
    let body = match std::str::from_utf8(&bytes) {
        Ok("") => Body::Empty,
        Ok(text) if json && !parts.headers.contains_key(CONTENT_DISPOSITION) => Body::Text(text.to_owned()),
        _ => Body::Binary(bytes.to_vec()),
    };
    Ok(Exact(http::Response::from_parts(parts, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(path: &str, stage: &str, context_path: &str) -> Request {
        let event = serde_json::json!({
            "resource": "/{proxy+}", "path": path, "httpMethod": "GET",
            "headers": {"Host": "h"}, "multiValueHeaders": {"Host": ["h"]},
            "queryStringParameters": {"q": "a b&c"}, "multiValueQueryStringParameters": {"q": ["a b&c"]},
            "requestContext": {"stage": stage, "domainName": "x.example", "path": context_path, "httpMethod": "GET",
                "requestTimeEpoch": 0, "identity": {}},
            "body": null, "isBase64Encoded": false,
        });
        lambda_http::request::from_str(&event.to_string()).unwrap()
    }

    #[test]
    fn the_stage_is_in_links_but_not_in_routes() {
        for (path, stage, context, base_url) in [
            ("/v1/health", "prod", "/prod/v1/health", "https://x.example/prod"),
            ("/v1/health", "prod", "/v1/health", "https://x.example"),
            ("/v1/a b/ü", "prod", "/prod/v1/a b/ü", "https://x.example/prod"),
        ] {
            let request = event(path, stage, context);
            assert_eq!(base(&request).unwrap().0, base_url);
            let uri = without_stage(&request).unwrap();
            assert_eq!(uri.path(), encoded(path));
            assert_eq!(uri.query().map(|q| q.replace('+', "%20")), Some("q=a%20b%26c".to_owned()));
        }
    }

    #[tokio::test]
    async fn archived_text_keeps_its_bytes() {
        for (mime, body, text) in [
            ("application/json", &b"{}"[..], true),
            ("text/html; charset=iso-8859-1", b"\xe4", false),
            ("text/html", b"plain", false),
            ("image/png", b"\x89PNG", false),
        ] {
            let response = http::Response::builder().header(CONTENT_TYPE, mime).body(body.to_vec().into()).unwrap();
            let sent = answer(response).await.unwrap().into_response().await.into_body();
            assert_eq!(matches!(sent, Body::Text(_)), text, "{mime}");
            assert_eq!(sent.to_vec(), body);
        }
    }
}
