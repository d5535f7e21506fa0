//! What a host asks of us, as decisions on plain values. The row they are kept in lives elsewhere.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};
use http::StatusCode;

/// An HTTP date in any of the three forms of RFC 9110 section 5.6.7, and as servers misspell them
/// (a numeric zone, dashes).
pub fn parse_http_date(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(date) = DateTime::parse_from_rfc2822(text) {
        return Some(date.with_timezone(&Utc));
    }
    // Week days are not checked: a wrong one still leaves a right date.
    let after_day = text.split_once(',').map_or(text, |(_, rest)| rest.trim());
    // Two digits first: "%Y" would take them for a year of the first century.
    let formats = ["%d %b %Y %H:%M:%S GMT", "%d-%b-%y %H:%M:%S GMT", "%d-%b-%Y %H:%M:%S GMT"];
    for format in formats {
        if let Ok(date) = NaiveDateTime::parse_from_str(after_day, format) {
            return Some(date.and_utc());
        }
    }
    let after_day = text.split_once(' ').map_or(text, |(_, rest)| rest.trim());
    NaiveDateTime::parse_from_str(after_day, "%b %e %H:%M:%S %Y").ok().map(|date| date.and_utc())
}

/// The wait a `Retry-After` asks for (RFC 9110 section 10.2.3), at most `cap`. A date in the past
/// means no wait.
pub fn parse_retry_after(value: &str, now: DateTime<Utc>, cap: Duration) -> Option<Duration> {
    let text = value.trim();
    if let Some(digits) = text.split('.').next()
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        // More digits than fit is a wait beyond any cap.
        let seconds = digits.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(cap));
    }
    let wait = parse_http_date(text)? - now;
    Some(wait.to_std().unwrap_or(Duration::ZERO).min(cap))
}

/// The rules of one crawl, or the service's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolitenessRules {
    /// Least time between two requests to one host.
    pub min_delay: Duration,
    /// Longest backoff, and the cap of Retry-After and Crawl-delay.
    pub max_delay: Duration,
    /// The first backoff; it doubles with each failure in a row.
    pub base_backoff: Duration,
    /// Failures in a row after which the host is given up.
    pub give_up_after: u32,
}

impl Default for PolitenessRules {
    fn default() -> Self {
        Self {
            min_delay: Duration::from_millis(250),
            max_delay: Duration::from_secs(3600),
            base_backoff: Duration::from_secs(5),
            give_up_after: 20,
        }
    }
}

/// What a host's row remembers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostState {
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// From robots.txt.
    pub crawl_delay: Option<Duration>,
}

/// What the last request to a host told about the host (not about the page).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostSignal {
    /// It answered; 4xx about one page is an answer too.
    Answered,
    /// It asked for time: 429 or 503, with its Retry-After if it sent one.
    Busy(Option<Duration>),
    /// 5xx other than 503.
    Failing,
    /// No answer: no connection, or none that lasted.
    Unreachable,
}

impl HostSignal {
    /// From a response. `retry_after` is the header's text.
    pub fn of_response(
        status: StatusCode,
        retry_after: Option<&str>,
        now: DateTime<Utc>,
        rules: &PolitenessRules,
    ) -> Self {
        match status.as_u16() {
            429 | 503 => Self::Busy(retry_after.and_then(|text| parse_retry_after(text, now, rules.max_delay))),
            500..=599 => Self::Failing,
            _ => Self::Answered,
        }
    }
}

/// What follows from a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostDecision {
    /// To be kept.
    pub state: HostState,
    /// Ask the host again no earlier than this from now.
    pub wait: Duration,
    /// Stop asking this host at all.
    pub give_up: bool,
}

/// Decides how to go on with a host after `signal`.
pub fn after(rules: &PolitenessRules, state: HostState, signal: HostSignal) -> HostDecision {
    let usual = rules.min_delay.max(state.crawl_delay.unwrap_or_default()).min(rules.max_delay);
    let failures_in_a_row = match signal {
        HostSignal::Answered => 0,
        _ => state.failures_in_a_row.saturating_add(1),
    };
    let backoff = backoff(rules, failures_in_a_row);
    let wait = match signal {
        HostSignal::Answered => usual,
        HostSignal::Busy(Some(asked)) => usual.max(asked),
        HostSignal::Busy(None) | HostSignal::Failing | HostSignal::Unreachable => usual.max(backoff),
    };
    HostDecision {
        state: HostState { failures_in_a_row, ..state },
        wait: wait.min(rules.max_delay.max(rules.min_delay)),
        give_up: failures_in_a_row >= rules.give_up_after,
    }
}

/// Doubling from the base, never above the maximum. Jitter is the scheduler's.
fn backoff(rules: &PolitenessRules, failures: u32) -> Duration {
    let factor = 1u32 << failures.saturating_sub(1).min(30);
    rules.base_backoff.saturating_mul(factor).min(rules.max_delay)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn now() -> DateTime<Utc> {
        parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap()
    }

    #[test]
    fn dates_in_all_their_forms() {
        assert_eq!(now().timestamp(), 784_111_777);
        for text in [
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(parse_http_date(text), Some(now()), "{text}");
        }
        for text in ["", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "1994"] {
            assert_eq!(parse_http_date(text), None, "{text}");
        }
    }

    #[test]
    fn retry_after_is_clamped() {
        let cap = Duration::from_secs(100);
        for (text, expected) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("1.5", Some(1)),
            ("500", Some(100)),
            ("99999999999999999999999", Some(100)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 2094 08:00:00 GMT", Some(100)),
            ("-5", None),
            ("later", None),
            ("", None),
        ] {
            let got = parse_retry_after(text, now(), cap).map(|d| d.as_secs());
            assert_eq!(got, expected, "{text}");
        }
    }

    #[test]
    fn hosts_are_backed_off_and_forgiven() {
        let rules = PolitenessRules::default();
        let mut state = HostState::default();
        let mut waits = Vec::new();
        for _ in 0..12 {
            let decision = after(&rules, state, HostSignal::Unreachable);
            waits.push(decision.wait.as_secs());
            state = decision.state;
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]);
        let forgiven = after(&rules, state, HostSignal::Answered);
        assert_eq!(forgiven.state.failures_in_a_row, 0);
        assert_eq!(forgiven.wait, rules.min_delay);
    }

    #[test]
    fn a_host_that_asks_for_time_gets_it() {
        let rules = PolitenessRules::default();
        let busy = |text| HostSignal::of_response(StatusCode::TOO_MANY_REQUESTS, text, now(), &rules);
        let asked = after(&rules, HostState::default(), busy(Some("42")));
        assert_eq!(asked.wait, Duration::from_secs(42));
        let unsaid = after(&rules, HostState::default(), busy(None));
        assert_eq!(unsaid.wait, rules.base_backoff);
        let slow = HostState { crawl_delay: Some(Duration::from_secs(3)), ..HostState::default() };
        assert_eq!(after(&rules, slow, HostSignal::Answered).wait.as_secs(), 3);
    }

    proptest! {
        #[test]
        fn waits_stay_within_bounds(failures: u32, seconds: u64, delay: u64, text: String) {
            let rules = PolitenessRules::default();
            let state = HostState {
                failures_in_a_row: failures,
                crawl_delay: Some(Duration::from_secs(delay)),
            };
            for signal in [
                HostSignal::Answered,
                HostSignal::Failing,
                HostSignal::Busy(Some(Duration::from_secs(seconds))),
            ] {
                let wait = after(&rules, state, signal).wait;
                prop_assert!(wait >= rules.min_delay && wait <= rules.max_delay);
            }
            parse_retry_after(&text, now(), rules.max_delay);
        }
    }
}
