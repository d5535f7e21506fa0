//! The extractors: pure functions of a page that was fetched and, where asked for, rendered.
//!
//! Adding one is one file here, one line in `REGISTRY` and one line in `fonds_domain::EXTRACTORS`;
//! a test holds the two lists together. `warc`, `wacz`, `hashes` and `search` are made by the
//! `store` stage, since they are about everything else.

mod accessibility;
mod consolelog;
mod dom;
mod favicon;
mod headers;
mod htmltotext;
mod markdown;
mod mhtml;
mod outlinks;
mod pdf;
mod readability;
mod redirects;
mod responses;
mod screenshot;
mod seo;
mod singlefile;
mod sslcerts;
mod staticfile;
mod title;

use crate::page::{File, Output, Page, Render, Rendered};
use fonds_domain::{ErrorCode, Extractor, ResultStatus, Stage};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why an extractor failed.
pub(crate) type Failure = (ErrorCode, String);

/// What an extractor made.
pub(crate) enum Made {
    /// Files, and one line for people.
    Files(Vec<File>, Option<String>),
    /// It ran and there was nothing.
    Nothing(&'static str),
}

/// An extractor.
pub(crate) struct Extract {
    /// Its name in `fonds_domain::EXTRACTORS`.
    pub(crate) name: &'static str,
    /// Whether it applies to what was fetched; when not, it leaves no row.
    pub(crate) applies: fn(&Page) -> bool,
    /// Makes its output.
    pub(crate) run: fn(&Page) -> Result<Made, Failure>,
}

/// Every extractor that works on one page.
pub(crate) const REGISTRY: &[Extract] = &[
    headers::EXTRACT,
    redirects::EXTRACT,
    title::EXTRACT,
    favicon::EXTRACT,
    staticfile::EXTRACT,
    screenshot::EXTRACT,
    pdf::EXTRACT,
    dom::EXTRACT,
    singlefile::EXTRACT,
    mhtml::EXTRACT,
    seo::EXTRACT,
    accessibility::EXTRACT,
    consolelog::EXTRACT,
    responses::EXTRACT,
    sslcerts::EXTRACT,
    htmltotext::EXTRACT,
    readability::EXTRACT,
    markdown::EXTRACT,
    outlinks::HTML,
    outlinks::TXT,
    outlinks::RSS,
    outlinks::NETSCAPE,
    outlinks::JSONL,
    outlinks::DOM,
];

/// Above this size an extractor gets a thread of its own, so that its timeout can be kept.
const INLINE_MAX: usize = 256 * 1024;

/// Runs every wanted extractor that applies. Each fails alone: a timeout or a panic ends its row.
pub(crate) async fn run_all(page: &Arc<Page>) -> Vec<Output> {
    let mut outputs = Vec::new();
    let large = page.best_html().is_some_and(|html| html.len() > INLINE_MAX);
    for spec in page.config().wanted() {
        let Some(extract) = REGISTRY.iter().find(|x| x.name == spec.name) else { continue };
        if !(extract.applies)(page) {
            continue;
        }
        let heavy = large || matches!(spec.name, "singlefile" | "screenshot");
        let output = if heavy && matches!(spec.stage, Stage::Derive | Stage::Parse | Stage::Render) {
            apart(extract, spec, page).await
        } else {
            here(extract, spec, page)
        };
        outputs.push(output);
    }
    outputs
}

/// Runs on this thread: for what is small enough to take no time.
pub(crate) fn here(extract: &Extract, spec: &'static Extractor, page: &Page) -> Output {
    let began = Instant::now();
    let made = catch_unwind(AssertUnwindSafe(|| (extract.run)(page)))
        .unwrap_or_else(|_| Err((ErrorCode::PANICKED, "the extractor panicked on this page".to_owned())));
    output(spec, made, began.elapsed())
}

async fn apart(extract: &'static Extract, spec: &'static Extractor, page: &Arc<Page>) -> Output {
    let began = Instant::now();
    let timeout = page.config().timeout_of(spec);
    let work = {
        let page = page.clone();
        tokio::task::spawn_blocking(move || (extract.run)(&page))
    };
    let made = match tokio::time::timeout(timeout, work).await {
        Ok(Ok(made)) => made,
        Ok(Err(_)) => Err((ErrorCode::PANICKED, "the extractor panicked on this page".to_owned())),
        // A thread cannot be ended from outside; it runs to its end and its result is dropped.
        Err(_) => Err((ErrorCode::EXTRACTOR_TIMEOUT, format!("more than {} s", timeout.as_secs()))),
    };
    output(spec, made, began.elapsed())
}

fn output(spec: &'static Extractor, made: Result<Made, Failure>, took: Duration) -> Output {
    let (status, files, line, error) = match made {
        Ok(Made::Files(files, line)) => (ResultStatus::Succeeded, files, line, None),
        Ok(Made::Nothing(why)) => (ResultStatus::NoResults, Vec::new(), Some(why.to_owned()), None),
        Err(failure) => (ResultStatus::Failed, Vec::new(), None, Some(failure)),
    };
    Output {
        extractor: spec.name,
        status,
        files,
        line,
        error,
        duration_ms: u32::try_from(took.as_millis()).unwrap_or(u32::MAX),
        tool: None,
    }
}

/// The browser's load, or why there is none.
fn done(page: &Page) -> Result<&Rendered, Failure> {
    match &page.render {
        Render::Done(rendered) => Ok(rendered),
        Render::Failed(code, why) => Err((*code, why.clone())),
        Render::None => Err((ErrorCode::NOT_APPLICABLE, "not rendered".to_owned())),
    }
}

/// Pretty JSON as a file.
pub(crate) fn json_file(name: &str, value: &serde_json::Value) -> File {
    File::new(name, "application/json", format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::REGISTRY;
    use fonds_domain::EXTRACTORS;

    #[test]
    fn every_listed_extractor_has_its_code_and_the_other_way_round() {
        const STORE_STAGE: [&str; 4] = ["warc", "wacz", "hashes", "search"];
        for spec in EXTRACTORS {
            let here = REGISTRY.iter().filter(|x| x.name == spec.name).count();
            assert_eq!(here, usize::from(!STORE_STAGE.contains(&spec.name)), "{}", spec.name);
        }
        for extract in REGISTRY {
            assert!(EXTRACTORS.iter().any(|spec| spec.name == extract.name), "{}", extract.name);
        }
    }
}
