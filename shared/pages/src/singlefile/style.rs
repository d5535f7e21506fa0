//! Style sheets.

use super::resources::{Resources, data_uri};
use crate::charset;
use crate::codes;
use crate::html::css;
use url::Url;

/// Style sheets importing style sheets, this deep.
const MAX_IMPORTS: usize = 8;

/// The style sheet with its references inlined; those that cannot be are made absolute.
pub(super) fn rewrite(text: &str, base: &Url, resources: &mut Resources<'_>) -> String {
    if !css::may_have_refs(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for reference in css::refs(text) {
        let Some(url) = fetchable(base, &reference.url) else { continue };
        let target = if reference.import { import(&url, resources) } else { resources.data_uri(&url) };
        out.push_str(text.get(copied..reference.span.start).unwrap_or(""));
        out.push_str("url(\"");
        push_css_string(&mut out, target.as_deref().unwrap_or(url.as_str()));
        out.push_str("\")");
        copied = reference.span.end;
    }
    out.push_str(text.get(copied..).unwrap_or(""));
    out
}

/// An imported style sheet stays one of its own, as a `data:` URI: so its conditions and layers mean what they did.
fn import(url: &Url, resources: &mut Resources<'_>) -> Option<String> {
    let css = sheet(url, resources)?;
    if !resources.fits(css.len() / 3 * 4) {
        resources.leave_out(url, codes::OUTPUT_FULL);
        return None;
    }
    Some(data_uri("text/css;charset=utf-8", css.as_bytes()))
}

/// A captured style sheet with its references inlined.
pub(super) fn sheet(url: &Url, resources: &mut Resources<'_>) -> Option<String> {
    let key = super::resources::without_fragment(url).to_string();
    if resources.open.len() >= MAX_IMPORTS || resources.open.contains(&key) {
        resources.leave_out(url, codes::NESTED_TOO_DEEP);
        return None;
    }
    let (mime, body) = resources.take(url)?;
    let text = decode(&body, &mime);
    resources.open.push(key);
    let css = rewrite(&text, url, resources);
    resources.open.pop();
    Some(css)
}

/// CSS Syntax, 3.2: mark, header, `@charset`.
fn decode(body: &[u8], mime: &str) -> String {
    let declared = body
        .strip_prefix(b"@charset \"")
        .and_then(|rest| rest.get(..40.min(rest.len())))
        .and_then(|rest| rest.split(|b| *b == b'"').next())
        .and_then(|label| std::str::from_utf8(label).ok());
    let header = match (charset::charset_of(mime), declared) {
        (None, Some(label)) => format!("text/css; charset={label}"),
        _ => mime.to_owned(),
    };
    charset::decode(body, Some(&header)).text.into_owned()
}

/// What a reference names, if that is anything to fetch.
pub(super) fn fetchable(base: &Url, href: &str) -> Option<Url> {
    let href = href.trim();
    if href.is_empty() || href.starts_with('#') {
        return None;
    }
    base.join(href).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

fn push_css_string(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\r' | '\u{C}' => {}
            _ => out.push(c),
        }
    }
}

/// A style sheet as the content of a `style` element.
pub(super) fn as_element_content(css: &str) -> String {
    replace_ignore_case(css, "</style", "<\\/style")
}

/// Replaces every `needle` (lower case ASCII), whatever its case in `text`.
pub(super) fn replace_ignore_case(text: &str, needle: &str, with: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        let end = at + needle.len();
        if text.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(needle)) {
            out.push_str(&text[copied..at]);
            out.push_str(with);
            copied = end;
        }
    }
    out.push_str(&text[copied..]);
    out
}
