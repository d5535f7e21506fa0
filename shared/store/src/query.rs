//! What the API and the cli read: lists by keyset, newest first, and single rows; and the small
//! edits that touch no status.
//!
//! Lists are built from the filters that are given, and planned each time for their values: one
//! statement with `$1 IS NULL OR ...` would be planned once, for no index at all. Every filter has
//! an index that ends in the id or a bound of its own, so a page costs the same in a library of ten
//! and of ten million rows. Rows marked for deletion are gone for every read here.

mod crawls;
#[cfg(test)]
mod plans;
mod snapshots;
mod tasks;

pub use crawls::{Crawl, CrawlDetail, CrawlFilter, crawl, crawls, edit_crawl};
pub use snapshots::{
    Attempt, ResultRow, Snapshot, SnapshotFilter, by_url, delete_snapshot, edit_snapshot, results, snapshot, snapshots,
};
pub use tasks::{Task, TaskFilter, tasks};

pub(crate) use snapshots::{COLUMNS as SNAPSHOT_COLUMNS, VISIBLE as SNAPSHOT_VISIBLE};

use crate::admission::UrlKey;
use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::str::FromStr;
use uuid::Uuid;

/// Most tags a crawl or snapshot carries.
pub const MAX_TAGS: i32 = 100;

/// A stored artifact: where its bytes lie within an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFile {
    /// Name, unique within its extractor (or crawl).
    #[serde(alias = "name")]
    pub path: String,
    /// Media type.
    #[serde(default = "octets")]
    pub mime: String,
    /// Bytes.
    #[serde(default)]
    pub size: u64,
    /// Digest of the bytes, lower-case hex.
    #[serde(default)]
    pub sha256: Option<String>,
    /// Key of the object that holds it.
    #[serde(alias = "key")]
    pub object: String,
    /// First byte within the object.
    #[serde(default)]
    pub offset: u64,
    /// Bytes within the object; `size` when absent.
    #[serde(default)]
    pub length: Option<u64>,
}

impl StoredFile {
    /// Bytes within the object. Artifacts are stored entries, so this is what is served.
    #[must_use]
    pub fn stored_length(&self) -> u64 {
        self.length.unwrap_or(self.size)
    }
}

fn octets() -> String {
    "application/octet-stream".to_owned()
}

/// Changes that touch no status. Absent members stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// Replaces the tags.
    pub tags: Option<Vec<String>>,
    /// Added to the tags.
    pub add_tags: Vec<String>,
    /// Taken from the tags, after the additions.
    pub remove_tags: Vec<String>,
    /// Crawls only.
    pub label: Option<String>,
    /// Crawls only.
    pub notes: Option<String>,
    /// `Some(None)` keeps the row for good.
    pub delete_at: Option<Option<DateTime<Utc>>>,
}

/// How an edit went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    /// Done.
    Done,
    /// No such row.
    NotFound,
    /// It would have more than [`MAX_TAGS`] tags; roll back.
    TooManyTags,
}

impl Edited {
    fn from_tags(count: Option<i32>) -> Edited {
        match count {
            None => Edited::NotFound,
            Some(n) if n > MAX_TAGS => Edited::TooManyTags,
            Some(_) => Edited::Done,
        }
    }
}

/// The key under which a URL is found again: the first 16 bytes of the SHA-256 of its identity.
#[must_use]
pub fn url_key(identity: &str) -> UrlKey {
    let mut key = [0; 16];
    key.copy_from_slice(&Sha256::digest(identity.as_bytes())[..16]);
    key
}

/// The smallest id a row made at this time can have: ids are UUID version 7, whose first 48 bits
/// are the milliseconds since 1970 (RFC 9562 section 5.7). Turns a time into a place in the index.
#[must_use]
pub fn id_floor(at: DateTime<Utc>) -> Uuid {
    let ms = u128::try_from(at.timestamp_millis().clamp(0, (1 << 48) - 1)).unwrap_or(0);
    Uuid::from_u128(ms << 80)
}

/// Bounds every statement of the caller's transaction.
///
/// # Errors
/// When the database fails.
pub async fn bound(c: &mut Conn, ms: u32) -> Result<(), StoreError> {
    sqlx::query!("SELECT set_config('statement_timeout', $1, true)", ms.to_string()).fetch_one(c).await?;
    Ok(())
}

/// Whether a statement ran into its bound (SQLSTATE 57014, query_canceled).
#[must_use]
pub fn timed_out(e: &StoreError) -> bool {
    matches!(e, StoreError::Db(sqlx::Error::Database(e)) if e.code().as_deref() == Some("57014"))
}

/// Reads a text column through its type's own reader.
fn parsed<T>(row: &PgRow, column: &str) -> Result<T, sqlx::Error>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.try_get::<&str, _>(column)?.parse().map_err(|e| decode(column, e))
}

/// The same for a column that may be null.
fn parsed_opt<T>(row: &PgRow, column: &str) -> Result<Option<T>, sqlx::Error>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.try_get::<Option<&str>, _>(column)?.map(str::parse).transpose().map_err(|e| decode(column, e))
}

fn decode(column: &str, e: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: Box::new(e) }
}

fn files(value: Option<serde_json::Value>) -> Result<Vec<StoredFile>, StoreError> {
    match value {
        None | Some(serde_json::Value::Null) => Ok(Vec::new()),
        Some(value) => serde_json::from_value(value).map_err(|e| StoreError::Stored(format!("files: {e}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_times_sort_alike() {
        let before = Utc::now() - chrono::TimeDelta::seconds(1);
        let id = Uuid::now_v7();
        let after = Utc::now() + chrono::TimeDelta::seconds(1);
        assert!(id_floor(before) < id && id < id_floor(after));
        assert_eq!(id_floor(DateTime::<Utc>::MIN_UTC), Uuid::nil());
        assert!(id_floor(DateTime::<Utc>::MAX_UTC) > id);
    }

    #[test]
    fn stored_files_are_read_in_every_form_written() {
        let full = serde_json::json!([{"path": "a.png", "mime": "image/png", "size": 3, "sha256": "00", "object": "k",
            "offset": 7, "length": 3}, {"name": "index.json", "object": "k2", "size": 9}]);
        let read = files(Some(full)).unwrap();
        assert_eq!((read[0].offset, read[0].stored_length()), (7, 3));
        assert_eq!((read[1].path.as_str(), read[1].offset, read[1].stored_length()), ("index.json", 0, 9));
        assert!(files(None).unwrap().is_empty());
        assert!(files(Some(serde_json::json!({"path": "a"}))).is_err());
    }
}
