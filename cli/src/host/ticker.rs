//! The clock of the one-process host: what EventBridge does in the cloud.

use fonds_domain::Kind;
use fonds_queues::{Bell, LocalBell, Ring};
use fonds_store::{Db, StoreError, runs, sweep};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// How often the sweep runs.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Puts a sweep into the queue unless one is there, and rings for it.
///
/// # Errors
/// When the database fails.
pub async fn enqueue_sweep(db: &Db) -> Result<Option<runs::RunRef>, StoreError> {
    let mut tx = db.begin().await?;
    let made = sweep::enqueue_sweep(&mut tx).await?;
    // For workers of another process, should there be any.
    runs::notify(&mut tx, &[Kind::Sweep]).await?;
    tx.commit().await?;
    Ok(made.first().copied())
}

/// Sweeps now, because whatever died with the last host waits for it, and every minute from then on.
/// Ends when aborted.
#[must_use]
pub fn start(db: Db, bell: Arc<LocalBell>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticks = interval(SWEEP_EVERY);
        // A machine that slept has missed nothing that one sweep does not find.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match enqueue_sweep(&db).await {
                Ok(Some(run)) => {
                    let ring = Ring::new(run.id.0, Kind::Sweep.as_str());
                    if let Err(error) = bell.ring(&[ring]).await {
                        tracing::warn!(%error, "the bell failed");
                    }
                }
                Ok(None) => tracing::debug!("a sweep is under way"),
                Err(error) => tracing::warn!(%error, "no sweep could be queued; trying again in a minute"),
            }
        }
    })
}
