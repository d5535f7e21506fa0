//! What a page says of itself and where it leads, read in one pass and without a tree.

pub mod css;
mod facts;
mod links;
mod meta;
mod srcset;

pub use crate::charset::{CharsetSource, Decoded, decode};
pub use facts::page_facts;
pub use meta::{RobotsMeta, parse_refresh};
pub use srcset::{Candidate, parse_srcset};

use crate::tokens::{Token, Tokenizer};
use serde::{Deserialize, Serialize};
use url::Url;

/// What following a link would get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// Another page: `a`, `area`. The only kind a crawl goes by.
    Navigate,
    /// A page shown within this one: `iframe`, `frame`, `object`, `embed`.
    Embed,
    /// What it takes to show this page: images, styles, scripts, fonts, media, icons.
    Resource,
    /// A page this one names without a link a reader could click: `link rel=next|alternate|canonical...`, a form's
    /// target, `meta refresh`.
    Related,
}

/// One link of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlink {
    /// Absolute, WHATWG-serialised, with its fragment.
    pub url: String,
    /// See [`LinkKind`].
    pub kind: LinkKind,
    /// The element it was found in: `a`, `img`, `css`, ...
    pub source: std::borrow::Cow<'static, str>,
    /// The `rel` attribute, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rel: Option<String>,
    /// The text of the link, or what stands for it (`alt`, `title`), at most 300 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `rel=nofollow` here, or a robots `nofollow` for the whole page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nofollow: bool,
}

/// An icon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Icon {
    /// Absolute.
    pub url: String,
    /// `icon`, `apple-touch-icon`, ...
    pub rel: String,
    /// `32x32 16x16`, `any`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<String>,
    /// The declared media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
}

/// A feed the page offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedLink {
    /// Absolute.
    pub url: String,
    /// The declared media type.
    pub mime: String,
    /// Its title, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// `meta http-equiv=refresh`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refresh {
    /// Seconds.
    pub after: u32,
    /// Absolute; the page itself when the pragma names no URL.
    pub url: String,
}

/// What [`page_facts`] collects and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct FactsOptions {
    /// The most bytes of text; 0 for none.
    pub max_text: usize,
    /// The most links.
    pub max_links: usize,
    /// Whether to collect [`LinkKind::Resource`] links.
    pub resources: bool,
}

impl Default for FactsOptions {
    fn default() -> Self {
        FactsOptions { max_text: 1 << 20, max_links: 20_000, resources: true }
    }
}

/// What a page says of itself. All URLs are absolute; every list is capped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PageFacts {
    /// The text of `<title>`, white space collapsed.
    pub title: Option<String>,
    /// `html[lang]`.
    pub lang: Option<String>,
    /// `link rel=canonical`.
    pub canonical: Option<String>,
    /// `meta name=description`.
    pub description: Option<String>,
    /// `meta name=robots`.
    pub robots: RobotsMeta,
    /// What relative URLs were resolved against.
    pub base: Option<String>,
    /// Every other `meta` with a name and a content, in order: `author`, `keywords`, `generator`, ...
    pub meta: Vec<(String, String)>,
    /// `og:*`, `article:*`, ... in order.
    pub open_graph: Vec<(String, String)>,
    /// `twitter:*`, in order.
    pub twitter: Vec<(String, String)>,
    /// JSON-LD blocks that parse.
    pub json_ld: Vec<serde_json::Value>,
    /// Icons, in order.
    pub icons: Vec<Icon>,
    /// Feeds, in order.
    pub feeds: Vec<FeedLink>,
    /// `meta refresh`.
    pub refresh: Option<Refresh>,
    /// Links in order of appearance, each URL once a kind.
    pub links: Vec<Outlink>,
    /// There were more links than the limit.
    pub links_truncated: bool,
    /// The text of the page, see [`crate::text::html_to_text`].
    pub text: String,
    /// The text was cut at its limit.
    pub text_truncated: bool,
}

impl PageFacts {
    /// The best there is for a title: `title`, `og:title`, `twitter:title`.
    pub fn best_title(&self) -> Option<&str> {
        let social = |list: &'_ [(String, String)], key: &str| list.iter().position(|(k, _)| k == key);
        self.title
            .as_deref()
            .or_else(|| social(&self.open_graph, "og:title").map(|i| self.open_graph[i].1.as_str()))
            .or_else(|| social(&self.twitter, "twitter:title").map(|i| self.twitter[i].1.as_str()))
    }

    /// The links of one kind.
    pub fn links_of(&self, kind: LinkKind) -> impl Iterator<Item = &Outlink> {
        self.links.iter().filter(move |link| link.kind == kind)
    }

    /// The page's links to other pages: every `a[href]` and `area[href]`.
    pub fn outlinks(&self) -> impl Iterator<Item = &Outlink> {
        self.links_of(LinkKind::Navigate)
    }

    /// `seo.json`: everything but the links and the text.
    pub fn seo_json(&self) -> serde_json::Value {
        serde_json::json!({
            "title": self.title,
            "lang": self.lang,
            "canonical": self.canonical,
            "description": self.description,
            "robots": self.robots,
            "meta": pairs(&self.meta),
            "open_graph": pairs(&self.open_graph),
            "twitter": pairs(&self.twitter),
            "json_ld": self.json_ld,
            "icons": self.icons,
            "feeds": self.feeds,
            "refresh": self.refresh,
        })
    }
}

fn pairs(list: &[(String, String)]) -> serde_json::Value {
    list.iter().map(|(name, content)| serde_json::json!({ "name": name, "content": content })).collect()
}

/// What the relative URLs of a page found at `url` are resolved against: its first `base[href]`, wherever that stands
/// (WHATWG HTML, 2.4.3).
pub fn document_base(html: &str, url: &Url) -> Url {
    let mut tokens = Tokenizer::html(html);
    while let Some(token) = tokens.next() {
        if let Token::Start(tag) = token
            && tag.name.as_str() == "base"
            && let Some(href) = tokens.attr("href")
        {
            return base_url(&href, url);
        }
    }
    url.clone()
}

fn base_url(href: &str, url: &Url) -> Url {
    url.join(href.trim()).ok().filter(|b| matches!(b.scheme(), "http" | "https")).unwrap_or_else(|| url.clone())
}

/// [`decode`] and [`page_facts`] in one: `content_type` is the HTTP header's value, `url` where the page was found.
pub fn facts_of(bytes: &[u8], content_type: Option<&str>, url: &Url, options: &FactsOptions) -> PageFacts {
    page_facts(&decode(bytes, content_type).text, url, options)
}

#[cfg(test)]
mod tests;
