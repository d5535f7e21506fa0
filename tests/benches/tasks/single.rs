//! One claim and one settle, alone on the machine.

use crate::common::Database;
use crate::empty::{self, EmptySet, EmptySingle, Ran};
use fonds_domain::Kind;
use fonds_queues::{Bell, LocalBell};
use fonds_task::{Executed, Executor, Runner, Select};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const ROUNDS: usize = 400;
const SETS: usize = 60;
const SET: u32 = 50;

/// Milliseconds, one a round.
#[derive(Default)]
pub(crate) struct Single {
    pub(crate) claim: Vec<f64>,
    pub(crate) settle: Vec<f64>,
    pub(crate) both: Vec<f64>,
    /// Claim and settle of fifty runs.
    pub(crate) set: Vec<f64>,
}

/// Measures through the executor, whose work is nothing.
pub(crate) async fn measure(database: &Database) -> anyhow::Result<Single> {
    let bell: Arc<dyn Bell> = Arc::new(LocalBell::new());
    let ran = Arc::new(Ran::default());
    let one = Executor::new(EmptySingle(ran.clone()), database.db.clone(), bell.clone());
    let set = Executor::new(EmptySet(ran), database.db.clone(), bell);
    let mut out = Single::default();
    for round in 0..ROUNDS + 20 {
        empty::enqueue(&database.db, Kind::CrawlSetup, 1).await?;
        let (claim, both) = timed(&one, 1).await?;
        // The first ones meet cold caches and statements not yet prepared.
        if round >= 20 {
            out.claim.push(claim);
            out.settle.push(both - claim);
            out.both.push(both);
        }
    }
    for round in 0..SETS + 10 {
        empty::enqueue(&database.db, Kind::SnapshotPlain, SET as usize).await?;
        let (_, both) = timed(&set, SET).await?;
        if round >= 10 {
            out.set.push(both);
        }
    }
    Ok(out)
}

/// Executes what is due. Milliseconds until the claim was through, and until all was.
async fn timed(runner: &dyn Runner, n: u32) -> anyhow::Result<(f64, f64)> {
    let began = Instant::now();
    let claimed = OnceLock::new();
    let executed = runner
        .execute(Select::Next(n), Duration::from_secs(100), &|_| {
            claimed.get_or_init(|| began.elapsed());
        })
        .await;
    let both = began.elapsed();
    anyhow::ensure!(executed == Executed::Settled(n as usize), "{executed:?} instead of {n}");
    let ms = |d: Duration| d.as_secs_f64() * 1000.0;
    Ok((ms(claimed.get().copied().unwrap_or(both)), ms(both)))
}
