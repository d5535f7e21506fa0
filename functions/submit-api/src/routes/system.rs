//! Figures and health.

use crate::auth::{Reader, limit};
use crate::config::ApiState;
use crate::problem::Problem;
use crate::shapes::system::{Health, Stats};
use axum::Json;
use axum::extract::State;

/// Figures of the whole system, at a cost that does not grow with it.
#[utoipa::path(get, path = "/v1/system/stats", tag = "system", operation_id = "getStats",
    responses((status = 200, description = "The figures", body = Stats)))]
pub(crate) async fn stats(State(state): State<ApiState>, _: Reader) -> Result<Json<Stats>, Problem> {
    let mut tx = state.list_tx().await?;
    let stats = fonds_store::stats::stats(&mut tx).await?;
    Ok(Json(Stats::new(stats, state.config.version)))
}

/// Whether the service and its database answer. Needs no token.
#[utoipa::path(get, path = "/v1/health", tag = "system", operation_id = "getHealth", security(()),
    responses((status = 200, description = "Well", body = Health)))]
pub(crate) async fn health(State(state): State<ApiState>) -> Result<Json<Health>, Problem> {
    limit(state.limiter.take(None))?;
    // Setting the bound is a statement: the database has answered when it returns.
    state.bounded(2_000).await?;
    Ok(Json(Health { status: "ok".to_owned(), version: state.config.version.to_owned(), database: "ok".to_owned() }))
}
