//! URLs that breed: paths and queries that grow by repeating themselves, session ids, calendars.
//!
//! Only what can be told from a URL and its parent is decided here; the per-host cap of the crawl bounds the rest.

use crate::codes;
use chrono::{Datelike, NaiveDate};
use url::Url;

/// A run of the same path segments is a trap from this many repetitions on.
const MAX_RUN: usize = 3;
/// Numbers repeat in dates and map tiles (`/11/11/11/`), so they may do so more often.
const MAX_NUMBER_RUN: usize = 5;
/// The longest run of segments looked for: `/a/b/c/a/b/c/a/b/c/`.
const MAX_PERIOD: usize = 8;
/// The same segment this often anywhere in one path is a trap too, in whatever order.
const MAX_SAME_SEGMENT: usize = 6;
/// No real site nests deeper.
const MAX_SEGMENTS: usize = 60;
/// The same `key=value` this often in one query.
const MAX_SAME_PAIR: usize = 3;
/// A URL within a URL within a URL (`?next=...%3Fnext%3D...`).
const MAX_NESTED_URLS: usize = 4;
/// Calendar pages this many years ahead lead nowhere.
const YEARS_AHEAD: i32 = 2;
/// A calendar that is paged back this far will go on.
const YEARS_BACK: i32 = 30;

/// The guard against URLs that breed.
#[derive(Clone, Copy, Debug)]
pub struct PathTrap {
    year: i32,
}

impl PathTrap {
    /// `today` is what calendars are measured against.
    pub fn new(today: NaiveDate) -> PathTrap {
        PathTrap { year: today.year() }
    }

    /// Whether `url`, found on the page `parent`, may be followed.
    ///
    /// # Errors
    /// `PATH_REPEATS`, `PATH_TOO_DEEP`, `QUERY_REPEATS`, `SESSION_LOOP` or `CALENDAR_TRAP`.
    pub fn check(&self, url: &Url, parent: Option<&Url>) -> Result<(), &'static str> {
        check_path(url.path())?;
        check_query(url.query().unwrap_or(""))?;
        check_sessions(url, parent)?;
        self.check_calendar(url, parent)
    }

    fn check_calendar(&self, url: &Url, parent: Option<&Url>) -> Result<(), &'static str> {
        let text = path_and_query(url);
        let Some(year) = date_year(text) else { return Ok(()) };
        if (self.year - YEARS_BACK..=self.year + YEARS_AHEAD).contains(&year) {
            return Ok(());
        }
        // One page about 1969 is an article. A link from one month to the next is a calendar.
        let stepped = parent.is_some_and(|p| {
            p.host_str() == url.host_str()
                && date_year(path_and_query(p)).is_some()
                && shape(path_and_query(p)) == shape(text)
        });
        let ahead_in_calendar = year > self.year + YEARS_AHEAD && names_calendar(text);
        if stepped || ahead_in_calendar { Err(codes::CALENDAR_TRAP) } else { Ok(()) }
    }
}

fn path_and_query(url: &Url) -> &str {
    &url[url::Position::BeforePath..url::Position::AfterQuery]
}

fn check_path(path: &str) -> Result<(), &'static str> {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    if segments.len() > MAX_SEGMENTS {
        return Err(codes::PATH_TOO_DEEP);
    }
    let repeats = (1..=MAX_PERIOD).any(|period| has_run(&segments, period));
    if repeats || has_frequent_segment(&segments) {
        return Err(codes::PATH_REPEATS);
    }
    Ok(())
}

/// Whether some `period` segments stand there several times in a row.
fn has_run(segments: &[&str], period: usize) -> bool {
    let mut same = 0;
    for (i, (a, b)) in segments.iter().zip(segments.iter().skip(period)).enumerate() {
        same = if a == b { same + 1 } else { 0 };
        if same == 0 {
            continue;
        }
        let run = segments.get(i + 1 - same..=i).unwrap_or_default();
        let numbers = run.iter().all(|s| s.bytes().all(|b| b.is_ascii_digit()));
        let limit = if numbers { MAX_NUMBER_RUN } else { MAX_RUN };
        if same >= period * (limit - 1) {
            return true;
        }
    }
    false
}

fn has_frequent_segment(segments: &[&str]) -> bool {
    let mut sorted: Vec<&str> =
        segments.iter().copied().filter(|s| s.len() > 1 && !s.bytes().all(|b| b.is_ascii_digit())).collect();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).any(|run| run.len() >= MAX_SAME_SEGMENT)
}

fn check_query(query: &str) -> Result<(), &'static str> {
    if query.is_empty() {
        return Ok(());
    }
    let mut pairs: Vec<&str> = query.split(['&', ';']).filter(|pair| pair.contains('=')).collect();
    pairs.sort_unstable();
    let same_pair = pairs.chunk_by(|a, b| a == b).any(|run| run.len() >= MAX_SAME_PAIR);
    if same_pair || nested_urls(query) >= MAX_NESTED_URLS {
        return Err(codes::QUERY_REPEATS);
    }
    Ok(())
}

/// Login and language links carry the page they came from, which carries the page it came from: each level encodes
/// the `%` of the level below once more.
fn nested_urls(query: &str) -> usize {
    let mut levels = 0;
    let mut marker = String::from("%3f");
    let lower = query.to_ascii_lowercase();
    while lower.contains(&marker) && levels < MAX_NESTED_URLS {
        levels += 1;
        marker.insert_str(1, "25");
    }
    levels
}

const SESSION_KEYS: [&str; 15] = [
    "jsessionid",
    "phpsessid",
    "aspsessionid",
    "asp.net_sessionid",
    "sessionid",
    "session_id",
    "session",
    "sessid",
    "sid",
    "s_id",
    "cfid",
    "cftoken",
    "zenid",
    "oscsid",
    "osssid",
];

fn is_session(key: &str, value: &str) -> bool {
    let key = key.to_ascii_lowercase();
    (SESSION_KEYS.contains(&key.as_str()) || key.starts_with("aspsessionid"))
        && value.len() >= 8
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'!' | b'%' | b'~'))
        && value.bytes().any(|b| b.is_ascii_digit())
}

/// The values of the session ids in a URL.
fn sessions(url: &Url) -> Vec<&str> {
    path_and_query(url)
        .split(['?', '&', ';', '/'])
        .filter_map(|part| match part.split_once('=') {
            Some((key, value)) => is_session(key, value).then_some(value),
            None => asp_session(part),
        })
        .collect()
}

/// ASP.NET writes the session into a path segment: `/(S(lit3py55t21z5v55vlm25s55))/page.aspx`.
fn asp_session(segment: &str) -> Option<&str> {
    segment.strip_prefix("(S(").and_then(|rest| rest.strip_suffix("))")).filter(|id| id.len() >= 8)
}

fn check_sessions(url: &Url, parent: Option<&Url>) -> Result<(), &'static str> {
    let sessions = sessions(url);
    if sessions.is_empty() {
        return Ok(());
    }
    if sessions.len() > 2 {
        return Err(codes::SESSION_LOOP);
    }
    let Some(parent) = parent.filter(|p| p.host_str() == url.host_str()) else { return Ok(()) };
    let before = self::sessions(parent);
    // A session that changes from page to page makes every page new, for ever.
    let changed = !before.is_empty() && sessions.iter().all(|id| !before.contains(id));
    if changed { Err(codes::SESSION_LOOP) } else { Ok(()) }
}

fn names_calendar(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["calendar", "kalender", "calendrier", "/cal/", "event", "ical", "month", "agenda", "schedule", "day=", "date="]
        .iter()
        .any(|word| lower.contains(word))
}

/// The year of a date in a path or query: `2031-05`, `/2031/05/`, `year=2031`, `date=20310501`.
fn date_year(text: &str) -> Option<i32> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at..)?.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            at += 1;
            continue;
        }
        let number = text.get(at..at + digits)?;
        let before = text.get(..at).unwrap_or("");
        let after = bytes.get(at + digits..).unwrap_or_default();
        if let Some(year) = year_of(before, number, after) {
            return Some(year);
        }
        at += digits;
    }
    None
}

fn year_of(before: &str, number: &str, after: &[u8]) -> Option<i32> {
    let year: i32 = number.get(..4)?.parse().ok().filter(|y| (1000..=9999).contains(y))?;
    let key =
        before.strip_suffix('=').map(|b| b.rsplit(['?', '&', ';', '/']).next().unwrap_or("").to_ascii_lowercase());
    let month_follows = matches!(after, [b'-' | b'/' | b'_' | b'.', m, rest @ ..]
        if m.is_ascii_digit() && rest.iter().take_while(|b| b.is_ascii_digit()).count() <= 1);
    match number.len() {
        4 if month_follows => Some(year),
        4 => key.filter(|k| matches!(k.as_str(), "year" | "y" | "yr" | "jahr" | "annee" | "cal_year")).map(|_| year),
        6 | 8 => {
            let month: u32 = number.get(4..6)?.parse().ok()?;
            let dated = key.is_some_and(|k| k.contains("date") || k.contains("month") || k.contains("day"));
            (dated && (1..=12).contains(&month)).then_some(year)
        }
        _ => None,
    }
}

/// A URL with its numbers blanked, to see whether two are steps of one thing.
fn shape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if !(c == '0' && out.ends_with('0')) {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> PathTrap {
        PathTrap::new(NaiveDate::from_ymd_opt(2026, 6, 1).unwrap())
    }

    #[track_caller]
    fn check(url: &str, parent: Option<&str>) -> Result<(), &'static str> {
        let parent = parent.map(|p| Url::parse(p).unwrap());
        guard().check(&Url::parse(url).unwrap(), parent.as_ref())
    }

    #[test]
    fn urls_that_breed_are_stopped() {
        for (url, code) in [
            ("https://x.org/a/a/a/", codes::PATH_REPEATS),
            ("https://x.org/docs/a/a/a/index.html", codes::PATH_REPEATS),
            ("https://x.org/en/about/en/about/en/about", codes::PATH_REPEATS),
            ("https://x.org/0/0/0/0/0/0", codes::PATH_REPEATS),
            ("https://x.org///////", codes::PATH_REPEATS),
            ("https://x.org/aa/b/aa/c/aa/d/aa/e/aa/f/aa/g", codes::PATH_REPEATS),
            ("https://x.org/p?page=1&page=1&page=1", codes::QUERY_REPEATS),
            (
                "https://x.org/l?n=%2Fl%3Fn%3D%252Fl%253Fn%253D%25252Fl%25253Fn%25253D%2525252Fl%2525253F",
                codes::QUERY_REPEATS,
            ),
            ("https://x.org/a;jsessionid=AAAA1111?sid=BBBB2222&phpsessid=CCCC3333", codes::SESSION_LOOP),
            ("https://x.org/calendar?month=2031-05", codes::CALENDAR_TRAP),
            ("https://x.org/events/2029/01/", codes::CALENDAR_TRAP),
        ] {
            assert_eq!(check(url, None), Err(code), "{url}");
        }
        let deep: String = (0..MAX_SEGMENTS + 1).map(|i| format!("/s{i}")).collect();
        assert_eq!(check(&format!("https://x.org{deep}"), None), Err(codes::PATH_TOO_DEEP));
    }

    #[test]
    fn real_urls_pass() {
        for url in [
            "https://x.org/",
            "https://x.org/a/a/",
            "https://x.org/2011/11/11/11/page",
            "https://tile.x.org/0/0/0.png",
            "https://x.org/wiki/Talk:New_York,_New_York",
            "https://x.org/search?q=a&tag=b&tag=c&tag=d",
            "https://x.org/login?next=https%3A%2F%2Fx.org%2Fp%3Fa%3D1",
            "https://x.org/a;jsessionid=0A1B2C3D4E5F",
            "https://x.org/1969/07/20/moon.html",
            "https://x.org/2027/01/preview",
            "https://x.org/p?id=20310501",
            "https://x.org/year-9999-01-forecast",
        ] {
            assert_eq!(check(url, None), Ok(()), "{url}");
        }
    }

    #[test]
    fn some_traps_show_only_beside_their_parent() {
        for (parent, url, expected) in [
            ("https://x.org/a?sid=AAAA1111", "https://x.org/b?sid=BBBB2222", Err(codes::SESSION_LOOP)),
            ("https://x.org/a;jsessionid=AAAA1111", "https://x.org/a;jsessionid=BBBB2222", Err(codes::SESSION_LOOP)),
            ("https://x.org/(S(abcdefgh1))/a", "https://x.org/(S(bcdefghi2))/a", Err(codes::SESSION_LOOP)),
            ("https://x.org/a?sid=AAAA1111", "https://x.org/b?sid=AAAA1111", Ok(())),
            ("https://x.org/a", "https://x.org/b?sid=AAAA1111", Ok(())),
            ("https://y.org/a?sid=AAAA1111", "https://x.org/b?sid=BBBB2222", Ok(())),
            ("https://x.org/a/1990/01", "https://x.org/a/1989/12", Err(codes::CALENDAR_TRAP)),
            ("https://x.org/plan?year=2028&m=12", "https://x.org/plan?year=2029&m=1", Err(codes::CALENDAR_TRAP)),
            ("https://x.org/plan?year=2025&m=12", "https://x.org/plan?year=2026&m=1", Ok(())),
            ("https://x.org/index", "https://x.org/a/1989/12", Ok(())),
        ] {
            assert_eq!(check(url, Some(parent)), expected, "{parent} -> {url}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(path in ".{0,80}", parent in ".{0,80}") {
            let base = Url::parse("https://x.org/").unwrap();
            if let (Ok(url), Ok(parent)) = (base.join(&path), base.join(&parent)) {
                let _ = guard().check(&url, Some(&parent));
            }
        }
    }
}
