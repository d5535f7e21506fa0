//! The kinds of task and the one policy table that the executor, the sweep and the deployment
//! template are held against.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A kind of task. Names its queue, its policy row, its metric dimension and its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Turns the submitted input into snapshots.
    CrawlSetup,
    /// Captures one page with the browser.
    Snapshot,
    /// Captures pages over plain HTTP, in batches.
    SnapshotPlain,
    /// Writes the crawl's index and collection and seals it.
    CrawlSeal,
    /// Scheduled: rescue, ring, reconcile, expire.
    Sweep,
}

/// The policy of one kind. All durations are wall time.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// The kind this row is about.
    pub kind: Kind,
    /// One slice: the function timeout.
    pub slice: Duration,
    /// Kept back from the slice so that the result can still be settled.
    pub margin: Duration,
    /// The phase: from the first claim, over all slices; a run past it fails `PHASE_TIMEOUT`.
    pub phase: Duration,
    /// Running without progress for this long counts as stuck.
    pub stuck_after: Duration,
    /// Messages handed to one invocation.
    pub batch: u32,
    /// Whether the kind claims, records and settles its messages as one set.
    pub set_based: bool,
    /// Invocations at once (`MaximumConcurrency`); the one-process host scales it to its cores.
    pub concurrency: u32,
    /// Claims after which a failing run is given up.
    pub attempts: i32,
}

impl Policy {
    /// How long a claim is good for without a sign of life. The executor renews it every
    /// [`Policy::beat`] while the work runs, so a live function never loses it, and a dead one is
    /// seen by the next sweep after this: within 150 s, however long the slice.
    #[must_use]
    pub fn lease(&self) -> Duration {
        s(75)
    }

    /// How often a running function renews its lease: twice may fail.
    #[must_use]
    pub fn beat(&self) -> Duration {
        s(25)
    }

    /// SQS visibility timeout: six slices, as AWS advises for event source mappings.
    #[must_use]
    pub fn visibility(&self) -> Duration {
        self.slice * 6
    }
}

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn min(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// One row a kind.
pub const POLICIES: &[Policy] = &[
    Policy {
        kind: Kind::CrawlSetup,
        slice: s(120),
        margin: s(10),
        phase: min(12),
        stuck_after: min(15),
        batch: 1,
        set_based: false,
        concurrency: 5,
        attempts: 5,
    },
    Policy {
        kind: Kind::Snapshot,
        slice: s(300),
        margin: s(20),
        phase: min(30),
        stuck_after: min(15),
        batch: 4,
        set_based: false,
        concurrency: 10,
        attempts: 3,
    },
    Policy {
        kind: Kind::SnapshotPlain,
        slice: s(120),
        margin: s(10),
        phase: min(12),
        stuck_after: min(15),
        batch: 50,
        set_based: true,
        concurrency: 5,
        attempts: 3,
    },
    Policy {
        kind: Kind::CrawlSeal,
        slice: s(300),
        margin: s(20),
        phase: min(35),
        stuck_after: min(40),
        batch: 1,
        set_based: false,
        concurrency: 4,
        attempts: 5,
    },
    Policy {
        kind: Kind::Sweep,
        slice: s(120),
        margin: s(10),
        phase: min(5),
        stuck_after: min(5),
        batch: 1,
        set_based: false,
        concurrency: 2,
        attempts: 2,
    },
];

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 5] = [Kind::CrawlSetup, Kind::Snapshot, Kind::SnapshotPlain, Kind::CrawlSeal, Kind::Sweep];

    /// The name used in rows, queue names and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::CrawlSetup => "crawl-setup",
            Kind::Snapshot => "snapshot",
            Kind::SnapshotPlain => "snapshot-plain",
            Kind::CrawlSeal => "crawl-seal",
            Kind::Sweep => "sweep",
        }
    }

    /// The kind's row of the policy table.
    #[must_use]
    pub fn policy(self) -> &'static Policy {
        // The table has a row for every kind (tested below), so the fallback is never taken.
        POLICIES.iter().find(|p| p.kind == self).unwrap_or(&POLICIES[0])
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no kind.
#[derive(Debug, thiserror::Error)]
#[error("unknown task kind {0:?}")]
pub struct UnknownKind(pub String);

impl FromStr for Kind {
    type Err = UnknownKind;
    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        Kind::ALL.into_iter().find(|k| k.as_str() == name).ok_or_else(|| UnknownKind(name.to_owned()))
    }
}

/// Order in which queued runs of one kind are taken: smaller first. Within a class by depth, so
/// that a crawl goes breadth first and no class starves another for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(pub i16);

impl Priority {
    /// New submissions, their set-up and their first page.
    pub const SUBMITTED: Priority = Priority(0);
    /// Retries and re-indexing.
    pub const RETRY: Priority = Priority(300);
    /// Cleanup and retention.
    pub const CLEANUP: Priority = Priority(400);

    /// A page of an active crawl at this depth.
    #[must_use]
    pub fn page(depth: u16, scheduled: bool) -> Priority {
        let base: i16 = match (depth, scheduled) {
            (0, false) => return Priority::SUBMITTED,
            (_, false) => 100,
            (_, true) => 200,
        };
        Priority(base + i16::try_from(depth.min(99)).unwrap_or(99))
    }
}

/// Wait before a failed attempt is tried again: 5 s, 20 s, 80 s ... at most ten minutes, plus up
/// to a fifth of jitter taken from `seed` so that failures in a burst do not come back in a burst.
#[must_use]
pub fn backoff(attempt: i32, seed: u64) -> Duration {
    let power = u32::try_from(attempt.clamp(1, 6) - 1).unwrap_or(0);
    let base = Duration::from_secs(5 * 4u64.pow(power)).min(Duration::from_secs(600));
    base + base.mul_f64((seed % 1000) as f64 / 5000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_policy_row_and_round_trips() {
        for kind in Kind::ALL {
            assert_eq!(POLICIES.iter().filter(|p| p.kind == kind).count(), 1, "{kind}");
            assert_eq!(kind.as_str().parse::<Kind>().expect("parses"), kind);
            let p = kind.policy();
            assert!(p.margin < p.slice && p.slice <= p.phase && p.slice <= Duration::from_secs(900), "{kind}");
            assert!(p.lease() < p.visibility(), "{kind}: a redelivery must find a dead lease");
            assert!(p.beat() * 3 <= p.lease(), "{kind}: two renewals may fail");
            assert!(p.lease().as_secs() + 60 < 150, "{kind}: a dead function is seen within 150 s");
        }
        assert!("snapshots".parse::<Kind>().is_err());
    }

    #[test]
    fn first_pages_come_before_deeper_ones_and_scheduled_ones() {
        assert!(Priority::page(0, false) < Priority::page(1, false));
        assert!(Priority::page(1, false) < Priority::page(2, false));
        assert!(Priority::page(60, false) < Priority::page(0, true));
        assert!(Priority::page(9, true) < Priority::RETRY);
    }

    #[test]
    fn backoff_grows_and_is_capped() {
        assert_eq!(backoff(1, 0), Duration::from_secs(5));
        assert_eq!(backoff(2, 0), Duration::from_secs(20));
        assert!(backoff(50, 999) <= Duration::from_secs(720));
        assert!(backoff(i32::MIN, 0) >= Duration::from_secs(5));
    }
}
