//! One capture in the making: what was fetched, what was rendered, what came of it.

use crate::deps::Icon;
use bytes::Bytes;
use fonds_domain::{CrawlConfig, ErrorCode, ResultStatus};
use fonds_pages::html::{Outlink, PageFacts};
use fonds_store::capture::Snapshot;
use fonds_store::crawls::Crawl;
use fonds_web::browser::Capture;
use fonds_web::browser::capture::Output as Taken;
use fonds_web::fetch::{FetchResult, Hop};
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

/// Largest document that is decoded into text and looked at as a page.
pub(crate) const DOCUMENT_MAX: u64 = 48 * 1024 * 1024;

/// A capture in the making.
pub(crate) struct Page {
    /// The row.
    pub(crate) snapshot: Snapshot,
    /// Its crawl.
    pub(crate) crawl: Arc<Crawl>,
    /// Claim number.
    pub(crate) attempt: i32,
    /// The URL asked for.
    pub(crate) url: Url,
    /// The exchanges over plain HTTP.
    pub(crate) fetched: FetchResult,
    /// What the answer is.
    pub(crate) content: Content,
    /// The one load in the browser.
    pub(crate) render: Render,
    /// The site's icon.
    pub(crate) icon: Option<Icon>,
    /// Links by the extractor that found them; absolute.
    pub(crate) found: Vec<(&'static str, Vec<Outlink>)>,
    /// What robots.txt says, where it was asked.
    pub(crate) robots_note: Option<String>,
}

/// The final answer, looked at.
#[derive(Default)]
pub(crate) struct Content {
    /// Media type by declaration and bytes.
    pub(crate) mime: Option<String>,
    /// Whether it is a page.
    pub(crate) is_html: bool,
    /// The body without content coding, when it is small enough to be looked at.
    pub(crate) decoded: Option<Bytes>,
    /// The decoded text of a page.
    pub(crate) html: Option<String>,
    /// What the page as sent says of itself.
    pub(crate) facts: Option<PageFacts>,
    /// Why it was not looked at.
    pub(crate) problem: Option<(ErrorCode, String)>,
}

/// What became of the browser's load.
#[expect(clippy::large_enum_variant, reason = "there is one a page, and it lives behind an Arc")]
pub(crate) enum Render {
    /// Not asked for, or nothing a browser shows.
    None,
    /// It could not be done.
    Failed(ErrorCode, String),
    /// Done.
    Done(Rendered),
}

/// The browser's load, looked at.
pub(crate) struct Rendered {
    /// Everything the browser gave.
    pub(crate) capture: Capture,
    /// What the document after scripts ran says of itself.
    pub(crate) facts: Option<PageFacts>,
}

impl Page {
    /// What was asked for.
    #[must_use]
    pub(crate) fn config(&self) -> &CrawlConfig {
        &self.crawl.config
    }

    /// The answer that counts.
    #[must_use]
    pub(crate) fn answer(&self) -> Option<&Hop> {
        self.fetched.answer()
    }

    /// Where redirects led, as the base of relative links.
    #[must_use]
    pub(crate) fn final_url(&self) -> &Url {
        self.answer().map_or(&self.url, |hop| &hop.url)
    }

    /// The document after scripts ran, else as sent.
    #[must_use]
    pub(crate) fn best_html(&self) -> Option<&str> {
        self.dom().or(self.content.html.as_deref())
    }

    /// The document after scripts ran.
    #[must_use]
    pub(crate) fn dom(&self) -> Option<&str> {
        self.rendered()?.capture.dom.as_ref()?.as_ref().ok().map(String::as_str)
    }

    /// The browser's load, when it was done.
    #[must_use]
    pub(crate) fn rendered(&self) -> Option<&Rendered> {
        match &self.render {
            Render::Done(rendered) => Some(rendered),
            _ => None,
        }
    }

    /// Whether outputs of the browser are due.
    #[must_use]
    pub(crate) fn to_render(&self) -> bool {
        !matches!(self.render, Render::None)
    }

    /// An output of the browser.
    ///
    /// # Errors
    /// Why it is not there.
    pub(crate) fn taken<'a, T>(
        &'a self,
        output: impl Fn(&'a Capture) -> &'a Taken<T>,
    ) -> Result<&'a T, (ErrorCode, String)> {
        match &self.render {
            Render::None => Err((ErrorCode::NOT_APPLICABLE, "not rendered".to_owned())),
            Render::Failed(code, why) => Err((*code, why.clone())),
            Render::Done(rendered) => match output(&rendered.capture) {
                Some(Ok(value)) => Ok(value),
                Some(Err(e)) => Err((ErrorCode::named(e.code.as_str()), e.detail.clone())),
                None => Err((ErrorCode::DEPENDENCY_FAILED, "the browser was not asked for it".to_owned())),
            },
        }
    }

    /// Facts of the best document.
    #[must_use]
    pub(crate) fn best_facts(&self) -> Option<&PageFacts> {
        self.rendered().and_then(|r| r.facts.as_ref()).or(self.content.facts.as_ref())
    }

    /// The title: of the browser, of the document, or what was known.
    #[must_use]
    pub(crate) fn title(&self) -> Option<String> {
        let rendered = self.rendered().and_then(|r| r.capture.title.clone()).filter(|t| !t.trim().is_empty());
        let found = rendered.or_else(|| self.best_facts().and_then(|f| f.best_title()).map(str::to_owned));
        found.map(|t| fonds_pages::search_text::index_text(&t, 500)).filter(|t| !t.is_empty())
    }
}

/// Bytes of a file that an extractor made.
#[derive(Debug, Clone)]
pub(crate) enum FileBody {
    /// In memory.
    Bytes(Bytes),
    /// In a file that outlives the capture; a body that was spooled while it was fetched.
    Path(PathBuf, u64),
}

/// One file of a result.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Name without folder.
    pub(crate) name: String,
    /// Media type.
    pub(crate) mime: String,
    /// Its bytes.
    pub(crate) body: FileBody,
}

impl File {
    /// A file in memory.
    pub(crate) fn new(name: impl Into<String>, mime: &str, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), mime: mime.to_owned(), body: FileBody::Bytes(bytes.into()) }
    }
}

/// What an extractor came to.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// Which extractor.
    pub(crate) extractor: &'static str,
    /// How it ended.
    pub(crate) status: ResultStatus,
    /// What it made.
    pub(crate) files: Vec<File>,
    /// One line for people.
    pub(crate) line: Option<String>,
    /// Why it failed or does not apply.
    pub(crate) error: Option<(ErrorCode, String)>,
    /// How long it took.
    pub(crate) duration_ms: u32,
    /// Tool and version.
    pub(crate) tool: Option<String>,
}
