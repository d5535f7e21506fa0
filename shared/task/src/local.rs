//! The driver of the one-process host: every kind's workers in one process, woken by the bell.

use crate::execute::{Executed, Runner};
use fonds_domain::Kind;
use fonds_queues::LocalBell;
use fonds_store::Db;
use fonds_store::runs::{self, RunListener, Select};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

/// Longest nap of an idle kind; the bell and the next due time end it earlier.
const POLL: Duration = Duration::from_secs(5);
/// Rest after a failed claim: the database is probably restarting.
const REST: Duration = Duration::from_secs(1);

/// The workers of one process.
pub struct Workers {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// What one kind's workers share: whoever holds it claims, the others work or wait for it. So an
/// idle kind costs one query a nap however many workers it has.
struct Desk {
    runner: Box<dyn Runner>,
    turn: Mutex<()>,
}

impl Workers {
    /// Starts `count` workers for each runner, and the listener that forwards doorbells of other
    /// processes.
    #[must_use]
    pub fn start(db: &Db, bell: &Arc<LocalBell>, runners: Vec<(Box<dyn Runner>, usize)>) -> Workers {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for (runner, count) in runners {
            let desk = Arc::new(Desk { runner, turn: Mutex::new(()) });
            for _ in 0..count.max(1) {
                tasks.spawn(work(desk.clone(), db.clone(), bell.clone(), stopped.clone()));
            }
        }
        tasks.spawn(listen(db.clone(), bell.clone(), stopped));
        Workers { stop, tasks }
    }

    /// No new claims; waits until what runs has settled, at most `patience`. What is cut off then
    /// keeps its lease and is rescued after it.
    pub async fn stop(mut self, patience: Duration) {
        self.stop.send_replace(true);
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, drained).await.is_err() {
            tracing::warn!("work still running at shutdown was cut off; it continues after the next start");
            self.tasks.shutdown().await;
        }
    }
}

async fn work(desk: Arc<Desk>, db: Db, bell: Arc<LocalBell>, mut stopped: watch::Receiver<bool>) {
    let kind = desk.runner.kind();
    let policy = kind.policy();
    let batch = if policy.set_based { policy.batch } else { 1 };
    loop {
        let turn = tokio::select! {
            turn = desk.turn.lock() => turn,
            _ = stopped.wait_for(|s| *s) => return,
        };
        if *stopped.borrow() {
            return;
        }
        // Taken before the claim: a ring that comes in between is not missed.
        let rung = bell.wait(kind.as_str());
        // The turn is given up as soon as something was claimed.
        let turn = std::sync::Mutex::new(Some(turn));
        let release = |n: usize| {
            if n > 0
                && let Ok(mut turn) = turn.lock()
            {
                turn.take();
            }
        };
        match desk.runner.execute(Select::Next(batch), policy.slice, &release).await {
            Executed::Settled(0) => {
                let nap = nap(&db, kind).await;
                tokio::select! {
                    () = rung => {}
                    () = tokio::time::sleep(nap) => {}
                    _ = stopped.wait_for(|s| *s) => return,
                }
            }
            Executed::Settled(_) => {}
            Executed::Unrecorded => {
                tokio::select! {
                    () = tokio::time::sleep(REST) => {}
                    _ = stopped.wait_for(|s| *s) => return,
                }
            }
        }
    }
}

/// Until the next run is due, at most the poll interval.
async fn nap(db: &Db, kind: Kind) -> Duration {
    let due = async { runs::next_due_s(&mut *db.conn().await?, kind).await };
    match due.await {
        Ok(Some(secs)) => Duration::from_secs_f64(secs.clamp(0.01, POLL.as_secs_f64())),
        Ok(None) => POLL,
        Err(_) => REST,
    }
}

async fn listen(db: Db, bell: Arc<LocalBell>, mut stopped: watch::Receiver<bool>) {
    let forward = async {
        loop {
            match RunListener::connect(&db).await {
                Ok(mut listener) => {
                    while let Ok(kind) = listener.next().await {
                        bell.wake(kind.as_str());
                    }
                }
                Err(error) => tracing::debug!(%error, "listening for doorbells failed; polling goes on"),
            }
            tokio::time::sleep(REST).await;
        }
    };
    tokio::select! {
        () = forward => {}
        _ = stopped.wait_for(|s| *s) => {}
    }
}
