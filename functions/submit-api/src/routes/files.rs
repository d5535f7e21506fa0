//! Files of snapshots and crawls: looked up here, served under /blobs by a signed link.

use crate::auth::Reader;
use crate::config::ApiState;
use crate::extract::{Id, Params, id};
use crate::links::Base;
use crate::problem::{NO_WACZ, NOT_SEALED, Problem};
use crate::shapes::snapshot::{FileLink, WACZ};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use fonds_domain::{CrawlId, SnapshotId};
use fonds_store::query::{self, StoredFile};
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use serde::Deserialize;
use utoipa::IntoParams;

/// How a file is handed out.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FileQuery {
    /// Answer the link as JSON instead of redirecting to it.
    #[serde(default)]
    #[param(required = false)]
    link: bool,
}

/// A file of a result, by its path.
#[utoipa::path(get, path = "/v1/snapshots/{id}/files/{*path}", tag = "snapshots", operation_id = "getSnapshotFile",
    params(("id" = uuid::Uuid, Path), ("path" = String, Path, description = "`<extractor>/<file>`"), FileQuery),
    responses((status = 302, description = "To a link that needs no token for a while"),
              (status = 200, description = "With `link=true`", body = FileLink)))]
pub(crate) async fn of_snapshot(
    State(state): State<ApiState>,
    _: Reader,
    base: Base,
    Path((snapshot, path)): Path<(String, String)>,
    Params(q): Params<FileQuery>,
) -> Result<Response, Problem> {
    let snapshot = SnapshotId(id(&snapshot)?);
    let mut c = state.db.conn().await?;
    query::snapshot(&mut c, snapshot).await?.ok_or_else(|| Problem::not_found("snapshot"))?;
    let results = query::results(&mut c, snapshot).await?;
    drop(c);
    let file = results.into_iter().flat_map(|r| r.files).find(|f| f.path == path);
    hand_out(&state, &base, &file.ok_or_else(|| Problem::not_found("file"))?, &q)
}

/// The whole capture of a snapshot as one WACZ.
#[utoipa::path(get, path = "/v1/snapshots/{id}/wacz", tag = "snapshots", operation_id = "getSnapshotWacz",
    params(("id" = uuid::Uuid, Path), FileQuery),
    responses((status = 302, description = "To a link that needs no token for a while"),
              (status = 200, description = "With `link=true`", body = FileLink)))]
pub(crate) async fn wacz(
    State(state): State<ApiState>,
    _: Reader,
    base: Base,
    Id(snapshot): Id,
    Params(q): Params<FileQuery>,
) -> Result<Response, Problem> {
    let snapshot = SnapshotId(snapshot);
    let mut c = state.db.conn().await?;
    let row = query::snapshot(&mut c, snapshot).await?.ok_or_else(|| Problem::not_found("snapshot"))?;
    if row.status.is_open() {
        return Err(Problem::new(NOT_SEALED, format!("the snapshot is {}", row.status)));
    }
    let results = query::results(&mut c, snapshot).await?;
    drop(c);
    let file = results.into_iter().find(|r| r.extractor == WACZ).and_then(|r| r.files.into_iter().next());
    let mut file = file.ok_or_else(|| Problem::new(NO_WACZ, "the snapshot has no WACZ"))?;
    // A name that still says what it is among a thousand downloads.
    file.path = format!("{snapshot}.wacz");
    hand_out(&state, &base, &file, &q)
}

/// A file of a sealed crawl: index.jsonl, index.json, index.html, collection.json.
#[utoipa::path(get, path = "/v1/crawls/{id}/files/{name}", tag = "crawls", operation_id = "getCrawlFile",
    params(("id" = uuid::Uuid, Path), ("name" = String, Path), FileQuery),
    responses((status = 302, description = "To a link that needs no token for a while"),
              (status = 200, description = "With `link=true`", body = FileLink)))]
pub(crate) async fn of_crawl(
    State(state): State<ApiState>,
    _: Reader,
    base: Base,
    Path((crawl, name)): Path<(String, String)>,
    Params(q): Params<FileQuery>,
) -> Result<Response, Problem> {
    let mut c = state.db.conn().await?;
    let crawl = query::crawl(&mut c, CrawlId(id(&crawl)?)).await?.ok_or_else(|| Problem::not_found("crawl"))?;
    drop(c);
    let file = crawl.files.into_iter().find(|f| f.path == name).ok_or_else(|| Problem::not_found("file"))?;
    hand_out(&state, &base, &file, &q)
}

fn hand_out(state: &ApiState, base: &Base, file: &StoredFile, q: &FileQuery) -> Result<Response, Problem> {
    let (url, expires) = base.signed(state, file)?;
    if q.link {
        let link = FileLink {
            url,
            expires_at: expires.into(),
            size: file.size,
            sha256: file.sha256.clone(),
            mime: file.mime.clone(),
        };
        return Ok(Json(link).into_response());
    }
    let location = HeaderValue::from_str(&url).map_err(Problem::internal)?;
    Ok((StatusCode::FOUND, [(LOCATION, location)]).into_response())
}
