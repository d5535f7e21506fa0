//! A whole fonds in one test: a database of its own, blobs in memory, every function, and a clock
//! that the test moves.
//!
//! Tests read submit -> drain -> assert rows, blobs, queue empty.

use bytes::Bytes;
use fonds_blobs::memory::MemoryBlobs;
use fonds_blobs::{BlobKey, BlobStore};
use fonds_crawl_seal::CrawlSeal;
use fonds_crawl_setup::CrawlSetup;
use fonds_domain::{CrawlConfig, CrawlId, CrawlLimits, SnapshotId};
use fonds_queues::{Bell, RecordingBell};
use fonds_snapshot::{Deps, SnapshotBrowser, SnapshotPlain};
use fonds_store::capture::ResultFile;
use fonds_store::crawls::{self, NewCrawl};
use fonds_store::listing::{self, Line};
use fonds_store::{Db, sweep};
use fonds_sweep::Sweep;
use fonds_task::{Executor, Runner, Task};
use fonds_web::browser::{BrowserConfig, BrowserHandle};
use fonds_web::fetch::{Fetcher, FetcherConfig};
use fonds_web::guard::{Guard, GuardConfig};
use fonds_web::robots::{Robots, RobotsConfig};
use sqlx::PgPool;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Outputs that need no browser.
pub const PLAIN: [&str; 13] = [
    "headers",
    "redirects",
    "title",
    "staticfile",
    "warc",
    "wacz",
    "seo",
    "htmltotext",
    "readability",
    "parse_html_urls",
    "parse_rss_urls",
    "hashes",
    "search",
];

/// A configuration that goes the plain way.
#[must_use]
pub fn plain() -> CrawlConfig {
    CrawlConfig { extractors: PLAIN.iter().map(|x| (*x).to_owned()).collect(), ..CrawlConfig::default() }
}

/// Limits with a depth.
#[must_use]
pub fn depth(max_depth: u16) -> CrawlLimits {
    CrawlLimits { max_depth, ..CrawlLimits::default() }
}

/// Everything a test needs.
pub struct World {
    /// The database.
    pub db: Db,
    /// The blobs.
    pub blobs: Arc<MemoryBlobs>,
    /// What rang.
    pub bell: Arc<RecordingBell>,
    /// The browser; started by the first capture that needs it.
    pub browser: BrowserHandle,
    runners: Vec<Box<dyn Runner>>,
    _scratch: tempfile::TempDir,
}

impl World {
    /// A world whose captures may reach loopback.
    pub fn new(pool: PgPool) -> World {
        World::with(pool, true, |_| ())
    }

    /// A world as it is for users: private addresses are refused.
    pub fn guarded(pool: PgPool) -> World {
        World::with(pool, false, |_| ())
    }

    /// A world with settings of the fetcher of its own.
    pub fn with(pool: PgPool, allow_private: bool, tune: impl FnOnce(&mut FetcherConfig)) -> World {
        let db = Db::from_pool(pool);
        let blobs = Arc::new(MemoryBlobs::new());
        let bell = Arc::new(RecordingBell::new());
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let guard = Guard::new(GuardConfig { allow_private, ..GuardConfig::default() });
        let mut config = FetcherConfig::new(guard.clone());
        config.spool_dir = Some(scratch.path().to_owned());
        tune(&mut config);
        let fetcher = Fetcher::new(config).expect("a fetcher");
        let browser = BrowserHandle::new(BrowserConfig { tabs: 2, ..BrowserConfig::default() });
        let deps = Deps {
            db: db.clone(),
            blobs: blobs.clone(),
            robots: Arc::new(Robots::new(fetcher.clone(), RobotsConfig::default())),
            fetcher: fetcher.clone(),
            guard,
            spool: scratch.path().to_owned(),
            icons: Arc::default(),
        };
        let spool = scratch.path().to_owned();
        let store: Arc<dyn BlobStore> = blobs.clone();
        let runners: Vec<Box<dyn Runner>> = vec![
            runner(&db, &bell, CrawlSetup { db: db.clone(), fetcher }),
            runner(&db, &bell, SnapshotBrowser::new(deps.clone(), browser.clone())),
            runner(&db, &bell, SnapshotPlain(deps)),
            runner(&db, &bell, CrawlSeal { db: db.clone(), blobs: store.clone(), spool }),
            runner(&db, &bell, Sweep { db: db.clone(), blobs: store, ring: true }),
        ];
        World { db, blobs, bell, browser, runners, _scratch: scratch }
    }

    /// Submits a crawl.
    pub async fn submit(&self, input: &str, config: CrawlConfig, limits: CrawlLimits) -> CrawlId {
        let new = NewCrawl {
            input: input.to_owned(),
            config,
            limits,
            label: "a test".to_owned(),
            notes: String::new(),
            tags: vec!["test".to_owned()],
            created_by: None,
            delete_at: None,
        };
        let mut tx = self.db.begin().await.expect("database");
        let (id, _) = crawls::create(&mut tx, &new).await.expect("created");
        tx.commit().await.expect("committed");
        id
    }

    /// The runner of one kind, for tests that look in between.
    #[must_use]
    pub fn runner(&self, kind: fonds_domain::Kind) -> &dyn Runner {
        self.runners.iter().find(|r| r.kind() == kind).map(AsRef::as_ref).expect("every kind has a runner")
    }

    /// Works off everything that is due.
    pub async fn drain(&self) -> usize {
        let runners: Vec<&dyn Runner> = self.runners.iter().map(AsRef::as_ref).collect();
        fonds_task::testing::drain(&runners).await
    }

    /// Submits and works it off.
    pub async fn crawl(&self, input: &str, config: CrawlConfig, limits: CrawlLimits) -> CrawlId {
        let id = self.submit(input, config, limits).await;
        self.settle().await;
        id
    }

    /// Drains, letting time pass for what waits (retries), until nothing is left.
    pub async fn settle(&self) {
        for _ in 0..12 {
            self.drain().await;
            fonds_task::testing::elapse(&self.db, Duration::from_secs(30)).await;
            if self.open_runs().await == 0 {
                return;
            }
        }
        panic!("work left after twelve rounds");
    }

    /// Runs one sweep, with everything it makes due.
    pub async fn sweep(&self) {
        let mut conn = self.db.conn().await.expect("database");
        sweep::enqueue_sweep(&mut conn).await.expect("enqueued");
        drop(conn);
        self.drain().await;
    }

    /// Runs that are not over.
    pub async fn open_runs(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM task_run WHERE status IN ('queued', 'running')")
            .fetch_one(self.db.pool())
            .await
            .expect("counted")
    }

    /// The crawl as functions see it.
    pub async fn load(&self, id: CrawlId) -> crawls::Crawl {
        let mut conn = self.db.conn().await.expect("database");
        crawls::load(&mut conn, &[id]).await.expect("loaded").pop().expect("there is such a crawl")
    }

    /// A crawl's snapshots with their results.
    pub async fn snapshots(&self, id: CrawlId) -> Vec<Line> {
        let mut conn = self.db.conn().await.expect("database");
        listing::page(&mut conn, id, SnapshotId(Uuid::nil()), 10_000).await.expect("listed")
    }

    /// The bytes of a result's file, as they are served: a ranged read.
    pub async fn file(&self, file: &ResultFile) -> Bytes {
        let key = BlobKey::parse(file.object.as_str()).expect("a key");
        self.blobs.get_range(&key, file.offset..file.offset + file.length).await.expect("the file's bytes")
    }

    /// A whole object.
    pub async fn object(&self, key: &str) -> Bytes {
        self.blobs.get(&BlobKey::parse(key).expect("a key")).await.expect("the object")
    }
}

fn runner<T: Task>(db: &Db, bell: &Arc<RecordingBell>, task: T) -> Box<dyn Runner> {
    let bell: Arc<dyn Bell> = bell.clone();
    Box::new(Executor::new(task, db.clone(), bell))
}

/// The file of a result, by its path.
#[must_use]
pub fn file_of<'a>(line: &'a Line, path: &str) -> Option<&'a ResultFile> {
    line.results.iter().flat_map(|r| &r.files).find(|f| f.path == path)
}

/// The status of a result.
#[must_use]
pub fn status_of<'a>(line: &'a Line, extractor: &str) -> Option<&'a str> {
    line.results.iter().find(|r| r.extractor == extractor).map(|r| r.status.as_str())
}
