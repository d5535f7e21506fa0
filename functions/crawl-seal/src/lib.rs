//! The end of a crawl: its index in three forms, its collection file, its seal.
//!
//! The files are written again whole by every attempt and carry no lease in their names; a seal that
//! loses its fence leaves files that say the same.

mod index;

use fonds_blobs::BlobStore;
use fonds_domain::{CrawlId, CrawlStatus, ErrorCode, Kind};
use fonds_store::crawls::{self};
use fonds_store::runs::RunRef;
use fonds_store::{Conn, Db, StoreError};
use fonds_task::{Cx, Outcome, Task, TaskError};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// Seals crawls.
pub struct CrawlSeal {
    /// The database.
    pub db: Db,
    /// Where the files go.
    pub blobs: Arc<dyn BlobStore>,
    /// Where large indexes are put together.
    pub spool: PathBuf,
}

/// What a seal writes.
pub struct Effect {
    crawl: CrawlId,
    files: Value,
}

impl Task for CrawlSeal {
    const KIND: Kind = Kind::CrawlSeal;
    type Input = Option<()>;
    type Cursor = ();
    type Effect = Effect;

    async fn run(&self, cx: &Cx, _: &Option<()>, (): ()) -> Result<Outcome<Self>, TaskError> {
        let id = CrawlId(cx.entity()?);
        let mut conn = self.db.conn().await?;
        let crawl = crawls::load(&mut conn, &[id]).await?.pop();
        drop(conn);
        let Some(crawl) = crawl else { return Ok(Outcome::Discard("the crawl is deleted")) };
        match crawl.status {
            CrawlStatus::Paused => return Ok(Outcome::Hold),
            CrawlStatus::Sealed => return Ok(Outcome::Discard("the crawl is sealed")),
            CrawlStatus::Queued => return Ok(Outcome::Discard("the crawl has not started")),
            CrawlStatus::Started => {}
        }
        let files =
            index::write(self, cx, &crawl).await.map_err(|e| TaskError::transient(ErrorCode::BLOB_UNAVAILABLE, e))?;
        Ok(Outcome::Done(Effect { crawl: id, files: serde_json::json!(files) }))
    }

    async fn apply(&self, conn: &mut Conn, effects: &[&Effect]) -> Result<Vec<RunRef>, StoreError> {
        for e in effects {
            // A page may have been admitted meanwhile (a raised limit); then its own end enqueues the
            // next seal.
            crawls::seal(conn, e.crawl, &e.files).await?;
        }
        Ok(Vec::new())
    }
}
