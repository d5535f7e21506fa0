//! What can be checked of a request without network and without the database. Pure.

use crate::problem::{FieldError, Problem};
use crate::shapes::crawl::NewCrawl;
use chrono::{DateTime, Months, TimeDelta, Utc};
use fonds_domain::{CrawlConfig, CrawlLimits, ErrorCode};
use fonds_pages::urls::{PageUrl, RuleError, UrlRules};
use fonds_store::query::MAX_TAGS;

/// URLs in `urls` at most.
const URLS_MAX: usize = 100_000;
/// Bytes of `input` at most.
const INPUT_MAX: usize = 10_000_000;
/// Characters of a tag, a label, notes at most.
const TAG_MAX: usize = 100;
const LABEL_MAX: usize = 200;
const NOTES_MAX: usize = 10_000;

/// A submission that can be stored.
pub(crate) struct Checked {
    pub(crate) input: String,
    pub(crate) config: CrawlConfig,
    pub(crate) limits: CrawlLimits,
    pub(crate) tags: Vec<String>,
    pub(crate) label: String,
    pub(crate) notes: String,
    pub(crate) delete_at: Option<DateTime<Utc>>,
    /// `urls`, in order.
    pub(crate) urls: Vec<PageUrl>,
    pub(crate) rules: UrlRules,
}

/// Checks a submission.
pub(crate) fn submission(new: NewCrawl, now: DateTime<Utc>) -> Result<Checked, Problem> {
    let mut config = new.config.unwrap_or_default();
    config.check().map_err(|e| crate::problem::config_problem("config", e))?;
    let rules = rules(&config)?;
    let limits = limits(new.limits, new.depth)?;
    let urls = urls(new.urls.as_deref().unwrap_or_default())?;
    let input = input(&urls, new.input.unwrap_or_default(), &mut config)?;
    Ok(Checked {
        input,
        config,
        limits,
        tags: tags("tags", new.tags)?,
        label: line("label", new.label, LABEL_MAX)?,
        notes: text("notes", new.notes, NOTES_MAX)?,
        delete_at: new.delete_after.map(|age| after("delete_after", &age, now)).transpose()?,
        urls,
        rules,
    })
}

/// Limits, with `depth` as a short form of one of them.
pub(crate) fn limits(limits: Option<CrawlLimits>, depth: Option<u16>) -> Result<CrawlLimits, Problem> {
    let mut limits = match (limits, depth) {
        (Some(limits), Some(depth)) if limits.max_depth != 0 && limits.max_depth != depth => {
            return Err(Problem::field("depth", "differs from limits.max_depth; give one of them"));
        }
        (limits, _) => limits.unwrap_or_default(),
    };
    if let Some(depth) = depth {
        limits.max_depth = depth;
    }
    limits.check().map_err(|e| {
        if depth.is_some() && e.field == "max_depth" {
            Problem::field("depth", e.message)
        } else {
            crate::problem::config_problem("limits", e)
        }
    })?;
    Ok(limits)
}

fn rules(config: &CrawlConfig) -> Result<UrlRules, Problem> {
    const NONE: &[String] = &[];
    for (field, list) in
        [("config.allow", &config.allow), ("config.deny", &config.deny), ("config.block", &config.block)]
    {
        UrlRules::compile(NONE, list).map_err(|e| {
            let at = match &e {
                RuleError::Invalid { pattern, .. } => list.iter().position(|p| p.trim() == pattern),
                RuleError::TooLarge(_) => None,
            };
            let field = at.map_or_else(|| field.to_owned(), |i| format!("{field}[{i}]"));
            Problem::refused(ErrorCode::INVALID_PATTERN, field, e.to_string())
        })?;
    }
    UrlRules::compile(&config.allow, &config.deny)
        .map_err(|e| Problem::refused(ErrorCode::INVALID_PATTERN, "config", e.to_string()))
}

/// Every URL that cannot be archived is named with its place.
fn urls(texts: &[String]) -> Result<Vec<PageUrl>, Problem> {
    if texts.len() > URLS_MAX {
        return Err(Problem::field("urls", format!("{} URLs; at most {URLS_MAX} at once", texts.len())));
    }
    let mut good = Vec::with_capacity(texts.len());
    let mut bad: Vec<FieldError> = Vec::new();
    let mut n_bad = 0usize;
    for (i, text) in texts.iter().enumerate() {
        match PageUrl::parse(text.trim()) {
            Ok(url) => good.push(url),
            Err(e) => {
                n_bad += 1;
                if bad.len() < crate::problem::ERRORS_MAX {
                    let code = if e.code == "URL_TOO_LONG" { ErrorCode::URL_TOO_LONG } else { ErrorCode::INVALID_URL };
                    let detail = url_detail(e.code).to_owned();
                    bad.push(FieldError { field: format!("urls[{i}]"), code: code.as_str(), detail });
                }
            }
        }
    }
    let Some(first) = bad.first() else { return Ok(good) };
    let code = ErrorCode::named(first.code);
    let detail = format!("{n_bad} of {} URLs cannot be archived; {}: {}", texts.len(), first.field, first.detail);
    Err(Problem::refused(code, first.field.clone(), detail).with_errors(bad))
}

/// The refusals of `fonds_pages::urls` in words.
fn url_detail(code: &str) -> &'static str {
    match code {
        "RELATIVE_URL" => "there is no scheme; write https://... in full",
        "UNSUPPORTED_SCHEME" => "only http and https can be archived",
        "NO_HOST" => "there is no host",
        "URL_TOO_LONG" => "longer than 65,535 bytes",
        _ => "this is not a URL",
    }
}

/// What crawl-setup will read. `urls` become JSON lines, the one form that carries any URL exactly.
fn input(urls: &[PageUrl], input: String, config: &mut CrawlConfig) -> Result<String, Problem> {
    if input.len() > INPUT_MAX {
        return Err(Problem::field("input", format!("{} bytes; at most {INPUT_MAX}", input.len())));
    }
    let blank = input.trim().is_empty();
    if urls.is_empty() {
        if blank {
            return Err(Problem::refused(ErrorCode::NO_URLS, "urls", "neither urls nor input holds anything"));
        }
        return Ok(input);
    }
    if blank {
        if !matches!(config.input_format.as_str(), "auto" | "jsonl") {
            let detail = format!("there is no input that could be {}", config.input_format);
            return Err(Problem::field("config.input_format", detail));
        }
        config.input_format = "jsonl".to_owned();
        return Ok(json_lines(urls));
    }
    match config.input_format.as_str() {
        "jsonl" => Ok(json_lines(urls) + &input),
        "auto" | "text" if is_plain(&input) => {
            config.input_format = "text".to_owned();
            Ok(urls.iter().fold(String::new(), |all, url| all + written(url).as_str() + "\n") + &input)
        }
        format => {
            let detail = format!("cannot be put before an input of the format {format}; make two crawls");
            Err(Problem::field("urls", detail))
        }
    }
}

/// Whether a text is of no format that begins with a mark of its own.
fn is_plain(input: &str) -> bool {
    !input.trim_start_matches('\u{feff}').trim_start().starts_with(['<', '{', '['])
}

fn json_lines(urls: &[PageUrl]) -> String {
    urls.iter().fold(String::new(), |all, url| all + &serde_json::json!({ "url": written(url) }).to_string() + "\n")
}

/// The URL with the credentials it came with: they are for the request, and setup takes them out.
fn written(url: &PageUrl) -> String {
    let mut full = url.as_url().clone();
    if let Some(credentials) = url.credentials() {
        let password = Some(credentials.password.as_str()).filter(|p| !p.is_empty());
        if full.set_username(&credentials.username).and_then(|()| full.set_password(password)).is_err() {
            return url.as_str().to_owned();
        }
    }
    full.into()
}

/// Trimmed, sorted, each once.
pub(crate) fn tags(field: &str, tags: Vec<String>) -> Result<Vec<String>, Problem> {
    let mut out = Vec::with_capacity(tags.len().min(200));
    for (i, tag) in tags.into_iter().enumerate() {
        let tag = tag.trim();
        if tag.is_empty() || tag.chars().count() > TAG_MAX || tag.chars().any(char::is_control) {
            let detail = format!("a tag has 1 to {TAG_MAX} characters and no control characters");
            return Err(Problem::field(format!("{field}[{i}]"), detail));
        }
        out.push(tag.to_owned());
    }
    out.sort();
    out.dedup();
    if out.len() > usize::try_from(MAX_TAGS).unwrap_or(usize::MAX) {
        return Err(too_many_tags(field));
    }
    Ok(out)
}

pub(crate) fn too_many_tags(field: &str) -> Problem {
    Problem::field(field, format!("more than {MAX_TAGS} tags"))
}

/// A line of text.
pub(crate) fn line(field: &str, value: String, max: usize) -> Result<String, Problem> {
    if value.chars().any(char::is_control) {
        return Err(Problem::field(field, "has control characters"));
    }
    text(field, value.trim().to_owned(), max)
}

/// A text. NUL is the one character Postgres has no place for.
pub(crate) fn text(field: &str, value: String, max: usize) -> Result<String, Problem> {
    if value.chars().count() > max {
        return Err(Problem::field(field, format!("longer than {max} characters")));
    }
    if value.contains('\0') {
        return Err(Problem::field(field, "has a NUL character"));
    }
    Ok(value)
}

/// A label or notes in an edit.
pub(crate) fn label_and_notes(
    label: Option<String>,
    notes: Option<String>,
) -> Result<(Option<String>, Option<String>), Problem> {
    Ok((
        label.map(|l| line("label", l, LABEL_MAX)).transpose()?,
        notes.map(|n| text("notes", n, NOTES_MAX)).transpose()?,
    ))
}

/// When a row is deleted: an edit names a time, or an age from now.
pub(crate) fn delete_at(
    at: Option<Option<DateTime<Utc>>>,
    age: Option<String>,
    now: DateTime<Utc>,
) -> Result<Option<Option<DateTime<Utc>>>, Problem> {
    match (at, age) {
        (Some(_), Some(_)) => Err(Problem::field("delete_after", "give delete_at or delete_after, not both")),
        (None, Some(age)) => Ok(Some(Some(after("delete_after", &age, now)?))),
        (Some(Some(at)), None) if at <= now => {
            Err(Problem::field("delete_at", "is in the past; DELETE removes at once"))
        }
        (Some(Some(at)), None) if at > now + TimeDelta::days(MAX_DAYS) => {
            Err(Problem::field("delete_at", "is more than 100 years ahead; null keeps for good"))
        }
        (at, None) => Ok(at),
    }
}

const MAX_DAYS: i64 = 36_525;

/// `30d` from now: a number and `h`, `d`, `w`, `mo` or `y`; months and years by the calendar.
pub(crate) fn after(field: &str, age: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, Problem> {
    let bad = || Problem::field(field, "a number and h, d, w, mo or y, such as 30d; from 1h to 100y");
    let digits = age.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = age.split_at(digits);
    let n: u32 = number.parse().map_err(|_| bad())?;
    let hours = |per: i64| now.checked_add_signed(TimeDelta::try_hours(i64::from(n) * per)?);
    let months = |per: u32| now.checked_add_months(Months::new(n.checked_mul(per)?));
    let at = match unit.trim() {
        "h" => hours(1),
        "d" => hours(24),
        "w" => hours(24 * 7),
        "mo" => months(1),
        "y" => months(12),
        _ => None,
    };
    at.filter(|at| *at >= now + TimeDelta::hours(1) && *at <= now + TimeDelta::days(MAX_DAYS)).ok_or_else(bad)
}

#[cfg(test)]
#[path = "check/tests.rs"]
mod tests;
