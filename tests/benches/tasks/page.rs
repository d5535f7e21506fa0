//! Claim and settle of a page with everything a capture writes: results, object, dedup index, search
//! text, snapshot, counters.

use crate::common::Database;
use fonds_domain::{CrawlConfig, CrawlId, CrawlLimits, ErrorCode, Kind, ResultStatus, SnapshotId};
use fonds_queues::{Bell, LocalBell};
use fonds_store::admission::{self, Candidate};
use fonds_store::capture::{self, Closing, Discovery, ObjectUse, PayloadRow, ResultFile, ResultRow};
use fonds_store::crawls::{self, NewCrawl};
use fonds_store::runs::RunRef;
use fonds_store::{Conn, StoreError};
use fonds_task::{Cx, Executed, Executor, Outcome, Runner, Select, Task, TaskError};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAGES: usize = 150;
const EXTRACTORS: [&str; 7] = ["headers", "title", "warc", "htmltotext", "parse_html_urls", "hashes", "search"];

/// A page whose capture took no time.
struct WritePage;

impl Task for WritePage {
    const KIND: Kind = Kind::Snapshot;
    type Input = ();
    type Cursor = ();
    type Effect = Closing;

    async fn run(&self, cx: &Cx, (): &(), (): ()) -> Result<Outcome<Self>, TaskError> {
        let crawl = cx.crawl.ok_or_else(|| TaskError::permanent(ErrorCode::BAD_INPUT, anyhow::anyhow!("no crawl")))?;
        Ok(Outcome::Done(closing(crawl, SnapshotId(cx.entity()?))))
    }

    async fn apply(&self, conn: &mut Conn, effects: &[&Closing]) -> Result<Vec<RunRef>, StoreError> {
        let how = |x: &&Closing| {
            let d = Discovery { kind: Self::KIND, scheduled: false, delay_ms: 0, dedup: Some(x.crawl.0) };
            (x.crawl, d)
        };
        let discovery: BTreeMap<_, _> = effects.iter().map(how).collect();
        capture::close(conn, effects, &discovery).await
    }
}

/// Milliseconds, one a page.
pub(crate) async fn measure(database: &Database) -> anyhow::Result<Vec<f64>> {
    admit(database).await?;
    let bell: Arc<dyn Bell> = Arc::new(LocalBell::new());
    let runner = Executor::new(WritePage, database.db.clone(), bell);
    let mut took = Vec::with_capacity(PAGES);
    for page in 0..PAGES {
        let began = Instant::now();
        let executed = Box::pin(runner.execute(Select::Next(1), Duration::from_secs(200), &|_| ())).await;
        anyhow::ensure!(executed == Executed::Settled(1), "{executed:?}");
        if page >= 10 {
            took.push(began.elapsed().as_secs_f64() * 1000.0);
        }
    }
    Ok(took)
}

/// A crawl with one page more than will be written, so that it stays open.
async fn admit(database: &Database) -> anyhow::Result<()> {
    let new = NewCrawl {
        input: String::new(),
        config: CrawlConfig::default(),
        limits: CrawlLimits::default(),
        label: String::new(),
        notes: String::new(),
        tags: Vec::new(),
        created_by: None,
        delete_at: None,
    };
    let mut tx = database.db.begin().await?;
    let (crawl, _) = crawls::create(&mut tx, &new).await?;
    // Its set-up is not what is measured.
    sqlx::query("DELETE FROM task_run WHERE crawl_id = $1").bind(crawl.0).execute(&mut *tx).await?;
    let pages: Vec<Candidate> = (0..=PAGES)
        .map(|n| {
            let url = format!("https://host{}.example/fresh/{crawl}/{n}", n % 50);
            let digest = Sha256::digest(&url);
            let mut key = [0; 16];
            key.copy_from_slice(&digest[..16]);
            Candidate {
                key,
                host: format!("host{}.example", n % 50),
                url,
                depth: 0,
                parent: None,
                title: None,
                tags: Vec::new(),
                bookmarked_at: None,
            }
        })
        .collect();
    admission::admit(&mut tx, crawl, Kind::Snapshot, false, 0, &pages).await?;
    tx.commit().await?;
    Ok(())
}

fn closing(crawl: CrawlId, snapshot: SnapshotId) -> Closing {
    let digest: [u8; 32] = Sha256::digest(snapshot.0.as_bytes()).into();
    let object = format!("bench/{snapshot}.wacz");
    let results = EXTRACTORS
        .iter()
        .enumerate()
        .map(|(n, extractor)| ResultRow {
            extractor,
            status: ResultStatus::Succeeded,
            files: vec![ResultFile {
                path: format!("{extractor}/output.txt"),
                mime: "text/plain".to_owned(),
                size: 900,
                sha256: hex::encode(digest),
                object: object.clone(),
                offset: 1000 * n as u64,
                length: 900,
            }],
            output: Some("a line".to_owned()),
            error: None,
            duration_ms: 1,
            tool: None,
        })
        .collect();
    Closing {
        snapshot,
        crawl,
        title: Some("A page".to_owned()),
        final_url: None,
        http_status: Some(200),
        mime: Some("text/html".to_owned()),
        size: 9000,
        error: None,
        results,
        objects: vec![ObjectUse { key: object.clone(), size: 9000, sha256: digest, own: true }],
        payloads: vec![PayloadRow {
            sha256: digest,
            object,
            record_id: format!("urn:uuid:{snapshot}"),
            url: "https://host.example/".to_owned(),
            date: chrono::Utc::now(),
            offset: 400,
            length: 3000,
        }],
        text: Some("The archive keeps what was said, in the words it was said in. ".repeat(40)),
        url: format!("https://host.example/{snapshot}"),
        tags: Vec::new(),
        links: Vec::new(),
        attempt: 1,
    }
}
