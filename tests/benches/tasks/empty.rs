//! Tasks that do nothing, through the executor and the workers of the one-process host.

use crate::common::{Database, Meter, Used};
use fonds_domain::{Kind, Priority};
use fonds_queues::{Bell, LocalBell};
use fonds_store::Db;
use fonds_store::runs::{self, NewRun};
use fonds_task::local::Workers;
use fonds_task::{Cx, Executor, Outcome, Runner, Task, TaskError};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What is claimed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Up to the kind's batch.
    Set,
    /// One by one.
    Single,
}

/// Both, with their names.
pub(crate) const WAYS: [(Way, &str); 2] = [(Way::Set, "sets of 50"), (Way::Single, "one by one")];

impl Way {
    /// How many times fewer tasks make a stretch that is long enough.
    pub(crate) fn share(self) -> usize {
        match self {
            Way::Set => 1,
            Way::Single => 4,
        }
    }

    fn kind(self) -> Kind {
        match self {
            Way::Set => Kind::SnapshotPlain,
            Way::Single => Kind::CrawlSetup,
        }
    }
}

/// Counts what ran.
#[derive(Default)]
pub(crate) struct Ran(AtomicUsize);

/// A set-based task that does nothing.
pub(crate) struct EmptySet(pub(crate) Arc<Ran>);
/// A task of single runs that does nothing.
pub(crate) struct EmptySingle(pub(crate) Arc<Ran>);

macro_rules! does_nothing {
    ($task:ident, $kind:expr) => {
        impl Task for $task {
            const KIND: Kind = $kind;
            type Input = ();
            type Cursor = ();
            type Effect = ();

            async fn run(&self, _: &Cx, (): &(), (): ()) -> Result<Outcome<Self>, TaskError> {
                self.0.0.fetch_add(1, Ordering::Relaxed);
                Ok(Outcome::Done(()))
            }
        }
    };
}

does_nothing!(EmptySet, Kind::SnapshotPlain);
does_nothing!(EmptySingle, Kind::CrawlSetup);

/// Queues `n` tasks, then works them off with as many workers as the host has for the kind.
pub(crate) async fn rate(database: &Database, way: Way, n: usize) -> anyhow::Result<Used> {
    let db = &database.db;
    enqueue(db, way.kind(), n).await?;
    let ran = Arc::new(Ran::default());
    let bell = Arc::new(LocalBell::new());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let runner = match way {
        Way::Set => (runner(db, &bell, EmptySet(ran.clone())), cores.clamp(1, 5)),
        Way::Single => (runner(db, &bell, EmptySingle(ran.clone())), cores.clamp(2, 5)),
    };
    let meter = Meter::start(db).await?;
    let workers = Workers::start(db, &bell, vec![runner]);
    while ran.0.load(Ordering::Relaxed) < n || running(db).await? > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let used = meter.used(db).await?;
    workers.stop(Duration::from_secs(5)).await;
    Ok(used)
}

/// Queues `n` due runs of a kind that work on no row.
pub(crate) async fn enqueue(db: &Db, kind: Kind, n: usize) -> anyhow::Result<()> {
    let run = NewRun { kind, crawl: None, entity: None, input: Value::Null, priority: Priority::SUBMITTED };
    let mut left = n;
    while left > 0 {
        let some = left.min(5_000);
        runs::enqueue(&mut *db.conn().await?, &vec![run.clone(); some]).await?;
        left -= some;
    }
    Ok(())
}

async fn running(db: &Db) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar("SELECT count(*) FROM task_run WHERE status = 'running'").fetch_one(db.pool()).await?)
}

fn runner<T: Task>(db: &Db, bell: &Arc<LocalBell>, task: T) -> Box<dyn Runner> {
    let bell: Arc<dyn Bell> = bell.clone();
    Box::new(Executor::new(task, db.clone(), bell))
}
