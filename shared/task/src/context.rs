//! What a running task is given: its budget, its signal, its database.

use crate::TaskError;
use fonds_domain::{CrawlId, RunId};
use fonds_store::runs::{self, Signal};
use fonds_store::{Db, StoreError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The time a slice has.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The work must have ended by then; what is left after it is for the settle.
    pub until: Instant,
}

impl Budget {
    /// Time left.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Whether a unit of work that takes this long still fits.
    #[must_use]
    pub fn has(&self, unit: Duration) -> bool {
        self.remaining() >= unit
    }
}

/// The context of one claimed run.
#[derive(Debug, Clone)]
pub struct Cx {
    /// The database.
    pub db: Db,
    /// Time left in this slice.
    pub budget: Budget,
    /// The run.
    pub run: RunId,
    /// Its crawl.
    pub crawl: Option<CrawlId>,
    /// The row it works on.
    pub entity: Option<Uuid>,
    /// The claim's number, from one.
    pub attempt: i32,
    /// Whether a failure now is the last one.
    pub last_attempt: bool,
    /// The lease, which also names output that is not content-addressed.
    pub lease: Uuid,
}

impl Cx {
    /// Asks whether to go on: between stages and units. A lost lease ends the work at once, since
    /// nothing of it would be taken.
    ///
    /// # Errors
    /// When the database cannot be asked.
    pub async fn signal(&self) -> Result<Signal, StoreError> {
        let mut conn = self.db.conn().await?;
        runs::signal(&mut conn, self.run, self.lease).await
    }

    /// The entity's id, for kinds that always have one.
    ///
    /// # Errors
    /// When the run was made without one.
    pub fn entity(&self) -> Result<Uuid, TaskError> {
        self.entity.ok_or_else(|| {
            TaskError::permanent(fonds_domain::ErrorCode::BAD_INPUT, anyhow::anyhow!("the run names no row to work on"))
        })
    }
}
