//! The functions in this process: what each is started with, and how they end.

use crate::user::RunAs;
use fonds_blobs::BlobStore;
use fonds_crawl_seal::CrawlSeal;
use fonds_crawl_setup::CrawlSetup;
use fonds_domain::Kind;
use fonds_queues::{Bell, LocalBell};
use fonds_snapshot::{Deps, SnapshotBrowser, SnapshotPlain};
use fonds_store::Db;
use fonds_sweep::Sweep;
use fonds_task::local::Workers;
use fonds_task::{Executor, Runner, Task};
use fonds_web::browser::{BrowserConfig, BrowserHandle};
use fonds_web::fetch::{Fetcher, FetcherConfig};
use fonds_web::guard::{Guard, GuardConfig};
use fonds_web::robots::{Robots, RobotsConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What the host hands to the functions.
#[derive(Clone)]
pub struct HostDeps {
    /// The database.
    pub db: Db,
    /// The blobs.
    pub blobs: Arc<dyn BlobStore>,
    /// The bell the API and the functions ring.
    pub bell: Arc<LocalBell>,
    /// Whether pages on private addresses may be captured.
    pub allow_private: bool,
    /// Our own listeners: never captured, whatever is allowed.
    pub own: Vec<SocketAddr>,
    /// The user the browser runs as, when we are root.
    pub browser_user: Option<RunAs>,
    /// Working space; emptied at every start.
    pub scratch: PathBuf,
    /// Cores of this machine; the policy table's concurrency is scaled to them.
    pub cores: usize,
}

/// The running functions.
pub struct FunctionsHandle {
    workers: Workers,
    browser: BrowserHandle,
}

/// Starts every function's workers.
///
/// # Errors
/// When one cannot be built; without it the archive would silently do nothing of its kind.
pub async fn start(deps: HostDeps) -> anyhow::Result<FunctionsHandle> {
    let mut guard = GuardConfig::from_env()?;
    guard.allow_private |= deps.allow_private;
    guard.own.extend(&deps.own);
    let guard = Guard::new(guard);
    let mut fetcher = FetcherConfig::new(guard.clone());
    fetcher.spool_dir = Some(deps.scratch.clone());
    let fetcher = Fetcher::new(fetcher)?;
    let tabs = tabs(deps.cores);
    let browser = BrowserHandle::new(BrowserConfig {
        user_data_root: deps.scratch.clone(),
        run_as: deps.browser_user.as_ref().map(|user| (user.uid, user.gid)),
        tabs,
        ..BrowserConfig::default()
    });
    let snapshot = Deps {
        db: deps.db.clone(),
        blobs: deps.blobs.clone(),
        robots: Arc::new(Robots::new(fetcher.clone(), RobotsConfig::default())),
        fetcher: fetcher.clone(),
        guard,
        spool: deps.scratch.clone(),
        icons: Arc::default(),
    };
    let (db, blobs) = (&deps.db, &deps.blobs);
    let runners: Vec<(Box<dyn Runner>, usize)> = vec![
        runner(&deps, CrawlSetup { db: db.clone(), fetcher }, 2),
        runner(&deps, SnapshotBrowser::new(snapshot.clone(), browser.clone()), tabs),
        runner(&deps, SnapshotPlain(snapshot), plain_sets(deps.cores)),
        runner(&deps, CrawlSeal { db: db.clone(), blobs: blobs.clone(), spool: deps.scratch.clone() }, 2),
        // Workers of this process look at the rows themselves, so nothing needs to be rung again.
        runner(&deps, Sweep { db: db.clone(), blobs: blobs.clone(), ring: false }, 1),
    ];
    let workers = Workers::start(db, &deps.bell, runners);
    Ok(FunctionsHandle { workers, browser })
}

/// Pages in the browser at once: two a core keep it busy while pages wait for the network.
fn tabs(cores: usize) -> usize {
    let most = Kind::Snapshot.policy().concurrency as usize;
    (cores * 2).clamp(2, most)
}

/// Sets of plain pages at once: one a core, and one that waits for the network, the disk or the
/// database meanwhile.
fn plain_sets(cores: usize) -> usize {
    (cores + 1).min(Kind::SnapshotPlain.policy().concurrency as usize)
}

fn runner<T: Task>(deps: &HostDeps, task: T, workers: usize) -> (Box<dyn Runner>, usize) {
    let bell: Arc<dyn Bell> = deps.bell.clone();
    (Box::new(Executor::new(task, deps.db.clone(), bell)), workers)
}

impl FunctionsHandle {
    /// No new claims; waits until what runs has settled, at most `patience`, then ends the browser.
    pub async fn stop(self, patience: Duration) {
        self.workers.stop(patience).await;
        self.browser.close().await;
    }
}
