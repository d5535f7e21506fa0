//! Rate limits: a token bucket a caller, in this process. Behind several processes a caller gets
//! as many buckets; it is a guard against loops that run wild, not an accounting.

use fonds_domain::TokenId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Buckets kept before idle ones are dropped.
const CALLERS_MAX: usize = 10_000;

/// How fast a bucket fills and how much it holds.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// Requests per second in the long run.
    pub per_second: f64,
    /// Requests at once.
    pub burst: f64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    level: f64,
    at: Instant,
}

impl Bucket {
    /// Takes one, or says how long to wait for it.
    fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Duration> {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * rate.per_second;
        self.level = (self.level + gained).min(rate.burst);
        self.at = now;
        if self.level >= 1.0 {
            self.level -= 1.0;
            return Ok(());
        }
        Err(Duration::try_from_secs_f64((1.0 - self.level) / rate.per_second).unwrap_or(Duration::from_secs(3600)))
    }
}

/// The buckets. None stands for everyone without a valid token.
#[derive(Debug)]
pub(crate) struct Limiter {
    token: Rate,
    anonymous: Rate,
    buckets: Mutex<HashMap<Option<TokenId>, Bucket>>,
}

impl Limiter {
    pub(crate) fn new(token: Rate, anonymous: Rate) -> Limiter {
        Limiter { token, anonymous, buckets: Mutex::new(HashMap::new()) }
    }

    /// Counts a request, or says how long to wait.
    pub(crate) fn take(&self, caller: Option<TokenId>) -> Result<(), Duration> {
        self.take_at(caller, Instant::now())
    }

    fn take_at(&self, caller: Option<TokenId>, now: Instant) -> Result<(), Duration> {
        let rate = if caller.is_some() { self.token } else { self.anonymous };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= CALLERS_MAX && !buckets.contains_key(&caller) {
            // Whoever has not asked for a minute has a full bucket anyway.
            buckets.retain(|_, b| now.saturating_duration_since(b.at) < Duration::from_secs(60));
        }
        buckets.entry(caller).or_insert(Bucket { level: rate.burst, at: now }).take(rate, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let rate = Rate { per_second: 2.0, burst: 3.0 };
        let limiter = Limiter::new(rate, rate);
        let (alice, start) = (Some(TokenId::fresh()), Instant::now());
        for _ in 0..3 {
            assert_eq!(limiter.take_at(alice, start), Ok(()));
        }
        assert_eq!(limiter.take_at(alice, start), Err(Duration::from_millis(500)));
        assert_eq!(limiter.take_at(None, start), Ok(()), "others are not held up");
        let later = start + Duration::from_millis(500);
        assert_eq!(limiter.take_at(alice, later), Ok(()));
        assert!(limiter.take_at(alice, later).is_err());
        assert_eq!(limiter.take_at(alice, start), limiter.take_at(alice, start), "a clock that steps back is no harm");
    }
}
