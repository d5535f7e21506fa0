//! The outermost layer: request ids, time limits, panics, problems and security headers.

use crate::config::ApiState;
use crate::problem::{Problem, TOO_SLOW, URI_TOO_LONG};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::panic::AssertUnwindSafe;
use std::time::Instant;
use uuid::Uuid;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Wraps every request, those of no route too.
pub(crate) async fn edge(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let (method, path, start) = (request.method().clone(), request.uri().path().to_owned(), Instant::now());
    let response = if request.uri().to_string().len() > state.config.max_uri {
        Problem::new(URI_TOO_LONG, format!("more than {} bytes", state.config.max_uri)).into_response()
    } else {
        inner(&state, request, next).await
    };
    let mut response = finish(response, &id);
    let millis = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    // Never the query: links to files carry their signature in it.
    tracing::info!(request_id = id, %method, path, status = response.status().as_u16(), duration_ms = millis, "request");
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    secure(response.headers_mut());
    response
}

async fn inner(state: &ApiState, request: Request, next: Next) -> Response {
    let limit = state.config.request_timeout;
    match tokio::time::timeout(limit, AssertUnwindSafe(next.run(request)).catch_unwind()).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Problem::internal(format!("a handler panicked: {}", panic_text(&*panic))).into_response(),
        Err(_) => Problem::new(TOO_SLOW, format!("the request took longer than {limit:?}")).into_response(),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

/// An id that came with the request is kept, so that a caller finds its own in our log.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|v| v.to_str().ok()).filter(|v| {
        (1..=64).contains(&v.len()) && v.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    });
    given.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

/// Renders problems; an error answer of a layer that knows no problems becomes one.
fn finish(mut response: Response, request_id: &str) -> Response {
    let status = response.status();
    match response.extensions_mut().remove::<Problem>() {
        Some(problem) => problem.render(request_id, std::mem::take(response.headers_mut())),
        None if status.is_client_error() || status.is_server_error() => {
            Problem::from_status(status).render(request_id, std::mem::take(response.headers_mut()))
        }
        None => response,
    }
}

/// Set on every answer that did not set them itself.
fn secure(headers: &mut HeaderMap) {
    for (name, value) in [
        (http::header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (http::header::REFERRER_POLICY, "no-referrer"),
        (http::header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (http::header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_request_ids_are_kept() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_static(value));
            request_id(&headers)
        };
        assert_eq!(with("abc-1_2.3"), "abc-1_2.3");
        for odd in ["", "a b", "a\"b"] {
            assert!(Uuid::parse_str(&with(odd)).is_ok(), "{odd}");
        }
        assert!(Uuid::parse_str(&request_id(&HeaderMap::new())).is_ok());
    }

    #[tokio::test]
    async fn a_panic_and_a_hang_are_answered() {
        use tower::ServiceExt;
        let db = fonds_store::DbConfig { url: "postgres://nowhere.invalid/x".to_owned(), max_connections: 1 };
        let db = fonds_store::Db::connect_lazy(&db).unwrap();
        let blobs = std::sync::Arc::new(fonds_blobs::memory::MemoryBlobs::new());
        let mut config = crate::ApiConfig::new(vec![1; 32]);
        config.request_timeout = std::time::Duration::from_millis(50);
        let state = ApiState::new(db, blobs, std::sync::Arc::new(fonds_queues::NoBell), config).unwrap();
        let router = axum::Router::new()
            .route("/panic", axum::routing::get(async || -> () { panic!("secret") }))
            .route("/hang", axum::routing::get(async || std::future::pending::<()>().await))
            .layer(axum::middleware::from_fn_with_state(state, edge));
        for (path, status, code) in [("/panic", 500, "INTERNAL"), ("/hang", 503, "TOO_SLOW")] {
            let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status().as_u16(), status);
            let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
            let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(problem["code"], code);
            assert!(!problem.to_string().contains("secret"));
        }
    }
}
