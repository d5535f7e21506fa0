//! /v1/crawls: list, one, change, delete.

use super::{named, time};
use crate::auth::{Reader, Writer};
use crate::check;
use crate::config::ApiState;
use crate::extract::{Body, Id, Params};
use crate::links::Base;
use crate::page::Paging;
use crate::problem::{CONFLICT, Problem};
use crate::shapes::crawl::{Action, Crawl, CrawlDetail, CrawlPatch};
use crate::shapes::{Deleting, Page, names};
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, CrawlStatus};
use fonds_store::crawls::{self, Change};
use fonds_store::query::{self, CrawlFilter, Edit, Edited};
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

/// Filters of the list of crawls.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CrawlQuery {
    /// Rows of a page, 1 to 200; 50 when absent.
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// In this status.
    #[serde(default, deserialize_with = "named")]
    #[param(value_type = Option<names::CrawlStatus>)]
    status: Option<CrawlStatus>,
    /// With this tag.
    tag: Option<String>,
    /// With exactly this label.
    label: Option<String>,
    /// Submitted at or after.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<DateTime<Utc>>)]
    since: Option<DateTime<Utc>>,
    /// Submitted before.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<DateTime<Utc>>)]
    until: Option<DateTime<Utc>>,
}

/// List crawls, newest first.
#[utoipa::path(get, path = "/v1/crawls", tag = "crawls", operation_id = "listCrawls", params(CrawlQuery),
    responses((status = 200, description = "A page", body = Page<Crawl>)))]
pub(crate) async fn list(
    State(state): State<ApiState>,
    _: Reader,
    base: Base,
    Params(q): Params<CrawlQuery>,
) -> Result<Json<Page<Crawl>>, Problem> {
    let paging = Paging::new(q.limit, q.cursor.as_deref())?;
    let filter = CrawlFilter { status: q.status, tag: q.tag, label: q.label, since: q.since, until: q.until };
    let mut tx = state.list_tx().await?;
    let rows = query::crawls(&mut tx, &filter, paging.before.map(CrawlId), paging.fetch()).await?;
    Ok(Json(Page::new(rows, paging.limit, |r| r.id.to_string(), |r| Crawl::new(r, &base))))
}

/// One crawl with its configuration, progress and files.
#[utoipa::path(get, path = "/v1/crawls/{id}", tag = "crawls", operation_id = "getCrawl",
    params(("id" = uuid::Uuid, Path)), responses((status = 200, description = "The crawl", body = CrawlDetail)))]
pub(crate) async fn one(
    State(state): State<ApiState>,
    _: Reader,
    base: Base,
    Id(id): Id,
) -> Result<Json<CrawlDetail>, Problem> {
    let mut c = state.db.conn().await?;
    let row = query::crawl(&mut c, CrawlId(id)).await?.ok_or_else(|| Problem::not_found("crawl"))?;
    Ok(Json(CrawlDetail::new(row, &base)))
}

/// Change a crawl: pause, resume or cancel it; its limits, tags, label, notes, time of deletion.
///
/// All of it or nothing: edits first, then limits, then the action. What is so already is no error.
#[utoipa::path(patch, path = "/v1/crawls/{id}", tag = "crawls", operation_id = "changeCrawl",
    params(("id" = uuid::Uuid, Path)), request_body = CrawlPatch,
    responses((status = 200, description = "The crawl as it is now", body = CrawlDetail)))]
pub(crate) async fn patch(
    State(state): State<ApiState>,
    _: Writer,
    base: Base,
    Id(id): Id,
    body: Body<CrawlPatch>,
) -> Result<Json<CrawlDetail>, Problem> {
    let (id, patch) = (CrawlId(id), body.value);
    let limits = patch.limits.map(|l| check::limits(Some(l), None)).transpose()?;
    let action = patch.action;
    let edit = edit(patch)?;
    if edit == Edit::default() && limits.is_none() && action.is_none() {
        return Err(Problem::field("body", "nothing to change"));
    }
    let mut tx = state.db.begin().await?;
    let mut rings = Vec::new();
    let mut missing = query::crawl(&mut tx, id).await?.is_none();
    if !missing && edit != Edit::default() {
        missing = edited(query::edit_crawl(&mut tx, id, &edit).await?)?;
    }
    if missing {
        return Err(Problem::not_found("crawl"));
    }
    if let Some(limits) = limits {
        rings.extend(changed(crawls::set_limits(&mut tx, id, &limits).await?, "its limits cannot be changed")?);
    }
    if let Some(action) = action {
        let change = match action {
            Action::Pause => crawls::pause(&mut tx, id).await?,
            Action::Resume => crawls::resume(&mut tx, id).await?,
            Action::Cancel => crawls::cancel(&mut tx, id).await?,
        };
        rings.extend(changed(change, "this cannot be done")?);
    }
    let row = query::crawl(&mut tx, id).await?.ok_or_else(|| Problem::not_found("crawl"))?;
    tx.commit().await?;
    state.ring(&rings).await;
    Ok(Json(CrawlDetail::new(row, &base)))
}

fn edit(patch: CrawlPatch) -> Result<Edit, Problem> {
    let (label, notes) = check::label_and_notes(patch.label, patch.notes)?;
    Ok(Edit {
        tags: patch.tags.map(|t| check::tags("tags", t)).transpose()?,
        add_tags: check::tags("add_tags", patch.add_tags)?,
        remove_tags: check::tags("remove_tags", patch.remove_tags)?,
        label,
        notes,
        delete_at: check::delete_at(patch.delete_at, patch.delete_after, Utc::now())?,
    })
}

/// Whether the row was not there.
pub(super) fn edited(outcome: Edited) -> Result<bool, Problem> {
    match outcome {
        Edited::Done => Ok(false),
        Edited::NotFound => Ok(true),
        Edited::TooManyTags => Err(check::too_many_tags("add_tags")),
    }
}

fn changed(change: Change, refused: &str) -> Result<Vec<fonds_store::runs::RunRef>, Problem> {
    match change {
        Change::Done(rings) => Ok(rings),
        Change::Already => Ok(Vec::new()),
        Change::NotFound => Err(Problem::not_found("crawl")),
        Change::Refused(status) => Err(Problem::new(CONFLICT, format!("the crawl is {status}: {refused}"))),
    }
}

/// Delete a crawl with its snapshots; it is ended first.
#[utoipa::path(delete, path = "/v1/crawls/{id}", tag = "crawls", operation_id = "deleteCrawl",
    params(("id" = uuid::Uuid, Path)),
    responses((status = 202, description = "Gone for every read; rows and files follow", body = Deleting)))]
pub(crate) async fn delete(
    State(state): State<ApiState>,
    _: Writer,
    Id(id): Id,
) -> Result<(StatusCode, Json<Deleting>), Problem> {
    let id = CrawlId(id);
    let mut tx = state.db.begin().await?;
    if query::crawl(&mut tx, id).await?.is_none() {
        return Err(Problem::not_found("crawl"));
    }
    let rings = changed(crawls::delete(&mut tx, id).await?, "it cannot be deleted")?;
    tx.commit().await?;
    state.ring(&rings).await;
    Ok((StatusCode::ACCEPTED, Json(Deleting::new(id.0))))
}
