//! Turns what was submitted into snapshots: any list format, titles, tags and dates kept, allow and
//! deny lists applied, sitemap indexes followed.
//!
//! Works chunk by chunk: the cursor is how many URLs of the input were dealt with, so a kill costs
//! one chunk and admits nothing twice.

mod input;

use chrono::{DateTime, Utc};
use fonds_domain::{CrawlId, CrawlStatus, ErrorCode, Kind};
use fonds_pages::urls::{PageUrl, UrlRules};
use fonds_store::admission::{self, Candidate, UrlKey};
use fonds_store::crawls::{self, Crawl};
use fonds_store::runs::RunRef;
use fonds_store::{Conn, Db, StoreError};
use fonds_task::{Cx, Outcome, Signal, Task, TaskError};
use fonds_web::fetch::Fetcher;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;

/// URLs dealt with in one slice.
const CHUNK: usize = 5_000;
/// URLs whose fate is named one by one in the report.
const REPORT_MAX: usize = 1_000;

/// Sets crawls up.
pub struct CrawlSetup {
    /// The database.
    pub db: Db,
    /// For lists that lists name.
    pub fetcher: Fetcher,
}

/// Where set-up stands, and what it has found out so far.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Progress {
    /// URLs of the input dealt with.
    offset: usize,
    counts: Counts,
    /// The first URLs that were not captured, and why.
    urls: Vec<Fate>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Counts {
    submitted: usize,
    candidates: usize,
    denied: usize,
    already_archived: usize,
    invalid: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fate {
    url: String,
    outcome: String,
    code: String,
}

/// What a slice writes.
pub struct Effect {
    crawl: CrawlId,
    kind: Kind,
    scheduled: bool,
    delay_ms: u32,
    candidates: Vec<Candidate>,
    /// The report, when this was the last chunk.
    report: Option<Value>,
}

impl Task for CrawlSetup {
    const KIND: Kind = Kind::CrawlSetup;
    type Input = Option<()>;
    type Cursor = Progress;
    type Effect = Effect;

    async fn run(&self, cx: &Cx, _: &Option<()>, mut progress: Progress) -> Result<Outcome<Self>, TaskError> {
        let id = CrawlId(cx.entity()?);
        let mut conn = self.db.conn().await?;
        let crawl = crawls::load(&mut conn, &[id]).await?.pop();
        let Some(crawl) = crawl else { return Ok(Outcome::Discard("the crawl is deleted")) };
        match crawl.status {
            CrawlStatus::Paused => return Ok(Outcome::Hold),
            CrawlStatus::Sealed => return Ok(Outcome::Cancel(None)),
            _ if crawl.setup_done => return Ok(Outcome::Discard("set-up is through")),
            _ => {}
        }
        let text = crawls::input(&mut conn, id).await?.unwrap_or_default();
        drop(conn);
        let list = input::read(&self.fetcher, &crawl, text, cx.budget).await?;
        let rules = UrlRules::compile(&crawl.config.allow, &crawl.config.deny)
            .map_err(|e| TaskError::permanent(ErrorCode::INVALID_PATTERN, e))?;
        if progress.offset == 0 {
            progress.counts.submitted = list.urls.len() + list.rejected_total;
            progress.counts.invalid = list.rejected_total;
            for r in list.rejected.iter().take(REPORT_MAX) {
                progress.urls.push(Fate { url: r.text.clone(), outcome: "rejected".into(), code: r.code.clone() });
            }
        }
        let chunk: Vec<_> = list.urls.iter().skip(progress.offset).take(CHUNK).collect();
        let next = progress.offset + chunk.len();
        let candidates = self.candidates(&crawl, &rules, &chunk, &mut progress).await?;
        progress.offset = next;
        progress.counts.candidates += candidates.len();
        match cx.signal().await? {
            Signal::Go => {}
            Signal::Pause => return Ok(Outcome::Hold),
            Signal::Cancel => return Ok(Outcome::Cancel(None)),
            Signal::Lost => return Ok(Outcome::Discard("the lease was lost")),
        }
        let last = next >= list.urls.len();
        let effect = Effect {
            crawl: id,
            kind: crawl.snapshot_kind(),
            scheduled: crawl.config.scheduled,
            delay_ms: crawl.config.host_delay_ms,
            candidates,
            report: last.then(|| report(&progress, &list)),
        };
        Ok(if last { Outcome::Done(effect) } else { Outcome::Continue(progress, Some(effect)) })
    }

    async fn apply(&self, conn: &mut Conn, effects: &[&Effect]) -> Result<Vec<RunRef>, StoreError> {
        let mut rings = Vec::new();
        for e in effects {
            let admission = admission::admit(conn, e.crawl, e.kind, e.scheduled, e.delay_ms, &e.candidates).await?;
            rings.extend(admission.runs);
            if let Some(report) = &e.report {
                rings.extend(crawls::finish_setup(conn, e.crawl, report).await?);
            }
        }
        Ok(rings)
    }
}

impl CrawlSetup {
    async fn candidates(
        &self,
        crawl: &Crawl,
        rules: &UrlRules,
        chunk: &[&fonds_pages::inputs::InputUrl],
        progress: &mut Progress,
    ) -> Result<Vec<Candidate>, TaskError> {
        let keep = crawl.config.keep_fragments;
        let mut candidates = Vec::with_capacity(chunk.len());
        for entry in chunk {
            // The parser has checked it already; a URL that does not parse again is counted, not lost.
            let Ok(url) = PageUrl::parse(&entry.url) else {
                progress.counts.invalid += 1;
                note(progress, &entry.url, "rejected", ErrorCode::INVALID_URL);
                continue;
            };
            if rules.check(url.as_url()).is_err() {
                progress.counts.denied += 1;
                note(progress, &entry.url, "denied", ErrorCode::DENIED_BY_RULES);
                continue;
            }
            candidates.push(Candidate {
                key: url.key(keep),
                host: url.host_port().to_owned(),
                url: url.as_str().to_owned(),
                depth: 0,
                parent: None,
                title: entry.title.clone().map(|t| t.replace('\0', " ")),
                tags: entry.tags.iter().map(|t| t.replace('\0', " ")).collect(),
                bookmarked_at: entry.added_at.filter(in_range),
            });
        }
        if crawl.config.only_new {
            let keys: Vec<UrlKey> = candidates.iter().map(|c| c.key).collect();
            let mut conn = self.db.conn().await?;
            let held: HashSet<UrlKey> = admission::archived_before(&mut conn, &keys).await?;
            candidates.retain(|c| {
                let archived = held.contains(&c.key);
                if archived {
                    progress.counts.already_archived += 1;
                    note(progress, &c.url, "already_archived", ErrorCode::ALREADY_ARCHIVED);
                }
                !archived
            });
        }
        Ok(candidates)
    }
}

fn note(progress: &mut Progress, url: &str, outcome: &str, code: ErrorCode) {
    if progress.urls.len() < REPORT_MAX {
        progress.urls.push(Fate { url: url.to_owned(), outcome: outcome.to_owned(), code: code.as_str().to_owned() });
    }
}

fn report(progress: &Progress, list: &input::List) -> Value {
    let c = &progress.counts;
    json!({
        "format": list.format,
        "counts": {
            "submitted": c.submitted,
            "candidates": c.candidates,
            "denied": c.denied,
            "already_archived": c.already_archived,
            "invalid": c.invalid,
            "lists": list.lists,
        },
        "urls": progress.urls,
        "urls_truncated": c.denied + c.already_archived + c.invalid > progress.urls.len(),
        "problems": list.problems,
    })
}

/// Dates that Postgres and people can use.
fn in_range(at: &DateTime<Utc>) -> bool {
    use chrono::Datelike;
    (1900..=2200).contains(&at.year())
}
