//! Snapshots being captured: what a function reads before, and the one write with which captures
//! end. Set-based: a page captured alone is a set of one.

use crate::admission::{self, Admission, Candidate, UrlKey};
use crate::crawls::{self, to_i64};
use crate::runs::{self, RunRef};
use crate::search;
use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, ErrorCode, Kind, ResultStatus, SnapshotId, SnapshotStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// A snapshot as the function that captures it sees it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// Its crawl.
    pub crawl: CrawlId,
    /// The URL to capture.
    pub url: String,
    /// `host[:port]`.
    pub host: String,
    /// Steps from the submitted URLs.
    pub depth: u16,
    /// Title known before.
    pub title: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its status.
    pub status: SnapshotStatus,
}

/// Reads snapshots by id; those that are gone are left out.
///
/// # Errors
/// When the database fails.
pub async fn load(c: &mut Conn, ids: &[SnapshotId]) -> Result<Vec<Snapshot>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|i| i.0).collect();
    let rows = sqlx::query!(
        "SELECT id, crawl_id, url, host, depth, title, tags, status FROM snapshot WHERE id = ANY($1)",
        &ids
    )
    .fetch_all(c)
    .await?;
    rows.into_iter()
        .map(|r| {
            Ok(Snapshot {
                id: SnapshotId(r.id),
                crawl: CrawlId(r.crawl_id),
                url: r.url,
                host: r.host,
                depth: u16::try_from(r.depth).unwrap_or(u16::MAX),
                title: r.title,
                tags: r.tags,
                status: r.status.parse()?,
            })
        })
        .collect()
}

/// Marks a snapshot as being captured, at a stage. Does nothing to a sealed one.
///
/// # Errors
/// When the database fails.
pub async fn mark_stage(c: &mut Conn, id: SnapshotId, stage: &str) -> Result<(), StoreError> {
    sqlx::query!("UPDATE snapshot SET status = 'started', step = $2 WHERE id = $1 AND status <> 'sealed'", id.0, stage)
        .execute(c)
        .await?;
    Ok(())
}

/// Snapshots of a crawl that are being captured by other runs than this one.
///
/// # Errors
/// When the database fails.
pub async fn running_beside(c: &mut Conn, crawl: CrawlId, run: fonds_domain::RunId) -> Result<i64, StoreError> {
    // The crawl's lock orders those who ask at once; what is running is few rows behind the lease index.
    sqlx::query_scalar!("SELECT id FROM crawl WHERE id = $1 FOR NO KEY UPDATE", crawl.0)
        .fetch_optional(&mut *c)
        .await?;
    let n = sqlx::query_scalar!(
        r#"SELECT count(*) AS "n!" FROM task_run
           WHERE status = 'running' AND crawl_id = $1 AND id < $2 AND kind IN ('snapshot', 'snapshot-plain')
             AND lease_expires_at > now()"#,
        crawl.0,
        run.0
    )
    .fetch_one(c)
    .await?;
    Ok(n)
}

/// One file of a result: where its bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    /// Name shown, `<extractor>/<file>`.
    pub path: String,
    /// Media type.
    pub mime: String,
    /// Bytes.
    pub size: u64,
    /// Lower-case hex; empty where it would cost another pass over the bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Key of the object that holds it.
    pub object: String,
    /// Where it begins in the object.
    pub offset: u64,
    /// Bytes it takes there, stored as they are.
    pub length: u64,
}

/// The outcome of one extractor.
#[derive(Debug, Clone)]
pub struct ResultRow {
    /// Which.
    pub extractor: &'static str,
    /// How it ended.
    pub status: ResultStatus,
    /// Its files.
    pub files: Vec<ResultFile>,
    /// One line for people.
    pub output: Option<String>,
    /// Why it failed or was skipped.
    pub error: Option<(ErrorCode, String)>,
    /// How long it took.
    pub duration_ms: u32,
    /// Tool and version, when one of the machine's was used.
    pub tool: Option<String>,
}

/// A stored object and what it is to the snapshot.
#[derive(Debug, Clone)]
pub struct ObjectUse {
    /// Its key.
    pub key: String,
    /// Its size.
    pub size: u64,
    /// Its digest, when this capture made it.
    pub sha256: [u8; 32],
    /// `true` when this capture made it, `false` when revisits refer to it.
    pub own: bool,
}

/// A body now held, for later revisits.
#[derive(Debug, Clone)]
pub struct PayloadRow {
    /// Of the payload.
    pub sha256: [u8; 32],
    /// The object.
    pub object: String,
    /// The response record.
    pub record_id: String,
    /// Its target.
    pub url: String,
    /// Its date.
    pub date: DateTime<Utc>,
    /// Where the record's gzip member begins in the object.
    pub offset: u64,
    /// Bytes of the member.
    pub length: u64,
}

/// Everything a finished capture writes.
#[derive(Debug, Clone)]
pub struct Closing {
    /// The snapshot.
    pub snapshot: SnapshotId,
    /// Its crawl.
    pub crawl: CrawlId,
    /// Title found.
    pub title: Option<String>,
    /// Where redirects led.
    pub final_url: Option<String>,
    /// Status of the final answer.
    pub http_status: Option<u16>,
    /// Media type of the final answer.
    pub mime: Option<String>,
    /// Bytes stored for it.
    pub size: u64,
    /// Why the capture as a whole failed.
    pub error: Option<(ErrorCode, String)>,
    /// One row an extractor.
    pub results: Vec<ResultRow>,
    /// Objects made or referred to.
    pub objects: Vec<ObjectUse>,
    /// Bodies now held.
    pub payloads: Vec<PayloadRow>,
    /// Text for search.
    pub text: Option<String>,
    /// URL, tags, for search.
    pub url: String,
    /// Its tags, for search.
    pub tags: Vec<String>,
    /// Links that rules and scope let in.
    pub links: Vec<Candidate>,
    /// Claim number of the run: above one, earlier results are kept as history.
    pub attempt: i32,
}

/// How the crawl of a set of closings admits what they found.
#[derive(Debug, Clone, Copy)]
pub struct Discovery {
    /// Kind of run for children.
    pub kind: Kind,
    /// Made by a schedule.
    pub scheduled: bool,
    /// Pacing.
    pub delay_ms: u32,
    /// Scope of the dedup index; none when off.
    pub dedup: Option<Uuid>,
}

/// Ends captures: results, objects, dedup index, search text, snapshot rows, counters, children,
/// limits, and the seal when nothing is open any more. Only in the transaction of a settle, for
/// runs whose lease was still held.
///
/// # Errors
/// When the database fails.
pub async fn close(
    c: &mut Conn,
    closings: &[&Closing],
    discovery: &BTreeMap<CrawlId, Discovery>,
) -> Result<Vec<RunRef>, StoreError> {
    insert_results(c, closings).await?;
    insert_objects(c, closings, discovery).await?;
    insert_texts(c, closings).await?;
    let mut by_crawl: BTreeMap<CrawlId, Vec<&Closing>> = BTreeMap::new();
    for closing in closings {
        by_crawl.entry(closing.crawl).or_default().push(closing);
    }
    let mut rings = Vec::new();
    for (crawl, closings) in by_crawl {
        // Crawls are locked in the order of their ids, so that two sets never wait for each other.
        sqlx::query_scalar!("SELECT id FROM crawl WHERE id = $1 FOR NO KEY UPDATE", crawl.0)
            .fetch_optional(&mut *c)
            .await?;
        seal_snapshots(c, crawl, &closings).await?;
        let exhausted = note_limits(c, crawl).await?;
        if let Some(d) = discovery.get(&crawl).filter(|_| !exhausted) {
            let mut links: Vec<Candidate> = closings.iter().flat_map(|x| x.links.iter().cloned()).collect();
            links.sort_by_key(|l| l.depth);
            let Admission { runs, .. } = admission::admit(c, crawl, d.kind, d.scheduled, d.delay_ms, &links).await?;
            rings.extend(runs);
        }
        if exhausted {
            close_queued(c, crawl, ErrorCode::LIMIT_REACHED, true, 1000).await?;
        }
        rings.extend(crawls::maybe_seal(c, crawl).await?);
    }
    Ok(rings)
}

async fn insert_results(c: &mut Conn, closings: &[&Closing]) -> Result<(), StoreError> {
    let retried: Vec<Uuid> = closings.iter().filter(|x| x.attempt > 1).map(|x| x.snapshot.0).collect();
    if !retried.is_empty() {
        sqlx::query!(
            r#"INSERT INTO archive_result_attempt (snapshot_id, extractor, attempt, error_code, error, ended_at)
               SELECT snapshot_id, extractor, attempt, error_code, error, ended_at FROM archive_result
               WHERE snapshot_id = ANY($1) AND status IN ('failed', 'backoff') ON CONFLICT DO NOTHING"#,
            &retried
        )
        .execute(&mut *c)
        .await?;
    }
    let rows: Vec<(&Closing, &ResultRow)> =
        closings.iter().flat_map(|x| x.results.iter().map(move |r| (*x, r))).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let snapshots: Vec<Uuid> = rows.iter().map(|(x, _)| x.snapshot.0).collect();
    let extractors: Vec<String> = rows.iter().map(|(_, r)| r.extractor.to_owned()).collect();
    let statuses: Vec<String> = rows.iter().map(|(_, r)| r.status.as_str().to_owned()).collect();
    let files: Vec<Option<Value>> = rows
        .iter()
        .map(|(_, r)| if r.files.is_empty() { Ok(None) } else { crawls::to_json(&r.files).map(Some) })
        .collect::<Result<_, _>>()?;
    let outputs: Vec<Option<String>> = rows.iter().map(|(_, r)| r.output.as_deref().map(runs::error_text)).collect();
    let codes: Vec<Option<String>> =
        rows.iter().map(|(_, r)| r.error.as_ref().map(|(c, _)| c.as_str().to_owned())).collect();
    let errors: Vec<Option<String>> =
        rows.iter().map(|(_, r)| r.error.as_ref().map(|(_, e)| runs::error_text(e))).collect();
    let attempts: Vec<i16> = rows.iter().map(|(x, _)| i16::try_from(x.attempt).unwrap_or(i16::MAX)).collect();
    let durations: Vec<i32> = rows.iter().map(|(_, r)| i32::try_from(r.duration_ms).unwrap_or(i32::MAX)).collect();
    let tools: Vec<Option<String>> = rows.iter().map(|(_, r)| r.tool.clone()).collect();
    sqlx::query!(
        r#"INSERT INTO archive_result (snapshot_id, extractor, status, files, output, error_code, error, attempt, duration_ms, tool)
           SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::jsonb[], $5::text[], $6::text[], $7::text[],
                                $8::smallint[], $9::int[], $10::text[])
           ON CONFLICT (snapshot_id, extractor) DO UPDATE
           SET status = excluded.status, files = excluded.files, output = excluded.output,
               error_code = excluded.error_code, error = excluded.error, attempt = excluded.attempt,
               duration_ms = excluded.duration_ms, tool = excluded.tool, ended_at = now()"#,
        &snapshots,
        &extractors,
        &statuses,
        &files as &[Option<Value>],
        &outputs as &[Option<String>],
        &codes as &[Option<String>],
        &errors as &[Option<String>],
        &attempts,
        &durations,
        &tools as &[Option<String>],
    )
    .execute(c)
    .await?;
    Ok(())
}

async fn insert_objects(
    c: &mut Conn,
    closings: &[&Closing],
    discovery: &BTreeMap<CrawlId, Discovery>,
) -> Result<(), StoreError> {
    let made: BTreeMap<&str, &ObjectUse> =
        closings.iter().flat_map(|x| &x.objects).filter(|o| o.own).map(|o| (o.key.as_str(), o)).collect();
    let keys: Vec<String> = made.keys().map(|k| (*k).to_owned()).collect();
    let sizes: Vec<i64> = made.values().map(|o| to_i64(o.size)).collect();
    let digests: Vec<Vec<u8>> = made.values().map(|o| o.sha256.to_vec()).collect();
    if !keys.is_empty() {
        sqlx::query!(
            r#"INSERT INTO object (key, size, sha256)
               SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[]) ON CONFLICT DO NOTHING"#,
            &keys,
            &sizes,
            &digests
        )
        .execute(&mut *c)
        .await?;
    }
    let mut refs: (Vec<Uuid>, Vec<String>, Vec<String>) = Default::default();
    for closing in closings {
        for object in &closing.objects {
            refs.0.push(closing.snapshot.0);
            refs.1.push(object.key.clone());
            refs.2.push(if object.own { "own" } else { "original" }.to_owned());
        }
    }
    // An original that was deleted between look-up and now fails here, and the capture is tried again.
    if !refs.0.is_empty() {
        sqlx::query!(
            r#"INSERT INTO object_ref (snapshot_id, object_key, role)
               SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[]) ON CONFLICT DO NOTHING"#,
            &refs.0,
            &refs.1,
            &refs.2
        )
        .execute(&mut *c)
        .await?;
    }
    insert_payloads(c, closings, discovery).await
}

async fn insert_payloads(
    c: &mut Conn,
    closings: &[&Closing],
    discovery: &BTreeMap<CrawlId, Discovery>,
) -> Result<(), StoreError> {
    let mut rows: Vec<(Uuid, &PayloadRow)> = Vec::new();
    for closing in closings {
        if let Some(scope) = discovery.get(&closing.crawl).and_then(|d| d.dedup) {
            rows.extend(closing.payloads.iter().map(|p| (scope, p)));
        }
    }
    // Sorted, so that two transactions inserting the same bodies never wait for each other.
    rows.sort_by_key(|(scope, p)| (*scope, p.sha256));
    rows.dedup_by_key(|(scope, p)| (*scope, p.sha256));
    if rows.is_empty() {
        return Ok(());
    }
    let scopes: Vec<Uuid> = rows.iter().map(|(s, _)| *s).collect();
    let hashes: Vec<Vec<u8>> = rows.iter().map(|(_, p)| p.sha256.to_vec()).collect();
    let objects: Vec<String> = rows.iter().map(|(_, p)| p.object.clone()).collect();
    let records: Vec<String> = rows.iter().map(|(_, p)| p.record_id.clone()).collect();
    let urls: Vec<String> = rows.iter().map(|(_, p)| p.url.clone()).collect();
    let dates: Vec<DateTime<Utc>> = rows.iter().map(|(_, p)| p.date).collect();
    let offsets: Vec<i64> = rows.iter().map(|(_, p)| to_i64(p.offset)).collect();
    let lengths: Vec<i64> = rows.iter().map(|(_, p)| to_i64(p.length)).collect();
    sqlx::query!(
        r#"INSERT INTO payload (scope, sha256, object_key, record_id, url, date, record_offset, record_length)
           SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::text[], $5::text[], $6::timestamptz[],
                                $7::bigint[], $8::bigint[])
           ON CONFLICT DO NOTHING"#,
        &scopes,
        &hashes,
        &objects,
        &records,
        &urls,
        &dates,
        &offsets,
        &lengths
    )
    .execute(c)
    .await?;
    Ok(())
}

async fn insert_texts(c: &mut Conn, closings: &[&Closing]) -> Result<(), StoreError> {
    let rows: Vec<&Closing> = closings.iter().copied().filter(|x| x.text.is_some()).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = rows.iter().map(|x| x.snapshot.0).collect();
    let titles: Vec<String> = rows.iter().map(|x| x.title.clone().unwrap_or_default()).collect();
    let urls: Vec<String> = rows.iter().map(|x| x.url.clone()).collect();
    let bodies: Vec<String> = rows.iter().map(|x| x.text.clone().unwrap_or_default()).collect();
    let vectors: Vec<search::Vector> = rows
        .iter()
        .zip(titles.iter().zip(&bodies))
        .map(|(x, (title, body))| search::vector(title, &x.url, &x.tags, body))
        .collect();
    sqlx::query!(
        r#"INSERT INTO snapshot_text (snapshot_id, label, body, tsv)
           SELECT s.id, left(s.title, 500) || ' ' || left(s.url, 500), s.body, s.vector
           FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::tsvector[])
                AS s(id, title, url, body, vector)
           ON CONFLICT (snapshot_id) DO UPDATE
           SET label = excluded.label, body = excluded.body, tsv = excluded.tsv"#,
        &ids,
        &titles,
        &urls,
        &bodies,
        &vectors as _
    )
    .execute(c)
    .await?;
    Ok(())
}

/// Seals the snapshots and counts those that really changed state.
async fn seal_snapshots(c: &mut Conn, crawl: CrawlId, closings: &[&Closing]) -> Result<(), StoreError> {
    let ids: Vec<Uuid> = closings.iter().map(|x| x.snapshot.0).collect();
    let titles: Vec<Option<String>> = closings.iter().map(|x| x.title.clone()).collect();
    let finals: Vec<Option<String>> = closings.iter().map(|x| x.final_url.clone()).collect();
    let statuses: Vec<Option<i32>> = closings.iter().map(|x| x.http_status.map(i32::from)).collect();
    let mimes: Vec<Option<String>> = closings.iter().map(|x| x.mime.clone()).collect();
    let sizes: Vec<i64> = closings.iter().map(|x| to_i64(x.size)).collect();
    let count = |x: &Closing, s: ResultStatus| {
        i32::try_from(x.results.iter().filter(|r| r.status == s).count()).unwrap_or(i32::MAX)
    };
    let oks: Vec<i32> = closings.iter().map(|x| count(x, ResultStatus::Succeeded)).collect();
    let fails: Vec<i32> = closings.iter().map(|x| count(x, ResultStatus::Failed)).collect();
    let codes: Vec<Option<String>> =
        closings.iter().map(|x| x.error.as_ref().map(|(c, _)| c.as_str().to_owned())).collect();
    let errors: Vec<Option<String>> =
        closings.iter().map(|x| x.error.as_ref().map(|(_, e)| runs::error_text(e))).collect();
    sqlx::query!(
        r#"WITH closed AS (
               UPDATE snapshot s
               SET status = 'sealed', sealed_at = now(), downloaded_at = now(), step = NULL,
                   title = coalesce(v.title, s.title), final_url = v.final_url, http_status = v.http_status,
                   mime = v.mime, size = v.size, n_ok = v.n_ok, n_failed = v.n_failed,
                   error_code = v.code, error = v.error
               FROM unnest($2::uuid[], $3::text[], $4::text[], $5::int[], $6::text[], $7::bigint[], $8::int[],
                           $9::int[], $10::text[], $11::text[])
                    AS v(id, title, final_url, http_status, mime, size, n_ok, n_failed, code, error)
               WHERE s.id = v.id AND s.crawl_id = $1 AND s.status <> 'sealed'
               RETURNING s.size, s.n_ok, s.n_failed, s.error_code
           ), sums AS (
               SELECT count(*) AS n, count(error_code) AS failed, coalesce(sum(size), 0)::bigint AS bytes,
                      coalesce(sum(n_ok + n_failed), 0)::bigint AS results, coalesce(sum(n_failed), 0)::bigint AS results_failed
               FROM closed
           )
           UPDATE crawl SET n_sealed = n_sealed + sums.n, n_failed = n_failed + sums.failed, bytes = crawl.bytes + sums.bytes,
                  n_results = n_results + sums.results, n_results_failed = n_results_failed + sums.results_failed,
                  modified_at = now()
           FROM sums WHERE crawl.id = $1 AND sums.n > 0"#,
        crawl.0,
        &ids,
        &titles as &[Option<String>],
        &finals as &[Option<String>],
        &statuses as &[Option<i32>],
        &mimes as &[Option<String>],
        &sizes,
        &oks,
        &fails,
        &codes as &[Option<String>],
        &errors as &[Option<String>],
    )
    .execute(c)
    .await?;
    Ok(())
}

/// Writes down a limit that is reached. The crawl is locked.
async fn note_limits(c: &mut Conn, crawl: CrawlId) -> Result<bool, StoreError> {
    let reason = sqlx::query_scalar!(
        r#"SELECT CASE WHEN bytes >= max_size THEN 'crawl_max_size'
                       WHEN extract(epoch FROM coalesce(paused_at, now()) - started_at) - paused_s >= timeout_s
                       THEN 'crawl_timeout' END AS reason
           FROM crawl WHERE id = $1 AND status <> 'sealed'"#,
        crawl.0
    )
    .fetch_optional(&mut *c)
    .await?
    .flatten();
    if let Some(reason) = &reason {
        sqlx::query!("UPDATE crawl SET stop_reason = $2 WHERE id = $1 AND status <> 'sealed'", crawl.0, reason)
            .execute(c)
            .await?;
    }
    Ok(reason.is_some())
}

/// Seals snapshots that were never captured, with the reason, and lets the crawl seal if it can.
///
/// # Errors
/// When the database fails.
pub async fn close_unrun(
    c: &mut Conn,
    crawl: CrawlId,
    ids: &[SnapshotId],
    code: ErrorCode,
    error: &str,
) -> Result<Vec<RunRef>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|i| i.0).collect();
    sqlx::query_scalar!("SELECT id FROM crawl WHERE id = $1 FOR NO KEY UPDATE", crawl.0)
        .fetch_optional(&mut *c)
        .await?;
    let closed = sqlx::query!(
        r#"UPDATE snapshot SET status = 'sealed', sealed_at = now(), step = NULL, error_code = $3, error = $4
           WHERE id = ANY($2) AND crawl_id = $1 AND status <> 'sealed'"#,
        crawl.0,
        &ids,
        code.as_str(),
        runs::error_text(error)
    )
    .execute(&mut *c)
    .await?
    .rows_affected();
    count_unrun(c, crawl, closed, code).await?;
    crawls::maybe_seal(c, crawl).await
}

/// Codes that say a page was kept out on purpose.
const SKIPS: [ErrorCode; 4] =
    [ErrorCode::LIMIT_REACHED, ErrorCode::CANCELLED, ErrorCode::ROBOTS_DENIED, ErrorCode::HOST_UNREACHABLE];

async fn count_unrun(c: &mut Conn, crawl: CrawlId, n: u64, code: ErrorCode) -> Result<(), StoreError> {
    let skipped = if SKIPS.contains(&code) { n } else { 0 };
    sqlx::query!(
        r#"UPDATE crawl SET n_sealed = n_sealed + $2, n_skipped = n_skipped + $3, n_failed = n_failed + $4,
                  modified_at = now() WHERE id = $1"#,
        crawl.0,
        to_i64(n),
        to_i64(skipped),
        to_i64(n - skipped)
    )
    .execute(c)
    .await?;
    Ok(())
}

/// Seals up to `limit` queued snapshots of a crawl unrun, with their runs. With `spare_first` the
/// submitted pages stay: those are always captured. Answers how many were sealed.
///
/// # Errors
/// When the database fails.
pub async fn close_queued(
    c: &mut Conn,
    crawl: CrawlId,
    code: ErrorCode,
    spare_first: bool,
    limit: i64,
) -> Result<u64, StoreError> {
    sqlx::query_scalar!("SELECT id FROM crawl WHERE id = $1 FOR NO KEY UPDATE", crawl.0)
        .fetch_optional(&mut *c)
        .await?;
    // Those whose run is being worked on close by themselves.
    let closed = sqlx::query_scalar!(
        r#"WITH unrun AS (
               SELECT s.id FROM snapshot s
               WHERE s.crawl_id = $1 AND s.status <> 'sealed' AND (s.depth > 0 OR NOT $3)
                 AND NOT EXISTS (SELECT 1 FROM task_run t WHERE t.entity = s.id AND t.status = 'running'
                                 AND t.kind IN ('snapshot', 'snapshot-plain'))
               LIMIT $4 FOR UPDATE OF s SKIP LOCKED
           ), stopped AS (
               UPDATE task_run t SET status = 'cancelled', finished_at = now(), error_code = $2
               FROM unrun WHERE t.entity = unrun.id AND t.status = 'queued' AND t.kind IN ('snapshot', 'snapshot-plain')
           )
           UPDATE snapshot s SET status = 'sealed', sealed_at = now(), step = NULL, error_code = $2
           FROM unrun WHERE s.id = unrun.id RETURNING s.id"#,
        crawl.0,
        code.as_str(),
        spare_first,
        limit
    )
    .fetch_all(&mut *c)
    .await?
    .len();
    let closed = closed as u64;
    if closed > 0 {
        count_unrun(c, crawl, closed, code).await?;
    }
    Ok(closed)
}

/// Whether a crawl has an open snapshot: one probe of a partial index.
pub(crate) async fn any_open(c: &mut Conn, crawl: CrawlId) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM snapshot WHERE crawl_id = $1 AND status <> 'sealed') AS "open!""#,
        crawl.0
    )
    .fetch_one(c)
    .await?)
}

/// Where a body is already held.
#[derive(Debug, Clone)]
pub struct HeldPayload {
    /// The object.
    pub object: String,
    /// Its size.
    pub record_id: String,
    /// Target of the original.
    pub url: String,
    /// Date of the original.
    pub date: DateTime<Utc>,
}

/// Looks bodies up in the dedup index of a scope.
///
/// # Errors
/// When the database fails.
pub async fn held_payloads(
    c: &mut Conn,
    scope: Uuid,
    hashes: &[[u8; 32]],
) -> Result<HashMap<[u8; 32], HeldPayload>, StoreError> {
    let keys: Vec<Vec<u8>> = hashes.iter().map(|h| h.to_vec()).collect();
    let rows = sqlx::query!(
        "SELECT sha256, object_key, record_id, url, date FROM payload WHERE scope = $1 AND sha256 = ANY($2::bytea[])",
        scope,
        &keys
    )
    .fetch_all(c)
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|r| {
            let key: [u8; 32] = r.sha256.try_into().ok()?;
            Some((key, HeldPayload { object: r.object_key, record_id: r.record_id, url: r.url, date: r.date }))
        })
        .collect())
}

/// The submitted URLs of a crawl, the first thousand of them: what the `prefix` scope is about.
///
/// # Errors
/// When the database fails.
pub async fn seeds(c: &mut Conn, crawl: CrawlId) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar!(
        "SELECT url FROM snapshot WHERE crawl_id = $1 AND depth = 0 ORDER BY id LIMIT 1000",
        crawl.0
    )
    .fetch_all(c)
    .await?)
}

pub(crate) fn decode_key(stored: &[u8]) -> UrlKey {
    let mut key = [0; 16];
    let n = stored.len().min(16);
    key[..n].copy_from_slice(&stored[..n]);
    key
}
