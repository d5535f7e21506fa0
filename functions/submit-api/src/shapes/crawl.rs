//! Crawls: what is submitted, changed and shown.

use super::names;
use super::{Failure, Time};
use crate::extract::present;
use crate::links::Base;
use chrono::{DateTime, Utc};
use fonds_domain::{CrawlConfig, CrawlLimits, CrawlStatus, StopReason};
use fonds_store::query::{self, StoredFile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;
use uuid::Uuid;

/// A crawl to be made. `urls`, `input` or both.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCrawl {
    /// URLs, taken exactly as they are; at most 100,000.
    #[serde(default)]
    #[schema(nullable = false)]
    pub(crate) urls: Option<Vec<String>>,
    /// Text in any input format: URLs anywhere in it, a bookmark export, a feed, a sitemap, JSON, CSV. At most 10 MB.
    #[serde(default)]
    #[schema(nullable = false)]
    pub(crate) input: Option<String>,
    /// Short for `limits.max_depth`.
    #[serde(default)]
    #[schema(nullable = false, maximum = 64)]
    pub(crate) depth: Option<u16>,
    /// Limits; they may be changed later.
    #[serde(default)]
    #[schema(value_type = Option<CrawlLimitsShape>, nullable = false)]
    pub(crate) limits: Option<CrawlLimits>,
    /// What the crawl does; frozen from now on.
    #[serde(default)]
    #[schema(value_type = Option<CrawlConfigShape>, nullable = false)]
    pub(crate) config: Option<CrawlConfig>,
    /// Inherited by every snapshot; at most a hundred.
    #[serde(default)]
    #[schema(required = false)]
    pub(crate) tags: Vec<String>,
    /// One line for people.
    #[serde(default)]
    #[schema(required = false, max_length = 200)]
    pub(crate) label: String,
    /// Longer text for people.
    #[serde(default)]
    #[schema(required = false, max_length = 10_000)]
    pub(crate) notes: String,
    /// Delete the crawl and its snapshots after this long: a number and `h`, `d`, `w`, `mo` or `y`.
    #[serde(default)]
    #[schema(nullable = false, example = "30d")]
    pub(crate) delete_after: Option<String>,
}

/// Changes to a crawl; at least one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CrawlPatch {
    /// Done last.
    #[schema(nullable = false)]
    pub(crate) action: Option<Action>,
    /// Replaces all limits.
    #[schema(value_type = Option<CrawlLimitsShape>, nullable = false)]
    pub(crate) limits: Option<CrawlLimits>,
    /// Replaces the tags.
    #[schema(nullable = false)]
    pub(crate) tags: Option<Vec<String>>,
    /// Adds tags.
    #[serde(default)]
    #[schema(required = false)]
    pub(crate) add_tags: Vec<String>,
    /// Removes tags.
    #[serde(default)]
    #[schema(required = false)]
    pub(crate) remove_tags: Vec<String>,
    /// One line for people.
    #[schema(nullable = false, max_length = 200)]
    pub(crate) label: Option<String>,
    /// Longer text for people.
    #[schema(nullable = false, max_length = 10_000)]
    pub(crate) notes: Option<String>,
    /// Delete at this time; null keeps it for good.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<DateTime<Utc>>, required = false)]
    pub(crate) delete_at: Option<Option<DateTime<Utc>>>,
    /// Delete this long from now, as at submission.
    #[schema(nullable = false, example = "30d")]
    pub(crate) delete_after: Option<String>,
}

/// What to do with a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    /// Hold it: what runs ends its stage, nothing new starts.
    Pause,
    /// Go on.
    Resume,
    /// End it.
    Cancel,
}

/// Limits of a crawl; null means no limit.
#[derive(ToSchema)]
#[schema(as = CrawlLimits)]
#[expect(dead_code, reason = "documents fonds_domain::CrawlLimits, which knows no OpenAPI; a test compares the two")]
pub(crate) struct CrawlLimitsShape {
    /// Links are followed this far from the submitted URLs.
    #[schema(required = false, maximum = 64)]
    max_depth: u16,
    /// Snapshots in the crawl, exact.
    #[schema(minimum = 1)]
    max_urls: Option<u64>,
    /// Bytes stored by the crawl.
    #[schema(minimum = 1)]
    max_size: Option<u64>,
    /// Seconds from the first admission, pauses not counted.
    #[schema(minimum = 1)]
    timeout_s: Option<u32>,
    /// Bytes stored by one snapshot.
    #[schema(minimum = 1)]
    snapshot_max_size: Option<u64>,
    /// Snapshots captured at once.
    #[schema(minimum = 1)]
    max_concurrent: Option<u32>,
}

/// What a crawl does; everything has a default.
#[derive(ToSchema)]
#[schema(as = CrawlConfig)]
#[expect(dead_code, reason = "documents fonds_domain::CrawlConfig, which knows no OpenAPI; a test compares the two")]
pub(crate) struct CrawlConfigShape {
    /// Extractors wanted; empty means the default ones.
    #[schema(required = false)]
    extractors: Vec<String>,
    /// Domains or regular expressions of which one must match, unless empty.
    #[schema(required = false)]
    allow: Vec<String>,
    /// Domains or regular expressions of which none may match.
    #[schema(required = false)]
    deny: Vec<String>,
    /// Which links are followed: `any`, `domain`, `host` (default), `prefix`.
    #[schema(required = false)]
    scope: String,
    /// robots.txt: `off` (default), `obey`, `report`.
    #[schema(required = false)]
    robots: String,
    /// Whether the fragment is part of a URL's identity.
    #[schema(required = false)]
    keep_fragments: bool,
    /// Within what a body already held becomes a revisit record: `crawl` (default), `library`, `off`.
    #[schema(required = false)]
    dedup: String,
    /// Skip URLs that were archived before.
    #[schema(required = false)]
    only_new: bool,
    /// User agent sent instead of the default.
    user_agent: Option<String>,
    /// Seconds for any extractor without a setting of its own.
    #[schema(minimum = 1, maximum = 3600)]
    timeout_s: Option<u32>,
    /// Seconds by extractor.
    #[schema(required = false)]
    extractor_timeouts: BTreeMap<String, u32>,
    /// Least milliseconds between two requests for pages of one public host.
    #[schema(required = false)]
    host_delay_ms: u32,
    /// Failures in a row after which a host's remaining pages are not tried.
    #[schema(required = false)]
    host_max_failures: u32,
    /// Largest body kept, in bytes.
    #[schema(required = false)]
    body_max: u64,
    /// Scroll the page so that lazy images load.
    #[schema(required = false)]
    scroll: bool,
    /// Close cookie banners and dialogs.
    #[schema(required = false)]
    close_banners: bool,
    /// Domains or regular expressions the browser must not load.
    #[schema(required = false)]
    block: Vec<String>,
    /// `auto` (default), `text`, `netscape`, `rss`, `sitemap`, `json`, `jsonl`, `csv`, `html`, `opml`.
    #[schema(required = false)]
    input_format: String,
    /// Yields to what people submit by hand.
    #[schema(required = false)]
    scheduled: bool,
}

/// How far a crawl is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Counts {
    /// Admitted.
    snapshots: i64,
    /// Not over.
    open: i64,
    /// Over.
    sealed: i64,
    /// Over with an error code.
    failed: i64,
    /// Over without having been tried.
    skipped: i64,
    /// Results recorded.
    results: i64,
    /// Results that failed.
    results_failed: i64,
    /// Bytes stored.
    bytes: i64,
}

/// A crawl.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Crawl {
    id: Uuid,
    #[schema(value_type = names::CrawlStatus)]
    status: CrawlStatus,
    /// Why it ended or does not go on.
    #[schema(value_type = Option<names::StopReason>)]
    stop_reason: Option<StopReason>,
    label: String,
    tags: Vec<String>,
    created_at: Time,
    /// First admission.
    started_at: Option<Time>,
    paused_at: Option<Time>,
    sealed_at: Option<Time>,
    modified_at: Time,
    delete_at: Option<Time>,
    /// The token that submitted it.
    created_by: Option<Uuid>,
    #[schema(value_type = CrawlLimitsShape)]
    limits: CrawlLimits,
    counts: Counts,
    /// Sealed of admitted; 1 when it is over. May fall while discovery adds pages.
    progress: f64,
    /// Whether every URL of the input is admitted or refused.
    setup_done: bool,
    /// Whether a limit kept a link out.
    discovery_blocked: bool,
    error: Option<Failure>,
    href: String,
}

/// A crawl with what is too much for a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CrawlDetail {
    #[serde(flatten)]
    crawl: Crawl,
    notes: String,
    /// As frozen.
    #[schema(value_type = CrawlConfigShape)]
    config: serde_json::Value,
    /// What became of the input.
    #[schema(value_type = Option<Object>)]
    setup_report: Option<serde_json::Value>,
    /// Index and collection files, once it is sealed.
    files: Vec<CrawlFile>,
}

/// A file of a sealed crawl.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CrawlFile {
    name: String,
    mime: String,
    size: u64,
    sha256: Option<String>,
    href: String,
}

impl Crawl {
    pub(crate) fn new(row: query::Crawl, base: &Base) -> Crawl {
        let (admitted, sealed) = (row.n_snapshots, row.n_sealed);
        let progress = match row.status {
            CrawlStatus::Sealed => 1.0,
            _ if admitted == 0 => 0.0,
            _ => sealed as f64 / admitted as f64,
        };
        Crawl {
            id: row.id.0,
            status: row.status,
            stop_reason: row.stop_reason,
            label: row.label,
            tags: row.tags,
            created_at: row.created_at.into(),
            started_at: row.started_at.map(Time),
            paused_at: row.paused_at.map(Time),
            sealed_at: row.sealed_at.map(Time),
            modified_at: row.modified_at.into(),
            delete_at: row.delete_at.map(Time),
            created_by: row.created_by.map(|t| t.0),
            limits: row.limits,
            counts: Counts {
                snapshots: admitted,
                open: admitted - sealed,
                sealed,
                failed: row.n_failed,
                skipped: row.n_skipped,
                results: row.n_results,
                results_failed: row.n_results_failed,
                bytes: row.bytes,
            },
            progress,
            setup_done: row.setup_done,
            discovery_blocked: row.discovery_blocked,
            error: Failure::new(row.error_code, row.error),
            href: base.crawl(row.id),
        }
    }
}

impl CrawlDetail {
    pub(crate) fn new(row: query::CrawlDetail, base: &Base) -> CrawlDetail {
        let id = row.crawl.id;
        let file = |f: StoredFile| CrawlFile {
            href: base.crawl_file(id, &f.path),
            name: f.path,
            mime: f.mime,
            size: f.size,
            sha256: f.sha256,
        };
        CrawlDetail {
            notes: row.crawl.notes.clone(),
            config: row.config,
            setup_report: row.setup_report,
            files: row.files.into_iter().map(file).collect(),
            crawl: Crawl::new(row.crawl, base),
        }
    }
}

/// The answer to a submission.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Submitted {
    #[serde(flatten)]
    pub(crate) crawl: CrawlDetail,
    /// What will become of `urls`, as far as can be told now; crawl-setup has the last word.
    pub(crate) plan: Vec<Planned>,
    /// Whether there are more URLs than the plan shows.
    pub(crate) plan_truncated: bool,
}

/// What will become of a URL.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Planned {
    pub(crate) url: String,
    pub(crate) outcome: PlannedOutcome,
    /// The earlier capture of `already_archived`.
    pub(crate) snapshot_id: Option<Uuid>,
}

/// What will become of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlannedOutcome {
    /// It will be captured.
    Capture,
    /// It is in the list before.
    Duplicate,
    /// It was archived before and `only_new` is set.
    AlreadyArchived,
    /// An allow or deny list keeps it out.
    Denied,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use utoipa::PartialSchema;

    /// The shapes written for OpenAPI have exactly the members of the domain's types.
    #[test]
    fn shapes_have_the_domains_members() {
        fn members(schema: impl Serialize) -> Vec<String> {
            let schema = serde_json::to_value(schema).unwrap();
            let mut names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            names.sort();
            names
        }
        fn fields(value: impl Serialize) -> Vec<String> {
            let Value::Object(map) = serde_json::to_value(value).unwrap() else { panic!("an object") };
            let mut names: Vec<_> = map.keys().cloned().collect();
            names.sort();
            names
        }
        assert_eq!(members(CrawlConfigShape::schema()), fields(CrawlConfig::default()));
        assert_eq!(members(CrawlLimitsShape::schema()), fields(CrawlLimits::default()));
    }
}
