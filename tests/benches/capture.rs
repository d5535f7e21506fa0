//! What a page costs from its submission to the sealed crawl: over plain HTTP beside wget writing
//! WARCs, and with the browser beside the bare protocol loop. Peers run in turn with ours, against the
//! same origin, which lives in this process.
//!
//! `./fonds bench capture [--json] [--rounds N] [--plain N] [--browser N] [--only-plain] [--only-browser]`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a table is what it is for")]

#[path = "capture/browser.rs"]
mod browser;
#[expect(dead_code, reason = "the other benchmark needs a connection of its own")]
mod common;
#[path = "capture/plain.rs"]
mod plain;
#[path = "capture/wiring.rs"]
mod wiring;

use common::{Args, Database, Report, Table, Used};
use serde_json::json;

const USAGE: &str = "capture [--json] [--rounds N] [--plain N] [--browser N] [--only-plain] [--only-browser]";

fn main() -> anyhow::Result<()> {
    let args = Args::read(USAGE)?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(Database::with("capture", async |database| Box::pin(run(database, &args)).await))
}

async fn run(database: &Database, args: &Args) -> anyhow::Result<()> {
    let report = Report::new(args);
    let rounds = args.number("--rounds", 3)?;
    let mut figures = json!({
        "browser_cpu_vs_bare_cdp": null,
        "browser_pages_per_s": null,
        "plain_pages_per_s": null,
        "plain_indexed_pages_per_s": null,
        "wget_pages_per_s": null,
    });
    report.machine();
    if !args.has("--only-browser") {
        let measured = plain::measure(database, args.number("--plain", 3000)?, rounds).await?;
        let mut table = table("plain pages of 4 KB");
        row(&mut table, "fonds: WARC, rows, dedup, links", &measured.ours);
        row(&mut table, "fonds: and text, hashes, full-text search", &measured.indexed);
        figures["plain_pages_per_s"] = rate(&measured.ours).into();
        figures["plain_indexed_pages_per_s"] = rate(&measured.indexed).into();
        match &measured.wget {
            Some(wget) => {
                row(&mut table, "wget --warc-file", wget);
                figures["wget_pages_per_s"] = rate(wget).into();
            }
            None => report.say("wget is not installed: nothing to compare with"),
        }
        report.say(table.to_string());
        report.machine();
    }
    if !args.has("--only-plain") {
        let measured = Box::pin(browser::measure(database, args.number("--browser", 40)?, rounds)).await?;
        let mut table = table("browser pages of 13 requests, 4 tabs");
        for (name, runs) in &measured.rows {
            row(&mut table, name, runs);
        }
        report.say(table.to_string());
        for (name, ratio) in &measured.ratios {
            report.say(format!("{name}: {ratio:.2} x"));
        }
        report.say(&measured.about);
        report.machine();
        figures["browser_cpu_vs_bare_cdp"] = measured.ratio().into();
        figures["browser_pages_per_s"] = measured.pages_per_s().into();
    }
    report.say("pages from their submission to the seal of their crawl; own: this process with the origin in it; server: the database's backends");
    report.figures(&figures);
    Ok(())
}

/// A run over some pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pages: u32,
    used: Used,
    /// CPU seconds of the browser's processes.
    browser: f64,
}

impl Run {
    /// CPU milliseconds a page, all of them.
    fn cpu_ms(&self) -> f64 {
        (self.used.cpu().as_secs_f64() + self.browser) * 1000.0 / f64::from(self.pages)
    }
}

/// The run with the median CPU time.
fn middle(runs: &[Run]) -> Option<Run> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(|a, b| a.cpu_ms().total_cmp(&b.cpu_ms()));
    sorted.get(sorted.len() / 2).copied()
}

/// Median pages a second, two decimals.
fn rate(runs: &[Run]) -> f64 {
    let rates: Vec<f64> = runs.iter().map(|r| f64::from(r.pages) / r.used.wall.as_secs_f64()).collect();
    (common::median(&rates) * 100.0).round() / 100.0
}

fn table(name: &str) -> Table {
    Table::new(&[name, "pages/s", "own ms", "server ms", "program ms", "browser ms", "CPU ms/page", "pages/CPU-s"])
}

fn row(table: &mut Table, name: &str, runs: &[Run]) {
    let Some(run) = middle(runs) else { return };
    let ms = |seconds: f64| seconds * 1000.0 / f64::from(run.pages);
    table.row(
        name,
        &[
            (rate(runs), 1),
            (ms(run.used.own.as_secs_f64()), 2),
            (ms(run.used.server.as_secs_f64()), 2),
            (ms(run.used.children.as_secs_f64()), 2),
            (ms(run.browser), 2),
            (run.cpu_ms(), 2),
            (1000.0 / run.cpu_ms(), 1),
        ],
    );
}
