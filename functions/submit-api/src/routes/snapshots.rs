//! /v1/snapshots: list, one, change, delete.

use super::{named, time};
use crate::auth::{Reader, Writer};
use crate::check;
use crate::config::ApiState;
use crate::extract::{Body, Id, Params};
use crate::links::Base;
use crate::page::Paging;
use crate::problem::{CONFLICT, Problem};
use crate::shapes::snapshot::{Snapshot, SnapshotDetail, SnapshotPatch};
use crate::shapes::{Deleting, Page, names};
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, SnapshotId, SnapshotStatus};
use fonds_pages::urls::PageUrl;
use fonds_store::query::{self, Edit, SnapshotFilter};
use http::StatusCode;
use serde::Deserialize;
use url::{Host, Url};
use utoipa::IntoParams;
use uuid::Uuid;

/// Filters of the list of snapshots.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SnapshotQuery {
    /// Rows of a page, 1 to 200; 50 when absent.
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Of this crawl.
    #[serde(default, deserialize_with = "named")]
    crawl: Option<Uuid>,
    /// In this status.
    #[serde(default, deserialize_with = "named")]
    #[param(value_type = Option<names::SnapshotStatus>)]
    status: Option<SnapshotStatus>,
    /// With this tag.
    tag: Option<String>,
    /// On exactly this `host[:port]`.
    host: Option<String>,
    /// On this host or any below it.
    domain: Option<String>,
    /// Of exactly this URL; the fragment does not count.
    url: Option<String>,
    /// Whose URL begins so; must reach past the host.
    url_prefix: Option<String>,
    /// At this depth.
    #[serde(default, deserialize_with = "named")]
    depth: Option<u16>,
    /// Whether the page itself failed.
    #[serde(default, deserialize_with = "named")]
    failed: Option<bool>,
    /// Whether an extractor failed; needs `crawl` or `host`.
    #[serde(default, deserialize_with = "named")]
    failed_results: Option<bool>,
    /// Admitted at or after.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<DateTime<Utc>>)]
    since: Option<DateTime<Utc>>,
    /// Admitted before.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<DateTime<Utc>>)]
    until: Option<DateTime<Utc>>,
}

impl SnapshotQuery {
    fn filter(self) -> Result<SnapshotFilter, Problem> {
        if self.failed_results.is_some() && self.crawl.is_none() && self.host.is_none() {
            return Err(Problem::field("failed_results", "needs crawl or host"));
        }
        let mut filter = SnapshotFilter {
            crawl: self.crawl.map(CrawlId),
            status: self.status,
            tag: self.tag,
            host: self.host.map(|h| h.to_lowercase()),
            domain: self.domain.map(|d| domain(&d)).transpose()?,
            depth: self.depth.map(i32::from),
            failed: self.failed,
            failed_results: self.failed_results,
            since: self.since,
            until: self.until,
            ..SnapshotFilter::default()
        };
        if let Some(text) = self.url {
            let url = PageUrl::parse(&text).map_err(|_| Problem::field("url", "must be a whole http or https URL"))?;
            // Crawls that keep fragments store another identity than those that do not.
            filter.url_keys = [false, true].map(|keep| query::url_key(url.identity(keep))).to_vec();
            filter.url_keys.dedup();
        }
        if let Some(text) = self.url_prefix {
            let (host, prefix) = prefix(&text)?;
            if filter.host.as_ref().is_some_and(|h| *h != host) {
                return Err(Problem::field("host", "differs from the host of url_prefix"));
            }
            filter.host = Some(host);
            filter.url_prefix = Some(prefix);
        }
        Ok(filter)
    }
}

/// A host name as rows have it: lower case, punycode.
pub(super) fn domain(text: &str) -> Result<String, Problem> {
    let name = text.trim().trim_start_matches("*.").trim_matches('.');
    match Host::parse(name) {
        Ok(Host::Domain(name)) => Ok(name),
        Ok(host) => Ok(host.to_string()),
        Err(_) => Err(Problem::field("domain", "must be a host name such as example.org")),
    }
}

/// `host[:port]` and the prefix as it is serialised. Only a prefix that reaches past the host has
/// an index to start from.
fn prefix(text: &str) -> Result<(String, String), Problem> {
    let bad = || Problem::field("url_prefix", "must reach past the host: https://example.org/...");
    let url = Url::parse(text).map_err(|_| bad())?;
    let after_scheme = text.split_once("://").map(|(_, rest)| rest).ok_or_else(bad)?;
    let host = url.host_str().filter(|h| !h.is_empty() && after_scheme.contains('/')).ok_or_else(bad)?;
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Ok((host, url.into()))
}

/// List snapshots, newest first.
#[utoipa::path(get, path = "/v1/snapshots", tag = "snapshots", operation_id = "listSnapshots", params(SnapshotQuery),
    responses((status = 200, description = "A page", body = Page<Snapshot>)))]
pub(crate) async fn list(
    State(state): State<ApiState>,
    _: Reader,
    base: Base,
    Params(q): Params<SnapshotQuery>,
) -> Result<Json<Page<Snapshot>>, Problem> {
    let paging = Paging::new(q.limit, q.cursor.as_deref())?;
    let filter = q.filter()?;
    let mut tx = state.list_tx().await?;
    let rows = query::snapshots(&mut tx, &filter, paging.before.map(SnapshotId), paging.fetch()).await?;
    Ok(Json(Page::new(rows, paging.limit, |r| r.id.to_string(), |r| Snapshot::new(r, &base))))
}

/// One snapshot with every result, its files and its error.
#[utoipa::path(get, path = "/v1/snapshots/{id}", tag = "snapshots", operation_id = "getSnapshot",
    params(("id" = uuid::Uuid, Path)), responses((status = 200, description = "The snapshot", body = SnapshotDetail)))]
pub(crate) async fn one(
    State(state): State<ApiState>,
    _: Reader,
    base: Base,
    Id(id): Id,
) -> Result<Json<SnapshotDetail>, Problem> {
    let mut c = state.db.conn().await?;
    shown(&mut c, SnapshotId(id), &base).await.map(Json)
}

async fn shown(c: &mut fonds_store::Conn, id: SnapshotId, base: &Base) -> Result<SnapshotDetail, Problem> {
    let row = query::snapshot(c, id).await?.ok_or_else(|| Problem::not_found("snapshot"))?;
    let results = query::results(c, id).await?;
    Ok(SnapshotDetail::new(row, results, base))
}

/// Change a snapshot's tags or its time of deletion.
#[utoipa::path(patch, path = "/v1/snapshots/{id}", tag = "snapshots", operation_id = "changeSnapshot",
    params(("id" = uuid::Uuid, Path)), request_body = SnapshotPatch,
    responses((status = 200, description = "The snapshot as it is now", body = SnapshotDetail)))]
pub(crate) async fn patch(
    State(state): State<ApiState>,
    _: Writer,
    base: Base,
    Id(id): Id,
    body: Body<SnapshotPatch>,
) -> Result<Json<SnapshotDetail>, Problem> {
    let (id, patch) = (SnapshotId(id), body.value);
    let edit = Edit {
        tags: patch.tags.map(|t| check::tags("tags", t)).transpose()?,
        add_tags: check::tags("add_tags", patch.add_tags)?,
        remove_tags: check::tags("remove_tags", patch.remove_tags)?,
        delete_at: check::delete_at(patch.delete_at, patch.delete_after, Utc::now())?,
        ..Edit::default()
    };
    if edit == Edit::default() {
        return Err(Problem::field("body", "nothing to change"));
    }
    let mut tx = state.db.begin().await?;
    // Visible first: what hides with its crawl is not edited.
    if query::snapshot(&mut tx, id).await?.is_none()
        || super::crawls::edited(query::edit_snapshot(&mut tx, id, &edit).await?)?
    {
        return Err(Problem::not_found("snapshot"));
    }
    let shown = shown(&mut tx, id, &base).await?;
    tx.commit().await?;
    Ok(Json(shown))
}

/// Delete a snapshot that is over. What others refer to stays until they go.
#[utoipa::path(delete, path = "/v1/snapshots/{id}", tag = "snapshots", operation_id = "deleteSnapshot",
    params(("id" = uuid::Uuid, Path)),
    responses((status = 202, description = "Gone for every read; rows and files follow", body = Deleting)))]
pub(crate) async fn delete(
    State(state): State<ApiState>,
    _: Writer,
    Id(id): Id,
) -> Result<(StatusCode, Json<Deleting>), Problem> {
    let id = SnapshotId(id);
    let mut tx = state.db.begin().await?;
    let row = query::snapshot(&mut tx, id).await?.ok_or_else(|| Problem::not_found("snapshot"))?;
    if !query::delete_snapshot(&mut tx, id).await? {
        let detail = format!("the snapshot is {}: cancel its crawl first, or wait", row.status);
        return Err(Problem::new(CONFLICT, detail));
    }
    tx.commit().await?;
    Ok((StatusCode::ACCEPTED, Json(Deleting::new(id.0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_reach_past_the_host() {
        for (text, expected) in [
            ("https://ex.org/", Some(("ex.org", "https://ex.org/"))),
            ("HTTPS://EX.org/A b", Some(("ex.org", "https://ex.org/A%20b"))),
            ("http://ex.org:8080/x?", Some(("ex.org:8080", "http://ex.org:8080/x?"))),
            ("https://ex.org:443/x", Some(("ex.org", "https://ex.org/x"))),
            ("https://ex.org", None),
            ("https://ex", None),
            ("ex.org/", None),
            ("data:,x", None),
            ("", None),
        ] {
            let expected = expected.map(|(h, p)| (h.to_owned(), p.to_owned()));
            assert_eq!(prefix(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn domains_are_read_as_rows_have_them() {
        for (text, expected) in [
            ("Ex.ORG", Some("ex.org")),
            ("*.ex.org", Some("ex.org")),
            ("müller.de", Some("xn--mller-kva.de")),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(domain(text).ok().as_deref(), expected, "{text}");
        }
    }
}
