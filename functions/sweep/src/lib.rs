//! Scheduled: finds what got stuck and what outlived its time. Safe to run twice at once, writes
//! nothing but its tick on a healthy system.

mod objects;

use chrono::Utc;
use fonds_blobs::BlobStore;
use fonds_domain::{Kind, RunId};
use fonds_store::runs::{self, RunRef};
use fonds_store::{Conn, Db, StoreError, crawls, sweep};
use fonds_task::{Cx, Outcome, Task, TaskError};
use std::sync::Arc;

/// Rows looked at by one statement.
const BATCH: i64 = 500;
/// Statements of one kind in one sweep: the rest is for the next.
const ROUNDS: usize = 20;

/// Sweeps.
pub struct Sweep {
    /// The database.
    pub db: Db,
    /// Where unreferenced objects are deleted.
    pub blobs: Arc<dyn BlobStore>,
    /// Whether runs that were not heard are rung again. In one process the workers look at the rows
    /// themselves.
    pub ring: bool,
}

/// Runs to ring after the commit.
pub struct Effect(Vec<RunRef>);

/// What a sweep did, for logs and the cli.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Report {
    /// Runs under a dead lease, queued again.
    pub rescued: usize,
    /// Runs given up: attempts or phase used up.
    pub failed: usize,
    /// Runs rung again.
    pub rung: usize,
    /// Held runs released.
    pub released: usize,
    /// Snapshots of ended crawls closed.
    pub closed: u64,
    /// Crawls and snapshots that had no run and got one.
    pub revived: usize,
    /// Snapshots deleted because their time was up.
    pub expired: u64,
    /// Objects deleted because nothing refers to them.
    pub objects: usize,
    /// Rows of retention deleted.
    pub retired: u64,
}

impl Task for Sweep {
    const KIND: Kind = Kind::Sweep;
    type Input = Option<()>;
    type Cursor = ();
    type Effect = Effect;

    async fn run(&self, cx: &Cx, _: &Option<()>, (): ()) -> Result<Outcome<Self>, TaskError> {
        let (report, rings) = self.sweep(Some(cx.run)).await?;
        tracing::debug!(?report, "swept");
        Ok(Outcome::Done(Effect(rings)))
    }

    async fn apply(&self, _: &mut Conn, effects: &[&Effect]) -> Result<Vec<RunRef>, StoreError> {
        Ok(effects.iter().flat_map(|e| e.0.iter().copied()).collect())
    }
}

impl Sweep {
    /// One pass over everything. Each step is a transaction of its own, so that what one did stays
    /// done when another fails.
    ///
    /// # Errors
    /// When the database or the blob store fails.
    pub async fn sweep(&self, own: Option<RunId>) -> Result<(Report, Vec<RunRef>), TaskError> {
        let mut report = Report::default();
        let mut rings = Vec::new();
        let mut conn = self.db.conn().await?;
        sweep::stamp(&mut conn).await?;
        drop(conn);
        self.rescue(&mut report, &mut rings).await?;
        self.reconcile(&mut report, &mut rings).await?;
        if self.ring {
            let mut conn = self.db.conn().await?;
            for kind in Kind::ALL {
                let quiet = runs::unrung(&mut conn, kind, BATCH).await?;
                report.rung += quiet.len();
                rings.extend(quiet);
            }
        }
        self.expire(&mut report).await?;
        rings.retain(|r| Some(r.id) != own);
        Ok((report, rings))
    }

    async fn rescue(&self, report: &mut Report, rings: &mut Vec<RunRef>) -> Result<(), TaskError> {
        for _ in 0..ROUNDS {
            let mut tx = self.db.begin().await?;
            let rescued = runs::rescue(&mut tx, BATCH).await?;
            let mut failed = rescued.failed;
            failed.extend(runs::fail_overdue(&mut tx, BATCH).await?);
            let found = rescued.requeued.len() + failed.len() + rescued.cancelled;
            rings.extend(crawls::runs_failed(&mut tx, &failed).await?);
            tx.commit().await?;
            report.rescued += rescued.requeued.len();
            report.failed += failed.len();
            rings.extend(rescued.requeued);
            if found == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn reconcile(&self, report: &mut Report, rings: &mut Vec<RunRef>) -> Result<(), TaskError> {
        let mut tx = self.db.begin().await?;
        let released = runs::release_held(&mut tx, BATCH).await?;
        tx.commit().await?;
        report.released += released.len();
        rings.extend(released);
        let mut conn = self.db.conn().await?;
        let over = sweep::sealed_with_open(&mut conn, 50).await?;
        drop(conn);
        // A mass cancel gets a bounded share of each sweep, a crawl at a time.
        for crawl in over {
            let mut tx = self.db.begin().await?;
            report.closed += sweep::close_orphans(&mut tx, crawl, BATCH).await?;
            tx.commit().await?;
        }
        let mut tx = self.db.begin().await?;
        let mut revived = sweep::revive_crawls(&mut tx, BATCH).await?;
        tx.commit().await?;
        let mut tx = self.db.begin().await?;
        revived.extend(sweep::revive_snapshots(&mut tx, BATCH).await?);
        tx.commit().await?;
        report.revived += revived.len();
        rings.extend(revived);
        let mut tx = self.db.begin().await?;
        rings.extend(sweep::stop_timed_out(&mut tx, BATCH).await?);
        tx.commit().await?;
        Ok(())
    }

    async fn expire(&self, report: &mut Report) -> Result<(), TaskError> {
        let mut tx = self.db.begin().await?;
        report.expired += sweep::expire(&mut tx, BATCH).await?;
        tx.commit().await?;
        report.objects += objects::collect(self, report.expired > 0).await?;
        let mut conn = self.db.conn().await?;
        report.retired += sweep::expire_runs(&mut conn, Utc::now(), BATCH).await?;
        report.retired += sweep::expire_keys(&mut conn, BATCH).await?;
        Ok(())
    }
}
