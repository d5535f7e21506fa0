//! CPU seconds of this process, of programs it ran, and of the database's backends.

use fonds_store::Db;
use std::time::{Duration, Instant};

/// What a stretch of work used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    /// Wall time.
    pub(crate) wall: Duration,
    /// CPU time of this process.
    pub(crate) own: Duration,
    /// CPU time of programs that were run and have ended.
    pub(crate) children: Duration,
    /// CPU time of the backends of our database; zero when the server is on another machine. What
    /// the server does for everyone (WAL writer, checkpointer, vacuum) is not in it.
    pub(crate) server: Duration,
}

impl Used {
    /// All CPU time.
    pub(crate) fn cpu(&self) -> Duration {
        self.own + self.children + self.server
    }
}

/// Measures from its making on.
pub(crate) struct Meter {
    began: Instant,
    own: Duration,
    children: Duration,
    server: Duration,
}

impl Meter {
    /// Begins. Connections of the pool must stay open until the end is read.
    pub(crate) async fn start(db: &Db) -> anyhow::Result<Meter> {
        let server = server(db).await?;
        let (own, children) = own();
        Ok(Meter { began: Instant::now(), own, children, server })
    }

    /// What was used so far.
    pub(crate) async fn used(&self, db: &Db) -> anyhow::Result<Used> {
        let wall = self.began.elapsed();
        let (own, children) = own();
        Ok(Used {
            wall,
            own: own.saturating_sub(self.own),
            children: children.saturating_sub(self.children),
            server: server(db).await?.saturating_sub(self.server),
        })
    }
}

/// Of this process, and of its ended children.
fn own() -> (Duration, Duration) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    (ticks(&stat, 11..13), ticks(&stat, 13..15))
}

async fn server(db: &Db) -> anyhow::Result<Duration> {
    let pids: Vec<i32> = sqlx::query_scalar("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        .fetch_all(db.pool())
        .await?;
    Ok(pids
        .iter()
        .filter(|pid| {
            // Numbers of another machine's server may be anything here.
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|name| name.starts_with(b"postgres:"))
        })
        .filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok())
        .map(|stat| ticks(&stat, 11..13))
        .sum())
}

/// Sums fields of proc_pid_stat(5), counted from the one after the name. A tick is 10 ms on Linux,
/// whatever the kernel's own.
fn ticks(stat: &str, fields: std::ops::Range<usize>) -> Duration {
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        rest.split_ascii_whitespace().skip(fields.start).take(fields.len()).filter_map(|f| f.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
