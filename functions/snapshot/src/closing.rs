//! What a finished capture writes in the settle transaction.

use crate::links::{self, Rules};
use crate::package::Stored;
use crate::page::Page;
use fonds_domain::{CrawlConfig, CrawlId, DedupScope, ErrorCode, SnapshotId};
use fonds_pages::search_text::{index_text, without_nul};
use fonds_store::capture::{self, Closing, Discovery, ObjectUse, ResultRow, Snapshot};
use fonds_store::crawls::Crawl;
use fonds_store::runs::RunRef;
use fonds_store::{Conn, StoreError};
use std::collections::BTreeMap;
use url::Url;
use uuid::Uuid;

/// Longest text kept for search, in bytes.
pub(crate) const SEARCH_TEXT_MAX: usize = 64 * 1024;

/// The effect of a slice.
pub enum Effect {
    /// Captured.
    Closed(Box<Closing>, Discovery),
    /// Sealed without a capture.
    Unrun {
        /// Its crawl.
        crawl: CrawlId,
        /// The snapshot.
        snapshot: SnapshotId,
        /// Why.
        code: ErrorCode,
        /// Why, in words.
        error: String,
    },
}

impl Effect {
    /// Seals a snapshot unrun.
    pub(crate) fn unrun(snapshot: &Snapshot, code: ErrorCode, error: &str) -> Effect {
        Effect::Unrun { crawl: snapshot.crawl, snapshot: snapshot.id, code, error: error.to_owned() }
    }
}

/// Writes the effects of a settled set.
pub(crate) async fn apply(conn: &mut Conn, effects: &[&Effect]) -> Result<Vec<RunRef>, StoreError> {
    let mut closings = Vec::new();
    let mut discovery = BTreeMap::new();
    let mut rings = Vec::new();
    for effect in effects {
        match effect {
            Effect::Closed(closing, d) => {
                discovery.insert(closing.crawl, *d);
                closings.push(closing.as_ref());
            }
            Effect::Unrun { crawl, snapshot, code, error } => {
                rings.extend(capture::close_unrun(conn, *crawl, &[*snapshot], *code, error).await?);
            }
        }
    }
    if !closings.is_empty() {
        rings.extend(capture::close(conn, &closings, &discovery).await?);
    }
    Ok(rings)
}

/// The scope of a crawl's dedup index.
pub(crate) fn dedup_scope(config: &CrawlConfig, crawl: CrawlId) -> Option<Uuid> {
    match config.dedup {
        DedupScope::Off => None,
        DedupScope::Crawl => Some(crawl.0),
        DedupScope::Library => Some(Uuid::nil()),
    }
}

fn discovery(crawl: &Crawl) -> Discovery {
    Discovery {
        kind: crawl.snapshot_kind(),
        scheduled: crawl.config.scheduled,
        delay_ms: crawl.config.host_delay_ms,
        dedup: dedup_scope(&crawl.config, crawl.id),
    }
}

/// Turns a stored capture into its effect.
pub(crate) fn close(stored: Stored, rules: Option<&Rules>, seeds: &[Url]) -> Effect {
    let Stored { page, outputs, mut records, size, object } = stored;
    let links = rules.map(|r| links::candidates(&page, r, seeds)).unwrap_or_default();
    let mut objects = vec![object];
    objects.extend(records.originals.drain().map(|key| ObjectUse { key, size: 0, sha256: [0; 32], own: false }));
    let results = outputs
        .into_iter()
        .map(|(o, files)| ResultRow {
            extractor: o.extractor,
            status: o.status,
            files,
            output: o.line,
            error: o.error,
            duration_ms: o.duration_ms,
            tool: o.tool,
        })
        .collect();
    Effect::Closed(
        Box::new(Closing {
            snapshot: page.snapshot.id,
            crawl: page.crawl.id,
            title: page.title().map(|t| without_nul(&t).into_owned()),
            final_url: Some(page.final_url().to_string()).filter(|u| u.as_str() != page.snapshot.url),
            http_status: page.answer().map(|hop| hop.status.as_u16()),
            mime: page.content.mime.clone(),
            size,
            error: links::capture_error(&page),
            results,
            objects,
            payloads: records.payloads,
            text: search_text(&page),
            url: page.snapshot.url.clone(),
            tags: page.snapshot.tags.clone(),
            links,
            attempt: page.attempt,
        }),
        discovery(&page.crawl),
    )
}

/// Text for the index. Every page is found by its title and URL; a page with text by that too.
fn search_text(page: &Page) -> Option<String> {
    if !page.config().wants("search") || page.answer().is_none() {
        return None;
    }
    Some(page.best_facts().map(|f| index_text(&f.text, SEARCH_TEXT_MAX)).unwrap_or_default())
}
