//! Search hits, tasks, figures, tokens.

use super::names;
use super::snapshot::Snapshot;
use super::{Failure, Time};
use crate::links::Base;
use fonds_domain::RunStatus;
use fonds_store::tokens::Scope;
use fonds_store::{query, search, stats, tokens};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// What a search found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchAnswer {
    /// Best first; those that only resemble the query after those that say it.
    pub(crate) items: Vec<SearchHit>,
    /// Give it as `offset` for the next page; null on the last.
    pub(crate) next_offset: Option<i64>,
    /// More than 1,000 texts matched; the newest 1,000 were ranked.
    pub(crate) capped: bool,
    /// Looking for resembling titles took too long and was given up.
    pub(crate) similar_skipped: bool,
}

/// A snapshot found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchHit {
    pub(crate) snapshot: Snapshot,
    /// Higher is better, comparable within one kind of match.
    pub(crate) rank: f32,
    #[serde(rename = "match")]
    pub(crate) matched: Match,
    /// Where the text says it.
    pub(crate) snippet: Vec<Piece>,
}

/// How a snapshot was found.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Match {
    /// By its words.
    Text,
    /// Its title or URL resembles the query.
    Similar,
}

/// A piece of a snippet.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Piece {
    text: String,
    /// Whether it is what was searched for.
    hit: bool,
}

impl SearchHit {
    pub(crate) fn new(hit: search::Hit, matched: Match, base: &Base) -> SearchHit {
        SearchHit {
            snapshot: Snapshot::new(hit.snapshot, base),
            rank: hit.rank,
            matched,
            snippet: hit.snippet.into_iter().map(|p| Piece { text: p.text, hit: p.hit }).collect(),
        }
    }
}

/// A piece of work.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Task {
    id: Uuid,
    #[schema(value_type = names::TaskKind)]
    kind: String,
    #[schema(value_type = names::RunStatus)]
    status: RunStatus,
    /// Smaller is sooner.
    priority: i16,
    crawl_id: Option<Uuid>,
    /// The row it works on.
    entity: Option<Uuid>,
    /// Slices done.
    step: i32,
    attempt: i32,
    max_attempts: i32,
    /// Seconds until its lease is dead; negative when it is.
    lease_left_s: Option<f64>,
    /// Seconds since its first claim, while it is open.
    running_s: Option<f64>,
    /// Earliest next claim.
    not_before: Option<Time>,
    /// Held with its paused crawl.
    held: bool,
    created_at: Time,
    started_at: Option<Time>,
    progress_at: Option<Time>,
    deadline_at: Option<Time>,
    finished_at: Option<Time>,
    cancel_requested: bool,
    error: Option<Failure>,
}

impl From<query::Task> for Task {
    fn from(row: query::Task) -> Task {
        // A discarded run keeps its reason without a code.
        let error = match (row.error_code, row.error) {
            (None, Some(why)) => Some(Failure { code: "DISCARDED".to_owned(), detail: Some(why), advice: "" }),
            (code, detail) => Failure::new(code, detail),
        };
        Task {
            id: row.id.0,
            kind: row.kind,
            status: row.status,
            priority: row.priority,
            crawl_id: row.crawl_id.map(|c| c.0),
            entity: row.entity,
            step: row.step,
            attempt: row.attempt,
            max_attempts: row.max_attempts,
            lease_left_s: row.lease_left_s,
            running_s: row.running_s,
            not_before: row.not_before.map(Time),
            held: row.held,
            created_at: row.created_at.into(),
            started_at: row.started_at.map(Time),
            progress_at: row.progress_at.map(Time),
            deadline_at: row.deadline_at.map(Time),
            finished_at: row.finished_at.map(Time),
            cancel_requested: row.cancel_requested,
            error,
        }
    }
}

/// A number that may be an estimate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Amount {
    value: i64,
    /// False: an estimate, or "at least".
    exact: bool,
}

impl From<stats::Amount> for Amount {
    fn from(a: stats::Amount) -> Amount {
        Amount { value: a.value, exact: a.exact }
    }
}

/// Figures of the whole system.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stats {
    version: String,
    crawls: CrawlStats,
    snapshots: SnapshotStats,
    results: Total,
    objects: ObjectStats,
    tasks: Vec<KindStats>,
    failed_tasks_24h: Amount,
    database_bytes: i64,
    sweep_last_tick: Option<Time>,
}

/// Crawls by status.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CrawlStats {
    total: Amount,
    queued: i64,
    started: i64,
    paused: i64,
}

/// Snapshots.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SnapshotStats {
    total: Amount,
    open: Amount,
}

/// How many there are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Total {
    total: Amount,
}

/// Stored objects.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ObjectStats {
    total: Amount,
    bytes: Amount,
}

/// Work of one kind.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KindStats {
    kind: String,
    queued: Amount,
    running: i64,
    /// For how many seconds the next run has been due.
    oldest_due_s: Option<f64>,
}

impl Stats {
    pub(crate) fn new(s: stats::Stats, version: &str) -> Stats {
        let kind = |k: stats::KindStats| KindStats {
            kind: k.kind,
            queued: k.queued.into(),
            running: k.running,
            oldest_due_s: k.oldest_due_s,
        };
        Stats {
            version: version.to_owned(),
            crawls: CrawlStats {
                total: s.crawls.into(),
                queued: s.crawls_queued,
                started: s.crawls_started,
                paused: s.crawls_paused,
            },
            snapshots: SnapshotStats { total: s.snapshots.into(), open: s.snapshots_open.into() },
            results: Total { total: s.results.into() },
            objects: ObjectStats { total: s.objects.into(), bytes: s.object_bytes.into() },
            tasks: s.kinds.into_iter().map(kind).collect(),
            failed_tasks_24h: s.failed_24h.into(),
            database_bytes: s.database_bytes,
            sweep_last_tick: s.sweep_last_tick.map(Time),
        }
    }
}

/// Whether the service works.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    pub(crate) status: String,
    pub(crate) version: String,
    /// `ok`.
    pub(crate) database: String,
}

/// A token to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// What its owner calls it.
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) name: String,
    /// What it may do; the wider includes the narrower.
    #[schema(value_type = Vec<names::TokenScope>)]
    pub(crate) scopes: Vec<Scope>,
    /// How long it works: a number and `h`, `d`, `w`, `mo` or `y`; for good when absent.
    #[serde(default)]
    #[schema(nullable = false, example = "90d")]
    pub(crate) expires_after: Option<String>,
}

/// A token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Token {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    #[schema(value_type = Vec<names::TokenScope>)]
    pub(crate) scopes: Vec<Scope>,
    pub(crate) created_at: Time,
    /// To the minute.
    pub(crate) last_used_at: Option<Time>,
    pub(crate) expires_at: Option<Time>,
    pub(crate) revoked_at: Option<Time>,
    /// The secret, only in the answer that makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) secret: Option<String>,
}

impl From<tokens::Token> for Token {
    fn from(t: tokens::Token) -> Token {
        Token {
            id: t.id.0,
            name: t.name,
            scopes: t.scopes,
            created_at: t.created_at.into(),
            last_used_at: t.last_used_at.map(Time),
            expires_at: t.expires_at.map(Time),
            revoked_at: t.revoked_at.map(Time),
            secret: None,
        }
    }
}
