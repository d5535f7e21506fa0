//! The pass over a page's markup.

use super::resources::{Resources, data_uri};
use super::style::{self, fetchable};
use super::tag::{Edit, escaped_len, push_attr};
use crate::charset;
use crate::codes;
use crate::html::{document_base, parse_srcset};
use crate::sniff;
use crate::tokens::{Tag, Token, Tokenizer};
use url::Url;

/// Rewrites a page; `depth` is how many frames it lies in.
pub(super) fn rewrite(html: &str, url: &Url, resources: &mut Resources<'_>, depth: usize) -> String {
    let mut page = Page {
        tokens: Tokenizer::html(html),
        base: document_base(html, url),
        out: String::with_capacity(html.len() + html.len() / 4),
        resources,
        depth,
        charset_written: false,
        dropping: false,
        in_style: false,
    };
    while let Some(token) = page.tokens.next() {
        let raw = html.get(page.tokens.span()).unwrap_or("");
        match token {
            Token::Start(tag) => page.start(&tag, raw),
            Token::End(tag) => page.end(&tag, raw),
            Token::Text(text, _) => page.text(text, raw),
            Token::Doctype(_) => page.out.push_str(raw),
            Token::Comment(_) | Token::Instruction(_) => page.out.push_str(raw),
        }
    }
    page.write_charset();
    page.out
}

struct Page<'a, 'r, 'f> {
    tokens: Tokenizer<'a>,
    base: Url,
    out: String,
    resources: &'r mut Resources<'f>,
    depth: usize,
    charset_written: bool,
    /// Within a `script` that is left out.
    dropping: bool,
    in_style: bool,
}

impl<'a> Page<'a, '_, '_> {
    /// The file is UTF-8 whatever the page was, and says so before anything else.
    fn write_charset(&mut self) {
        if !self.charset_written {
            self.charset_written = true;
            self.out.push_str("<meta charset=\"utf-8\">");
        }
    }

    fn text(&mut self, text: &str, raw: &str) {
        if self.dropping {
            return;
        }
        if self.in_style {
            let css = style::rewrite(text, &self.base, self.resources);
            self.out.push_str(&style::as_element_content(&css));
            return;
        }
        if !raw.trim().is_empty() {
            self.write_charset();
        }
        self.out.push_str(raw);
    }

    fn end(&mut self, tag: &Tag<'a>, raw: &str) {
        let name = tag.name.as_str();
        let was_dropping = std::mem::take(&mut self.dropping);
        self.in_style = false;
        if (was_dropping && name == "script") || name == "base" {
            return;
        }
        self.out.push_str(raw);
    }

    fn start(&mut self, tag: &Tag<'a>, raw: &str) {
        let name = tag.name.as_str();
        self.in_style = name == "style";
        self.dropping = false;
        if !matches!(name, "html" | "head") {
            self.write_charset();
        }
        let mut edit = Edit::default();
        let keep = match name {
            "base" => false,
            "meta" => self.keeps_meta(),
            "script" => self.script(tag, &mut edit),
            "link" => self.link(&mut edit),
            _ => {
                self.element(name, &mut edit);
                true
            }
        };
        if keep {
            self.every_element(&mut edit);
            if edit.is_empty() {
                self.out.push_str(raw);
            } else {
                edit.write(&mut self.out, tag, &self.tokens);
            }
        }
        if name == "head" {
            self.write_charset();
        }
    }

    /// What a file cannot have: another charset, a policy against its own content, and a way off.
    fn keeps_meta(&self) -> bool {
        let pragma = self.tokens.attr("http-equiv").map(|v| v.trim().to_ascii_lowercase());
        let gone = matches!(
            pragma.as_deref(),
            Some(
                "content-type"
                    | "content-security-policy"
                    | "content-security-policy-report-only"
                    | "refresh"
                    | "x-webkit-csp"
            )
        );
        !gone && self.tokens.attr_raw("charset").is_none()
    }

    fn script(&mut self, tag: &Tag<'a>, edit: &mut Edit) -> bool {
        if !self.resources.options.keep_scripts {
            // In SVG `<script/>` has no content.
            self.dropping = !(tag.self_closing && self.tokens.in_foreign());
            return false;
        }
        edit.remove("integrity");
        edit.remove("nonce");
        edit.remove("crossorigin");
        self.inline_attr("src", edit);
        true
    }

    fn link(&mut self, edit: &mut Edit) -> bool {
        let rel = self.tokens.attr("rel").map(|rel| rel.to_ascii_lowercase()).unwrap_or_default();
        let has = |word: &str| rel.split_ascii_whitespace().any(|w| w == word);
        if ["preload", "prefetch", "modulepreload", "dns-prefetch", "preconnect", "prerender", "manifest"]
            .into_iter()
            .any(has)
        {
            return false;
        }
        edit.remove("integrity");
        edit.remove("nonce");
        edit.remove("crossorigin");
        let url = self.tokens.attr("href").and_then(|href| fetchable(&self.base, &href));
        let Some(url) = url else { return true };
        if has("stylesheet") && !has("alternate") && self.tokens.attr_raw("disabled").is_none() {
            if let Some(css) = style::sheet(&url, self.resources) {
                self.style_element(&url, &css);
                return false;
            }
        } else if has("stylesheet") {
            if let Some(css) = style::sheet(&url, self.resources) {
                edit.set("href", data_uri("text/css;charset=utf-8", css.as_bytes()));
                return true;
            }
        } else if rel.contains("icon") {
            let target = self.resources.data_uri(&url).unwrap_or_else(|| url.to_string());
            edit.set("href", target);
            return true;
        }
        edit.set("href", url.as_str());
        true
    }

    fn style_element(&mut self, url: &Url, css: &str) {
        self.out.push_str("<style");
        push_attr(&mut self.out, "data-href", url.as_str());
        for name in ["media", "title", "id", "class"] {
            if let Some(value) = self.tokens.attr(name) {
                push_attr(&mut self.out, name, &value);
            }
        }
        self.out.push('>');
        self.out.push_str(&style::as_element_content(css));
        self.out.push_str("</style>");
    }

    /// Attributes any element may have.
    fn every_element(&mut self, edit: &mut Edit) {
        if let Some(css) = self.tokens.attr("style").filter(|css| css.contains('(')) {
            let new = style::rewrite(&css, &self.base, self.resources);
            if new != css {
                edit.set("style", new);
            }
        }
        if self.resources.options.keep_scripts {
            return;
        }
        let unsafe_names: Vec<&str> = self
            .tokens
            .attrs()
            .filter(|attr| {
                let handler = attr.name.get(..2).is_some_and(|on| on.eq_ignore_ascii_case("on"));
                handler || (is_url_attr(attr.name) && is_script_url(&attr.value()))
            })
            .map(|attr| attr.name)
            .collect();
        for name in unsafe_names {
            edit.remove(name);
        }
    }

    fn element(&mut self, name: &str, edit: &mut Edit) {
        match name {
            "a" | "area" => self.absolute_attr("href", edit),
            "form" => self.absolute_attr("action", edit),
            "img" | "source" => {
                self.image(edit);
            }
            "video" => {
                self.inline_attr("src", edit);
                self.inline_attr("poster", edit);
            }
            "audio" | "track" | "embed" | "input" => self.inline_attr("src", edit),
            "object" => self.inline_attr("data", edit),
            "iframe" | "frame" => self.frame(name, edit),
            "image" | "feimage" => {
                self.inline_attr("href", edit);
                self.inline_attr("xlink:href", edit);
            }
            // Browsers do not follow a `use` into a `data:` URI.
            "use" => {
                self.absolute_attr("href", edit);
                self.absolute_attr("xlink:href", edit);
            }
            "body" | "table" | "td" | "th" | "tr" => self.inline_attr("background", edit),
            _ => {}
        }
    }

    fn target(&self, attr: &str) -> Option<Url> {
        self.tokens.attr(attr).and_then(|href| fetchable(&self.base, &href))
    }

    fn absolute_attr(&mut self, attr: &str, edit: &mut Edit) {
        if let Some(url) = self.target(attr) {
            edit.set(attr, url.as_str());
        }
    }

    fn inline_attr(&mut self, attr: &str, edit: &mut Edit) {
        if let Some(url) = self.target(attr) {
            let target = self.resources.data_uri(&url);
            edit.set(attr, target.unwrap_or_else(|| url.into()));
        }
    }

    /// Of the candidates of a `srcset` those that were captured stay: mostly the one that was shown.
    fn image(&mut self, edit: &mut Edit) {
        let srcset = self.tokens.attr("srcset");
        let mut kept = String::new();
        for candidate in srcset.iter().flat_map(|value| parse_srcset(value)) {
            let Some(url) = fetchable(&self.base, candidate.url) else { continue };
            if !self.resources.has(&url) {
                continue;
            }
            let Some(data) = self.resources.data_uri(&url) else { continue };
            if !kept.is_empty() {
                kept.push_str(", ");
            }
            kept.push_str(&data);
            if !candidate.descriptor.is_empty() {
                kept.push(' ');
                kept.push_str(candidate.descriptor);
            }
        }
        let had_srcset = srcset.is_some();
        if let Some(url) = self.target("src") {
            // With a candidate in hand the fallback is not missed.
            if kept.is_empty() || self.resources.has(&url) && !kept_is_src(srcset.as_deref(), &self.base, &url) {
                let target = self.resources.data_uri(&url);
                edit.set("src", target.unwrap_or_else(|| url.into()));
            } else {
                edit.remove("src");
            }
        }
        if had_srcset {
            if kept.is_empty() { edit.remove("srcset") } else { edit.set("srcset", kept) }
        }
    }

    fn frame(&mut self, name: &str, edit: &mut Edit) {
        if let Some(own) = self.tokens.attr("srcdoc").filter(|_| name == "iframe") {
            let inner = if self.depth < self.resources.options.max_frame_depth {
                rewrite(&own, &self.base.clone(), self.resources, self.depth + 1)
            } else {
                String::new()
            };
            edit.set("srcdoc", inner);
            return;
        }
        let Some(url) = self.target("src") else { return };
        edit.set("src", url.as_str());
        let key = super::resources::without_fragment(&url).to_string();
        if self.depth >= self.resources.options.max_frame_depth || self.resources.open.contains(&key) {
            self.resources.leave_out(&url, codes::NESTED_TOO_DEEP);
            return;
        }
        let Some((mime, body)) = self.resources.take(&url) else { return };
        if !sniff::is_html(Some(&mime), &body) {
            let kind = sniff::sniff(&body, Some(&mime)).mime;
            edit.set("src", data_uri(&kind, &body));
            return;
        }
        let html = charset::decode(&body, Some(&mime));
        self.resources.open.push(key);
        let inner = rewrite(&html.text, &url, self.resources, self.depth + 1);
        self.resources.open.pop();
        // Each level escapes the quotes of the level below once more.
        if !self.resources.fits(escaped_len(&inner)) {
            self.resources.leave_out(&url, codes::OUTPUT_FULL);
            return;
        }
        if name == "iframe" {
            edit.remove("src");
            edit.set("srcdoc", inner);
        } else {
            edit.set("src", data_uri("text/html;charset=utf-8", inner.as_bytes()));
        }
    }
}

/// Whether the fallback is one of the candidates.
fn kept_is_src(srcset: Option<&str>, base: &Url, src: &Url) -> bool {
    srcset.is_some_and(|value| parse_srcset(value).iter().any(|c| base.join(c.url).is_ok_and(|url| url == *src)))
}

fn is_url_attr(name: &str) -> bool {
    ["href", "src", "action", "formaction", "xlink:href", "data", "srcdoc", "to", "from", "values"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// `javascript:`, however it is spaced (the URL parser drops tabs and newlines).
fn is_script_url(value: &str) -> bool {
    let mut letters = value.chars().filter(|c| *c > ' ').flat_map(char::to_lowercase);
    "javascript:".chars().all(|expected| letters.next() == Some(expected))
}
