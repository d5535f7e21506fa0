//! Which attributes of which elements are links, and to what.

use super::css;
use super::facts::anchor_text;
use super::srcset::parse_srcset;
use super::{FactsOptions, LinkKind, Outlink};
use crate::text::flow::collapsed;
use crate::tokens::{TextKind, Tokenizer};
use crate::urls::PageUrl;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use url::Url;

const MAX_LINK_TEXT: usize = 300;
/// More than this of one style sheet is not looked through for references.
const MAX_CSS: usize = 4 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Element(&'static str),
    Link,
    Css,
    Refresh,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Source::Element(name) => name,
            Source::Link => "link",
            Source::Css => "css",
            Source::Refresh => "refresh",
        }
    }
}

/// A link as written. The page's base is known only when it has been read to its end.
#[derive(Debug)]
pub(super) struct RawLink<'a> {
    pub(super) href: Cow<'a, str>,
    pub(super) kind: LinkKind,
    pub(super) source: Source,
    pub(super) rel: Option<Cow<'a, str>>,
    pub(super) text: Option<String>,
}

#[derive(Debug)]
pub(super) struct Links<'a> {
    raw: Vec<RawLink<'a>>,
    max: usize,
    resources: bool,
    truncated: bool,
    /// The `a` that is open, and its text so far.
    open: Option<usize>,
    text: String,
}

impl<'a> Links<'a> {
    pub(super) fn new(options: &FactsOptions) -> Self {
        Links {
            raw: Vec::new(),
            max: options.max_links,
            resources: options.resources,
            truncated: false,
            open: None,
            text: String::new(),
        }
    }

    pub(super) fn push(&mut self, link: RawLink<'a>) {
        let wanted = self.resources || link.kind != LinkKind::Resource;
        // An anchor to nothing leads to its own page; an image of nothing is no image.
        let nothing = link.kind != LinkKind::Navigate && link.href.trim_ascii().is_empty();
        if !wanted || nothing || is_never_fetched(&link.href) {
            return;
        }
        // The same link may stand there many times; only distinct ones count in the end.
        if self.raw.len() >= self.max.saturating_mul(4) {
            self.truncated = true;
            return;
        }
        self.raw.push(link);
    }

    fn add(&mut self, href: Option<Cow<'a, str>>, kind: LinkKind, name: &'static str) {
        if let Some(href) = href {
            self.push(RawLink { href, kind, source: Source::Element(name), rel: None, text: None });
        }
    }

    /// The links of one start tag.
    pub(super) fn element(&mut self, tag: &Tokenizer<'a>, name: &str) {
        use LinkKind::{Embed, Related, Resource};
        match name {
            "a" => self.anchor(tag),
            "area" => self.area(tag),
            "img" => {
                self.image_in_anchor(tag);
                for attr in ["src", "data-src", "data-original", "data-lazy-src", "longdesc"] {
                    let kind = if attr == "longdesc" { Related } else { Resource };
                    self.add(tag.attr(attr), kind, "img");
                }
                self.srcset(tag, "img");
            }
            "source" => {
                self.add(tag.attr("src"), Resource, "source");
                self.srcset(tag, "source");
            }
            "script" => self.add(tag.attr("src"), Resource, "script"),
            "iframe" => {
                self.add(tag.attr("src"), Embed, "iframe");
                self.add(tag.attr("data-src"), Embed, "iframe");
            }
            "frame" => self.add(tag.attr("src"), Embed, "frame"),
            "object" => self.add(tag.attr("data"), Embed, "object"),
            "embed" => self.add(tag.attr("src"), Embed, "embed"),
            "video" => {
                self.add(tag.attr("src"), Resource, "video");
                self.add(tag.attr("poster"), Resource, "video");
            }
            "audio" => self.add(tag.attr("src"), Resource, "audio"),
            "track" => self.add(tag.attr("src"), Resource, "track"),
            "input" => self.add(tag.attr("src"), Resource, "input"),
            "image" | "use" | "feimage" => {
                let href = tag.attr("href").or_else(|| tag.attr("xlink:href"));
                self.add(href.filter(|h| !h.starts_with('#')), Resource, "svg");
            }
            "form" => self.add(tag.attr("action"), Related, "form"),
            "body" | "table" | "td" | "th" | "tr" => self.add(tag.attr("background"), Resource, "background"),
            _ => {}
        }
    }

    /// An image that is all there is in a link speaks for it.
    fn image_in_anchor(&mut self, tag: &Tokenizer<'a>) {
        if self.open.is_some()
            && self.text.is_empty()
            && let Some(alt) = tag.attr("alt")
        {
            anchor_text(&mut self.text, &alt, TextKind::Raw, MAX_LINK_TEXT);
        }
    }

    fn anchor(&mut self, tag: &Tokenizer<'a>) {
        self.anchor_ends();
        // SVG's anchors were written with a prefix.
        let Some(href) = tag.attr("href").or_else(|| tag.attr("xlink:href")) else { return };
        let before = self.raw.len();
        let text = tag.attr("title").or_else(|| tag.attr("aria-label")).and_then(|t| collapsed(&t, MAX_LINK_TEXT));
        let link = RawLink { href, kind: LinkKind::Navigate, source: Source::Element("a"), rel: tag.attr("rel"), text };
        self.push(link);
        self.open = (self.raw.len() > before).then_some(before);
    }

    fn area(&mut self, tag: &Tokenizer<'a>) {
        let Some(href) = tag.attr("href") else { return };
        let text = tag.attr("alt").and_then(|t| collapsed(&t, MAX_LINK_TEXT));
        let link =
            RawLink { href, kind: LinkKind::Navigate, source: Source::Element("area"), rel: tag.attr("rel"), text };
        self.push(link);
    }

    pub(super) fn anchor_text(&mut self, text: &str, kind: TextKind) {
        if self.open.is_some() {
            anchor_text(&mut self.text, text, kind, MAX_LINK_TEXT);
        }
    }

    pub(super) fn anchor_ends(&mut self) {
        if let Some(link) = self.open.take().and_then(|at| self.raw.get_mut(at))
            && let text = self.text.trim()
            && !text.is_empty()
        {
            link.text = Some(text.to_owned());
        }
        self.text.clear();
    }

    fn srcset(&mut self, tag: &Tokenizer<'a>, name: &'static str) {
        if !self.resources {
            return;
        }
        for attr in ["srcset", "data-srcset"] {
            let Some(value) = tag.attr(attr) else { continue };
            for candidate in parse_srcset(&value) {
                self.add(Some(Cow::Owned(candidate.url.to_owned())), LinkKind::Resource, name);
            }
        }
    }

    /// The references of a style sheet in the page.
    pub(super) fn css(&mut self, css_text: &str) {
        if !self.resources || css_text.len() > MAX_CSS || !css::may_have_refs(css_text) {
            return;
        }
        for reference in css::refs(css_text) {
            self.push(RawLink {
                href: Cow::Owned(reference.url.into_owned()),
                kind: LinkKind::Resource,
                source: Source::Css,
                rel: None,
                text: None,
            });
        }
    }

    pub(super) fn style_attr(&mut self, tag: &Tokenizer<'a>) {
        if self.resources
            && let Some(style) = tag.attr_raw("style")
            && style.contains('(')
        {
            self.css(&crate::tokens::decode_attr(style));
        }
    }

    /// Makes all links absolute and distinct. Says whether some were left out for their number.
    pub(super) fn resolve(mut self, base: &Url, page_nofollow: bool) -> (Vec<Outlink>, bool) {
        self.anchor_ends();
        let hasher = RandomState::new();
        let mut seen: HashMap<u64, usize> = HashMap::with_capacity(self.raw.len());
        let mut out: Vec<Outlink> = Vec::with_capacity(self.raw.len());
        let mut truncated = self.truncated;
        for link in self.raw {
            let Ok(url) = PageUrl::join(base, &link.href) else { continue };
            let key = hasher.hash_one((link.kind, url.as_str()));
            let nofollow = page_nofollow || link.rel.as_deref().is_some_and(has_nofollow);
            if let Some(first) = seen.get(&key).and_then(|at| out.get_mut(*at)) {
                first.nofollow &= nofollow;
                if first.text.is_none() {
                    first.text = link.text;
                }
                continue;
            }
            if out.len() >= self.max {
                truncated = true;
                break;
            }
            seen.insert(key, out.len());
            out.push(Outlink {
                url: url.into_url().into(),
                kind: link.kind,
                source: Cow::Borrowed(link.source.as_str()),
                rel: link.rel.map(|rel| rel.trim().to_owned()).filter(|rel| !rel.is_empty()),
                text: link.text,
                nofollow,
            });
        }
        (out, truncated)
    }
}

fn has_nofollow(rel: &str) -> bool {
    rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("nofollow"))
}

/// Schemes that name nothing to fetch, told early because `data:` may be megabytes.
fn is_never_fetched(href: &str) -> bool {
    let href = href.trim_start_matches(|c: char| c <= ' ');
    ["data:", "javascript:", "mailto:", "tel:", "about:", "blob:", "sms:"]
        .iter()
        .any(|scheme| href.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}
