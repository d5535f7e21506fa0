//! The plans of claim and settle as they really run, from the server's `auto_explain`: the text of the
//! statements stays in one place.

use crate::common::Database;
use crate::empty;
use fonds_domain::Kind;
use fonds_store::runs::{self, Select, Settlement, Verdict};
use sqlx::{Connection, Executor};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// One statement's plan.
pub(crate) struct Plan {
    /// Which statement.
    pub(crate) name: &'static str,
    /// As EXPLAIN (ANALYZE, BUFFERS) prints it.
    pub(crate) text: String,
}

impl Plan {
    /// The nodes that read a whole table that grows.
    pub(crate) fn scans(&self) -> String {
        let scans = self.text.lines().map(str::trim).filter(|line| {
            line.contains("Seq Scan on") && ["task_run", "snapshot", "crawl"].iter().any(|t| line.contains(t))
        });
        scans.collect::<Vec<_>>().join("; ")
    }
}

/// Claims and settles on one connection until the server has made up its mind about the generic
/// plan, and answers the last plans. Nothing when the module is not there or not allowed.
pub(crate) async fn take(database: &Database) -> anyhow::Result<Vec<Plan>> {
    let mut conn = database.connect().await?;
    let settings = "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
        SET auto_explain.log_buffers = on; SET auto_explain.log_level = notice; SET jit = off";
    if conn.execute(settings).await.is_err() {
        return Ok(Vec::new());
    }
    let notices = Notices::default();
    let layer = notices.clone().with_filter(
        tracing_subscriber::filter::Targets::new().with_target("sqlx::postgres::notice", LevelFilter::TRACE),
    );
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
    for kind in [Kind::CrawlSetup, Kind::SnapshotPlain] {
        for _ in 0..10 {
            let n = if kind.policy().set_based { 50 } else { 1 };
            empty::enqueue(&database.db, kind, n).await?;
            let claimed = runs::claim(&mut conn, kind, &Select::Next(u32::try_from(n)?)).await?;
            anyhow::ensure!(claimed.len() == n, "claimed {} of {n}", claimed.len());
            let done: Vec<Settlement> =
                claimed.iter().map(|c| Settlement { run: c.id, lease: c.lease, verdict: Verdict::Succeeded }).collect();
            runs::settle(&mut conn, &done).await?;
        }
    }
    conn.close().await?;
    let notices = notices.0.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = |name, statement: &str| {
        let text = notices.iter().rev().find(|text| text.contains(statement))?;
        Some(Plan { name, text: text.clone() })
    };
    Ok([plan("claim", "WITH RECURSIVE class"), plan("settle", "AS s(id, lease, status")]
        .into_iter()
        .flatten()
        .collect())
}

/// Keeps the server's notices, which the driver hands to the log.
#[derive(Clone, Default)]
struct Notices(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Notices {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        event.record(&mut &*self);
    }
}

impl Visit for &Notices {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value.to_owned());
        }
    }
}
