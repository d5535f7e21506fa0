//! Full-text search over snapshots. How a text falls into words is written once, in `words`, for what
//! is stored ([`vector`]), what is asked and what is shown of a hit.
//!
//! The cost of a search is bounded from three sides: at most [`CANDIDATES`] matches are ranked (the
//! newest), snippets are cut only for the rows of the page, and the caller sets a statement timeout.

mod lexemes;
mod snippet;
mod words;

pub use lexemes::{Vector, vector};

use crate::query::{SNAPSHOT_COLUMNS, SNAPSHOT_VISIBLE, Snapshot, SnapshotFilter};
use crate::{Conn, StoreError};
use fonds_domain::SnapshotId;
use lexemes::Question;
use sqlx::{FromRow, QueryBuilder, Row};
use uuid::Uuid;

/// Matches that are ranked, the newest.
pub const CANDIDATES: i64 = 1000;
/// Text looked at for a snippet, in characters.
const SNIPPET_WITHIN: i32 = 60_000;
/// What is searched for, and where.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// As typed into a search box: words, "phrases", `or`, `-not`, `begin*`.
    pub text: String,
    /// Which snapshots.
    pub filter: SnapshotFilter,
    /// Hits skipped.
    pub offset: i64,
    /// Hits wanted.
    pub limit: i64,
}

/// A piece of a snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether it is what was searched for.
    pub hit: bool,
}

/// A snapshot found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Higher is better; comparable only within one answer's kind of match.
    pub rank: f32,
    /// Where the text says it.
    pub snippet: Vec<Piece>,
}

/// Hits of the text search.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// This page, best first.
    pub hits: Vec<Hit>,
    /// More than [`CANDIDATES`] matched; the newest of them were ranked.
    pub capped: bool,
}

/// Searches titles, URLs, tags and texts.
///
/// # Errors
/// When the database fails or the statement timeout passes.
pub async fn search(c: &mut Conn, query: &Query) -> Result<Found, StoreError> {
    let question = Question::read(&query.text);
    let asked = || question.tsquery();
    let mut q = QueryBuilder::new(
        "WITH matched AS MATERIALIZED (SELECT t.snapshot_id FROM snapshot_text t JOIN snapshot s ON s.id = t.snapshot_id ",
    );
    // A constant: the planner can tell how many rows a word has.
    q.push("WHERE t.tsv @@ ").push_bind(asked()).push("::text::tsquery AND ").push(SNAPSHOT_VISIBLE);
    query.filter.push(&mut q);
    // One more than is ranked, to know whether there are more.
    q.push(" ORDER BY t.snapshot_id DESC LIMIT ").push_bind(CANDIDATES + 1);
    q.push("), ranked AS (SELECT t.snapshot_id, ts_rank_cd(t.tsv, ").push_bind(asked());
    q.push("::text::tsquery, 1) AS rank, t.body ");
    q.push("FROM (SELECT snapshot_id FROM matched LIMIT ").push_bind(CANDIDATES);
    q.push(") m JOIN snapshot_text t USING (snapshot_id) ORDER BY rank DESC, t.snapshot_id DESC OFFSET ");
    q.push_bind(query.offset).push(" LIMIT ").push_bind(query.limit);
    q.push(") SELECT ").push(SNAPSHOT_COLUMNS);
    q.push(", r.rank, (SELECT count(*) FROM matched) AS n_matched, left(r.body, ").push_bind(SNIPPET_WITHIN);
    q.push(") AS body FROM ranked r JOIN snapshot s ON s.id = r.snapshot_id ORDER BY r.rank DESC, s.id DESC");
    let rows = q.build().persistent(false).fetch_all(c).await?;
    let mut found = Found::default();
    for row in rows {
        found.capped = row.try_get::<i64, _>("n_matched")? > CANDIDATES;
        found.hits.push(Hit {
            snapshot: Snapshot::from_row(&row)?,
            rank: row.try_get("rank")?,
            snippet: snippet::snippet(row.try_get("body")?, &question),
        });
    }
    Ok(found)
}

/// Snapshots whose title or URL resembles the text, for typing errors and parts of words. Those in
/// `known` are left out. Uses the trigram index; set a short statement timeout.
///
/// # Errors
/// When the database fails or the statement timeout passes.
pub async fn similar(c: &mut Conn, query: &Query, known: &[SnapshotId]) -> Result<Vec<Hit>, StoreError> {
    let known: Vec<Uuid> = known.iter().map(|s| s.0).collect();
    let mut q = QueryBuilder::new("SELECT ");
    q.push(SNAPSHOT_COLUMNS).push(", word_similarity(").push_bind(query.text.clone());
    q.push(", t.label) AS rank FROM snapshot_text t JOIN snapshot s ON s.id = t.snapshot_id WHERE ");
    q.push_bind(query.text.clone()).push(" <% t.label AND ").push(SNAPSHOT_VISIBLE);
    q.push(" AND s.id <> ALL (").push_bind(known).push(")");
    query.filter.push(&mut q);
    q.push(" ORDER BY rank DESC, s.id DESC LIMIT ").push_bind(query.limit);
    // The default of 0.6 misses one wrong letter in a short word.
    sqlx::query!("SELECT set_config('pg_trgm.word_similarity_threshold', '0.5', true)").fetch_one(&mut *c).await?;
    let rows = q.build().persistent(false).fetch_all(c).await?;
    rows.iter()
        .map(|row| Ok(Hit { snapshot: Snapshot::from_row(row)?, rank: row.try_get("rank")?, snippet: Vec::new() }))
        .collect()
}
