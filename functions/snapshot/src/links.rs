//! Where a page leads, and which of that belongs to the crawl.

use crate::page::Page;
use chrono::Utc;
use fonds_domain::{CrawlConfig, ErrorCode, Scope};
use fonds_pages::html::{LinkKind, Outlink, PageFacts};
use fonds_pages::parse_urls::{self, Fetched};
use fonds_pages::urls::{self, PageUrl, PathTrap, SeedScope, UrlRules};
use fonds_store::admission::{Candidate, UrlKey};
use std::borrow::Cow;
use std::collections::HashSet;
use url::Url;

/// Finds the links of a page by every extractor that applies. Computed once; the `parse_*` results
/// and discovery read it.
pub(crate) fn find(page: &Page) -> Vec<(&'static str, Vec<Outlink>)> {
    let mut found = Vec::new();
    let content_type =
        page.answer().and_then(|hop| hop.headers.get(http::header::CONTENT_TYPE)).and_then(|value| value.to_str().ok());
    if let Some(bytes) = &page.content.decoded {
        let fetched = Fetched { content_type, bytes, url: page.final_url() };
        for (name, extract) in parse_urls::EXTRACTORS {
            // The page's own pass has found its links already.
            let links = match (name, &page.content.facts) {
                ("parse_html_urls", Some(facts)) => Some(with_refresh(facts)),
                (_, Some(_)) if name != "parse_netscape_urls" => None,
                _ => extract(&fetched),
            };
            if let Some(links) = links {
                found.push((name, links));
            }
        }
    }
    if let Some(rendered) = page.rendered() {
        let mut links: Vec<Outlink> = rendered.facts.as_ref().map(with_refresh).unwrap_or_default();
        let mut seen: HashSet<String> = links.iter().map(|l| l.url.clone()).collect();
        // The live document also has links in shadow trees, which its serialisation lacks.
        let live = rendered.capture.outlinks.iter().filter_map(|o| o.as_ref().ok()).flatten();
        for link in live {
            if seen.insert(link.url.clone()) {
                links.push(Outlink {
                    url: link.url.clone(),
                    kind: LinkKind::Navigate,
                    source: Cow::Borrowed("dom"),
                    rel: Some(link.rel.clone()).filter(|r| !r.is_empty()),
                    text: Some(link.text.clone()).filter(|t| !t.is_empty()),
                    nofollow: link.rel.contains("nofollow"),
                });
            }
        }
        found.push(("dom_outlinks", links));
    }
    found
}

/// A page's links, and where it sends its readers by itself.
fn with_refresh(facts: &PageFacts) -> Vec<Outlink> {
    let mut links: Vec<Outlink> = facts.outlinks().cloned().collect();
    if let Some(refresh) = &facts.refresh {
        links.push(Outlink {
            url: refresh.url.clone(),
            kind: LinkKind::Navigate,
            source: Cow::Borrowed("meta refresh"),
            rel: None,
            text: None,
            nofollow: false,
        });
    }
    links
}

/// The rules of a crawl, compiled once a page or batch.
pub(crate) struct Rules {
    rules: UrlRules,
    trap: PathTrap,
}

impl Rules {
    /// Compiles the lists; they were checked at submission, so a failure means a stored
    /// configuration of another version: then nothing is let in.
    pub(crate) fn of(config: &CrawlConfig) -> Option<Rules> {
        let rules = UrlRules::compile(&config.allow, &config.deny).ok()?;
        Some(Rules { rules, trap: PathTrap::new(Utc::now().date_naive()) })
    }
}

/// The candidates among a page's links: http and https, in scope, let in by the lists, no trap.
/// `seeds` are the crawl's first URLs, needed for the `prefix` scope alone; the other scopes are
/// relative to the page, which is in scope itself.
pub(crate) fn candidates(page: &Page, rules: &Rules, seeds: &[Url]) -> Vec<Candidate> {
    if page.snapshot.depth >= page.crawl.limits.max_depth {
        return Vec::new();
    }
    let config = page.config();
    let scope = match config.scope {
        Scope::Any => urls::Scope::Any,
        Scope::Domain => urls::Scope::Domain,
        Scope::Host => urls::Scope::Host,
        Scope::Prefix => urls::Scope::Prefix,
    };
    let here = [&page.url, page.final_url()];
    let scope = if config.scope == Scope::Prefix && !seeds.is_empty() {
        SeedScope::new(scope, seeds)
    } else {
        SeedScope::new(scope, here)
    };
    let mut out = Vec::new();
    let mut seen: HashSet<UrlKey> = HashSet::new();
    for link in page.found.iter().flat_map(|(_, links)| links) {
        if link.kind != LinkKind::Navigate {
            continue;
        }
        let Ok(url) = PageUrl::parse(&link.url) else { continue };
        let key = url.key(config.keep_fragments);
        if !seen.insert(key) {
            continue;
        }
        let inside = scope.check(url.as_url()).is_ok()
            && rules.rules.check(url.as_url()).is_ok()
            && rules.trap.check(url.as_url(), Some(page.final_url())).is_ok();
        if inside {
            out.push(Candidate {
                key,
                host: url.host_port().to_owned(),
                url: url.as_str().to_owned(),
                depth: page.snapshot.depth + 1,
                parent: Some(page.snapshot.id),
                title: None,
                tags: Vec::new(),
                bookmarked_at: None,
            });
        }
    }
    out
}

/// The code of a capture that has no usable answer or an error status.
pub(crate) fn capture_error(page: &Page) -> Option<(ErrorCode, String)> {
    if let Some(error) = &page.fetched.error {
        let mut text = error.detail.clone();
        if let Some(refusal) = &error.refusal {
            text = format!("{} ({})", error.url, refusal.reason);
        }
        return Some((ErrorCode::named(error.code.as_str()), text));
    }
    let hop = page.answer()?;
    if hop.status.is_client_error() || hop.status.is_server_error() {
        return Some((ErrorCode::HTTP_ERROR, format!("the server answered {}", hop.status)));
    }
    None
}

#[cfg(test)]
mod tests {
    use fonds_domain::ErrorCode;
    use fonds_web::code::FetchCode;

    #[test]
    fn every_code_of_the_network_is_explained_to_people() {
        for code in FetchCode::ALL {
            assert_eq!(ErrorCode::named(code.as_str()).as_str(), code.as_str());
        }
    }
}
