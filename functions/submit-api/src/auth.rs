//! Who asks: extractors that let in a token with at least their scope.

use crate::config::ApiState;
use crate::problem::{FORBIDDEN, Problem, TOO_MANY_REQUESTS, UNAUTHENTICATED};
use axum::extract::FromRequestParts;
use fonds_store::tokens::{self, Bearer, Scope};
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::request::Parts;
use std::time::Duration;

/// Lets in tokens that may read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader;
/// Lets in tokens that may write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer(pub(crate) Bearer);
/// Lets in tokens that may do everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admin(pub(crate) Bearer);

impl FromRequestParts<ApiState> for Reader {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        bearer(parts, state, Scope::Read).await.map(|_| Reader)
    }
}

impl FromRequestParts<ApiState> for Writer {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        bearer(parts, state, Scope::Write).await.map(Writer)
    }
}

impl FromRequestParts<ApiState> for Admin {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        bearer(parts, state, Scope::Admin).await.map(Admin)
    }
}

async fn bearer(parts: &Parts, state: &ApiState, wanted: Scope) -> Result<Bearer, Problem> {
    let bearer = match secret(parts) {
        None => Err("the request has no bearer token"),
        Some(secret) => tokens::authenticate(&mut *state.db.conn().await?, secret)
            .await?
            .ok_or("the token is unknown, expired or revoked"),
    };
    match bearer {
        Err(why) => {
            limit(state.limiter.take(None))?;
            Err(Problem::new(UNAUTHENTICATED, why))
        }
        Ok(bearer) => {
            limit(state.limiter.take(Some(bearer.id)))?;
            if bearer.may(wanted) {
                Ok(bearer)
            } else {
                Err(Problem::new(FORBIDDEN, format!("this needs the scope {wanted}; the token has {}", bearer.scope)))
            }
        }
    }
}

/// RFC 6750 section 2.1; the scheme is case-insensitive (RFC 9110 section 11.1).
fn secret(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// A refusal that says when to come back.
pub(crate) fn limit(taken: Result<(), Duration>) -> Result<(), Problem> {
    taken.map_err(|wait| {
        let seconds = wait.as_secs_f64().ceil().max(1.0);
        Problem::new(TOO_MANY_REQUESTS, "too many requests").with_header(RETRY_AFTER, seconds.to_string())
    })
}
