//! Snapshots, their results and files.

use super::names;
use super::{Failure, Time};
use crate::extract::present;
use crate::links::Base;
use chrono::{DateTime, Utc};
use fonds_domain::{EXTRACTORS, Extractor, ResultStatus, SnapshotId, SnapshotStatus, Stage};
use fonds_store::query::{self, StoredFile};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Changes to a snapshot; at least one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SnapshotPatch {
    /// Replaces the tags.
    #[schema(nullable = false)]
    pub(crate) tags: Option<Vec<String>>,
    /// Adds tags.
    #[serde(default)]
    #[schema(required = false)]
    pub(crate) add_tags: Vec<String>,
    /// Removes tags.
    #[serde(default)]
    #[schema(required = false)]
    pub(crate) remove_tags: Vec<String>,
    /// Delete at this time; null keeps it for good.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<DateTime<Utc>>, required = false)]
    pub(crate) delete_at: Option<Option<DateTime<Utc>>>,
    /// Delete this long from now: a number and `h`, `d`, `w`, `mo` or `y`.
    #[schema(nullable = false, example = "30d")]
    pub(crate) delete_after: Option<String>,
}

/// A snapshot: one URL captured once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Snapshot {
    id: Uuid,
    crawl_id: Uuid,
    /// The snapshot whose page linked to it.
    parent_id: Option<Uuid>,
    url: String,
    /// Where the redirects led.
    final_url: Option<String>,
    /// `host[:port]`.
    host: String,
    /// Links from a submitted URL.
    depth: i32,
    title: Option<String>,
    tags: Vec<String>,
    #[schema(value_type = names::SnapshotStatus)]
    status: SnapshotStatus,
    /// Stage being worked on.
    step: Option<String>,
    http_status: Option<i32>,
    mime: Option<String>,
    /// Bytes stored.
    size: i64,
    /// Results made.
    n_ok: i32,
    /// Results that failed.
    n_failed: i32,
    /// What went wrong with the page itself.
    error: Option<Failure>,
    bookmarked_at: Option<Time>,
    created_at: Time,
    downloaded_at: Option<Time>,
    sealed_at: Option<Time>,
    delete_at: Option<Time>,
    href: String,
}

/// A snapshot with its results.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SnapshotDetail {
    #[serde(flatten)]
    snapshot: Snapshot,
    /// The whole capture.
    wacz: Option<String>,
    /// In the order of the extractors.
    results: Vec<ArchiveResult>,
}

/// What one extractor made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArchiveResult {
    extractor: String,
    /// `fetch`, `render`, `derive`, `parse` or `store`; null for an extractor of another version.
    #[schema(value_type = Option<String>)]
    stage: Option<Stage>,
    #[schema(value_type = names::ResultStatus)]
    status: ResultStatus,
    /// One line for people.
    output: Option<String>,
    error: Option<Failure>,
    attempt: i16,
    duration_ms: Option<i32>,
    tool: Option<String>,
    ended_at: Time,
    files: Vec<ResultFile>,
    /// What retries overwrote, oldest first.
    attempts: Vec<ResultAttempt>,
}

/// A file of a result.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultFile {
    /// `<extractor>/<file>`.
    path: String,
    mime: String,
    size: u64,
    sha256: Option<String>,
    href: String,
}

/// An attempt that a retry overwrote.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultAttempt {
    attempt: i16,
    error: Option<Failure>,
    ended_at: Time,
}

/// A link to a file that needs no token until it expires.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileLink {
    pub(crate) url: String,
    pub(crate) expires_at: Time,
    pub(crate) size: u64,
    pub(crate) sha256: Option<String>,
    pub(crate) mime: String,
}

impl Snapshot {
    pub(crate) fn new(row: query::Snapshot, base: &Base) -> Snapshot {
        Snapshot {
            id: row.id.0,
            crawl_id: row.crawl_id.0,
            parent_id: row.parent_id.map(|p| p.0),
            url: row.url,
            final_url: row.final_url,
            host: row.host,
            depth: row.depth,
            title: row.title,
            tags: row.tags,
            status: row.status,
            step: row.step,
            http_status: row.http_status,
            mime: row.mime,
            size: row.size,
            n_ok: row.n_ok,
            n_failed: row.n_failed,
            error: Failure::new(row.error_code, row.error),
            bookmarked_at: row.bookmarked_at.map(Time),
            created_at: row.created_at.into(),
            downloaded_at: row.downloaded_at.map(Time),
            sealed_at: row.sealed_at.map(Time),
            delete_at: row.delete_at.map(Time),
            href: base.snapshot(row.id),
        }
    }
}

impl SnapshotDetail {
    pub(crate) fn new(row: query::Snapshot, mut results: Vec<query::ResultRow>, base: &Base) -> SnapshotDetail {
        let id = row.id;
        results.sort_by_key(|r| EXTRACTORS.iter().position(|x| x.name == r.extractor).unwrap_or(usize::MAX));
        let wacz = results.iter().any(|r| r.extractor == WACZ && !r.files.is_empty());
        SnapshotDetail {
            wacz: wacz.then(|| format!("{}/wacz", base.snapshot(id))),
            results: results.into_iter().map(|r| ArchiveResult::new(r, id, base)).collect(),
            snapshot: Snapshot::new(row, base),
        }
    }
}

/// The extractor whose file is the whole capture.
pub(crate) const WACZ: &str = "wacz";

impl ArchiveResult {
    fn new(row: query::ResultRow, snapshot: SnapshotId, base: &Base) -> ArchiveResult {
        let file = |f: StoredFile| ResultFile {
            href: base.snapshot_file(snapshot, &f.path),
            path: f.path,
            mime: f.mime,
            size: f.size,
            sha256: f.sha256,
        };
        let attempt = |a: query::Attempt| ResultAttempt {
            attempt: a.attempt,
            error: Failure::new(a.error_code, a.error),
            ended_at: a.ended_at.into(),
        };
        ArchiveResult {
            stage: Extractor::named(&row.extractor).map(|x| x.stage),
            extractor: row.extractor,
            status: row.status,
            output: row.output,
            error: Failure::new(row.error_code, row.error),
            attempt: row.attempt,
            duration_ms: row.duration_ms,
            tool: row.tool,
            ended_at: row.ended_at.into(),
            files: row.files.into_iter().map(file).collect(),
            attempts: row.attempts.into_iter().map(attempt).collect(),
        }
    }
}
