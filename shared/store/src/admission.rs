//! Which URLs become snapshots. Under the crawl's lock, so that `crawl_max_urls` is exact however
//! many pages settle at once, and in the transaction of whoever found them.

use crate::capture::decode_key;
use crate::runs::{self, NewRun, RunRef};
use crate::{Conn, StoreError, hosts};
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, Kind, Priority, SnapshotId};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// First 16 bytes of the sha256 of a URL's identity.
pub type UrlKey = [u8; 16];

/// A URL that rules and scope let in; limits are decided here.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// As it will be requested, with its fragment.
    pub url: String,
    /// Its identity.
    pub key: UrlKey,
    /// `host[:port]`.
    pub host: String,
    /// Steps from the submitted URLs.
    pub depth: u16,
    /// The page it was found on.
    pub parent: Option<SnapshotId>,
    /// Title known from the input.
    pub title: Option<String>,
    /// Tags of its own, beside the crawl's.
    pub tags: Vec<String>,
    /// When the user saved it, if the input says so.
    pub bookmarked_at: Option<DateTime<Utc>>,
}

/// What became of candidates.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    /// New snapshots, in the order given.
    pub admitted: Vec<SnapshotId>,
    /// In the crawl already (or twice among the candidates).
    pub known: usize,
    /// Kept out by a limit.
    pub cut: usize,
    /// Ring these.
    pub runs: Vec<RunRef>,
}

/// Admits candidates into a crawl that is not sealed: new ones become snapshots with a run each,
/// as many as `max_urls` still lets in, never deeper than `max_depth`.
///
/// `delay_ms` spreads the runs of one public host over time; `paced` says which hosts.
///
/// # Errors
/// When the database fails.
pub async fn admit(
    c: &mut Conn,
    crawl: CrawlId,
    kind: Kind,
    scheduled: bool,
    delay_ms: u32,
    candidates: &[Candidate],
) -> Result<Admission, StoreError> {
    let mut out = Admission::default();
    if candidates.is_empty() {
        return Ok(out);
    }
    let Some(row) = sqlx::query!(
        "SELECT status, max_urls, max_depth, n_snapshots, tags FROM crawl WHERE id = $1 FOR NO KEY UPDATE",
        crawl.0
    )
    .fetch_optional(&mut *c)
    .await?
    else {
        return Ok(out);
    };
    if row.status == "sealed" {
        out.cut = candidates.len();
        return Ok(out);
    }
    let fresh = unknown_ones(c, crawl, candidates).await?;
    out.known = candidates.len() - fresh.len();
    let deep: usize = fresh.iter().filter(|x| i32::from(x.depth) > row.max_depth).count();
    let room = row.max_urls.map_or(usize::MAX, |max| usize::try_from(max - row.n_snapshots).unwrap_or(0));
    let admitted: Vec<&Candidate> =
        fresh.iter().copied().filter(|x| i32::from(x.depth) <= row.max_depth).take(room).collect();
    out.cut = fresh.len() - deep - admitted.len();
    if !admitted.is_empty() {
        out.admitted = insert(c, crawl, &row.tags, &admitted).await?;
        out.runs = enqueue_captures(c, crawl, kind, scheduled, &admitted, &out.admitted).await?;
        if delay_ms > 0 {
            pace(c, kind, delay_ms, &admitted, &out.admitted).await?;
        }
    }
    sqlx::query!(
        r#"UPDATE crawl SET n_snapshots = n_snapshots + $2, modified_at = now(),
                  started_at = CASE WHEN $2 > 0 THEN coalesce(started_at, now()) ELSE started_at END,
                  discovery_blocked = discovery_blocked OR $3,
                  stop_reason = CASE WHEN $3 THEN coalesce(stop_reason, 'crawl_max_urls') ELSE stop_reason END
           WHERE id = $1"#,
        crawl.0,
        i64::try_from(out.admitted.len()).unwrap_or(i64::MAX),
        out.cut > 0,
    )
    .execute(c)
    .await?;
    Ok(out)
}

/// The candidates whose identity the crawl does not hold, first of each kept.
async fn unknown_ones<'a>(
    c: &mut Conn,
    crawl: CrawlId,
    candidates: &'a [Candidate],
) -> Result<Vec<&'a Candidate>, StoreError> {
    let mut seen = HashSet::with_capacity(candidates.len());
    let unique: Vec<&Candidate> = candidates.iter().filter(|x| seen.insert(x.key)).collect();
    let keys: Vec<Vec<u8>> = unique.iter().map(|x| x.key.to_vec()).collect();
    let held: HashSet<UrlKey> = sqlx::query_scalar!(
        "SELECT url_key FROM snapshot WHERE crawl_id = $1 AND url_key = ANY($2::bytea[])",
        crawl.0,
        &keys
    )
    .fetch_all(c)
    .await?
    .iter()
    .map(|k| decode_key(k))
    .collect();
    Ok(unique.into_iter().filter(|x| !held.contains(&x.key)).collect())
}

async fn insert(
    c: &mut Conn,
    crawl: CrawlId,
    crawl_tags: &[String],
    admitted: &[&Candidate],
) -> Result<Vec<SnapshotId>, StoreError> {
    let ids: Vec<Uuid> = admitted.iter().map(|_| SnapshotId::fresh().0).collect();
    let parents: Vec<Option<Uuid>> = admitted.iter().map(|x| x.parent.map(|p| p.0)).collect();
    let urls: Vec<String> = admitted.iter().map(|x| x.url.clone()).collect();
    let keys: Vec<Vec<u8>> = admitted.iter().map(|x| x.key.to_vec()).collect();
    let hosts: Vec<String> = admitted.iter().map(|x| x.host.clone()).collect();
    let depths: Vec<i32> = admitted.iter().map(|x| i32::from(x.depth)).collect();
    let titles: Vec<Option<String>> = admitted.iter().map(|x| x.title.clone()).collect();
    // Arrays of arrays must be rectangular in Postgres, so each row's tags travel as JSON.
    let tags: Vec<Value> = admitted
        .iter()
        .map(|x| {
            let mut all: Vec<&String> = crawl_tags.iter().collect();
            all.extend(x.tags.iter().filter(|t| !crawl_tags.contains(t)));
            serde_json::json!(all)
        })
        .collect();
    let marked: Vec<Option<DateTime<Utc>>> = admitted.iter().map(|x| x.bookmarked_at).collect();
    sqlx::query!(
        r#"INSERT INTO snapshot (id, crawl_id, parent_id, url, url_key, host, depth, title, tags, bookmarked_at)
           SELECT s.id, $2, s.parent, s.url, s.key, s.host, s.depth, s.title,
                  ARRAY(SELECT jsonb_array_elements_text(s.tags)), s.marked
           FROM unnest($1::uuid[], $3::uuid[], $4::text[], $5::bytea[], $6::text[], $7::int[], $8::text[],
                       $9::jsonb[], $10::timestamptz[])
                AS s(id, parent, url, key, host, depth, title, tags, marked)"#,
        &ids,
        crawl.0,
        &parents as &[Option<Uuid>],
        &urls,
        &keys,
        &hosts,
        &depths,
        &titles as &[Option<String>],
        &tags,
        &marked as &[Option<DateTime<Utc>>],
    )
    .execute(c)
    .await?;
    Ok(ids.into_iter().map(SnapshotId).collect())
}

async fn enqueue_captures(
    c: &mut Conn,
    crawl: CrawlId,
    kind: Kind,
    scheduled: bool,
    admitted: &[&Candidate],
    ids: &[SnapshotId],
) -> Result<Vec<RunRef>, StoreError> {
    let runs: Vec<NewRun> = admitted
        .iter()
        .zip(ids)
        .enumerate()
        .map(|(i, (x, id))| NewRun {
            kind,
            crawl: Some(crawl),
            entity: Some(id.0),
            input: Value::Null,
            // Of a long list only the head is somebody waiting for a first page.
            priority: if x.depth == 0 && i >= 20 && !scheduled {
                Priority(99)
            } else {
                Priority::page(x.depth, scheduled)
            },
        })
        .collect();
    runs::enqueue(c, &runs).await
}

/// Spreads the new runs of each public host over time.
async fn pace(
    c: &mut Conn,
    kind: Kind,
    delay_ms: u32,
    admitted: &[&Candidate],
    ids: &[SnapshotId],
) -> Result<(), StoreError> {
    let mut by_host: HashMap<&str, Vec<Uuid>> = HashMap::new();
    for (x, id) in admitted.iter().zip(ids).filter(|(x, _)| hosts::is_public(&x.host)) {
        by_host.entry(&x.host).or_default().push(id.0);
    }
    let mut names: Vec<&str> = by_host.keys().copied().collect();
    // One order for all, so that two settles never wait for each other.
    names.sort_unstable();
    for name in names {
        let ids = &by_host[name];
        let count = i32::try_from(ids.len()).unwrap_or(i32::MAX);
        let delay = f64::from(delay_ms) / 1000.0;
        let first = hosts::pace(c, name, count, delay).await?;
        sqlx::query!(
            r#"UPDATE task_run r SET not_before = now() + make_interval(secs => $3::float8 + $4::float8 * (s.n - 1))
               FROM unnest($1::uuid[]) WITH ORDINALITY AS s(entity, n)
               WHERE r.entity = s.entity AND r.kind = $2 AND r.status = 'queued'"#,
            ids,
            kind.as_str(),
            first,
            delay,
        )
        .execute(&mut *c)
        .await?;
    }
    Ok(())
}

/// Which of these identities were captured before without an error, in any crawl.
///
/// # Errors
/// When the database fails.
pub async fn archived_before(c: &mut Conn, keys: &[UrlKey]) -> Result<HashSet<UrlKey>, StoreError> {
    let keys: Vec<Vec<u8>> = keys.iter().map(|k| k.to_vec()).collect();
    Ok(sqlx::query_scalar!(
        r#"SELECT k AS "key!" FROM unnest($1::bytea[]) AS k
           WHERE EXISTS (SELECT 1 FROM snapshot s WHERE s.url_key = k AND s.status = 'sealed' AND s.error_code IS NULL)"#,
        &keys
    )
    .fetch_all(c)
    .await?
    .iter()
    .map(|k| decode_key(k))
    .collect())
}
