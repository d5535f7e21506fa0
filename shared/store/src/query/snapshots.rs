//! Snapshots and their results.

use super::{Edit, Edited, StoredFile, files, id_floor, parsed};
use crate::admission::UrlKey;
use crate::capture::decode_key;
use crate::search;
use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, ResultStatus, SnapshotId, SnapshotStatus};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, QueryBuilder, Row};
use std::collections::HashMap;
use uuid::Uuid;

/// A snapshot.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The row.
    pub id: SnapshotId,
    /// Its crawl.
    pub crawl_id: CrawlId,
    /// The snapshot whose page linked to it.
    pub parent_id: Option<SnapshotId>,
    /// As submitted or linked.
    pub url: String,
    /// Where the redirects led.
    pub final_url: Option<String>,
    /// `host[:port]`.
    pub host: String,
    /// Links from a submitted URL.
    pub depth: i32,
    /// The page's title.
    pub title: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Where it stands.
    pub status: SnapshotStatus,
    /// Stage being worked on.
    pub step: Option<String>,
    /// Status of the final answer.
    pub http_status: Option<i32>,
    /// Media type of the final answer.
    pub mime: Option<String>,
    /// Bytes stored.
    pub size: i64,
    /// Results made.
    pub n_ok: i32,
    /// Results that failed.
    pub n_failed: i32,
    /// Code of what went wrong with the page itself.
    pub error_code: Option<String>,
    /// The same in words.
    pub error: Option<String>,
    /// When it was bookmarked, by the input.
    pub bookmarked_at: Option<DateTime<Utc>>,
    /// Admission.
    pub created_at: DateTime<Utc>,
    /// First byte of the capture.
    pub downloaded_at: Option<DateTime<Utc>>,
    /// End.
    pub sealed_at: Option<DateTime<Utc>>,
    /// When it will be deleted.
    pub delete_at: Option<DateTime<Utc>>,
}

pub(crate) const COLUMNS: &str = "s.id, s.crawl_id, s.parent_id, s.url, s.final_url, s.host, s.depth, s.title, s.tags, \
     s.status, s.step, s.http_status, s.mime, s.size, s.n_ok, s.n_failed, s.error_code, s.error, s.bookmarked_at, \
     s.created_at, s.downloaded_at, s.sealed_at, s.delete_at";
/// Neither the snapshot nor its crawl is marked for deletion.
pub(crate) const VISIBLE: &str = "(s.delete_at IS NULL OR s.delete_at > now()) \
     AND NOT EXISTS (SELECT 1 FROM crawl gone WHERE gone.id = s.crawl_id AND gone.delete_at <= now())";
/// A host without its port, read backwards: a domain and what lies below it are one range.
const DOMAIN: &str = "(reverse(split_part(s.host, ':', 1)) || '.')";

impl FromRow<'_, PgRow> for Snapshot {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Snapshot {
            id: SnapshotId(row.try_get("id")?),
            crawl_id: CrawlId(row.try_get("crawl_id")?),
            parent_id: row.try_get::<Option<Uuid>, _>("parent_id")?.map(SnapshotId),
            url: row.try_get("url")?,
            final_url: row.try_get("final_url")?,
            host: row.try_get("host")?,
            depth: row.try_get("depth")?,
            title: row.try_get("title")?,
            tags: row.try_get("tags")?,
            status: parsed(row, "status")?,
            step: row.try_get("step")?,
            http_status: row.try_get("http_status")?,
            mime: row.try_get("mime")?,
            size: row.try_get("size")?,
            n_ok: row.try_get("n_ok")?,
            n_failed: row.try_get("n_failed")?,
            error_code: row.try_get("error_code")?,
            error: row.try_get("error")?,
            bookmarked_at: row.try_get("bookmarked_at")?,
            created_at: row.try_get("created_at")?,
            downloaded_at: row.try_get("downloaded_at")?,
            sealed_at: row.try_get("sealed_at")?,
            delete_at: row.try_get("delete_at")?,
        })
    }
}

/// Which snapshots.
#[derive(Debug, Clone, Default)]
pub struct SnapshotFilter {
    /// Of this crawl.
    pub crawl: Option<CrawlId>,
    /// In this status.
    pub status: Option<SnapshotStatus>,
    /// With this tag.
    pub tag: Option<String>,
    /// On exactly this `host[:port]`.
    pub host: Option<String>,
    /// On this host or any below it, whatever the port; lower case.
    pub domain: Option<String>,
    /// With one of these [`super::url_key`]s.
    pub url_keys: Vec<UrlKey>,
    /// Whose URL begins so. Give `host` as well: that is what has an index.
    pub url_prefix: Option<String>,
    /// At this depth.
    pub depth: Option<i32>,
    /// Whether the page itself failed.
    pub failed: Option<bool>,
    /// Whether a result failed.
    pub failed_results: Option<bool>,
    /// Admitted at or after.
    pub since: Option<DateTime<Utc>>,
    /// Admitted before.
    pub until: Option<DateTime<Utc>>,
}

impl SnapshotFilter {
    /// Adds the conditions over `snapshot s`.
    pub(crate) fn push(&self, q: &mut QueryBuilder<sqlx::Postgres>) {
        if let Some(crawl) = self.crawl {
            q.push(" AND s.crawl_id = ").push_bind(crawl.0);
        }
        if let Some(status) = self.status {
            // Said literally, so that the planner sees that the index over open snapshots serves.
            q.push(format_args!(" AND s.status = '{status}'"));
            if status != SnapshotStatus::Sealed {
                q.push(" AND s.status <> 'sealed'");
            }
        }
        if let Some(tag) = &self.tag {
            q.push(" AND s.tags <> '{}' AND s.tags @> ARRAY[").push_bind(tag.clone()).push("]");
        }
        if let Some(host) = &self.host {
            q.push(" AND s.host = ").push_bind(host.clone());
        }
        if let Some(domain) = &self.domain {
            let reversed: String = domain.chars().rev().collect();
            q.push(" AND ").push(DOMAIN).push(" LIKE ").push_bind(format!("{}.%", like_literal(&reversed)));
        }
        if !self.url_keys.is_empty() {
            q.push(" AND s.url_key = ANY (").push_bind(bytes(&self.url_keys)).push(")");
        }
        if let Some(prefix) = &self.url_prefix {
            q.push(" AND s.url LIKE ").push_bind(format!("{}%", like_literal(prefix)));
        }
        if let Some(depth) = self.depth {
            q.push(" AND s.depth = ").push_bind(depth);
        }
        match self.failed {
            Some(true) => q.push(" AND s.error_code IS NOT NULL"),
            Some(false) => q.push(" AND s.error_code IS NULL"),
            None => q,
        };
        match self.failed_results {
            Some(true) => q.push(" AND s.n_failed > 0"),
            Some(false) => q.push(" AND s.n_failed = 0"),
            None => q,
        };
        if let Some(since) = self.since {
            q.push(" AND s.id >= ").push_bind(id_floor(since));
        }
        if let Some(until) = self.until {
            q.push(" AND s.id < ").push_bind(id_floor(until));
        }
    }
}

/// A text that LIKE takes as it is.
fn like_literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A page of snapshots, newest first, below `before`.
///
/// # Errors
/// When the database fails.
pub async fn snapshots(
    c: &mut Conn,
    filter: &SnapshotFilter,
    before: Option<SnapshotId>,
    limit: i64,
) -> Result<Vec<Snapshot>, StoreError> {
    let mut q = page("", filter, before, limit);
    Ok(q.build_query_as().persistent(false).fetch_all(c).await?)
}

/// The statement; `head` is for `EXPLAIN`.
pub(super) fn page(
    head: &str,
    filter: &SnapshotFilter,
    before: Option<SnapshotId>,
    limit: i64,
) -> QueryBuilder<sqlx::Postgres> {
    let mut q = QueryBuilder::new(format!("{head}SELECT {COLUMNS} FROM snapshot s WHERE {VISIBLE}"));
    filter.push(&mut q);
    if let Some(before) = before {
        q.push(" AND s.id < ").push_bind(before.0);
    }
    q.push(" ORDER BY s.id DESC LIMIT ").push_bind(limit);
    q
}

/// One snapshot.
///
/// # Errors
/// When the database fails.
pub async fn snapshot(c: &mut Conn, id: SnapshotId) -> Result<Option<Snapshot>, StoreError> {
    let mut q = QueryBuilder::new(format!("SELECT {COLUMNS} FROM snapshot s WHERE {VISIBLE} AND s.id = "));
    Ok(q.push_bind(id.0).build_query_as().fetch_optional(c).await?)
}

/// The newest good capture of each of these URLs: sealed without an error, as `only_new` takes it.
///
/// # Errors
/// When the database fails.
pub async fn by_url(c: &mut Conn, url_keys: &[UrlKey]) -> Result<HashMap<UrlKey, SnapshotId>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT k.key AS "key!", s.id AS "id!"
           FROM unnest($1::bytea[]) AS k(key),
                LATERAL (SELECT s.id FROM snapshot s
                         WHERE s.url_key = k.key AND s.status = 'sealed' AND s.error_code IS NULL
                         ORDER BY s.id DESC LIMIT 1) s"#,
        &bytes(url_keys),
    )
    .fetch_all(c)
    .await?;
    Ok(rows.into_iter().map(|r| (decode_key(&r.key), SnapshotId(r.id))).collect())
}

fn bytes(keys: &[UrlKey]) -> Vec<Vec<u8>> {
    keys.iter().map(|k| k.to_vec()).collect()
}

/// One extractor's result.
#[derive(Debug, Clone)]
pub struct ResultRow {
    /// The extractor.
    pub extractor: String,
    /// Where it stands.
    pub status: ResultStatus,
    /// One line for people.
    pub output: Option<String>,
    /// What it produced.
    pub files: Vec<StoredFile>,
    /// Code of what went wrong.
    pub error_code: Option<String>,
    /// The same in words.
    pub error: Option<String>,
    /// How often it was made.
    pub attempt: i16,
    /// How long it took.
    pub duration_ms: Option<i32>,
    /// Tool and version.
    pub tool: Option<String>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// What retries overwrote, oldest first.
    pub attempts: Vec<Attempt>,
}

/// An attempt that a retry overwrote.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Its number, from one.
    pub attempt: i16,
    /// Its code.
    pub error_code: Option<String>,
    /// The same in words.
    pub error: Option<String>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
}

/// The results of one snapshot, by extractor.
///
/// # Errors
/// When the database fails.
pub async fn results(c: &mut Conn, id: SnapshotId) -> Result<Vec<ResultRow>, StoreError> {
    let mut attempts: HashMap<String, Vec<Attempt>> = HashMap::new();
    // A result is retried by hand, so this is a handful; the limit is for the unforeseen.
    for r in sqlx::query!(
        r#"SELECT extractor, attempt, error_code, error, ended_at FROM archive_result_attempt
           WHERE snapshot_id = $1 ORDER BY extractor, attempt LIMIT 1000"#,
        id.0
    )
    .fetch_all(&mut *c)
    .await?
    {
        let attempt = Attempt { attempt: r.attempt, error_code: r.error_code, error: r.error, ended_at: r.ended_at };
        attempts.entry(r.extractor).or_default().push(attempt);
    }
    let rows = sqlx::query!(
        r#"SELECT extractor, status, files, output, error_code, error, attempt, duration_ms, tool, ended_at
           FROM archive_result WHERE snapshot_id = $1 ORDER BY extractor LIMIT 1000"#,
        id.0
    )
    .fetch_all(c)
    .await?;
    rows.into_iter()
        .map(|r| {
            Ok(ResultRow {
                status: r.status.parse()?,
                output: r.output,
                files: files(r.files)?,
                error_code: r.error_code,
                error: r.error,
                attempt: r.attempt,
                duration_ms: r.duration_ms,
                tool: r.tool,
                ended_at: r.ended_at,
                attempts: attempts.remove(&r.extractor).unwrap_or_default(),
                extractor: r.extractor,
            })
        })
        .collect()
}

/// Edits a snapshot. Label and notes are a crawl's.
///
/// # Errors
/// When the database fails.
pub async fn edit_snapshot(c: &mut Conn, id: SnapshotId, edit: &Edit) -> Result<Edited, StoreError> {
    let tags = sqlx::query_scalar!(
        r#"UPDATE snapshot SET
               tags = ARRAY(SELECT DISTINCT t FROM unnest(coalesce($2, tags) || $3::text[]) AS t
                            WHERE t <> ALL ($4::text[]) ORDER BY t),
               delete_at = CASE WHEN $5 THEN $6 ELSE delete_at END
           WHERE id = $1 AND (delete_at IS NULL OR delete_at > now())
           RETURNING cardinality(tags) AS "n!""#,
        id.0,
        edit.tags.as_deref() as Option<&[String]>,
        &edit.add_tags,
        &edit.remove_tags,
        edit.delete_at.is_some(),
        edit.delete_at.flatten(),
    )
    .fetch_optional(&mut *c)
    .await?;
    let edited = Edited::from_tags(tags);
    if edited == Edited::Done && (edit.tags.is_some() || !edit.add_tags.is_empty() || !edit.remove_tags.is_empty()) {
        index_again(c, id).await?;
    }
    Ok(edited)
}

/// Search finds tags: what it compares is made again from what is stored.
async fn index_again(c: &mut Conn, id: SnapshotId) -> Result<(), StoreError> {
    let row = sqlx::query!(
        r#"SELECT coalesce(s.title, '') AS "title!", s.url, s.tags, t.body
           FROM snapshot s JOIN snapshot_text t ON t.snapshot_id = s.id WHERE s.id = $1"#,
        id.0
    )
    .fetch_optional(&mut *c)
    .await?;
    let Some(row) = row else { return Ok(()) };
    let vector = search::vector(&row.title, &row.url, &row.tags, &row.body);
    sqlx::query!("UPDATE snapshot_text SET tsv = $2 WHERE snapshot_id = $1", id.0, vector as _).execute(c).await?;
    Ok(())
}

/// Marks a snapshot for deletion, once it is over; the sweep removes its rows and what nothing
/// else refers to. False when it is still open.
///
/// # Errors
/// When the database fails.
pub async fn delete_snapshot(c: &mut Conn, id: SnapshotId) -> Result<bool, StoreError> {
    let done = sqlx::query!("UPDATE snapshot SET delete_at = now() WHERE id = $1 AND status = 'sealed'", id.0)
        .execute(c)
        .await?;
    Ok(done.rows_affected() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_takes_literals_literally() {
        assert_eq!(like_literal(r"https://x/100%_a\b"), r"https://x/100\%\_a\\b");
    }
}
