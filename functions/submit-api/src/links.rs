//! Addresses in answers: of our own routes, and signed ones of files.

use crate::config::ApiState;
use crate::problem::Problem;
use axum::extract::FromRequestParts;
use chrono::{DateTime, Utc};
use fonds_blobs::{BlobKey, Disposition, PresignGet};
use fonds_store::query::StoredFile;
use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Display;

/// What a path may hold unencoded (RFC 3986 unreserved, and the slash).
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Links are signed over path and query; the origin is put before them for each answer, so that
/// they work under whatever name the API is reached by. This one is only ever a placeholder.
pub(crate) const SIGNER_BASE: &str = "http://blobs.invalid/blobs/";

/// The object that stands for every file without a byte; the store is not asked for it.
pub(crate) const EMPTY: &str = "empty";

/// Where the request was sent to, put into the request by a driver that knows better than the
/// `Host` header (API Gateway: host and stage).
#[derive(Debug, Clone)]
pub struct RequestBase(pub String);

/// What links in this answer begin with, without a slash at the end.
#[derive(Debug, Clone)]
pub(crate) struct Base(String);

impl FromRequestParts<ApiState> for Base {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let base = match (&state.config.public_base_url, parts.extensions.get::<RequestBase>()) {
            (Some(url), _) => url.as_str().to_owned(),
            (None, Some(base)) => base.0.clone(),
            (None, None) => format!("http://{}", authority(parts)),
        };
        Ok(Base(base.trim_end_matches('/').to_owned()))
    }
}

/// The host the client named. It only shows up in the answer to the client that sent it.
fn authority(parts: &Parts) -> String {
    let named = parts.headers.get(HOST).and_then(|v| v.to_str().ok());
    named
        .and_then(|v| v.parse::<Authority>().ok())
        .or_else(|| parts.uri.authority().cloned())
        .map_or_else(|| "localhost".to_owned(), |a| a.to_string())
}

impl Base {
    #[cfg(test)]
    pub(crate) fn new(base: &str) -> Base {
        Base(base.to_owned())
    }

    pub(crate) fn crawl(&self, id: impl Display) -> String {
        format!("{}/v1/crawls/{id}", self.0)
    }

    pub(crate) fn snapshot(&self, id: impl Display) -> String {
        format!("{}/v1/snapshots/{id}", self.0)
    }

    pub(crate) fn crawl_file(&self, id: impl Display, name: &str) -> String {
        format!("{}/files/{}", self.crawl(id), utf8_percent_encode(name, PATH))
    }

    pub(crate) fn snapshot_file(&self, id: impl Display, path: &str) -> String {
        format!("{}/files/{}", self.snapshot(id), utf8_percent_encode(path, PATH))
    }

    /// A link to a file that needs no token until it expires.
    pub(crate) fn signed(&self, state: &ApiState, file: &StoredFile) -> Result<(String, DateTime<Utc>), Problem> {
        // A signed range has at least one byte, so a file of none has a name of its own.
        let empty = file.length == Some(0);
        let object = if empty { EMPTY.to_owned() } else { file.object.clone() };
        let key = BlobKey::parse(object).map_err(Problem::internal)?;
        let whole = empty || (file.offset == 0 && file.length.is_none());
        let mime = media_type(&file.mime);
        let options = PresignGet {
            disposition: Some(disposition(&mime, &file.path)),
            content_type: Some(mime),
            range: (!whole).then(|| file.offset..file.offset.saturating_add(file.stored_length())),
        };
        let signed = state.signer.get(&key, state.config.link_ttl, Utc::now(), options)?;
        let query = signed.url.query().unwrap_or_default();
        Ok((format!("{}{}?{query}", self.0, signed.url.path()), signed.expires))
    }
}

/// What a browser can show is shown, in a sandbox; the rest is saved.
fn disposition(mime: &str, path: &str) -> Disposition {
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    let essence = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let shown = ["image/", "audio/", "video/", "text/"].iter().any(|kind| essence.starts_with(kind))
        || matches!(essence.as_str(), "application/pdf" | "application/json" | "application/xhtml+xml");
    if shown { Disposition::Inline(name) } else { Disposition::Attachment(name) }
}

/// A media type as recorded, if it is one; a site may have sent anything.
pub(crate) fn media_type(recorded: &str) -> String {
    let essence = recorded.split(';').next().unwrap_or_default().trim();
    let token = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b));
    let valid = essence.split_once('/').is_some_and(|(kind, sub)| token(kind) && token(sub));
    let visible = recorded.bytes().all(|b| (b' '..=b'~').contains(&b));
    if valid && visible { recorded.trim().to_owned() } else { "application/octet-stream".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_keep_to_their_place() {
        let base = Base::new("https://x/prod");
        assert_eq!(
            base.snapshot_file("1", "dom/a b?#ü.html"),
            "https://x/prod/v1/snapshots/1/files/dom/a%20b%3F%23%C3%BC.html"
        );
        assert_eq!(base.crawl_file("1", "index.json"), "https://x/prod/v1/crawls/1/files/index.json");
    }

    #[test]
    fn only_what_a_browser_shows_is_inline() {
        for (mime, inline) in [
            ("image/png", true),
            ("TEXT/HTML; charset=utf-8", true),
            ("application/pdf", true),
            ("application/wacz+zip", false),
            ("multipart/related", false),
            ("", false),
        ] {
            assert_eq!(matches!(disposition(mime, "a/b"), Disposition::Inline(n) if n == "b"), inline, "{mime}");
        }
    }

    #[test]
    fn only_media_types_are_passed_on() {
        for (recorded, expected) in [
            ("text/html; charset=utf-8", "text/html; charset=utf-8"),
            (" image/svg+xml ", "image/svg+xml"),
            ("text", "application/octet-stream"),
            ("text/html\r\nX: y", "application/octet-stream"),
            ("<b>/x", "application/octet-stream"),
            ("", "application/octet-stream"),
        ] {
            assert_eq!(media_type(recorded), expected);
        }
    }
}
