//! The bell of the one-process host: wakes the dispatchers of a kind.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{Bell, BellError, Ring};

/// Delayed rings of a kind within the same slot wake together, so that ten thousand snoozed runs are not ten thousand
/// timers.
const SLOT: Duration = Duration::from_millis(100);

/// Rings within this process. Clones are the same bell.
///
/// A ring is a change of the kind's count, seen by every [`Ear`] of the kind, so none is lost between an empty claim and
/// the wait that follows it. Many rings while nobody waits are one wake-up: who wakes claims until nothing is due.
#[derive(Debug, Clone, Default)]
pub struct LocalBell {
    kinds: Arc<Mutex<HashMap<String, Kind>>>,
}

#[derive(Debug)]
struct Kind {
    count: watch::Sender<u64>,
    /// When delayed rings are due, as slots since `start`.
    slots: Arc<Mutex<HashSet<u128>>>,
    start: Instant,
}

impl Default for Kind {
    fn default() -> Self {
        Self { count: watch::Sender::new(0), slots: Arc::default(), start: Instant::now() }
    }
}

/// Hears the rings of one kind from its making on.
#[derive(Debug)]
pub struct Ear {
    count: watch::Receiver<u64>,
}

impl Ear {
    /// Waits for a ring since the making of the ear or the end of the last wait. Cancel-safe.
    pub async fn heard(&mut self) {
        if self.count.changed().await.is_err() {
            // The bell is gone, so nothing will ever ring; a return would make the caller spin.
            std::future::pending::<()>().await;
        }
    }
}

impl LocalBell {
    /// A silent bell.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An ear for a dispatcher: make it before the first claim, then claim until nothing is due, `heard().await`, repeat.
    #[must_use]
    pub fn listen(&self, kind: &str) -> Ear {
        Ear { count: self.with(kind, |kind| kind.count.subscribe()) }
    }

    /// The next ring of a kind after this call (not after the first poll).
    pub fn wait(&self, kind: &str) -> impl Future<Output = ()> + Send + use<> {
        let mut ear = self.listen(kind);
        async move { ear.heard().await }
    }

    /// Wakes the dispatchers of a kind without naming a run, as a notification from the database does.
    pub fn wake(&self, kind: &str) {
        self.with(kind, |kind| kind.count.send_modify(|count| *count = count.wrapping_add(1)));
    }

    /// Wakes everyone who listens, whatever the kind.
    pub fn wake_all(&self) {
        for kind in self.kinds.lock().unwrap_or_else(PoisonError::into_inner).values() {
            kind.count.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn with<T>(&self, kind: &str, use_it: impl FnOnce(&Kind) -> T) -> T {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = kinds.get(kind) {
            return use_it(kind);
        }
        use_it(kinds.entry(kind.to_owned()).or_default())
    }

    fn wake_later(&self, kind: &str, delay: Duration) {
        self.with(kind, |kind| {
            let due = kind.start.elapsed().saturating_add(delay);
            let slot = due.as_millis() / SLOT.as_millis() + 1;
            if !kind.slots.lock().unwrap_or_else(PoisonError::into_inner).insert(slot) {
                return;
            }
            let (count, slots) = (kind.count.clone(), Arc::clone(&kind.slots));
            // Rounded up to the slot's end: early would be an empty claim and no second ring.
            let end = u64::try_from(slot * SLOT.as_millis()).unwrap_or(u64::MAX);
            let wait = Duration::from_millis(end).saturating_sub(kind.start.elapsed());
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                slots.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot);
                count.send_modify(|count| *count = count.wrapping_add(1));
            });
        });
    }
}

#[async_trait]
impl Bell for LocalBell {
    async fn ring(&self, rings: &[Ring]) -> Result<(), BellError> {
        let mut rung = HashSet::new();
        for ring in rings {
            match ring.delay.filter(|delay| !delay.is_zero()) {
                Some(delay) => self.wake_later(&ring.kind, delay),
                None if rung.insert(&*ring.kind) => self.wake(&ring.kind),
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use uuid::Uuid;

    use super::*;

    fn ring(kind: &'static str) -> Ring {
        Ring::new(Uuid::nil(), kind)
    }

    #[tokio::test]
    async fn a_ring_between_claim_and_wait_is_heard() {
        let bell = LocalBell::new();
        let mut ear = bell.listen("snapshot");
        let waiting = bell.wait("snapshot");
        bell.ring(&[ring("snapshot"), ring("snapshot")]).await.unwrap();
        ear.heard().await;
        waiting.await;
        assert!(ear.heard().now_or_never().is_none(), "many rings are one wake-up");
        assert!(bell.wait("snapshot").now_or_never().is_none(), "old rings are not heard");
    }

    #[tokio::test]
    async fn every_listener_of_the_kind_and_no_other_hears() {
        let bell = LocalBell::new();
        let (mut one, mut two, mut other) = (bell.listen("sweep"), bell.clone().listen("sweep"), bell.listen("backup"));
        bell.ring(&[ring("sweep")]).await.unwrap();
        one.heard().await;
        two.heard().await;
        assert!(other.heard().now_or_never().is_none());
        bell.wake_all();
        other.heard().await;
    }

    #[tokio::test(start_paused = true)]
    async fn delayed_rings_come_late_and_together() {
        let bell = LocalBell::new();
        let mut ear = bell.listen("sweep");
        let start = Instant::now();
        let rings: Vec<_> = (0..1000).map(|_| ring("sweep").after(Duration::from_secs(5))).collect();
        bell.ring(&rings).await.unwrap();
        assert_eq!(bell.with("sweep", |kind| kind.slots.lock().unwrap().len()), 1);
        ear.heard().await;
        let late = start.elapsed();
        assert!(late >= Duration::from_secs(5) && late <= Duration::from_millis(5200), "{late:?}");
        assert!(ear.heard().now_or_never().is_none());
        assert_eq!(bell.with("sweep", |kind| kind.slots.lock().unwrap().len()), 0);
    }
}
