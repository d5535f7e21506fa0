//! What the queue of record costs: empty tasks a second through the executor and its workers, and
//! one claim and settle in small tables and in large ones.
//!
//! `./fonds bench tasks [--json] [--rows N] [--tasks N] [--plans]`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a table is what it is for")]

mod common;
#[path = "tasks/empty.rs"]
mod empty;
#[path = "tasks/fill.rs"]
mod fill;
#[path = "tasks/page.rs"]
mod page;
#[path = "tasks/plans.rs"]
mod plans;
#[path = "tasks/single.rs"]
mod single;

use common::{Args, Database, Report, Table};
use serde_json::json;

const USAGE: &str = "tasks [--json] [--rows N] [--tasks N] [--plans]";
/// The small tables beside which the large ones are shown.
const FEW: i64 = 10_000;

fn main() -> anyhow::Result<()> {
    let args = Args::read(USAGE)?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(Database::with("tasks", async |database| Box::pin(run(database, &args)).await))
}

async fn run(database: &Database, args: &Args) -> anyhow::Result<()> {
    let report = Report::new(args);
    let rows = i64::from(args.number("--rows", 1_000_000)?);
    let tasks = args.number("--tasks", 20_000)? as usize;
    report.machine();
    let per_second = throughput(database, &report, tasks).await?;
    let large_ms = size(database, &report, rows).await?;
    let plans = plans::take(database).await?;
    for plan in &plans {
        let scans = plan.scans();
        report.say(format!("{}: {}", plan.name, if scans.is_empty() { "no scan of a whole table" } else { &scans }));
        if args.has("--plans") {
            report.say(&plan.text);
        }
    }
    if plans.is_empty() {
        report.say("no plans: the server would not load auto_explain");
    }
    report.machine();
    report.figures(&json!({
        "tasks_per_s": per_second.round(),
        "claim_settle_ms_at_5m_rows": (large_ms * 1000.0).round() / 1000.0,
    }));
    Ok(())
}

/// Empty tasks, in the host's wiring. Answers those of a set-based kind a second.
async fn throughput(database: &Database, report: &Report, tasks: usize) -> anyhow::Result<f64> {
    let mut table = Table::new(&["empty tasks", "tasks/s", "own us", "server us", "us/task", "tasks/CPU-s"]);
    let mut set_based = f64::NAN;
    for (way, name) in empty::WAYS {
        let n = tasks / way.share();
        empty::rate(database, way, n / 4).await?;
        let mut rounds = Vec::new();
        for _ in 0..3 {
            rounds.push(empty::rate(database, way, n).await?);
        }
        rounds.sort_by_key(|used| used.wall);
        let used = rounds[1];
        let us = |d: std::time::Duration| d.as_secs_f64() * 1e6 / n as f64;
        let rate = n as f64 / used.wall.as_secs_f64();
        table.row(
            name,
            &[
                (rate, 0),
                (us(used.own), 0),
                (us(used.server), 0),
                (us(used.cpu()), 0),
                (n as f64 / used.cpu().as_secs_f64(), 0),
            ],
        );
        if way == empty::Way::Set {
            set_based = rate;
        }
    }
    report.say(table.to_string());
    Ok(set_based)
}

/// One claim and settle, as the tables grow. Answers its median in the large ones, ms.
async fn size(database: &Database, report: &Report, rows: i64) -> anyhow::Result<f64> {
    let mut table = Table::new(&[
        "one run alone, ms",
        "claim",
        "settle",
        "both",
        "p95",
        "50 runs as a set",
        "a page with its rows",
    ]);
    fill::in_flight(database).await?;
    let mut large = f64::NAN;
    for level in [FEW.min(rows), rows] {
        let took = fill::up_to(database, level).await?;
        let single = single::measure(database).await?;
        let page = page::measure(database).await?;
        large = common::median(&single.both);
        table.row(
            &format!("{level} runs, {} snapshots ({:.0} s to fill)", level.min(fill::SNAPSHOTS), took.as_secs_f64()),
            &[
                (common::median(&single.claim), 2),
                (common::median(&single.settle), 2),
                (large, 2),
                (common::quantile(&single.both, 0.95), 2),
                (common::median(&single.set), 2),
                (common::median(&page), 2),
            ],
        );
    }
    report.say(table.to_string());
    Ok(large)
}
