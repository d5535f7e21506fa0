//! A whole fonds as the one-process host wires it: real Postgres, blobs on disk, every function's
//! workers, and loopback allowed.

use crate::common::Database;
use fonds_blobs::BlobStore;
use fonds_blobs::disk::{DiskBlobs, Durability};
use fonds_blobs::sign::LocalSigner;
use fonds_crawl_seal::CrawlSeal;
use fonds_crawl_setup::CrawlSetup;
use fonds_domain::{CrawlConfig, CrawlLimits, CrawlStatus, Kind};
use fonds_queues::{Bell, LocalBell};
use fonds_snapshot::{Deps, SnapshotBrowser, SnapshotPlain};
use fonds_store::Db;
use fonds_store::crawls::{self, NewCrawl};
use fonds_task::local::Workers;
use fonds_task::{Executor, Runner, Task};
use fonds_web::browser::BrowserHandle;
use fonds_web::fetch::{Fetcher, FetcherConfig};
use fonds_web::guard::{Guard, GuardConfig};
use fonds_web::robots::{Robots, RobotsConfig};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How often it is looked whether a crawl is over.
const LOOK: Duration = Duration::from_millis(20);

/// A running archive.
pub(crate) struct Archive {
    db: Db,
    bell: Arc<LocalBell>,
    workers: Workers,
    _scratch: tempfile::TempDir,
}

impl Archive {
    /// Starts the workers, `tabs` of them for the browser.
    pub(crate) fn start(database: &Database, browser: &BrowserHandle, tabs: usize) -> anyhow::Result<Archive> {
        let db = database.db.clone();
        let bell = Arc::new(LocalBell::new());
        let scratch = tempfile::tempdir()?;
        let spool = scratch.path().join("spool");
        std::fs::create_dir(&spool)?;
        let signer = LocalSigner::new(Url::parse("http://127.0.0.1/blobs/")?, &[7; 32])?;
        let blobs: Arc<dyn BlobStore> =
            Arc::new(DiskBlobs::open(scratch.path().join("blobs"), Durability::Cached, signer)?);
        let guard = loopback();
        let mut config = FetcherConfig::new(guard.clone());
        config.spool_dir = Some(spool.clone());
        let fetcher = Fetcher::new(config)?;
        let deps = Deps {
            db: db.clone(),
            blobs: blobs.clone(),
            robots: Arc::new(Robots::new(fetcher.clone(), RobotsConfig::default())),
            fetcher: fetcher.clone(),
            guard,
            spool: spool.clone(),
            icons: Arc::default(),
        };
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let runners = vec![
            runner(&db, &bell, CrawlSetup { db: db.clone(), fetcher }, 2),
            runner(&db, &bell, SnapshotBrowser::new(deps.clone(), browser.clone()), tabs),
            runner(&db, &bell, SnapshotPlain(deps), (cores + 1).min(5)),
            runner(&db, &bell, CrawlSeal { db: db.clone(), blobs, spool }, 2),
        ];
        let workers = Workers::start(&db, &bell, runners);
        Ok(Archive { db, bell, workers, _scratch: scratch })
    }

    /// Submits pages and waits until their crawl is sealed and every one of them captured.
    pub(crate) async fn crawl(&self, urls: &[Url], extractors: &[&str]) -> anyhow::Result<()> {
        let new = NewCrawl {
            input: urls.iter().map(|u| format!("{u}\n")).collect(),
            config: CrawlConfig {
                extractors: extractors.iter().map(|x| (*x).to_owned()).collect(),
                host_delay_ms: 0,
                ..CrawlConfig::default()
            },
            limits: CrawlLimits::default(),
            label: String::new(),
            notes: String::new(),
            tags: Vec::new(),
            created_by: None,
            delete_at: None,
        };
        let mut tx = self.db.begin().await?;
        let (id, _) = crawls::create(&mut tx, &new).await?;
        tx.commit().await?;
        self.bell.wake(Kind::CrawlSetup.as_str());
        while crawls::load(&mut *self.db.conn().await?, &[id]).await?.iter().any(|c| c.status != CrawlStatus::Sealed) {
            tokio::time::sleep(LOOK).await;
        }
        let (pages, failed, outputs_failed): (i64, i64, i64) =
            sqlx::query_as("SELECT n_sealed, n_failed + n_skipped, n_results_failed FROM crawl WHERE id = $1")
                .bind(id.0)
                .fetch_one(self.db.pool())
                .await?;
        anyhow::ensure!(
            usize::try_from(pages)? == urls.len() && failed == 0 && outputs_failed == 0,
            "{pages} of {} pages, {failed} failed, {outputs_failed} outputs failed",
            urls.len()
        );
        Ok(())
    }

    /// Ends the workers.
    pub(crate) async fn stop(self) {
        self.workers.stop(Duration::from_secs(20)).await;
    }
}

/// Lets the origin of this process be reached.
pub(crate) fn loopback() -> Guard {
    Guard::new(GuardConfig { allow_private: true, ..GuardConfig::default() })
}

fn runner<T: Task>(db: &Db, bell: &Arc<LocalBell>, task: T, workers: usize) -> (Box<dyn Runner>, usize) {
    let bell: Arc<dyn Bell> = bell.clone();
    (Box::new(Executor::new(task, db.clone(), bell)), workers)
}
