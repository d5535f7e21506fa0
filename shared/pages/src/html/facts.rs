//! The one pass over a page.

use super::links::{Links, RawLink, Source};
use super::meta::parse_refresh;
use super::{FactsOptions, FeedLink, Icon, LinkKind, PageFacts, Refresh, base_url};
use crate::text::flow::{Flow, collapsed, push_collapsed};
use crate::tokens::{Name, Tag, TextKind, Token, Tokenizer, decode_text};
use std::borrow::Cow;
use url::Url;

const MAX_TITLE: usize = 2_048;
const MAX_META: usize = 500;
const MAX_META_VALUE: usize = 8_192;
const MAX_ICONS: usize = 50;
const MAX_JSON_LD: usize = 1 << 20;

/// Reads a page that was found at `url`. Time and memory are linear in the page; nesting costs nothing.
pub fn page_facts(html: &str, url: &Url, options: &FactsOptions) -> PageFacts {
    let mut pass = Pass {
        tokens: Tokenizer::html(html),
        facts: PageFacts::default(),
        base: None,
        links: Links::new(options),
        flow: Flow::new(options.max_text),
        inside: Inside::Other,
        title: None,
        refresh: None,
        json_ld_left: MAX_JSON_LD,
    };
    while let Some(token) = pass.tokens.next() {
        match token {
            Token::Start(tag) => pass.start(&tag),
            Token::End(tag) => pass.end(tag.name),
            Token::Text(text, kind) => pass.text(text, kind),
            Token::Comment(_) | Token::Doctype(_) | Token::Instruction(_) => {}
        }
    }
    pass.finish(url)
}

/// The raw text element the next text belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Title,
    Style,
    JsonLd,
    Other,
}

struct Pass<'a> {
    tokens: Tokenizer<'a>,
    facts: PageFacts,
    base: Option<Cow<'a, str>>,
    links: Links<'a>,
    flow: Flow,
    inside: Inside,
    title: Option<String>,
    refresh: Option<(u32, Option<String>)>,
    json_ld_left: usize,
}

impl<'a> Pass<'a> {
    fn start(&mut self, tag: &Tag<'a>) {
        let foreign = self.tokens.in_foreign();
        self.inside = Inside::Other;
        match tag.name.as_str() {
            "html" => self.lang(),
            "base" => {
                if self.base.is_none() {
                    self.base = self.tokens.attr("href");
                }
            }
            "title" if !foreign => self.inside = Inside::Title,
            "style" => self.inside = Inside::Style,
            "script" if self.is_json_ld() => self.inside = Inside::JsonLd,
            "meta" => self.meta(),
            "link" => self.link(),
            name => self.links.element(&self.tokens, name),
        }
        self.links.style_attr(&self.tokens);
        self.flow.start(tag);
    }

    fn end(&mut self, name: Name) {
        self.inside = Inside::Other;
        if name.as_str() == "a" {
            self.links.anchor_ends();
        }
        self.flow.end(name);
    }

    fn text(&mut self, text: &'a str, kind: TextKind) {
        match self.inside {
            Inside::Title => {
                if self.title.is_none() {
                    self.title = collapsed(&decode_text(text), MAX_TITLE);
                }
            }
            Inside::Style => self.links.css(text),
            Inside::JsonLd => self.json_ld(text),
            Inside::Other => {
                if self.flow.text(text, kind) {
                    self.links.anchor_text(text, kind);
                }
            }
        }
    }

    fn lang(&mut self) {
        if self.facts.lang.is_none() {
            let lang = self.tokens.attr("lang").or_else(|| self.tokens.attr("xml:lang"));
            self.facts.lang = lang.and_then(|lang| collapsed(&lang, 64));
        }
    }

    fn is_json_ld(&self) -> bool {
        self.tokens.attr_raw("type").is_some_and(|t| t.trim().to_ascii_lowercase().starts_with("application/ld+json"))
    }

    fn json_ld(&mut self, text: &str) {
        let body = text.trim().trim_start_matches("<!--").trim_end_matches("-->");
        if body.len() > self.json_ld_left {
            return;
        }
        if let Ok(value) = serde_json::from_str(body) {
            self.json_ld_left -= body.len();
            self.facts.json_ld.push(value);
        }
    }

    fn meta(&mut self) {
        let Some(content) = self.tokens.attr("content") else { return };
        let value = |content: &str| collapsed(content, MAX_META_VALUE);
        if let Some(pragma) = self.tokens.attr("http-equiv") {
            if pragma.trim().eq_ignore_ascii_case("refresh") && self.refresh.is_none() {
                self.refresh = parse_refresh(&content).map(|(after, url)| (after, url.map(str::to_owned)));
            }
            return;
        }
        let name =
            self.tokens.attr("property").or_else(|| self.tokens.attr("name")).or_else(|| self.tokens.attr("itemprop"));
        let Some(name) = name.map(|n| n.trim().to_ascii_lowercase()).filter(|n| !n.is_empty() && n.len() <= 200) else {
            return;
        };
        match name.as_str() {
            "robots" => self.facts.robots.add(&content),
            "description" if self.facts.description.is_none() => self.facts.description = value(&content),
            _ => {}
        }
        let facts = &mut self.facts;
        let list = if name.starts_with("twitter:") {
            &mut facts.twitter
        } else if matches!(
            name.split_once(':'),
            Some(("og" | "article" | "book" | "profile" | "music" | "video" | "fb", _))
        ) {
            &mut facts.open_graph
        } else {
            &mut facts.meta
        };
        if list.len() < MAX_META {
            list.extend(value(&content).map(|content| (name, content)));
        }
    }

    fn link(&mut self) {
        let (Some(href), Some(rel)) = (self.tokens.attr("href"), self.tokens.attr("rel")) else { return };
        let text = |name: &str| self.tokens.attr(name).and_then(|v| collapsed(&v, 512));
        let words: Vec<String> = rel.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        let has = |word: &str| words.iter().any(|w| w == word);
        if has("canonical") && self.facts.canonical.is_none() {
            self.facts.canonical = Some(href.clone().into_owned());
        }
        let icon =
            words.iter().find(|w| matches!(w.as_str(), "icon" | "mask-icon") || w.starts_with("apple-touch-icon"));
        if let Some(icon) = icon
            && self.facts.icons.len() < MAX_ICONS
        {
            let url = href.clone().into_owned();
            self.facts.icons.push(Icon { url, rel: icon.clone(), sizes: text("sizes"), mime: text("type") });
        }
        let mime = text("type").map(|t| t.to_ascii_lowercase());
        if has("alternate")
            && self.facts.feeds.len() < MAX_ICONS
            && let Some(mime) = mime.filter(|m| is_feed_type(m))
        {
            self.facts.feeds.push(FeedLink { url: href.clone().into_owned(), mime, title: text("title") });
        }
        if let Some(kind) = link_kind(&words) {
            self.links.push(RawLink { href, kind, source: Source::Link, rel: Some(rel), text: None });
        }
    }

    fn finish(self, url: &Url) -> PageFacts {
        let mut facts = self.facts;
        // A document has one base, also for what stands before the element.
        let base = self.base.map_or_else(|| url.clone(), |href| base_url(&href, url));
        let absolute = |href: &str| base.join(href).ok().map(String::from);
        facts.title = self.title;
        facts.canonical = facts.canonical.and_then(|href| absolute(&href));
        facts.icons.retain_mut(|icon| absolute(&icon.url).map(|url| icon.url = url).is_some());
        facts.feeds.retain_mut(|feed| absolute(&feed.url).map(|url| feed.url = url).is_some());
        let mut links = self.links;
        if let Some((after, target)) = self.refresh {
            if let Some(target) = &target {
                links.push(RawLink {
                    href: Cow::Owned(target.clone()),
                    kind: LinkKind::Related,
                    source: Source::Refresh,
                    rel: None,
                    text: None,
                });
            }
            let url = target.map_or_else(|| Some(url.to_string()), |t| absolute(&t));
            facts.refresh = url.map(|url| Refresh { after, url });
        }
        (facts.links, facts.links_truncated) = links.resolve(&base, facts.robots.nofollow);
        facts.base = Some(base.into());
        (facts.text, facts.text_truncated) = self.flow.finish();
        facts
    }
}

fn is_feed_type(mime: &str) -> bool {
    let mime = mime.split(';').next().unwrap_or("").trim();
    matches!(
        mime,
        "application/rss+xml" | "application/atom+xml" | "application/feed+json" | "application/rdf+xml" | "text/xml"
    )
}

/// What a `link` element refers to; nothing for hints that name only a host.
fn link_kind(rel: &[String]) -> Option<LinkKind> {
    let mut kind = None;
    for word in rel {
        match word.as_str() {
            "stylesheet"
            | "icon"
            | "mask-icon"
            | "preload"
            | "modulepreload"
            | "prefetch"
            | "manifest"
            | "apple-touch-icon"
            | "apple-touch-icon-precomposed"
            | "apple-touch-startup-image"
            | "image_src" => {
                return Some(LinkKind::Resource);
            }
            "dns-prefetch" | "preconnect" | "pingback" | "edituri" | "wlwmanifest" | "profile" => return None,
            _ => kind = Some(LinkKind::Related),
        }
    }
    kind
}

/// Collects the text of one anchor.
pub(super) fn anchor_text(out: &mut String, text: &str, kind: TextKind, cap: usize) {
    if out.len() >= cap {
        return;
    }
    if kind.has_entities() {
        push_collapsed(out, &decode_text(text), cap);
    } else {
        push_collapsed(out, text, cap);
    }
}
