//! POST /v1/crawls.

use crate::auth::Writer;
use crate::check::{self, Checked};
use crate::config::ApiState;
use crate::extract::Body;
use crate::links::Base;
use crate::problem::{GONE, IDEMPOTENCY_MISMATCH, Problem};
use crate::shapes::crawl::{CrawlDetail, NewCrawl, Planned, PlannedOutcome, Submitted};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use fonds_domain::{CrawlId, TokenId};
use fonds_store::idempotency::{self, Claim};
use fonds_store::runs::RunRef;
use fonds_store::{Conn, crawls, query};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use std::collections::HashSet;

/// URLs the plan of an answer tells about.
const PLAN_MAX: usize = 1000;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Submit a crawl.
///
/// Everything that can be checked without network is checked here: URLs, patterns, limits. The same `Idempotency-Key`
/// with the same body answers the crawl that was made first; with another body it is refused.
#[utoipa::path(
    post, path = "/v1/crawls", tag = "crawls", operation_id = "submitCrawl", request_body = NewCrawl,
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters")),
    responses(
        (status = 201, description = "Made", body = Submitted, headers(("Location" = String, description = "The crawl"))),
        (status = 200, description = "Made before, under the same Idempotency-Key", body = Submitted,
         headers(("Idempotency-Replayed" = String, description = "`true`"))),
    )
)]
pub(crate) async fn submit(
    State(state): State<ApiState>,
    Writer(bearer): Writer,
    base: Base,
    headers: HeaderMap,
    body: Body<NewCrawl>,
) -> Result<Response, Problem> {
    let key = idempotency_key(&headers)?;
    let checked = check::submission(body.value, Utc::now())?;
    let made = make(&state, bearer.id, key.as_deref().map(|k| (k, &body.sha256)), &checked).await?;
    state.ring(&made.runs).await;
    let mut c = state.db.conn().await?;
    let Some(row) = query::crawl(&mut c, made.id).await? else {
        return Err(Problem::new(GONE, "the crawl made under this Idempotency-Key was deleted"));
    };
    let crawl = CrawlDetail::new(row, &base);
    let submitted = Submitted { crawl, plan: made.plan, plan_truncated: checked.urls.len() > PLAN_MAX };
    let mut response = Json(submitted).into_response();
    if made.replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    } else {
        *response.status_mut() = StatusCode::CREATED;
    }
    if let Ok(location) = HeaderValue::from_str(&base.crawl(made.id)) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().filter(|k| (1..=255).contains(&k.len()) && k.bytes().all(|b| b.is_ascii_graphic()));
    match key {
        Some(key) => Ok(Some(key.to_owned())),
        None => Err(Problem::field("Idempotency-Key", "must be 1 to 255 visible ASCII characters")),
    }
}

struct Made {
    id: CrawlId,
    runs: Vec<RunRef>,
    plan: Vec<Planned>,
    replayed: bool,
}

/// One transaction: the key, the crawl and its first run are there together or not at all.
async fn make(
    state: &ApiState,
    token: TokenId,
    key: Option<(&str, &[u8; 32])>,
    checked: &Checked,
) -> Result<Made, Problem> {
    let mut tx = state.db.begin().await?;
    let plan = plan(&mut tx, checked).await?;
    if let Some((key, body)) = key {
        match idempotency::claim(&mut tx, token, key, body).await? {
            Claim::Fresh => {}
            Claim::Replay(id) => return Ok(Made { id, runs: Vec::new(), plan, replayed: true }),
            Claim::Mismatch => {
                let detail = "this Idempotency-Key was used for another request";
                return Err(Problem::new(IDEMPOTENCY_MISMATCH, detail).at("Idempotency-Key"));
            }
        }
    }
    let new = crawls::NewCrawl {
        input: checked.input.clone(),
        config: checked.config.clone(),
        limits: checked.limits,
        label: checked.label.clone(),
        notes: checked.notes.clone(),
        tags: checked.tags.clone(),
        created_by: Some(token),
        delete_at: checked.delete_at,
    };
    let (id, runs) = crawls::create(&mut tx, &new).await?;
    if let Some((key, _)) = key {
        idempotency::bind(&mut tx, token, key, id).await?;
    }
    tx.commit().await?;
    Ok(Made { id, runs, plan, replayed: false })
}

/// What will become of the first URLs.
async fn plan(c: &mut Conn, checked: &Checked) -> Result<Vec<Planned>, Problem> {
    let urls = checked.urls.get(..PLAN_MAX).unwrap_or(&checked.urls);
    let keys: Vec<_> = urls.iter().map(|u| query::url_key(u.identity(checked.config.keep_fragments))).collect();
    let earlier =
        if checked.config.only_new { query::by_url(c, &keys).await? } else { std::collections::HashMap::new() };
    let mut seen = HashSet::new();
    let plan = urls.iter().zip(keys).map(|(url, key)| {
        let known = earlier.get(&key);
        let outcome = if !seen.insert(key) {
            PlannedOutcome::Duplicate
        } else if checked.rules.check(url.as_url()).is_err() {
            PlannedOutcome::Denied
        } else if known.is_some() {
            PlannedOutcome::AlreadyArchived
        } else {
            PlannedOutcome::Capture
        };
        let snapshot_id = known.filter(|_| outcome == PlannedOutcome::AlreadyArchived).map(|s| s.0);
        Planned { url: url.to_string(), outcome, snapshot_id }
    });
    Ok(plan.collect())
}
