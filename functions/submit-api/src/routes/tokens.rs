//! /v1/tokens, for administrators.

use crate::auth::Admin;
use crate::check;
use crate::config::ApiState;
use crate::extract::{Body, Id, Params};
use crate::page::Paging;
use crate::problem::{CONFLICT, Problem};
use crate::shapes::Page;
use crate::shapes::system::{NewToken, Token};
use axum::Json;
use axum::extract::State;
use chrono::Utc;
use fonds_domain::TokenId;
use fonds_store::tokens::{self, Scope};
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

/// Paging.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TokenQuery {
    /// Rows of a page, 1 to 200; 50 when absent.
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// List tokens, newest first, never their secrets.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens", operation_id = "listTokens", params(TokenQuery),
    responses((status = 200, description = "A page", body = Page<Token>)))]
pub(crate) async fn list(
    State(state): State<ApiState>,
    _: Admin,
    Params(q): Params<TokenQuery>,
) -> Result<Json<Page<Token>>, Problem> {
    let paging = Paging::new(q.limit, q.cursor.as_deref())?;
    let mut tx = state.list_tx().await?;
    let rows = tokens::list(&mut tx, paging.before.map(TokenId), paging.fetch()).await?;
    Ok(Json(Page::new(rows, paging.limit, |r| r.id.to_string(), Token::from)))
}

/// Make a token. Its secret is in this answer and nowhere else.
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens", operation_id = "createToken", request_body = NewToken,
    responses((status = 201, description = "Made", body = Token)))]
pub(crate) async fn create(
    State(state): State<ApiState>,
    _: Admin,
    body: Body<NewToken>,
) -> Result<(StatusCode, Json<Token>), Problem> {
    let now = Utc::now();
    let name = check::line("name", body.value.name, 200)?;
    if name.is_empty() {
        return Err(Problem::field("name", "must not be empty"));
    }
    let mut scopes: Vec<Scope> = body.value.scopes;
    scopes.sort();
    scopes.dedup();
    if scopes.is_empty() {
        return Err(Problem::field("scopes", "name at least one of read, write, admin"));
    }
    let expires_at = body.value.expires_after.map(|age| check::after("expires_after", &age, now)).transpose()?;
    let (id, secret) = tokens::create(&mut *state.db.conn().await?, &name, &scopes, expires_at).await?;
    let token = Token {
        id: id.0,
        name,
        scopes,
        created_at: now.into(),
        last_used_at: None,
        expires_at: expires_at.map(Into::into),
        revoked_at: None,
        secret: Some(secret),
    };
    Ok((StatusCode::CREATED, Json(token)))
}

/// Revoke a token; again is no error.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "tokens", operation_id = "revokeToken",
    params(("id" = uuid::Uuid, Path)), responses((status = 204, description = "It works no more")))]
pub(crate) async fn revoke(
    State(state): State<ApiState>,
    Admin(bearer): Admin,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    if bearer.id.0 == id {
        return Err(Problem::new(CONFLICT, "this is the token of the request; use another one to revoke it"));
    }
    if tokens::revoke(&mut *state.db.conn().await?, TokenId(id)).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found("token"))
    }
}
