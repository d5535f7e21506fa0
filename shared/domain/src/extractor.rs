//! The extractors: what a snapshot can be asked to produce. One line each; the code of an
//! extractor is one file of the snapshot function, and a test there holds the two together.

use serde::Serialize;
use std::time::Duration;

/// The stage of a capture in which an extractor works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Over plain HTTP: the answer as sent.
    Fetch,
    /// In the browser, all from one load.
    Render,
    /// From what was fetched or rendered, without the network.
    Derive,
    /// Links.
    Parse,
    /// Indexes and hashes over everything else.
    Store,
}

/// What is known of an extractor without running it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Extractor {
    /// Its name in requests, rows and file names.
    pub name: &'static str,
    /// Its stage.
    pub stage: Stage,
    /// Its timeout in seconds unless the crawl says otherwise.
    pub timeout_s: u32,
    /// Whether a crawl that names no extractors gets it.
    pub default: bool,
    /// What it produces, for people.
    pub about: &'static str,
}

const fn e(name: &'static str, stage: Stage, timeout_s: u32, default: bool, about: &'static str) -> Extractor {
    Extractor { name, stage, timeout_s, default, about }
}

/// Every extractor, in the order in which results are shown.
pub const EXTRACTORS: &[Extractor] = &[
    e("headers", Stage::Fetch, 60, true, "headers.json: the final answer's status and headers"),
    e("redirects", Stage::Fetch, 60, true, "redirects.jsonl: every hop that led to the final answer"),
    e("title", Stage::Fetch, 30, true, "title.txt"),
    e("favicon", Stage::Fetch, 30, true, "the site's icon"),
    e("staticfile", Stage::Fetch, 60, true, "the file itself when the URL is not a page"),
    e("warc", Stage::Fetch, 60, true, "WARC records of everything that was fetched"),
    e("wacz", Stage::Store, 60, true, "the snapshot's WACZ package"),
    e("screenshot", Stage::Render, 60, true, "screenshot.png: the full page"),
    e("pdf", Stage::Render, 60, true, "output.pdf"),
    e("dom", Stage::Render, 60, true, "output.html: the document after scripts ran"),
    e("singlefile", Stage::Derive, 60, true, "singlefile.html: the page with everything inlined"),
    e("mhtml", Stage::Render, 60, false, "snapshot.mhtml"),
    e("seo", Stage::Derive, 30, true, "seo.json: meta, OpenGraph, Twitter and JSON-LD"),
    e("accessibility", Stage::Render, 30, true, "accessibility.json: the accessibility tree"),
    e("consolelog", Stage::Render, 30, true, "console.jsonl"),
    e("responses", Stage::Render, 30, true, "responses.jsonl: every request the page made"),
    e("sslcerts", Stage::Fetch, 30, true, "certificates of the page's host"),
    e("htmltotext", Stage::Derive, 30, true, "htmltotext.txt: the readable text"),
    e("readability", Stage::Derive, 30, true, "article.json, content.html, content.txt"),
    e("markdown", Stage::Derive, 30, false, "content.md"),
    e("parse_html_urls", Stage::Parse, 30, true, "links in the HTML as sent"),
    e("parse_txt_urls", Stage::Parse, 30, true, "URLs in plain text"),
    e("parse_rss_urls", Stage::Parse, 30, true, "entries of an RSS or Atom feed"),
    e("parse_netscape_urls", Stage::Parse, 30, true, "links of a bookmark export"),
    e("parse_jsonl_urls", Stage::Parse, 30, true, "links in JSON lines"),
    e("dom_outlinks", Stage::Parse, 30, true, "links in the document after scripts ran"),
    e("hashes", Stage::Store, 30, true, "hashes.json: sha256 of every file and a Merkle root"),
    e("search", Stage::Store, 30, true, "full-text index"),
];

impl Extractor {
    /// The extractor of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Extractor> {
        EXTRACTORS.iter().find(|x| x.name == name)
    }

    /// Whether it needs the browser.
    #[must_use]
    pub fn needs_browser(&self) -> bool {
        // singlefile is derived, but from the DOM and the resources of the browser's load.
        self.stage == Stage::Render || matches!(self.name, "singlefile" | "dom_outlinks")
    }

    /// Its timeout.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.timeout_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, a) in EXTRACTORS.iter().enumerate() {
            assert!(EXTRACTORS[i + 1..].iter().all(|b| b.name != a.name), "{}", a.name);
        }
        assert!(Extractor::named("screenshot").is_some_and(Extractor::needs_browser));
        assert!(Extractor::named("nope").is_none());
    }
}
