//! Where the readers of all formats put what they find.

use super::{Format, InputUrl, Limits, Nested, ParsedInput, Rejected};
use crate::codes;
use crate::search_text::{cut, without_nul};
use crate::text::flow::collapsed;
use crate::urls::{PageUrl, UrlError};
use chrono::{DateTime, Utc};
use url::Url;

const MAX_TITLE: usize = 2_048;
const MAX_DESCRIPTION: usize = 16 << 10;
const MAX_TAG: usize = 255;
const MAX_TAGS: usize = 200;
const MAX_FOLDERS: usize = 32;
const MAX_REJECTED_TEXT: usize = 200;

/// What a format knows of a URL, as it stands there.
#[derive(Clone, Debug, Default)]
pub(super) struct Item {
    pub(super) title: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) added_at: Option<DateTime<Utc>>,
    pub(super) description: Option<String>,
    pub(super) folder: Vec<String>,
    pub(super) rel: Option<String>,
    /// Where in the text, in bytes.
    pub(super) offset: Option<usize>,
}

pub(super) struct Sink<'a> {
    pub(super) base: Option<Url>,
    limits: Limits,
    text: &'a str,
    urls: Vec<InputUrl>,
    nested: Vec<Nested>,
    rejected: Vec<Rejected>,
    rejected_total: usize,
    incomplete: Option<&'static str>,
    /// Up to where lines have been counted, and how many there were.
    counted: (usize, u64),
}

impl<'a> Sink<'a> {
    pub(super) fn new(base: Option<&Url>, limits: &Limits, text: &'a str) -> Self {
        Sink {
            base: base.cloned(),
            limits: *limits,
            text,
            urls: Vec::new(),
            nested: Vec::new(),
            rejected: Vec::new(),
            rejected_total: 0,
            incomplete: None,
            counted: (0, 1),
        }
    }

    /// Nothing more will be taken.
    pub(super) fn is_full(&self) -> bool {
        self.urls.len() >= self.limits.max_urls && self.incomplete.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.urls.is_empty() && self.nested.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.urls.len()
    }

    /// What was added from `start` on, to correct what was not known then.
    pub(super) fn since(&mut self, start: usize) -> &mut [InputUrl] {
        self.urls.get_mut(start..).unwrap_or_default()
    }

    pub(super) fn drop_range(&mut self, range: std::ops::Range<usize>) {
        let end = range.end.min(self.urls.len());
        self.urls.drain(range.start.min(end)..end);
    }

    pub(super) fn fault(&mut self, code: &'static str) {
        self.incomplete = self.incomplete.or(Some(code));
    }

    pub(super) fn forget_faults(&mut self) {
        self.incomplete = None;
        self.rejected.clear();
        self.rejected_total = 0;
    }

    fn resolve(&self, href: &str) -> Result<PageUrl, UrlError> {
        match &self.base {
            Some(base) => PageUrl::join(base, href),
            None => PageUrl::parse(href),
        }
    }

    /// Adds a link, or rejects it. Says whether it was added.
    pub(super) fn add(&mut self, href: &str, item: Item) -> bool {
        match self.resolve(href.trim()) {
            Ok(url) => self.put(url, item),
            Err(error) => {
                self.reject_at(href.trim(), error.code, reason(error.code), item.offset);
                false
            }
        }
    }

    /// Adds a link if it is one, and says nothing otherwise: for places where all kinds of things stand.
    pub(super) fn add_quietly(&mut self, href: &str, item: Item) -> bool {
        match self.resolve(href.trim()) {
            Ok(url) => self.put(url, item),
            Err(_) => false,
        }
    }

    fn put(&mut self, url: PageUrl, item: Item) -> bool {
        if self.urls.len() >= self.limits.max_urls {
            self.fault(codes::TOO_MANY_URLS);
            return false;
        }
        let line = item.offset.map(|at| self.line(at));
        let clean = |text: Option<String>, cap: usize| text.and_then(|t| collapsed(&without_nul(&t), cap));
        let mut tags: Vec<String> = Vec::new();
        for tag in item.tags {
            let tag = collapsed(&without_nul(&tag), MAX_TAG);
            tags.extend(tag.filter(|tag| tags.len() < MAX_TAGS && !tags.contains(tag)));
        }
        self.urls.push(InputUrl {
            url: url.into_url().into(),
            title: clean(item.title, MAX_TITLE),
            tags,
            added_at: item.added_at,
            description: item
                .description
                .map(|d| cut(without_nul(d.trim()).as_ref(), MAX_DESCRIPTION).trim().to_owned())
                .filter(|d| !d.is_empty()),
            folder: item.folder.iter().take(MAX_FOLDERS).filter_map(|f| collapsed(&without_nul(f), MAX_TAG)).collect(),
            rel: item.rel,
            line,
        });
        true
    }

    /// Adds a list to be fetched.
    pub(super) fn nest(&mut self, href: &str, format: Format, modified_at: Option<DateTime<Utc>>, offset: usize) {
        match self.resolve(href.trim()) {
            Ok(_) if self.nested.len() >= self.limits.max_nested => self.fault(codes::TOO_MANY_NESTED),
            Ok(url) => self.nested.push(Nested { url: url.into_url().into(), format, modified_at }),
            Err(error) => self.reject_at(href.trim(), error.code, reason(error.code), Some(offset)),
        }
    }

    pub(super) fn reject(&mut self, text: &str, code: &'static str, why: &str) {
        self.reject_at(text, code, why, None);
    }

    pub(super) fn reject_at(&mut self, text: &str, code: &'static str, why: &str, offset: Option<usize>) {
        self.rejected_total += 1;
        if self.rejected.len() < self.limits.max_rejected {
            let line = offset.map(|at| self.line(at));
            self.rejected.push(Rejected {
                text: without_nul(cut(text, MAX_REJECTED_TEXT)).into_owned(),
                code: code.to_owned(),
                reason: why.to_owned(),
                line,
            });
        }
    }

    /// The line of a position. Positions mostly ascend, so each newline is counted once.
    pub(super) fn line(&mut self, offset: usize) -> u64 {
        let offset = offset.min(self.text.len());
        if offset < self.counted.0 {
            self.counted = (0, 1);
        }
        let between = self.text.as_bytes().get(self.counted.0..offset).unwrap_or_default();
        let lines = memchr::memchr_iter(b'\n', between).count();
        self.counted = (offset, self.counted.1 + lines as u64);
        self.counted.1
    }

    pub(super) fn finish(self, format: Format, fault: Option<&'static str>) -> ParsedInput {
        ParsedInput {
            format,
            urls: self.urls,
            nested: self.nested,
            rejected: self.rejected,
            rejected_total: self.rejected_total,
            incomplete: self.incomplete.or(fault).map(str::to_owned),
        }
    }
}

fn reason(code: &str) -> &'static str {
    match code {
        codes::RELATIVE_URL => "the link is relative, and it is not known to what",
        codes::UNSUPPORTED_SCHEME => "only http and https can be archived",
        codes::NO_HOST => "there is no host",
        codes::URL_TOO_LONG => "the URL is longer than 65,535 bytes",
        _ => "this is no URL",
    }
}
