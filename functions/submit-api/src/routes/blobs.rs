//! /blobs: the bytes behind signed links.
//!
//! What is served here was made by strangers. It never runs in this origin: every answer is
//! sandboxed (an opaque origin, no scripts, no forms, nothing loaded), never sniffed, and its media
//! type is one we recorded. The link is the right to read, so any origin may (a replay page lives
//! in its own).

use crate::config::ApiState;
use crate::links::{EMPTY, media_type};
use crate::problem::{LINK_EXPIRED, NOT_FOUND, Problem, RANGE_NOT_SATISFIABLE};
use crate::range::{Wanted, wanted};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use fonds_blobs::sign::{SignatureError, SignedGet, SignedRequest};
use fonds_blobs::{BlobKey, Disposition, PresignGet};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use sha2::{Digest, Sha256};
use std::ops::Range;

/// Where an artifact lies in the object that a redirect leads to.
const OFFSET: HeaderName = HeaderName::from_static("fonds-offset");
const LENGTH: HeaderName = HeaderName::from_static("fonds-length");

/// No scripts, forms, frames or fetches; what the document carries in itself is shown.
const SANDBOX: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline' data:; img-src data: blob:; \
     font-src data:; media-src data: blob:; base-uri 'none'; form-action 'none'";
/// Chromium shows no PDF in a sandboxed document, and a PDF has no markup to run.
const PDF: &str = "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'";

/// The bytes of a file, by a signed link.
///
/// One `Range` is honoured. Where an answer has a largest size (on Lambda 4 MiB), a longer range is answered by its
/// beginning, and the whole of a longer file by a redirect to the stored object, with `Fonds-Offset` and
/// `Fonds-Length` saying where in it the file lies.
#[utoipa::path(get, path = "/blobs/{*key}", tag = "snapshots", operation_id = "getBlob", security(()),
    params(("key" = String, Path), ("expires" = i64, Query), ("sig" = String, Query),
           ("type" = Option<String>, Query), ("disposition" = Option<String>, Query), ("range" = Option<String>, Query),
           ("Range" = Option<String>, Header), ("If-Range" = Option<String>, Header),
           ("If-None-Match" = Option<String>, Header)),
    responses((status = 200, description = "The file", content_type = "*/*"),
              (status = 206, description = "A part of it", content_type = "*/*"),
              (status = 302, description = "To the stored object, when the file is larger than an answer may be"),
              (status = 304, description = "Not changed")))]
pub(crate) async fn get(State(state): State<ApiState>, request: Request) -> Result<Response, Problem> {
    let target = request.uri().path_and_query().map_or("", |t| t.as_str());
    let signed = match state.signer.verify(request.method().as_str(), target, Utc::now()) {
        Ok(SignedRequest::Get(signed)) => signed,
        Ok(SignedRequest::Put(_)) | Err(SignatureError::Malformed) => {
            return Err(Problem::new(NOT_FOUND, "this is no link to a file"));
        }
        Err(e) => return Err(Problem::new(LINK_EXPIRED, e.to_string())),
    };
    let file = File::find(&state, signed).await?;
    let mut response = file.answer(&state, request.method(), request.headers()).await?;
    file.describe(response.headers_mut());
    Ok(response)
}

/// A file: some bytes of an object.
struct File {
    signed: SignedGet,
    /// Bytes of the object.
    within: Range<u64>,
    etag: String,
}

impl File {
    async fn find(state: &ApiState, signed: SignedGet) -> Result<File, Problem> {
        if signed.key.as_str() == EMPTY {
            return Ok(File { signed, within: 0..0, etag: "\"empty\"".to_owned() });
        }
        if let Some(range) = signed.range.clone() {
            // An object is never written twice (but index files, which are signed whole): key and
            // range name the bytes.
            let name = format!("{}:{}-{}", signed.key, range.start, range.end);
            let etag = format!("\"{}\"", hex::encode(&Sha256::digest(name.as_bytes())[..16]));
            return Ok(File { signed, within: range, etag });
        }
        let meta = state.blobs.head(&signed.key).await?.ok_or_else(|| missing(&signed.key))?;
        let clean: String = meta.etag.chars().filter(|c| c.is_ascii_graphic() && *c != '"').collect();
        Ok(File { signed, within: 0..meta.size, etag: format!("\"{clean}\"") })
    }

    fn len(&self) -> u64 {
        self.within.end.saturating_sub(self.within.start)
    }

    async fn answer(&self, state: &ApiState, method: &Method, headers: &HeaderMap) -> Result<Response, Problem> {
        if headers.get(header::IF_NONE_MATCH).is_some_and(|v| lists(v, &self.etag)) {
            return Ok(StatusCode::NOT_MODIFIED.into_response());
        }
        let (len, max) = (self.len(), state.config.max_file_answer.unwrap_or(u64::MAX));
        // A range that does not fit what the client holds is void (RFC 9110 section 13.1.5).
        let asked = headers
            .get(header::RANGE)
            .filter(|_| headers.get(header::IF_RANGE).is_none_or(|v| v.as_bytes() == self.etag.as_bytes()));
        let (status, part) = match wanted(asked.map(HeaderValue::as_bytes), len) {
            Wanted::All if len > max => return self.redirect(state).await,
            Wanted::All => (StatusCode::OK, 0..len),
            Wanted::Part(part) => {
                (StatusCode::PARTIAL_CONTENT, part.start..part.end.min(part.start.saturating_add(max)))
            }
            Wanted::Outside => {
                let problem = Problem::new(RANGE_NOT_SATISFIABLE, format!("the file has {len} bytes"));
                return Err(problem.with_header(header::CONTENT_RANGE, format!("bytes */{len}")));
            }
        };
        let mut response = Response::new(self.body(state, method, &part).await?);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {}-{}/{len}", part.start, part.end.saturating_sub(1));
            headers.insert(header::CONTENT_RANGE, HeaderValue::from_str(&range).map_err(Problem::internal)?);
        }
        Ok(response)
    }

    async fn body(&self, state: &ApiState, method: &Method, part: &Range<u64>) -> Result<Body, Problem> {
        if method == Method::HEAD || part.is_empty() {
            return Ok(Body::empty());
        }
        let range = self.within.start + part.start..self.within.start + part.end;
        Ok(Body::from_stream(state.blobs.stream(&self.signed.key, Some(range)).await?))
    }

    /// To the whole object: a presigned URL of S3 carries no range.
    async fn redirect(&self, state: &ApiState) -> Result<Response, Problem> {
        let name = self.signed.key.file_name().to_owned();
        let options = PresignGet { disposition: Some(Disposition::Attachment(name)), ..PresignGet::default() };
        let presigned = state.blobs.presign_get(&self.signed.key, state.config.link_ttl, options).await?;
        let location = HeaderValue::from_str(presigned.url.as_str()).map_err(Problem::internal)?;
        let (offset, length) = (HeaderValue::from(self.within.start), HeaderValue::from(self.len()));
        Ok((StatusCode::FOUND, [(header::LOCATION, location), (OFFSET, offset), (LENGTH, length)]).into_response())
    }

    /// What is said of the file in every answer but errors.
    fn describe(&self, headers: &mut HeaderMap) {
        let mime = media_type(self.signed.content_type.as_deref().unwrap_or(self.signed.key.content_type()));
        let policy = if mime == "application/pdf" { PDF } else { SANDBOX };
        let fixed = [
            (header::CONTENT_SECURITY_POLICY, policy),
            (header::ACCEPT_RANGES, "bytes"),
            // As long as a link lives; what it names does not change.
            (header::CACHE_CONTROL, "private, max-age=900"),
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_EXPOSE_HEADERS, "Content-Range, Content-Length, ETag, Fonds-Offset, Fonds-Length"),
            (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        for (name, value) in [
            (header::CONTENT_TYPE, Some(mime.as_str())),
            (header::CONTENT_DISPOSITION, self.signed.disposition.as_deref()),
            (header::ETAG, Some(self.etag.as_str())),
        ] {
            if let Some(value) = value.and_then(|v| HeaderValue::from_str(v).ok()) {
                headers.insert(name, value);
            }
        }
    }
}

fn missing(key: &BlobKey) -> Problem {
    fonds_blobs::BlobError::NotFound { key: key.to_string() }.into()
}

/// Whether an `If-None-Match` lists the tag; compared weakly (RFC 9110 section 13.1.2).
fn lists(value: &HeaderValue, etag: &str) -> bool {
    let Ok(value) = value.to_str() else { return false };
    value.split(',').map(str::trim).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_are_compared_weakly() {
        for (value, expected) in
            [("*", true), ("\"a\"", true), ("\"b\", W/\"a\"", true), ("\"b\"", false), ("a", false)]
        {
            assert_eq!(lists(&HeaderValue::from_static(value), "\"a\""), expected, "{value}");
        }
    }
}
