//! Captures against the bare protocol loop on the same warm browser: CPU seconds a page (the browser's
//! processes and this one, which is also the origin and the proxy) and pages a second.
//!
//! `cargo run --release -p fonds-web --example barecdp -- [PAGES] [ROUNDS] [TABS]`
#![expect(clippy::print_stdout, reason = "a table is what it is for")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use fonds_web::browser::{Browser, BrowserConfig, CaptureRequest, Egress, Outputs, bare};
use fonds_web::guard::{Guard, GuardConfig};
use fonds_web::proxy::{GuardProxy, ProxyConfig};
use fonds_web::testing::{Origin, OriginConfig};
use futures_util::StreamExt;
use futures_util::stream;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Bare,
    BareTuned,
    Same,
    SameQuiet,
    All,
}

const WAYS: [(Way, &str); 5] = [
    (Way::Bare, "bare loop, protocol defaults"),
    (Way::BareTuned, "bare loop, tuned"),
    (Way::SameQuiet, "capture, same outputs, no scroll"),
    (Way::Same, "capture, same outputs"),
    (Way::All, "capture, every output"),
];

#[derive(Default, Clone, Copy)]
struct Cost {
    browser: Duration,
    own: Duration,
    wall: Duration,
    pages: u32,
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let args: Vec<u32> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let pages = args.first().copied().unwrap_or(12);
    let rounds = args.get(1).copied().unwrap_or(3);
    let tabs = args.get(2).copied().unwrap_or(1) as usize;
    let config = OriginConfig { pages: 400, ..OriginConfig::new() };
    let origin = Origin::start(config).await?;
    let guard = Guard::new(GuardConfig { allow_private: true, ..GuardConfig::default() });
    let extra_args = std::env::var("FONDS_CHROMIUM_ARGS")
        .map(|a| a.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    let browser = Browser::launch(&BrowserConfig { extra_args, ..BrowserConfig::default() }).await?;
    println!(
        "{} (sandbox {}), {tabs} tab(s), {rounds} x {pages} pages",
        browser.info().product,
        browser.info().sandbox
    );
    let mut costs = [Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for (i, (way, _)) in WAYS.iter().enumerate() {
            let n = if round == 0 { 3 } else { pages };
            let cost = measure(&browser, &origin, &guard, *way, n, tabs).await?;
            if round > 0 {
                costs[i].push(cost);
            }
        }
    }
    println!("{:34} {:>12} {:>12} {:>12} {:>9} {:>8}", "", "browser s/p", "own s/p", "sum s/p", "pages/s", "x tuned");
    let sum = |c: &Cost| (c.browser + c.own).as_secs_f64() / f64::from(c.pages);
    let median = |list: &[Cost]| {
        let mut list = list.to_vec();
        list.sort_by(|a, b| sum(a).total_cmp(&sum(b)));
        list[list.len() / 2]
    };
    let base = sum(&median(&costs[1]));
    for (i, (_, name)) in WAYS.iter().enumerate() {
        let c = median(&costs[i]);
        let p = f64::from(c.pages);
        println!(
            "{name:34} {:12.3} {:12.3} {:12.3} {:9.2} {:8.2}",
            c.browser.as_secs_f64() / p,
            c.own.as_secs_f64() / p,
            sum(&c),
            p / c.wall.as_secs_f64(),
            sum(&c) / base,
        );
    }
    browser.close().await;
    Ok(())
}

async fn measure(
    browser: &Browser,
    origin: &Origin,
    guard: &Guard,
    way: Way,
    pages: u32,
    tabs: usize,
) -> anyhow::Result<Cost> {
    let (cpu, own, wall) = (browser.usage().cpu, own_cpu(), Instant::now());
    let mut work = stream::iter(0..pages)
        .map(|i| {
            let url = origin.url(&format!("/site/{}/", i % 300 + 1)).to_string();
            one(browser, guard.clone(), url, way)
        })
        .buffer_unordered(tabs);
    while let Some(done) = work.next().await {
        done?;
    }
    Ok(Cost {
        browser: browser.usage().cpu.saturating_sub(cpu),
        own: own_cpu().saturating_sub(own),
        wall: wall.elapsed(),
        pages,
    })
}

async fn one(browser: &Browser, guard: Guard, url: String, way: Way) -> anyhow::Result<()> {
    let proxy = Arc::new(GuardProxy::start(guard, ProxyConfig::default()).await?);
    if matches!(way, Way::Bare | Way::BareTuned) {
        let ask = bare::Ask { tuned: way == Way::BareTuned, every_output: false };
        let load = bare::load(browser, &url, proxy.addr(), ask).await?;
        anyhow::ensure!(load.requests >= 12 && load.png > 0 && load.pdf > 0, "{load:?}");
        return Ok(());
    }
    let mut request = CaptureRequest::new(url, Egress::Guard(proxy));
    if way != Way::All {
        request.outputs = Outputs { screenshot: true, pdf: true, dom: true, bodies: true, ..Outputs::NONE };
    }
    if way == Way::SameQuiet {
        request.scroll = false;
        request.close_banners = false;
    }
    let capture = Box::pin(browser.capture(request)).await?;
    anyhow::ensure!(capture.resources.len() >= 12, "{:?}", capture.incidents);
    anyhow::ensure!(matches!(capture.screenshot, Some(Ok(_))) && matches!(capture.pdf, Some(Ok(_))), "outputs");
    anyhow::ensure!(capture.resources.iter().all(|r| r.body.is_some()), "bodies");
    if std::env::var_os("TIMINGS").is_some() {
        println!("{:?} idle {}", capture.timings, capture.idle_reached);
    }
    Ok(())
}

/// CPU time of this process: proc_pid_stat(5), fields 14 and 15.
fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_ascii_whitespace().skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum())
        .unwrap_or(0);
    Duration::from_millis(ticks * 10)
}
