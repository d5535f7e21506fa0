//! Status tables. The legal moves of a run are also rows of `run_transition` in the database,
//! where a trigger refuses any other; a test in `store` compares the two.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A stored status that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("unknown {what} {value:?}")]
pub struct UnknownStatus {
    /// Which table.
    pub what: &'static str,
    /// The stored text.
    pub value: String,
}

macro_rules! status {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant,)+
        }
        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$($name::$variant),+];
            /// The text stored in rows and shown by the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }
        impl FromStr for $name {
            type Err = UnknownStatus;
            fn from_str(s: &str) -> Result<Self, UnknownStatus> {
                match s {
                    $($text => Ok($name::$variant),)+
                    _ => Err(UnknownStatus { what: $what, value: s.to_owned() }),
                }
            }
        }
    };
}

status!(
    /// Status of a task run.
    RunStatus, "run status" {
        /// Waiting for a claim, perhaps not before a time.
        Queued = "queued",
        /// Held under a lease.
        Running = "running",
        /// Ended well.
        Succeeded = "succeeded",
        /// Ended with an error code.
        Failed = "failed",
        /// Ended because the work was no longer wanted.
        Cancelled = "cancelled",
        /// Ended because there was nothing to do.
        Discarded = "discarded",
    }
);

impl RunStatus {
    /// No move leads out of a terminal status but an operator's retry (`failed` to `queued`).
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, RunStatus::Queued | RunStatus::Running)
    }

    /// Whether a run may move from `self` to `next`.
    #[must_use]
    pub fn may_become(self, next: RunStatus) -> bool {
        use RunStatus::{Cancelled, Discarded, Failed, Queued, Running, Succeeded};
        matches!(
            (self, next),
            // Running to running is a claim under a dead lease.
            (Queued | Running, Running)
                | (Running, Queued | Succeeded | Failed | Cancelled | Discarded)
                | (Queued, Cancelled | Failed)
                | (Failed | Cancelled, Queued)
        )
    }
}

status!(
    /// Status of a crawl.
    CrawlStatus, "crawl status" {
        /// Submitted, set-up not done.
        Queued = "queued",
        /// Capturing.
        Started = "started",
        /// Held by the user; what runs ends its stage, nothing new starts.
        Paused = "paused",
        /// Over, with a stop reason.
        Sealed = "sealed",
    }
);

status!(
    /// Status of a snapshot. A snapshot always seals, whatever its results say.
    SnapshotStatus, "snapshot status" {
        /// Waiting for its run.
        Queued = "queued",
        /// Being captured.
        Started = "started",
        /// Held with its crawl.
        Paused = "paused",
        /// Over.
        Sealed = "sealed",
    }
);

impl SnapshotStatus {
    /// Open snapshots keep their crawl from sealing.
    #[must_use]
    pub fn is_open(self) -> bool {
        self != SnapshotStatus::Sealed
    }
}

status!(
    /// Status of one extractor's result.
    ResultStatus, "result status" {
        /// Wanted, not begun.
        Queued = "queued",
        /// Being made.
        Started = "started",
        /// Failed, to be tried again.
        Backoff = "backoff",
        /// Made.
        Succeeded = "succeeded",
        /// Failed, with a code.
        Failed = "failed",
        /// Not applicable, or stopped by a limit.
        Skipped = "skipped",
        /// Ran and found nothing.
        NoResults = "noresults",
    }
);

status!(
    /// Why a crawl ended or does not go on.
    StopReason, "stop reason" {
        /// Everything admitted was captured.
        Done = "done",
        /// `crawl_max_urls` was reached.
        MaxUrls = "crawl_max_urls",
        /// `crawl_max_size` was reached.
        MaxSize = "crawl_max_size",
        /// `crawl_timeout` passed.
        Timeout = "crawl_timeout",
        /// A snapshot was cut at `snapshot_max_size`.
        SnapshotMaxSize = "snapshot_max_size",
        /// Held by the user.
        Paused = "paused",
        /// Ended by the user.
        Cancelled = "cancelled",
        /// The input held no URL that could be captured.
        NoViableUrls = "no_viable_urls",
    }
);

impl StopReason {
    /// Reasons that stop discovery and the queued pages below the first.
    #[must_use]
    pub fn stops_discovery(self) -> bool {
        matches!(self, StopReason::MaxSize | StopReason::Timeout | StopReason::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_runs_move_only_by_an_operators_retry() {
        for &from in RunStatus::ALL {
            for &to in RunStatus::ALL {
                if from.is_terminal() && from.may_become(to) {
                    assert_eq!(to, RunStatus::Queued);
                    assert_ne!(from, RunStatus::Succeeded);
                }
            }
            assert_eq!(from.as_str().parse::<RunStatus>().expect("parses"), from);
        }
        assert!("done".parse::<RunStatus>().is_err());
    }
}
