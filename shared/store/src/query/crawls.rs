//! Crawls.

use super::{Edit, Edited, StoredFile, files, id_floor, parsed, parsed_opt};
use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, CrawlLimits, CrawlStatus, StopReason, TokenId};
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{FromRow, QueryBuilder, Row};
use uuid::Uuid;

/// A crawl as lists show it.
#[derive(Debug, Clone)]
pub struct Crawl {
    /// The row.
    pub id: CrawlId,
    /// Where it stands.
    pub status: CrawlStatus,
    /// Why it ended or does not go on.
    pub stop_reason: Option<StopReason>,
    /// One line for people.
    pub label: String,
    /// Free text.
    pub notes: String,
    /// Tags, sorted.
    pub tags: Vec<String>,
    /// Limits as they stand.
    pub limits: CrawlLimits,
    /// Snapshots admitted.
    pub n_snapshots: i64,
    /// Snapshots over.
    pub n_sealed: i64,
    /// Snapshots over with an error code.
    pub n_failed: i64,
    /// Snapshots over without having been tried: limits, cancel, rules.
    pub n_skipped: i64,
    /// Results recorded.
    pub n_results: i64,
    /// Results that failed.
    pub n_results_failed: i64,
    /// Bytes stored.
    pub bytes: i64,
    /// Whether every URL of the input is admitted or refused.
    pub setup_done: bool,
    /// Whether a limit kept a link out.
    pub discovery_blocked: bool,
    /// Code of what went wrong with the crawl itself.
    pub error_code: Option<String>,
    /// The same in words.
    pub error: Option<String>,
    /// The token that submitted it.
    pub created_by: Option<TokenId>,
    /// Submission.
    pub created_at: DateTime<Utc>,
    /// First admission.
    pub started_at: Option<DateTime<Utc>>,
    /// Since when it is held.
    pub paused_at: Option<DateTime<Utc>>,
    /// End.
    pub sealed_at: Option<DateTime<Utc>>,
    /// Last change.
    pub modified_at: DateTime<Utc>,
    /// When it will be deleted.
    pub delete_at: Option<DateTime<Utc>>,
}

/// A crawl with what is too much for a list.
#[derive(Debug, Clone)]
pub struct CrawlDetail {
    /// The row.
    pub crawl: Crawl,
    /// Configuration as frozen.
    pub config: Value,
    /// What became of the input.
    pub setup_report: Option<Value>,
    /// Index and collection files.
    pub files: Vec<StoredFile>,
}

const COLUMNS: &str = "c.id, c.status, c.stop_reason, c.label, c.notes, c.tags, c.max_depth, c.max_urls, c.max_size, \
     c.timeout_s, c.snapshot_max_size, c.max_concurrent, c.n_snapshots, c.n_sealed, c.n_failed, c.n_skipped, c.n_results, \
     c.n_results_failed, c.bytes, c.setup_done, c.discovery_blocked, c.error_code, c.error, c.created_by, c.created_at, \
     c.started_at, c.paused_at, c.sealed_at, c.modified_at, c.delete_at";
const VISIBLE: &str = "(c.delete_at IS NULL OR c.delete_at > now())";

impl FromRow<'_, PgRow> for Crawl {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let big = |column| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(column)?.and_then(|v| v.try_into().ok()));
        let int = |column| Ok::<_, sqlx::Error>(row.try_get::<Option<i32>, _>(column)?.and_then(|v| v.try_into().ok()));
        Ok(Crawl {
            id: CrawlId(row.try_get("id")?),
            status: parsed(row, "status")?,
            stop_reason: parsed_opt(row, "stop_reason")?,
            label: row.try_get("label")?,
            notes: row.try_get("notes")?,
            tags: row.try_get("tags")?,
            limits: CrawlLimits {
                max_depth: row.try_get::<i32, _>("max_depth")?.try_into().unwrap_or(CrawlLimits::MAX_DEPTH),
                max_urls: big("max_urls")?,
                max_size: big("max_size")?,
                timeout_s: int("timeout_s")?,
                snapshot_max_size: big("snapshot_max_size")?,
                max_concurrent: int("max_concurrent")?,
            },
            n_snapshots: row.try_get("n_snapshots")?,
            n_sealed: row.try_get("n_sealed")?,
            n_failed: row.try_get("n_failed")?,
            n_skipped: row.try_get("n_skipped")?,
            n_results: row.try_get("n_results")?,
            n_results_failed: row.try_get("n_results_failed")?,
            bytes: row.try_get("bytes")?,
            setup_done: row.try_get("setup_done")?,
            discovery_blocked: row.try_get("discovery_blocked")?,
            error_code: row.try_get("error_code")?,
            error: row.try_get("error")?,
            created_by: row.try_get::<Option<Uuid>, _>("created_by")?.map(TokenId),
            created_at: row.try_get("created_at")?,
            started_at: row.try_get("started_at")?,
            paused_at: row.try_get("paused_at")?,
            sealed_at: row.try_get("sealed_at")?,
            modified_at: row.try_get("modified_at")?,
            delete_at: row.try_get("delete_at")?,
        })
    }
}

/// Which crawls.
#[derive(Debug, Clone, Default)]
pub struct CrawlFilter {
    /// In this status.
    pub status: Option<CrawlStatus>,
    /// With this tag.
    pub tag: Option<String>,
    /// With exactly this label.
    pub label: Option<String>,
    /// Submitted at or after.
    pub since: Option<DateTime<Utc>>,
    /// Submitted before.
    pub until: Option<DateTime<Utc>>,
}

/// A page of crawls, newest first, below `before`.
///
/// # Errors
/// When the database fails.
pub async fn crawls(
    c: &mut Conn,
    filter: &CrawlFilter,
    before: Option<CrawlId>,
    limit: i64,
) -> Result<Vec<Crawl>, StoreError> {
    let mut q = page("", filter, before, limit);
    Ok(q.build_query_as().persistent(false).fetch_all(c).await?)
}

/// The statement; `head` is for `EXPLAIN`.
pub(super) fn page(
    head: &str,
    filter: &CrawlFilter,
    before: Option<CrawlId>,
    limit: i64,
) -> QueryBuilder<sqlx::Postgres> {
    let mut q = QueryBuilder::new(format!("{head}SELECT {COLUMNS} FROM crawl c WHERE {VISIBLE}"));
    if let Some(status) = filter.status {
        // Said literally, so that the planner sees that the index over open crawls serves.
        q.push(format_args!(" AND c.status = '{status}'"));
        if status != CrawlStatus::Sealed {
            q.push(" AND c.status <> 'sealed'");
        }
    }
    if let Some(tag) = &filter.tag {
        q.push(" AND c.tags @> ARRAY[").push_bind(tag.clone()).push("]");
    }
    if let Some(label) = &filter.label {
        q.push(" AND c.label = ").push_bind(label.clone());
    }
    if let Some(since) = filter.since {
        q.push(" AND c.id >= ").push_bind(id_floor(since));
    }
    if let Some(until) = filter.until {
        q.push(" AND c.id < ").push_bind(id_floor(until));
    }
    if let Some(before) = before {
        q.push(" AND c.id < ").push_bind(before.0);
    }
    q.push(" ORDER BY c.id DESC LIMIT ").push_bind(limit);
    q
}

/// One crawl.
///
/// # Errors
/// When the database fails.
pub async fn crawl(c: &mut Conn, id: CrawlId) -> Result<Option<CrawlDetail>, StoreError> {
    let mut q = QueryBuilder::new(format!(
        "SELECT {COLUMNS}, c.config, c.setup_report, c.files FROM crawl c WHERE {VISIBLE} AND c.id = "
    ));
    let Some(row) = q.push_bind(id.0).build().fetch_optional(c).await? else { return Ok(None) };
    Ok(Some(CrawlDetail {
        crawl: Crawl::from_row(&row)?,
        config: row.try_get("config")?,
        setup_report: row.try_get("setup_report")?,
        files: files(row.try_get("files")?)?,
    }))
}

/// Edits a crawl. Its snapshots keep the tags they have.
///
/// # Errors
/// When the database fails.
pub async fn edit_crawl(c: &mut Conn, id: CrawlId, edit: &Edit) -> Result<Edited, StoreError> {
    let tags = sqlx::query_scalar!(
        r#"UPDATE crawl SET
               tags = ARRAY(SELECT DISTINCT t FROM unnest(coalesce($2, tags) || $3::text[]) AS t
                            WHERE t <> ALL ($4::text[]) ORDER BY t),
               label = coalesce($5, label), notes = coalesce($6, notes),
               delete_at = CASE WHEN $7 THEN $8 ELSE delete_at END, modified_at = now()
           WHERE id = $1 AND (delete_at IS NULL OR delete_at > now())
           RETURNING cardinality(tags) AS "n!""#,
        id.0,
        edit.tags.as_deref() as Option<&[String]>,
        &edit.add_tags,
        &edit.remove_tags,
        edit.label,
        edit.notes,
        edit.delete_at.is_some(),
        edit.delete_at.flatten(),
    )
    .fetch_optional(c)
    .await?;
    Ok(Edited::from_tags(tags))
}
