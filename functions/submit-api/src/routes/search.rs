//! GET /v1/search.

use super::{named, time};
use crate::auth::Reader;
use crate::config::ApiState;
use crate::extract::Params;
use crate::links::Base;
use crate::page::bounded;
use crate::problem::Problem;
use crate::shapes::names;
use crate::shapes::system::{Match, SearchAnswer, SearchHit};
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, SnapshotId, SnapshotStatus};
use fonds_store::query::{self, SnapshotFilter};
use fonds_store::search;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

/// Pages reach this far.
const REACH: u32 = 1000;
/// Looking for resembling titles is worth this long...
const SIMILAR_MS: u32 = 500;
/// ...and only when the words themselves found fewer than this.
const SIMILAR_BELOW: usize = 5;
/// A trigram needs three letters.
const SIMILAR_MIN: usize = 3;

/// What is searched for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// Words, "phrases", `or`, `-not`, `begin*`; at most 500 characters.
    q: String,
    /// Hits of a page, 1 to 100; 20 when absent.
    limit: Option<u32>,
    /// `next_offset` of the page before; with `limit` at most 1000.
    offset: Option<u32>,
    /// Of this crawl.
    #[serde(default, deserialize_with = "named")]
    crawl: Option<Uuid>,
    /// With this tag.
    tag: Option<String>,
    /// On this host or any below it.
    domain: Option<String>,
    /// In this status.
    #[serde(default, deserialize_with = "named")]
    #[param(value_type = Option<names::SnapshotStatus>)]
    status: Option<SnapshotStatus>,
    /// Admitted at or after.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<DateTime<Utc>>)]
    since: Option<DateTime<Utc>>,
    /// Admitted before.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<DateTime<Utc>>)]
    until: Option<DateTime<Utc>>,
}

impl SearchQuery {
    fn read(self) -> Result<search::Query, Problem> {
        let text = self.q.replace('\0', " ").trim().to_owned();
        if text.is_empty() || text.chars().count() > 500 {
            return Err(Problem::field("q", "must have 1 to 500 characters"));
        }
        let limit = bounded("limit", self.limit, 20, 100)?;
        let offset = self.offset.unwrap_or(0);
        if offset.saturating_add(limit) > REACH {
            return Err(Problem::field("offset", format!("offset and limit reach to {REACH}; use more words instead")));
        }
        let filter = SnapshotFilter {
            crawl: self.crawl.map(CrawlId),
            status: self.status,
            tag: self.tag,
            domain: self.domain.map(|d| super::snapshots::domain(&d)).transpose()?,
            since: self.since,
            until: self.until,
            ..SnapshotFilter::default()
        };
        Ok(search::Query { text, filter, offset: offset.into(), limit: limit.into() })
    }
}

/// Search titles, URLs, tags and texts.
///
/// When fewer than five say the words, those whose title or URL resembles them follow.
#[utoipa::path(get, path = "/v1/search", tag = "search", operation_id = "search", params(SearchQuery),
    responses((status = 200, description = "A page of hits, best first", body = SearchAnswer)))]
pub(crate) async fn search(
    State(state): State<ApiState>,
    _: Reader,
    base: Base,
    Params(q): Params<SearchQuery>,
) -> Result<Json<SearchAnswer>, Problem> {
    let wanted = q.read()?;
    let mut tx = state.bounded(state.config.search_timeout_ms).await?;
    let mut page = wanted.clone();
    page.limit += 1;
    let mut found = search::search(&mut tx, &page).await?;
    tx.rollback().await?;
    let size = usize::try_from(wanted.limit).unwrap_or(usize::MAX);
    let more = found.hits.len() > size && wanted.offset + 2 * wanted.limit <= i64::from(REACH);
    found.hits.truncate(size);
    let mut answer = SearchAnswer {
        items: Vec::new(),
        next_offset: more.then_some(wanted.offset + wanted.limit),
        capped: found.capped,
        similar_skipped: false,
    };
    let room = size - found.hits.len();
    let few = room > 0 && found.hits.len() < SIMILAR_BELOW && wanted.offset == 0;
    let mut similar = Vec::new();
    if few && wanted.text.chars().count() >= SIMILAR_MIN {
        let known: Vec<_> = found.hits.iter().map(|h| h.snapshot.id).collect();
        match look_alikes(&state, search::Query { limit: room as i64, ..wanted }, &known).await? {
            Some(hits) => similar = hits,
            None => answer.similar_skipped = true,
        }
    }
    answer.items.extend(found.hits.into_iter().map(|h| SearchHit::new(h, Match::Text, &base)));
    answer.items.extend(similar.into_iter().map(|h| SearchHit::new(h, Match::Similar, &base)));
    Ok(Json(answer))
}

/// None when it took too long: then the answer does without.
async fn look_alikes(
    state: &ApiState,
    wanted: search::Query,
    known: &[SnapshotId],
) -> Result<Option<Vec<search::Hit>>, Problem> {
    let mut tx = state.bounded(SIMILAR_MS.min(state.config.search_timeout_ms)).await?;
    match search::similar(&mut tx, &wanted, known).await {
        Ok(hits) => Ok(Some(hits)),
        Err(e) if query::timed_out(&e) => Ok(None),
        Err(e) => Err(e.into()),
    }
}
