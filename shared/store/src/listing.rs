//! A crawl's snapshots in order, as crawl-seal and exports read them.

use crate::capture::ResultFile;
use crate::crawls::to_u64;
use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, SnapshotId};
use serde::Serialize;
use std::collections::HashMap;
use uuid::Uuid;

/// One snapshot of a listing.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Its id.
    pub id: SnapshotId,
    /// The page it was found on.
    pub parent_id: Option<SnapshotId>,
    /// The URL asked for.
    pub url: String,
    /// Where redirects led, when elsewhere.
    pub final_url: Option<String>,
    /// Steps from the submitted URLs.
    pub depth: i32,
    /// Its title.
    pub title: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Status of the final answer.
    pub http_status: Option<i32>,
    /// Media type of the final answer.
    pub mime: Option<String>,
    /// Bytes stored for it.
    pub size: u64,
    /// Why it failed or was left out.
    pub error_code: Option<String>,
    /// Why, in words.
    pub error: Option<String>,
    /// When the user saved it.
    pub bookmarked_at: Option<DateTime<Utc>>,
    /// When it was captured.
    pub downloaded_at: Option<DateTime<Utc>>,
    /// Its results.
    pub results: Vec<LineResult>,
}

/// One result of a listing.
#[derive(Debug, Clone, Serialize)]
pub struct LineResult {
    /// Which extractor.
    pub extractor: String,
    /// How it ended.
    pub status: String,
    /// One line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Its files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ResultFile>,
}

/// Up to `limit` snapshots of a crawl after `after`, in the order of their ids.
///
/// # Errors
/// When the database fails.
pub async fn page(c: &mut Conn, crawl: CrawlId, after: SnapshotId, limit: i64) -> Result<Vec<Line>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT id, parent_id, url, final_url, depth, title, tags, http_status, mime, size, error_code, error,
                  bookmarked_at, downloaded_at
           FROM snapshot WHERE crawl_id = $1 AND id > $2 ORDER BY id LIMIT $3"#,
        crawl.0,
        after.0,
        limit
    )
    .fetch_all(&mut *c)
    .await?;
    let ids: Vec<Uuid> = rows.iter().map(|r| r.id).collect();
    let mut results = results(c, &ids).await?;
    Ok(rows
        .into_iter()
        .map(|r| Line {
            results: results.remove(&r.id).unwrap_or_default(),
            id: SnapshotId(r.id),
            parent_id: r.parent_id.map(SnapshotId),
            url: r.url,
            final_url: r.final_url,
            depth: r.depth,
            title: r.title,
            tags: r.tags,
            http_status: r.http_status,
            mime: r.mime,
            size: to_u64(r.size),
            error_code: r.error_code,
            error: r.error,
            bookmarked_at: r.bookmarked_at,
            downloaded_at: r.downloaded_at,
        })
        .collect())
}

/// The results of snapshots, by snapshot.
///
/// # Errors
/// When the database fails.
pub async fn results(c: &mut Conn, ids: &[Uuid]) -> Result<HashMap<Uuid, Vec<LineResult>>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT snapshot_id, extractor, status, output, error_code, files
           FROM archive_result WHERE snapshot_id = ANY($1) ORDER BY snapshot_id, extractor"#,
        ids
    )
    .fetch_all(c)
    .await?;
    let mut out: HashMap<Uuid, Vec<LineResult>> = HashMap::new();
    for r in rows {
        let files = match r.files {
            Some(files) => serde_json::from_value(files).map_err(|e| StoreError::Stored(format!("files: {e}")))?,
            None => Vec::new(),
        };
        out.entry(r.snapshot_id).or_default().push(LineResult {
            extractor: r.extractor,
            status: r.status,
            output: r.output,
            error_code: r.error_code,
            files,
        });
    }
    Ok(out)
}

/// An object as a collection lists it.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its key.
    pub key: String,
    /// Its size.
    pub size: u64,
    /// Its digest.
    pub sha256: [u8; 32],
}

/// The objects that a crawl's snapshots made or refer to, in the order of their keys.
///
/// # Errors
/// When the database fails.
pub async fn objects(c: &mut Conn, crawl: CrawlId) -> Result<Vec<Object>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT DISTINCT o.key, o.size, o.sha256 FROM snapshot s
           JOIN object_ref r ON r.snapshot_id = s.id JOIN object o ON o.key = r.object_key
           WHERE s.crawl_id = $1 ORDER BY o.key"#,
        crawl.0
    )
    .fetch_all(c)
    .await?;
    rows.into_iter().map(|r| object(r.key, r.size, &r.sha256)).collect()
}

/// The objects a snapshot made or refers to; its own first.
///
/// # Errors
/// When the database fails.
pub async fn objects_of(c: &mut Conn, snapshot: SnapshotId) -> Result<Vec<(Object, bool)>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT o.key, o.size, o.sha256, r.role FROM object_ref r JOIN object o ON o.key = r.object_key
           WHERE r.snapshot_id = $1 ORDER BY r.role DESC, o.key"#,
        snapshot.0
    )
    .fetch_all(c)
    .await?;
    rows.into_iter().map(|r| Ok((object(r.key, r.size, &r.sha256)?, r.role == "own"))).collect()
}

fn object(key: String, size: i64, sha256: &[u8]) -> Result<Object, StoreError> {
    let sha256 = sha256.try_into().map_err(|_| StoreError::Stored(format!("digest of {key}")))?;
    Ok(Object { key, size: to_u64(size), sha256 })
}
