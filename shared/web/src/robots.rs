//! robots.txt: fetched once per origin, kept for a while, read as RFC 9309 says.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Serialize};
use texting_robots::Robot;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use url::{Origin, Position, Url};

use crate::code::FetchCode;
use crate::fetch::{FetchRequest, FetchResult, Fetcher, decode_body};

/// What a crawl does about robots.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RobotsPolicy {
    /// It is not even fetched.
    Off,
    /// What it disallows is not captured.
    #[default]
    Obey,
    /// What it disallows is captured, and the fact recorded.
    Report,
}

/// Why a URL is or is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RobotsReason {
    /// The policy is [`RobotsPolicy::Off`].
    NotAsked,
    /// A rule, or the absence of one, says so.
    Rules,
    /// There is no robots.txt (4xx, or nothing a redirect leads to): everything is allowed
    /// (RFC 9309 section 2.3.1.3).
    Unavailable,
    /// The server failed or could not be reached: everything is disallowed (section 2.3.1.4).
    Unreachable,
}

impl RobotsReason {
    /// The stable text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotAsked => "not-asked",
            Self::Rules => "rules",
            Self::Unavailable => "unavailable",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The answer about one URL.
#[derive(Debug, Clone, PartialEq)]
pub struct RobotsVerdict {
    /// Whether robots.txt allows it, whatever the policy does about that.
    pub allowed: bool,
    /// Whether it may be captured under the policy.
    pub may_capture: bool,
    /// Where [`Self::allowed`] comes from.
    pub reason: RobotsReason,
    /// Crawl-delay of our group.
    pub crawl_delay: Option<Duration>,
}

/// How robots.txt files are fetched and kept.
#[derive(Debug, Clone)]
pub struct RobotsConfig {
    /// The product token matched against `User-agent` lines (section 2.2.1): letters, `_`, `-`.
    pub agent: String,
    /// How long a file is believed; at most a day (section 2.4).
    pub ttl: Duration,
    /// How long a failure is believed.
    pub failure_ttl: Duration,
    /// For the fetch, redirects included.
    pub timeout: Duration,
    /// Longer delays are cut to this.
    pub max_crawl_delay: Duration,
    /// Origins remembered.
    pub max_origins: usize,
}

impl Default for RobotsConfig {
    fn default() -> Self {
        Self {
            agent: "fonds".to_owned(),
            ttl: Duration::from_secs(3600),
            failure_ttl: Duration::from_secs(300),
            timeout: Duration::from_secs(30),
            max_crawl_delay: Duration::from_secs(60),
            max_origins: 10_000,
        }
    }
}

/// Section 2.5: at least 500 KiB must be read; this is read.
const MAX_BYTES: usize = 500 * 1024;
/// Section 2.3.1.2: at least five.
const MAX_REDIRECTS: usize = 5;

/// Asks robots.txt files, each fetched once however many ask at the same time. Cheap to clone.
#[derive(Clone)]
pub struct Robots {
    inner: Arc<Inner>,
}

struct Inner {
    fetcher: Fetcher,
    config: RobotsConfig,
    known: Mutex<HashMap<Origin, Slot>>,
}

type Slot = Arc<OnceCell<Known>>;

struct Known {
    until: Instant,
    rules: Arc<Rules>,
}

/// One origin's robots.txt, read for our agent.
pub struct Rules {
    robot: Option<Robot>,
    reason: RobotsReason,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
}

impl Rules {
    /// Reads a file for `agent`. What cannot be read allows everything.
    pub fn parse(agent: &str, text: &[u8], max_crawl_delay: Duration) -> Self {
        let text = whole_lines(text);
        let robot = Robot::new(agent, text).ok();
        let crawl_delay = robot
            .as_ref()
            .and_then(|robot| robot.delay)
            .and_then(|seconds| Duration::try_from_secs_f32(seconds).ok())
            .map(|delay| delay.min(max_crawl_delay));
        let sitemaps = robot.as_ref().map(|robot| robot.sitemaps.clone()).unwrap_or_default();
        Self { robot, reason: RobotsReason::Rules, crawl_delay, sitemaps }
    }

    const fn without_file(reason: RobotsReason) -> Self {
        Self { robot: None, reason, crawl_delay: None, sitemaps: Vec::new() }
    }

    /// Whether `url` is allowed.
    pub fn allows(&self, url: &Url) -> bool {
        match (&self.robot, self.reason) {
            (_, RobotsReason::Unreachable) => false,
            // Rules see path and query; a fragment is not sent and not theirs.
            (Some(robot), _) => robot.allowed(&url[Position::BeforePath..Position::AfterQuery]),
            (None, _) => true,
        }
    }

    /// Where the rules come from.
    pub const fn reason(&self) -> RobotsReason {
        self.reason
    }

    /// Crawl-delay of our group.
    pub const fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The `Sitemap` lines, as written.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }
}

/// At most [`MAX_BYTES`], and no line cut in two: half a rule is another rule.
fn whole_lines(text: &[u8]) -> &[u8] {
    match text.get(..MAX_BYTES) {
        None => text,
        Some(_) if text.len() == MAX_BYTES => text,
        Some(head) => {
            let end = head.iter().rposition(|b| matches!(b, b'\n' | b'\r'));
            &head[..end.unwrap_or(0)]
        }
    }
}

impl Robots {
    /// Asks through `fetcher`.
    pub fn new(fetcher: Fetcher, config: RobotsConfig) -> Self {
        Self { inner: Arc::new(Inner { fetcher, config, known: Mutex::new(HashMap::new()) }) }
    }

    /// Whether `url` may be captured under `policy`.
    pub async fn check(&self, url: &Url, policy: RobotsPolicy) -> RobotsVerdict {
        if policy == RobotsPolicy::Off {
            return RobotsVerdict {
                allowed: true,
                may_capture: true,
                reason: RobotsReason::NotAsked,
                crawl_delay: None,
            };
        }
        let rules = self.rules(url).await;
        let allowed = rules.allows(url);
        RobotsVerdict {
            allowed,
            may_capture: allowed || policy == RobotsPolicy::Report,
            reason: rules.reason,
            crawl_delay: rules.crawl_delay,
        }
    }

    /// The rules of the origin of `url`, fetched if they are not known.
    pub async fn rules(&self, url: &Url) -> Arc<Rules> {
        let slot = self.slot(url.origin());
        let known = slot.get_or_init(|| Box::pin(self.ask(url))).await;
        Arc::clone(&known.rules)
    }

    fn slot(&self, origin: Origin) -> Slot {
        let now = Instant::now();
        let is_over = |slot: &Slot| slot.get().is_some_and(|known| known.until <= now);
        let known = &self.inner.known;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&origin) {
            Some(slot) if !is_over(slot) => return Arc::clone(slot),
            _ => {}
        }
        if known.len() >= self.inner.config.max_origins {
            known.retain(|_, slot| !is_over(slot));
            if known.len() >= self.inner.config.max_origins {
                known.clear();
            }
        }
        let slot = Slot::default();
        known.insert(origin, Arc::clone(&slot));
        slot
    }

    async fn ask(&self, url: &Url) -> Known {
        let config = &self.inner.config;
        let rules = match url.join("/robots.txt") {
            Err(_) => Rules::without_file(RobotsReason::Unavailable),
            Ok(mut address) => {
                address.set_query(None);
                address.set_fragment(None);
                let request = FetchRequest {
                    deadline: Some(Instant::now() + config.timeout),
                    // One more tells "exactly full" from "cut".
                    body_cap: Some(MAX_BYTES as u64 + 1),
                    max_redirects: Some(MAX_REDIRECTS),
                    ..FetchRequest::get(address)
                };
                read_answer(&self.inner.fetcher.fetch(request).await, config).await
            }
        };
        let ttl = match rules.reason {
            RobotsReason::Unreachable => config.failure_ttl,
            _ => config.ttl.min(Duration::from_secs(24 * 3600)),
        };
        Known { until: Instant::now() + ttl, rules: Arc::new(rules) }
    }
}

async fn read_answer(result: &FetchResult, config: &RobotsConfig) -> Rules {
    let no_target = result.error.as_ref().is_some_and(|error| {
        matches!(
            error.code,
            FetchCode::RedirectLoop
                | FetchCode::TooManyRedirects
                | FetchCode::RedirectNoLocation
                | FetchCode::RedirectBadLocation
                | FetchCode::RedirectBadScheme
        )
    });
    if no_target {
        return Rules::without_file(RobotsReason::Unavailable);
    }
    let Some(hop) = result.answer() else {
        return Rules::without_file(RobotsReason::Unreachable);
    };
    if hop.status.is_server_error() {
        return Rules::without_file(RobotsReason::Unreachable);
    }
    if hop.status != StatusCode::OK {
        return Rules::without_file(RobotsReason::Unavailable);
    }
    let only_long = |error: &crate::fetch::FetchError| error.code == FetchCode::BodyTooLarge;
    if !result.error.as_ref().is_none_or(only_long) {
        return Rules::without_file(RobotsReason::Unreachable);
    }
    match hop.body.prefix(MAX_BYTES + 1).await {
        Ok(body) => {
            let text = decode_body(&hop.headers, &body, MAX_BYTES + 1).bytes;
            Rules::parse(&config.agent, &text, config.max_crawl_delay)
        }
        Err(_) => Rules::without_file(RobotsReason::Unreachable),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::fetch::FetcherConfig;
    use crate::guard::{Guard, GuardConfig};
    use crate::testing::{Message, Origin, OriginConfig, Reply};

    const FILE: &str = "# ours\nUser-agent: *\nDisallow: /\n\nUser-agent: fonds\nDisallow: /private\n\
         Disallow: /*.pdf$\nAllow: /private/open\nCrawl-delay: 2.5\n\nSitemap: http://a.example/map.xml\n";

    fn robots_with(ttl: Duration) -> Robots {
        let guard = Guard::new(GuardConfig { allow_private: true, ..GuardConfig::default() });
        let fetcher =
            Fetcher::new(FetcherConfig { header_timeout: Duration::from_millis(1500), ..FetcherConfig::new(guard) });
        let config = RobotsConfig { ttl, failure_ttl: ttl, ..RobotsConfig::default() };
        Robots::new(fetcher.unwrap(), config)
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn rules_delays_and_sitemaps() {
        let config = OriginConfig::new().route("/robots.txt", Reply::ok("text/plain", FILE));
        let origin = Origin::start(config).await.unwrap();
        let robots = robots_with(HOUR);
        for (path, allowed) in [
            ("/", true),
            ("/robots.txt", true),
            ("/private", false),
            ("/private/x?y", false),
            ("/private/open/x", true),
            ("/a/b.pdf", false),
            ("/a/b.pdf?x", true),
            ("/a/b.pdf#fragment", false),
        ] {
            let verdict = robots.check(&origin.url(path), RobotsPolicy::Obey).await;
            assert_eq!(verdict.allowed, allowed, "{path}");
            assert_eq!(verdict.may_capture, allowed, "{path}");
            assert_eq!(verdict.crawl_delay, Some(Duration::from_millis(2500)));
            let report = robots.check(&origin.url(path), RobotsPolicy::Report).await;
            assert_eq!((report.allowed, report.may_capture), (allowed, true), "{path}");
            let off = robots.check(&origin.url(path), RobotsPolicy::Off).await;
            assert!(off.allowed && off.reason == RobotsReason::NotAsked);
        }
        assert_eq!(robots.rules(&origin.url("/")).await.sitemaps(), ["http://a.example/map.xml"]);
        assert_eq!(origin.hits("/robots.txt"), 1);
    }

    #[tokio::test]
    async fn what_stands_in_for_a_file() {
        let target = |n: u32| format!("/faults/redirect/{n}");
        let file = || Reply::ok("text/plain", "User-agent: *\nDisallow: /");
        for (reply, allowed, reason) in [
            (file(), false, RobotsReason::Rules),
            (Reply::ok("text/plain", ""), true, RobotsReason::Rules),
            (Reply::html("<!doctype html><p>Disallow: /"), true, RobotsReason::Rules),
            (Message::new(404, "text/plain", "no").into(), true, RobotsReason::Unavailable),
            (Message::new(403, "text/plain", "no").into(), true, RobotsReason::Unavailable),
            (Message::new(429, "text/plain", "no").into(), true, RobotsReason::Unavailable),
            (Message::new(500, "text/plain", "no").into(), false, RobotsReason::Unreachable),
            (Message::new(503, "text/plain", "no").into(), false, RobotsReason::Unreachable),
            // The fourth redirect leads to the fifth, which answers.
            (Reply::redirect(302, &target(4)), true, RobotsReason::Rules),
            (Reply::redirect(302, &target(5)), true, RobotsReason::Unavailable),
            (Reply::redirect(302, "/robots.txt"), true, RobotsReason::Unavailable),
            (Reply::redirect(302, "/faults/silent"), false, RobotsReason::Unreachable),
            (Reply::raw("garbage\r\n\r\n"), false, RobotsReason::Unreachable),
            (Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-"), false, RobotsReason::Unreachable),
        ] {
            let about = format!("{reply:?}");
            let origin = Origin::start(OriginConfig::new().route("/robots.txt", reply)).await.unwrap();
            let verdict = robots_with(HOUR).check(&origin.url("/page"), RobotsPolicy::Obey).await;
            assert_eq!((verdict.allowed, verdict.reason), (allowed, reason), "{about}");
        }
        let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let url = format!("http://{nobody}/page").parse().unwrap();
        let verdict = robots_with(HOUR).check(&url, RobotsPolicy::Obey).await;
        assert_eq!((verdict.allowed, verdict.reason), (false, RobotsReason::Unreachable));
    }

    #[tokio::test]
    async fn a_file_is_fetched_once_and_again_when_it_is_old() {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let config = OriginConfig::new().handle("/robots.txt", move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            Reply::ok("text/plain", "User-agent: *\nDisallow:")
        });
        let origin = Origin::start(config).await.unwrap();
        let robots = robots_with(HOUR);
        let url = origin.url("/x");
        let asking = (0..20).map(|_| robots.check(&url, RobotsPolicy::Obey));
        futures_util::future::join_all(asking).await;
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let forgetful = robots_with(Duration::ZERO);
        for _ in 0..3 {
            forgetful.check(&url, RobotsPolicy::Obey).await;
        }
        assert_eq!(count.load(Ordering::SeqCst), 4);
    }

    #[test]
    fn long_files_are_read_to_their_last_whole_line() {
        let mut text = "User-agent: *\nDisallow: /a\n".to_owned();
        while text.len() < MAX_BYTES + 10 {
            text.push_str("Allow: /some/where/else/and/on/and/on\n");
        }
        assert!(whole_lines(text.as_bytes()).len() <= MAX_BYTES);
        let rules = Rules::parse("fonds", text.as_bytes(), HOUR);
        assert!(!rules.allows(&"http://h.example/a".parse().unwrap()));
        assert_eq!(whole_lines(b"a\nb"), b"a\nb");
    }

    proptest! {
        #[test]
        fn no_file_panics(lines in proptest::collection::vec("(?i)(user-agent|allow|disallow|crawl-delay|sitemap|\u{feff}|x)?(:| )[ -~\u{e9}\\x00]{0,20}", 0..20), path in "/[ -~]{0,20}") {
            let rules = Rules::parse("fonds", lines.join("\r\n").as_bytes(), HOUR);
            if let Ok(url) = Url::parse("http://h.example").unwrap().join(&path) {
                rules.allows(&url);
            }
            prop_assert!(rules.crawl_delay().is_none_or(|delay| delay <= HOUR));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            Rules::parse("fonds", &bytes, HOUR);
        }
    }
}
