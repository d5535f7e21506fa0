//! Small pages over plain HTTP.

use crate::Run;
use crate::common::{Database, Meter};
use crate::wiring::Archive;
use anyhow::Context;
use fonds_web::browser::{BrowserConfig, BrowserHandle};
use fonds_web::testing::{Origin, OriginConfig, Reply};
use std::fmt::Write as _;
use std::process::Stdio;
use tokio::process::Command;
use url::Url;

/// What a WARC-writing fetcher makes, with rows, dedup and links.
const WARC: [&str; 4] = ["warc", "title", "headers", "parse_html_urls"];
/// And its text, indexed.
const INDEXED: [&str; 7] = ["warc", "title", "headers", "htmltotext", "parse_html_urls", "search", "hashes"];
const PAGE_BYTES: usize = 4096;

/// The runs of both, one a round.
pub(crate) struct Measured {
    pub(crate) ours: Vec<Run>,
    pub(crate) indexed: Vec<Run>,
    pub(crate) wget: Option<Vec<Run>>,
}

/// Captures the same pages with fonds and with wget, in turn.
pub(crate) async fn measure(database: &Database, pages: u32, rounds: u32) -> anyhow::Result<Measured> {
    let config = (0..pages)
        .fold(OriginConfig::new(), |config, n| config.route(&format!("/page/{n}"), Reply::html(page(n, pages))));
    let origin = Origin::start(config).await?;
    let urls: Vec<Url> = (0..pages).map(|n| origin.url(&format!("/page/{n}"))).collect();
    let browser = BrowserHandle::new(BrowserConfig::default());
    let archive = Archive::start(database, &browser, 1)?;
    let wget = Command::new("wget").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().await;
    let mut measured = Measured { ours: Vec::new(), indexed: Vec::new(), wget: wget.is_ok().then(Vec::new) };
    // Connections, prepared statements, files that are read for the first time.
    archive.crawl(&urls[..urls.len().min(200)], &INDEXED).await?;
    for _ in 0..rounds {
        for (outputs, runs) in [(&WARC[..], &mut measured.ours), (&INDEXED[..], &mut measured.indexed)] {
            let meter = Meter::start(&database.db).await?;
            archive.crawl(&urls, outputs).await?;
            runs.push(Run { pages, used: meter.used(&database.db).await?, browser: 0.0 });
        }
        if let Some(runs) = &mut measured.wget {
            runs.push(Run { pages, used: wget_warc(database, &urls).await?, browser: 0.0 });
        }
    }
    archive.stop().await;
    Ok(measured)
}

/// One wget over all pages: one connection kept alive, pages only into the WARC.
async fn wget_warc(database: &Database, urls: &[Url]) -> anyhow::Result<crate::common::Used> {
    let folder = tempfile::tempdir()?;
    let list: String = urls.iter().map(|u| format!("{u}\n")).collect();
    std::fs::write(folder.path().join("urls"), list)?;
    let meter = Meter::start(&database.db).await?;
    let status = Command::new("wget")
        .current_dir(folder.path())
        .args(["--quiet", "--no-config", "--no-proxy", "--tries=1", "--warc-file=pages", "--output-document=/dev/null"])
        .args(["--input-file=urls"])
        .kill_on_drop(true)
        .status()
        .await
        .context("wget")?;
    let used = meter.used(&database.db).await?;
    let warc = std::fs::metadata(folder.path().join("pages.warc.gz")).context("wget wrote no WARC")?;
    anyhow::ensure!(status.success() && warc.len() > 500 * urls.len() as u64, "wget: {status}, {} bytes", warc.len());
    Ok(used)
}

/// A page of 4 KB, unlike every other: words, and ten links.
fn page(number: u32, pages: u32) -> String {
    const WORDS: [&str; 24] = [
        "archive", "page", "keeps", "what", "was", "said", "words", "reader", "years", "later", "link", "paper",
        "shelf", "index", "date", "photo", "letter", "name", "place", "report", "column", "voice", "street", "winter",
    ];
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page {number} of {pages}</title>\n\
         <meta name=\"description\" content=\"One of {pages} small pages.\"></head>\n<body><h1>Page {number}</h1>\n"
    );
    // Writing to a string cannot fail.
    for n in 1..=10 {
        let _ = writeln!(html, "<a href=\"/page/{}\">Page {n} after this one</a>", (number + n) % pages);
    }
    let mut state = u64::from(number) << 32 | 0x9e37_79b9;
    while html.len() < PAGE_BYTES - 24 {
        html.push_str("<p>");
        for _ in 0..40 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let word = WORDS[(state >> 40) as usize % WORDS.len()];
            let _ = write!(html, "{word}{} ", state >> 57);
            if html.len() >= PAGE_BYTES - 24 {
                break;
            }
        }
        html.push_str("</p>\n");
    }
    html.push_str("</body></html>\n");
    html
}
