//! The HTTP API: validates, writes rows, rings, reads. No work is done here.
//!
//! [`router`] is one axum router, served by the one-process host and, through `lambda_http`, behind
//! API Gateway. Handlers answer values or a problem; the outermost layer (`edge`) does what every
//! answer needs. The contract is /openapi.json, frozen by a test.
#![warn(missing_docs)]

mod auth;
mod check;
mod config;
mod edge;
mod extract;
pub mod lambda;
mod limit;
mod links;
mod openapi;
mod page;
mod problem;
mod range;
mod routes;
mod shapes;

pub use config::{ApiConfig, ApiState, ConfigRefused};
pub use limit::Rate;
pub use links::RequestBase;

use axum::extract::DefaultBodyLimit;
use axum::response::IntoResponse;
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;

/// The API's document.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    openapi::finished(routes::documented().into_openapi())
}

/// The API.
pub fn router(state: ApiState) -> axum::Router {
    let document = bytes::Bytes::from(openapi().to_json().unwrap_or_default());
    let serve = move || async move { ([(CONTENT_TYPE, "application/json")], document) };
    let (routes, _) = routes::documented().split_for_parts();
    routes
        .route("/openapi.json", get(serve))
        .fallback(async || StatusCode::NOT_FOUND.into_response())
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED.into_response())
        .layer(DefaultBodyLimit::max(state.config.max_body))
        .layer(axum::middleware::from_fn_with_state(state.clone(), edge::edge))
        .with_state(state)
}
