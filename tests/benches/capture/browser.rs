//! Pages with the browser.

use crate::common::{Database, Meter};
use crate::wiring::{Archive, loopback};
use crate::{Run, middle, rate};
use fonds_domain::EXTRACTORS;
use fonds_web::browser::bare::{self, Ask};
use fonds_web::browser::{Browser, BrowserConfig, BrowserHandle};
use fonds_web::proxy::{GuardProxy, ProxyConfig};
use fonds_web::testing::{Origin, OriginConfig};
use futures_util::{StreamExt, TryStreamExt, stream};
use url::Url;

const TABS: usize = 4;
/// What the bare loop takes by default: the responses, a picture, a PDF, the document.
const SAME: [&str; 4] = ["warc", "screenshot", "pdf", "dom"];

/// All runs, by what was done.
pub(crate) struct Measured {
    pub(crate) rows: Vec<(&'static str, Vec<Run>)>,
    pub(crate) ratios: Vec<(&'static str, f64)>,
    pub(crate) about: String,
}

impl Measured {
    /// CPU of every browser output, against the bare loop taking as much.
    pub(crate) fn ratio(&self) -> f64 {
        let ratio = self.ratios.last().map_or(f64::NAN, |(_, r)| *r);
        (ratio * 1000.0).round() / 1000.0
    }

    /// With every browser output.
    pub(crate) fn pages_per_s(&self) -> f64 {
        self.rows.last().map_or(f64::NAN, |(_, runs)| rate(runs))
    }
}

/// Captures the same pages in four ways, in turn, on two browsers that stay warm.
pub(crate) async fn measure(database: &Database, pages: u32, rounds: u32) -> anyhow::Result<Measured> {
    let origin = Origin::start(OriginConfig { pages: 2000, ..OriginConfig::new() }).await?;
    let urls: Vec<Url> = (1..=pages).map(|n| origin.url(&format!("/site/{n}/"))).collect();
    // No renewal within the measurement: it would take the processes' CPU time with it.
    let config = || BrowserConfig { tabs: TABS, max_captures: u32::MAX, max_memory: None, ..BrowserConfig::default() };
    let handle = BrowserHandle::new(config());
    let info = handle.warm().await?;
    let browser = Browser::launch(&config()).await?;
    let archive = Archive::start(database, &handle, TABS)?;
    let every: Vec<&str> =
        EXTRACTORS.iter().filter(|x| x.needs_browser()).map(|x| x.name).chain(["warc", "title", "headers"]).collect();

    let less = Ask { tuned: true, every_output: false };
    let more = Ask { tuned: true, every_output: true };
    let mut rows = vec![
        ("bare loop: bodies, PNG, PDF, DOM", Vec::new()),
        ("bare loop, and MHTML, accessibility tree", Vec::new()),
        ("fonds: WARC, PNG, PDF, DOM", Vec::new()),
        ("fonds: every browser output", Vec::new()),
    ];
    for round in 0..=rounds {
        let urls = if round == 0 { &urls[..urls.len().min(2 * TABS)] } else { &urls[..] };
        let runs = [
            loaded(database, &browser, urls, less).await?,
            loaded(database, &browser, urls, more).await?,
            captured(database, &archive, &handle, urls, &SAME).await?,
            captured(database, &archive, &handle, urls, &every).await?,
        ];
        // The first round warms both browsers up.
        if round > 0 {
            rows.iter_mut().zip(runs).for_each(|((_, all), run)| all.push(run));
        }
    }
    anyhow::ensure!(handle.launches() == 1, "the browser was started {} times", handle.launches());
    archive.stop().await;
    handle.close().await;
    browser.close().await;
    let ratio = |ours: usize, bare: usize| -> f64 {
        let cpu = |row: usize| middle(&rows[row].1).map_or(f64::NAN, |run| run.cpu_ms());
        cpu(ours) / cpu(bare)
    };
    let ratios = vec![
        ("CPU against the bare loop, same outputs", ratio(2, 0)),
        ("CPU against the bare loop, every output", ratio(3, 1)),
    ];
    Ok(Measured { ratios, rows, about: format!("{} (sandbox {})", info.product, info.sandbox) })
}

async fn captured(
    database: &Database,
    archive: &Archive,
    handle: &BrowserHandle,
    urls: &[Url],
    outputs: &[&str],
) -> anyhow::Result<Run> {
    let before = handle.usage().await.cpu;
    let meter = Meter::start(&database.db).await?;
    archive.crawl(urls, outputs).await?;
    let used = meter.used(&database.db).await?;
    let browser = handle.usage().await.cpu.saturating_sub(before).as_secs_f64();
    Ok(Run { pages: u32::try_from(urls.len())?, used, browser })
}

async fn loaded(database: &Database, browser: &Browser, urls: &[Url], ask: Ask) -> anyhow::Result<Run> {
    let before = browser.usage().cpu;
    let meter = Meter::start(&database.db).await?;
    stream::iter(urls)
        .map(|url| async move {
            let proxy = GuardProxy::start(loopback(), ProxyConfig::default()).await?;
            let load = bare::load(browser, url.as_str(), proxy.addr(), ask).await?;
            anyhow::ensure!(load.requests >= 12 && load.png > 0 && load.pdf > 0, "{load:?}");
            Ok(())
        })
        .buffer_unordered(TABS)
        .try_collect::<()>()
        .await?;
    let used = meter.used(&database.db).await?;
    let browser = browser.usage().cpu.saturating_sub(before).as_secs_f64();
    Ok(Run { pages: u32::try_from(urls.len())?, used, browser })
}
