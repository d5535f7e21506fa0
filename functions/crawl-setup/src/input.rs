//! Reads the submitted text, and the lists that it names (the sitemaps of an index).

use fonds_pages::inputs::{self, Format, Hint, InputUrl, Limits, Nested, ParsedInput, Rejected};
use fonds_store::crawls::Crawl;
use fonds_task::{Budget, TaskError};
use fonds_web::fetch::{FetchRequest, Fetcher, decode_body};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// Lists followed from one input.
const LISTS_MAX: usize = 500;
/// Bytes of one list.
const LIST_BYTES: u64 = 64 << 20;
/// Longest wait for one list.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything an input holds.
pub(crate) struct List {
    /// What it was read as.
    pub(crate) format: Format,
    /// URLs in order, each once, their metadata merged.
    pub(crate) urls: Vec<InputUrl>,
    /// The first that were refused.
    pub(crate) rejected: Vec<Rejected>,
    /// All that were refused.
    pub(crate) rejected_total: usize,
    /// Lists that were followed.
    pub(crate) lists: usize,
    /// What could not be read, for people.
    pub(crate) problems: Vec<String>,
}

/// Reads the input of a crawl.
pub(crate) async fn read(fetcher: &Fetcher, crawl: &Crawl, text: String, budget: Budget) -> Result<List, TaskError> {
    let format = crawl.config.input_format.parse::<Format>().ok();
    let parsed = parse(text.into_bytes(), format, None, None).await?;
    let mut list = List {
        format: parsed.format,
        urls: Vec::new(),
        rejected: Vec::new(),
        rejected_total: 0,
        lists: 0,
        problems: Vec::new(),
    };
    let mut queue = list.take(parsed);
    let mut seen: HashSet<String> = HashSet::new();
    while let Some(nested) = queue.pop() {
        if !seen.insert(nested.url.clone()) {
            continue;
        }
        if list.lists >= LISTS_MAX || !budget.has(LIST_TIMEOUT) {
            list.problems.push(format!("{} and what follows it was not read: too many lists", nested.url));
            break;
        }
        list.lists += 1;
        match follow(fetcher, &nested).await? {
            Ok(parsed) => queue.extend(list.take(parsed)),
            Err(problem) => list.problems.push(problem),
        }
    }
    list.urls = inputs::collapse(std::mem::take(&mut list.urls), crawl.config.keep_fragments);
    Ok(list)
}

impl List {
    /// Takes what a list holds; answers the lists it names.
    fn take(&mut self, parsed: ParsedInput) -> Vec<Nested> {
        self.urls.extend(parsed.urls);
        self.rejected.extend(parsed.rejected);
        self.rejected_total += parsed.rejected_total;
        if let Some(code) = parsed.incomplete {
            self.problems.push(format!("not all of the input was read: {code}"));
        }
        parsed.nested
    }
}

async fn follow(fetcher: &Fetcher, nested: &Nested) -> Result<Result<ParsedInput, String>, TaskError> {
    let Ok(url) = Url::parse(&nested.url) else { return Ok(Err(format!("{}: not a URL", nested.url))) };
    let mut request = FetchRequest::get(url);
    request.deadline = Some(Instant::now() + LIST_TIMEOUT);
    request.body_cap = Some(LIST_BYTES);
    let fetched = fetcher.fetch(request).await;
    if let Some(error) = &fetched.error {
        return Ok(Err(format!("{}: {} ({})", nested.url, error.code.as_str(), error.detail)));
    }
    let Some(hop) = fetched.answer().filter(|hop| hop.status.is_success()) else {
        let status = fetched.answer().map_or(0, |hop| hop.status.as_u16());
        return Ok(Err(format!("{}: the server answered {status}", nested.url)));
    };
    let raw = match hop.body.prefix(LIST_BYTES as usize).await {
        Ok(raw) => raw,
        Err(e) => return Ok(Err(format!("{}: {e}", nested.url))),
    };
    let body = decode_body(&hop.headers, &raw, LIST_BYTES as usize).bytes;
    let content_type = hop.headers.get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).map(str::to_owned);
    Ok(Ok(parse(body.to_vec(), Some(nested.format), content_type, Some(hop.url.clone())).await?))
}

/// Parsing is CPU work and an input may be large.
async fn parse(
    bytes: Vec<u8>,
    format: Option<Format>,
    content_type: Option<String>,
    base: Option<Url>,
) -> Result<ParsedInput, TaskError> {
    tokio::task::spawn_blocking(move || {
        let hint = Hint { format, content_type: content_type.as_deref(), file_name: None, base: base.as_ref() };
        inputs::parse(&bytes, &hint, &Limits::default())
    })
    .await
    .map_err(|e| TaskError::permanent(fonds_domain::ErrorCode::PANICKED, e))
}
