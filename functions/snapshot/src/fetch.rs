//! The `fetch` stage: the answer as sent, and what kind of thing it is.

use crate::deps::{Deps, Icon};
use crate::gate;
use crate::page::{Content, DOCUMENT_MAX};
use bytes::Bytes;
use fonds_domain::ErrorCode;
use fonds_pages::html::{FactsOptions, facts_of, page_facts};
use fonds_pages::{charset, sniff};
use fonds_store::capture::Snapshot;
use fonds_store::crawls::Crawl;
use fonds_task::{Cx, TaskError};
use fonds_web::fetch::{FetchRequest, FetchResult, decode_body};
use fonds_web::politeness::parse_retry_after;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// Longest that a host may ask to be left alone.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// Largest icon kept.
const ICON_MAX: u64 = 1024 * 1024;
/// Longest wait for an icon.
const ICON_TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches the page. A failure worth another try is an error here, until the last attempt: then
/// what there is of it is the capture.
pub(crate) async fn fetch(
    deps: &Deps,
    cx: &Cx,
    snapshot: &Snapshot,
    crawl: &Crawl,
    url: &Url,
) -> Result<FetchResult, TaskError> {
    let config = &crawl.config;
    let timeout = config.timeout_s.map_or(Duration::from_secs(60), |s| Duration::from_secs(u64::from(s)));
    // Whatever the setting, the slice must keep room for storing what came.
    let timeout = timeout.min(cx.budget.remaining().saturating_sub(Duration::from_secs(5)));
    let mut request = FetchRequest::get(url.clone());
    request.deadline = Some(Instant::now() + timeout);
    request.body_cap = Some(crawl.limits.snapshot_max_size.map_or(config.body_max, |m| m.min(config.body_max)));
    if let Some(agent) = config.user_agent.as_deref().and_then(|ua| ua.parse().ok()) {
        request.headers.insert(http::header::USER_AGENT, agent);
    }
    let fetched = deps.fetcher.fetch(request).await;
    let status = fetched.answer().map(|hop| hop.status.as_u16());
    let retry_after = fetched
        .answer()
        .filter(|hop| matches!(hop.status.as_u16(), 429 | 503))
        .and_then(|hop| hop.headers.get(http::header::RETRY_AFTER)?.to_str().ok())
        .and_then(|value| parse_retry_after(value, chrono::Utc::now(), RETRY_AFTER_MAX));
    let code = fetched.error.as_ref().map(|e| ErrorCode::named(e.code.as_str()));
    gate::record_host(deps, snapshot, code, retry_after).await;
    if cx.last_attempt {
        return Ok(fetched);
    }
    if let Some(error) = &fetched.error
        && fetched.answer().is_none()
        && !error.code.is_permanent()
    {
        return Err(TaskError::transient(
            ErrorCode::named(error.code.as_str()),
            anyhow::anyhow!("{}: {}", error.url, error.detail),
        ));
    }
    match status {
        Some(status @ (429 | 502 | 503 | 504)) => Err(TaskError::transient(
            if status == 429 { ErrorCode::RATE_LIMITED } else { ErrorCode::HTTP_ERROR },
            anyhow::anyhow!("the server answered {status}"),
        )),
        _ => Ok(fetched),
    }
}

/// Looks at the final answer. CPU work: not for the threads that wait on sockets when it is large.
pub(crate) fn look(fetched: &FetchResult, max_text: usize, resources: bool) -> Content {
    let Some(hop) = fetched.answer() else { return Content::default() };
    let content_type = hop.headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let mut content = Content::default();
    let raw = match hop.body.as_memory() {
        Some(bytes) => bytes.clone(),
        None if hop.body.len() <= DOCUMENT_MAX => match read_all(hop) {
            Ok(bytes) => bytes,
            Err(error) => {
                content.problem = Some((ErrorCode::INTERNAL, format!("the spooled body: {error}")));
                return content;
            }
        },
        None => {
            let head = head_of(hop);
            content.mime = Some(sniff::sniff(&head, content_type).mime);
            content.is_html = sniff::is_html(content_type, &head);
            content.problem =
                Some((ErrorCode::PAGE_TOO_LARGE, format!("{} bytes, looked at are {DOCUMENT_MAX}", hop.body.len())));
            return content;
        }
    };
    let decoded = decode_body(&hop.headers, &raw, DOCUMENT_MAX as usize);
    if let Some(code) = decoded.code {
        content.problem = Some((ErrorCode::named(code.as_str()), "Content-Encoding".to_owned()));
    }
    content.mime = Some(sniff::sniff(&decoded.bytes, content_type).mime);
    content.is_html = !decoded.bytes.is_empty() && sniff::is_html(content_type, &decoded.bytes);
    if content.is_html {
        let options = FactsOptions { max_text, resources, ..FactsOptions::default() };
        let text = charset::decode(&decoded.bytes, content_type);
        content.facts = Some(page_facts(&text.text, &hop.url, &options));
        content.html = Some(text.text.into_owned());
    }
    content.decoded = Some(decoded.bytes);
    content
}

fn read_all(hop: &fonds_web::fetch::Hop) -> std::io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(usize::try_from(hop.body.len()).unwrap_or(0));
    std::io::Read::read_to_end(&mut hop.body.reader()?, &mut bytes)?;
    Ok(bytes.into())
}

fn head_of(hop: &fonds_web::fetch::Hop) -> Vec<u8> {
    let mut head = Vec::with_capacity(4096);
    if let Ok(reader) = hop.body.reader() {
        // What cannot be read cannot be sniffed; the declared type stands then.
        let _ = std::io::Read::read_to_end(&mut std::io::Read::take(reader, 4096), &mut head);
    }
    head
}

/// Facts of the document after scripts ran.
pub(crate) fn look_at_dom(dom: &str, url: &Url, max_text: usize) -> fonds_pages::html::PageFacts {
    let options = FactsOptions { max_text, ..FactsOptions::default() };
    facts_of(dom.as_bytes(), Some("text/html; charset=utf-8"), url, &options)
}

/// The site's icon: the first one named, else `/favicon.ico`.
pub(crate) async fn icon(deps: &Deps, named: Option<&str>, page: &Url) -> Option<Icon> {
    let url = named.and_then(|u| Url::parse(u).ok()).or_else(|| page.join("/favicon.ico").ok())?;
    if url.scheme() == "data" || !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if let Some(known) = deps.icons.get(url.as_str()) {
        return known;
    }
    let mut request = FetchRequest::get(url.clone());
    request.deadline = Some(Instant::now() + ICON_TIMEOUT);
    request.body_cap = Some(ICON_MAX);
    let fetched = deps.fetcher.fetch(request).await;
    let icon = fetched.answer().filter(|hop| hop.status.is_success() && hop.truncated.is_none()).and_then(|hop| {
        let raw = hop.body.as_memory().filter(|b| !b.is_empty())?;
        let bytes = decode_body(&hop.headers, raw, ICON_MAX as usize).bytes;
        let declared = hop.headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let mime = sniff::sniff(&bytes, declared).mime;
        mime.starts_with("image/").then_some(Icon { mime, bytes })
    });
    deps.icons.put(url.to_string(), icon.clone());
    icon
}
