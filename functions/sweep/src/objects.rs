//! Objects that nothing refers to: a walk over their rows, and one over the store for what has no
//! row. Both go a page a sweep and remember where they are, so their cost does not grow with the
//! collection.

use crate::Sweep;
use chrono::{TimeDelta, Utc};
use fonds_blobs::{BlobKey, PageToken};
use fonds_domain::ErrorCode;
use fonds_store::sweep;
use fonds_task::TaskError;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Objects looked at in one sweep.
const PAGE: i64 = 1000;
/// Where captures put objects.
const PREFIX: &str = "snapshots/";
/// What lies in the store without a row is left alone for this long: its capture may still settle.
const GRACE_HOURS: i64 = 24;

/// Deletes what is unreferenced. With `from_start` the walk over rows begins anew, because something
/// was just deleted.
pub(crate) async fn collect(sweep: &Sweep, from_start: bool) -> Result<usize, TaskError> {
    Ok(rows(sweep, from_start).await? + strays(sweep).await?)
}

async fn rows(sweep: &Sweep, from_start: bool) -> Result<usize, TaskError> {
    let mut conn = sweep.db.conn().await?;
    let after = if from_start { String::new() } else { position(sweep::setting(&mut conn, "sweep.objects").await?) };
    let next = sweep::walk_objects(&mut conn, &after, PAGE).await?;
    if next.is_none() && after.is_empty() {
        return Ok(0);
    }
    let dead = sweep::unreferenced(&mut conn, &after, PAGE).await?;
    let gone = if dead.is_empty() { dead } else { sweep::forget_objects(&mut conn, &dead).await? };
    let next = next.unwrap_or_default();
    if next != after {
        sweep::set_setting(&mut conn, "sweep.objects", &json!(next)).await?;
    }
    drop(conn);
    delete(sweep, &gone).await
}

/// What has bytes and no row: written by a capture that lost its lease, or forgotten above just
/// before a crash.
async fn strays(sweep: &Sweep) -> Result<usize, TaskError> {
    let mut conn = sweep.db.conn().await?;
    let after = position(sweep::setting(&mut conn, "sweep.strays").await?);
    let token = (!after.is_empty()).then(|| PageToken::from_raw(after.clone()));
    let page = sweep.blobs.list(PREFIX, token.as_ref(), PAGE as usize).await.map_err(unavailable)?;
    let ripe = Utc::now() - TimeDelta::hours(GRACE_HOURS);
    let old: Vec<String> =
        page.entries.iter().filter(|e| e.modified < ripe).map(|e| e.key.as_str().to_owned()).collect();
    let known: HashSet<String> = sweep::known_objects(&mut conn, &old).await?.into_iter().collect();
    let strays: Vec<String> = old.into_iter().filter(|k| !known.contains(k)).collect();
    let next = page.next.as_ref().map(|t| t.as_str().to_owned()).unwrap_or_default();
    if next != after {
        sweep::set_setting(&mut conn, "sweep.strays", &json!(next)).await?;
    }
    drop(conn);
    delete(sweep, &strays).await
}

async fn delete(sweep: &Sweep, keys: &[String]) -> Result<usize, TaskError> {
    let keys: Vec<BlobKey> = keys.iter().filter_map(|k| BlobKey::parse(k.as_str()).ok()).collect();
    if !keys.is_empty() {
        sweep.blobs.delete(&keys).await.map_err(unavailable)?;
    }
    Ok(keys.len())
}

fn position(stored: Option<Value>) -> String {
    stored.and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn unavailable(e: fonds_blobs::BlobError) -> TaskError {
    TaskError::transient(ErrorCode::BLOB_UNAVAILABLE, e)
}
