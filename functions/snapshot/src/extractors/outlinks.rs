//! urls.jsonl of the `parse_*` extractors and of the live document: where this page leads.

use super::{Extract, Failure, Made, done};
use crate::page::{File, Page};

pub(super) const HTML: Extract =
    of("parse_html_urls", |p| applies(p, "parse_html_urls"), |p| run(p, "parse_html_urls"));
pub(super) const TXT: Extract = of("parse_txt_urls", |p| applies(p, "parse_txt_urls"), |p| run(p, "parse_txt_urls"));
pub(super) const RSS: Extract = of("parse_rss_urls", |p| applies(p, "parse_rss_urls"), |p| run(p, "parse_rss_urls"));
pub(super) const NETSCAPE: Extract =
    of("parse_netscape_urls", |p| applies(p, "parse_netscape_urls"), |p| run(p, "parse_netscape_urls"));
pub(super) const JSONL: Extract =
    of("parse_jsonl_urls", |p| applies(p, "parse_jsonl_urls"), |p| run(p, "parse_jsonl_urls"));
pub(super) const DOM: Extract = of("dom_outlinks", Page::to_render, |p| done(p).and_then(|_| run(p, "dom_outlinks")));

const fn of(name: &'static str, applies: fn(&Page) -> bool, run: fn(&Page) -> Result<Made, Failure>) -> Extract {
    Extract { name, applies, run }
}

fn applies(page: &Page, name: &str) -> bool {
    page.found.iter().any(|(extractor, _)| *extractor == name)
}

fn run(page: &Page, name: &str) -> Result<Made, Failure> {
    let links = page.found.iter().find(|(extractor, _)| *extractor == name).map(|(_, links)| links.as_slice());
    let links = links.unwrap_or_default();
    if links.is_empty() {
        return Ok(Made::Nothing("no links"));
    }
    let mut lines = String::new();
    for link in links {
        lines.push_str(&serde_json::to_string(link).unwrap_or_default());
        lines.push('\n');
    }
    let file = File::new("urls.jsonl", "application/x-ndjson", lines);
    Ok(Made::Files(vec![file], Some(format!("{} links", links.len()))))
}
