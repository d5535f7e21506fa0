//! The driver of the tests: runs what is due until nothing is, one set at a time.

use crate::execute::{Executed, Runner};
use fonds_store::Db;
use fonds_store::runs::{self, Select};
use std::time::Duration;

/// Works off everything that is due, over all kinds, and what that makes due. Answers how many runs
/// were settled.
///
/// # Panics
/// When nothing can be recorded, or after 100,000 sets: then something rings itself for ever.
pub async fn drain(runners: &[&dyn Runner]) -> usize {
    let mut total = 0;
    for _ in 0..100_000 {
        let mut round = 0;
        for runner in runners {
            let policy = runner.kind().policy();
            let batch = if policy.set_based { policy.batch } else { 1 };
            match runner.execute(Select::Next(batch), policy.slice, &|_| ()).await {
                Executed::Settled(n) => round += n,
                Executed::Unrecorded => panic!("{}: nothing could be recorded", runner.kind()),
            }
        }
        if round == 0 {
            return total;
        }
        total += round;
    }
    panic!("still work after 100,000 sets");
}

/// Moves time for runs: those waiting for a later time within `ahead` are due now. Held ones stay.
///
/// # Panics
/// When the database fails.
pub async fn elapse(db: &Db, ahead: Duration) {
    let mut conn = db.conn().await.expect("database");
    runs::shift_time(&mut conn, ahead).await.expect("database");
}
