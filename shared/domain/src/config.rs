//! The configuration of a crawl: frozen at creation, so that what runs later does what was asked
//! for. Limits are apart, because they may be changed while the crawl runs.

use crate::extractor::{EXTRACTORS, Extractor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How robots.txt is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RobotsPolicy {
    /// Not read.
    #[default]
    Off,
    /// Obeyed, with its crawl delay.
    Obey,
    /// Read and reported on the snapshot, not obeyed.
    Report,
}

/// Within what a body already held becomes a revisit record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DedupScope {
    /// Within the crawl.
    #[default]
    Crawl,
    /// Within the whole library.
    Library,
    /// Never.
    Off,
}

/// Which links of a page belong to the crawl.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Any http or https URL.
    Any,
    /// The registrable domain of the page they are on.
    Domain,
    /// The same host and port.
    #[default]
    Host,
    /// Below the folder of the crawl's first URL.
    Prefix,
}

/// What a crawl does, frozen when it is created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlConfig {
    /// Extractors wanted; empty means the default ones.
    pub extractors: Vec<String>,
    /// Patterns of which one must match, unless empty. See `fonds_pages::urls`.
    pub allow: Vec<String>,
    /// Patterns of which none may match.
    pub deny: Vec<String>,
    /// Which links are followed.
    pub scope: Scope,
    /// robots.txt.
    pub robots: RobotsPolicy,
    /// Whether the fragment is part of a URL's identity.
    pub keep_fragments: bool,
    /// Revisit records.
    pub dedup: DedupScope,
    /// Skip URLs that were archived before.
    pub only_new: bool,
    /// User agent sent instead of the default.
    pub user_agent: Option<String>,
    /// Seconds for any extractor without a setting of its own.
    pub timeout_s: Option<u32>,
    /// Seconds by extractor.
    pub extractor_timeouts: BTreeMap<String, u32>,
    /// Least time between two requests for pages of one public host, in milliseconds.
    pub host_delay_ms: u32,
    /// Failures in a row after which a host's remaining pages are not tried.
    pub host_max_failures: u32,
    /// Largest body kept, in bytes.
    pub body_max: u64,
    /// Scroll the page so that lazy images load.
    pub scroll: bool,
    /// Close cookie banners and dialogs.
    pub close_banners: bool,
    /// URL patterns the browser must not load (advertising and the like).
    pub block: Vec<String>,
    /// Input format: `auto`, `text`, `netscape`, `rss`, `sitemap`, `json`, `jsonl`, `csv`, `html`, `opml`.
    pub input_format: String,
    /// Made by a schedule: yields to what people submit by hand.
    pub scheduled: bool,
}

impl Default for CrawlConfig {
    fn default() -> Self {
        Self {
            extractors: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            scope: Scope::default(),
            robots: RobotsPolicy::default(),
            keep_fragments: false,
            dedup: DedupScope::default(),
            only_new: false,
            user_agent: None,
            timeout_s: None,
            extractor_timeouts: BTreeMap::new(),
            host_delay_ms: 250,
            host_max_failures: 20,
            body_max: 512 * 1024 * 1024,
            scroll: true,
            close_banners: true,
            block: Vec::new(),
            input_format: "auto".to_owned(),
            scheduled: false,
        }
    }
}

/// A field of the configuration that cannot be used as given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ConfigError {
    /// The field, as named in the request.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl CrawlConfig {
    /// The extractors this crawl wants, in table order.
    pub fn wanted(&self) -> impl Iterator<Item = &'static Extractor> + '_ {
        EXTRACTORS.iter().filter(|x| {
            if self.extractors.is_empty() { x.default } else { self.extractors.iter().any(|n| n == x.name) }
        })
    }

    /// Whether this extractor is wanted.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.wanted().any(|x| x.name == name)
    }

    /// Whether any wanted output needs the browser; the others go the plain way.
    #[must_use]
    pub fn needs_browser(&self) -> bool {
        self.wanted().any(Extractor::needs_browser)
    }

    /// The timeout of an extractor: its own setting, else the crawl's, else its default.
    #[must_use]
    pub fn timeout_of(&self, extractor: &Extractor) -> Duration {
        self.extractor_timeouts
            .get(extractor.name)
            .copied()
            .or(self.timeout_s)
            .map_or_else(|| extractor.timeout(), |s| Duration::from_secs(u64::from(s)))
    }

    /// Checks what the types do not: names, formats and ranges. Patterns are checked where they
    /// are compiled.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        let bad = |field: &str, message: String| Err(ConfigError { field: field.to_owned(), message });
        for name in self.extractors.iter().chain(self.extractor_timeouts.keys()) {
            if Extractor::named(name).is_none() {
                let known: Vec<_> = EXTRACTORS.iter().map(|x| x.name).collect();
                return bad("extractors", format!("no extractor is called {name:?}; known are {}", known.join(", ")));
            }
        }
        if self.timeout_s.iter().chain(self.extractor_timeouts.values()).any(|s| !(1..=3600).contains(s)) {
            return bad("timeout_s", "must be between 1 and 3600 seconds".to_owned());
        }
        if self.allow.len() + self.deny.len() + self.block.len() > 1000 {
            return bad("deny", "more than 1000 patterns".to_owned());
        }
        if self.user_agent.as_deref().is_some_and(|ua| ua.len() > 500 || ua.chars().any(char::is_control)) {
            return bad("user_agent", "longer than 500 bytes or with control characters".to_owned());
        }
        const FORMATS: &[&str] =
            &["auto", "text", "netscape", "rss", "sitemap", "json", "jsonl", "csv", "html", "opml"];
        if !FORMATS.contains(&self.input_format.as_str()) {
            return bad("input_format", format!("must be one of {}", FORMATS.join(", ")));
        }
        Ok(())
    }
}

/// Limits of a crawl; zero or none means no limit. They may be changed while the crawl runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlLimits {
    /// Links are followed this far from the submitted URLs.
    pub max_depth: u16,
    /// Snapshots in the crawl, exact.
    pub max_urls: Option<u64>,
    /// Bytes stored by the crawl.
    pub max_size: Option<u64>,
    /// Seconds from the first admission, pauses not counted.
    pub timeout_s: Option<u32>,
    /// Bytes stored by one snapshot.
    pub snapshot_max_size: Option<u64>,
    /// Snapshots captured at once.
    pub max_concurrent: Option<u32>,
}

impl CrawlLimits {
    /// Deepest crawl that can be asked for.
    pub const MAX_DEPTH: u16 = 64;

    /// Checks ranges.
    ///
    /// # Errors
    /// The first field out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let bad =
            |field: &str, message: &str| Err(ConfigError { field: field.to_owned(), message: message.to_owned() });
        if self.max_depth > Self::MAX_DEPTH {
            return bad("max_depth", "must be at most 64");
        }
        for (field, value) in
            [("max_urls", self.max_urls), ("max_size", self.max_size), ("snapshot_max_size", self.snapshot_max_size)]
        {
            if value.is_some_and(|v| v == 0 || i64::try_from(v).is_err()) {
                return bad(field, "must be at least 1; leave it out for no limit");
            }
        }
        if self.timeout_s == Some(0) || self.max_concurrent == Some(0) {
            return bad("limits", "timeout_s and max_concurrent must be at least 1; leave them out for no limit");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_without_browser_outputs_goes_the_plain_way() {
        let mut config = CrawlConfig::default();
        assert!(config.needs_browser() && config.wants("screenshot") && !config.wants("mhtml"));
        config.extractors = vec!["warc".into(), "title".into(), "htmltotext".into()];
        assert!(!config.needs_browser());
        assert!(!config.wants("screenshot"));
    }

    #[test]
    fn timeouts_resolve_from_the_most_specific_setting() {
        let pdf = Extractor::named("pdf").expect("exists");
        let mut config = CrawlConfig::default();
        assert_eq!(config.timeout_of(pdf).as_secs(), 60);
        config.timeout_s = Some(20);
        assert_eq!(config.timeout_of(pdf).as_secs(), 20);
        config.extractor_timeouts.insert("pdf".into(), 7);
        assert_eq!(config.timeout_of(pdf).as_secs(), 7);
    }

    #[test]
    fn wrong_fields_are_named() {
        let config = CrawlConfig { extractors: vec!["screenshots".into()], ..CrawlConfig::default() };
        let error = config.check().expect_err("refused");
        assert_eq!(error.field, "extractors");
        assert!(error.message.contains("screenshot,"), "names what exists: {error}");
        let limits = CrawlLimits { max_urls: Some(0), ..CrawlLimits::default() };
        assert_eq!(limits.check().expect_err("refused").field, "max_urls");
    }
}
