//! One load of one page, and every output taken from it.
//!
//! Two things go on at the same time: the pump, which takes events and answers what must be answered
//! (bodies, dialogs, intercepted requests, workers), and the script, which navigates, waits, and takes
//! the outputs one after another. The capture ends when the script does, or when the pump finds that
//! nothing more can come (browser gone, page crashed, cancelled); what was there until then is kept.
//!
//! The bodies come from the browser's network process ("durable messages"), not from the page's
//! renderer: byte for byte what was served whatever the charset, and still there when the page has
//! moved on.

mod console;
mod event;
mod exchange;
mod model;
mod outputs;
mod pump;
mod recorder;
mod reencode;
mod settle;
mod tab;

use std::time::Duration;

use tokio::time::Instant;

pub use model::{
    Capture, CaptureRequest, ConsoleEntry, Cookie, Egress, Incidents, MainDocument, Outlink, Output, OutputTimeouts,
    Outputs, Redirect, Resource, Screenshot, Timings, TlsChain,
};

use super::code::{BrowserError, CaptureCode, OutputError};
use super::launch::Browser;
use outputs::Taken;
use tab::Tab;

impl Browser {
    /// Loads the page in a context of its own and takes the outputs asked for.
    ///
    /// An error means that there was no page at all; everything that goes wrong later is in the
    /// [`Capture`]. The future may be dropped at any point: the context goes with it.
    pub async fn capture(&self, request: CaptureRequest) -> Result<Capture, BrowserError> {
        let started = Instant::now();
        let cancel = request.cancel.clone();
        let opened = tokio::select! {
            opened = Tab::open(self, &request) => opened,
            () = cancel.cancelled() => Err(BrowserError::Cancelled),
        };
        let (mut tab, mut events) = opened.inspect_err(|error| {
            // A browser that cannot open a page in ten seconds is not one to go on with.
            if matches!(error, BrowserError::Page(super::cdp::CdpError::Timeout { .. })) {
                self.mark_unhealthy();
            }
        })?;
        tab.timings.open_ms = millis(started.elapsed());
        let mut taken = Taken::default();
        let aborted = {
            let tab = &tab;
            let script = Box::pin(script(tab, &mut taken));
            tokio::select! {
                biased;
                code = Box::pin(pump::run(tab, &mut events)) => Some(code),
                // The end of the connection may reach a command before it reaches the pump.
                () = script => (!self.connection().is_alive()).then_some(CaptureCode::BrowserGone),
            }
        };
        let dropped = events.overflowed();
        tab.dispose().await;
        let mut capture = finish(tab, taken, aborted);
        capture.incidents.events_dropped = dropped;
        capture.timings.total_ms = millis(started.elapsed());
        Ok(capture)
    }
}

/// Navigates, waits, and takes the outputs.
async fn script(tab: &Tab<'_>, taken: &mut Taken) {
    let started = Instant::now();
    if let Err(failure) = tab.navigate().await {
        taken.navigation_error = Some(failure.error);
        taken.is_download = failure.is_download;
    }
    let loaded = taken.navigation_error.is_none();
    if loaded {
        taken.idle_reached = tab.settle(started).await;
    }
    taken.timings.settle_ms = millis(started.elapsed());
    taken.timings.load_ms = tab.recorder().loaded_at.map(|at| millis(at - started));
    if loaded {
        let from = Instant::now();
        tab.behave(taken).await;
        taken.timings.behave_ms = millis(from.elapsed());
        let from = Instant::now();
        outputs::take_all(tab, taken).await;
        taken.timings.outputs_ms = millis(from.elapsed());
    }
    if tab.request.outputs.certificates {
        taken.certificates = Some(Ok(outputs::certificates(tab).await));
    }
    tab.bodies_done().await;
}

fn finish(tab: Tab<'_>, taken: Taken, aborted: Option<CaptureCode>) -> Capture {
    let want = tab.request.outputs;
    let why = match (aborted, &taken.navigation_error) {
        (Some(code), _) => OutputError::new(code, "the capture ended early"),
        (None, Some(error)) => OutputError::new(CaptureCode::NavigationFailed, error.clone()),
        (None, None) => OutputError::new(CaptureCode::BrowserRefused, "not taken"),
    };
    let refusals = match &tab.request.egress {
        Egress::Guard(proxy) => proxy.refusals(),
        Egress::Unguarded(_) => Vec::new(),
    };
    let sandbox = tab.browser.info().sandbox;
    let target = tab.request.target().to_owned();
    let open_ms = tab.timings.open_ms;
    let mut recorder = tab.into_recorder();
    recorder.close();
    let mut incidents = recorder.incidents;
    if taken.is_download && incidents.downloads.is_empty() {
        // The event of its own comes a moment after the answer to the navigation.
        incidents.downloads.push(target.clone());
    }
    incidents.console_truncated = recorder.console.truncated;
    incidents.banners = taken.behaviour.banners;
    incidents.scroll_capped = taken.behaviour.capped;
    incidents.moved_during_outputs = taken.moved;
    incidents.outlinks_truncated = taken.outlinks_truncated;
    Capture {
        final_url: taken.url.or(recorder.final_url).unwrap_or(target),
        title: taken.title,
        is_download: taken.is_download,
        navigation_error: taken.navigation_error,
        aborted,
        loaded: recorder.loaded_at.is_some(),
        idle_reached: taken.idle_reached,
        redirects: recorder.redirects,
        resources: recorder.resources,
        console: recorder.console.entries,
        screenshot: taken.screenshot.or_else(|| want.screenshot.then(|| Err(why.clone()))),
        pdf: taken.pdf.or_else(|| want.pdf.then(|| Err(why.clone()))),
        dom: taken.dom.or_else(|| want.dom.then(|| Err(why.clone()))),
        mhtml: taken.mhtml.or_else(|| want.mhtml.then(|| Err(why.clone()))),
        accessibility: taken.accessibility.or_else(|| want.accessibility.then(|| Err(why.clone()))),
        outlinks: taken.outlinks.or_else(|| want.outlinks.then(|| Err(why.clone()))),
        seo: taken.seo.or_else(|| want.seo.then(|| Err(why.clone()))),
        certificates: taken.certificates.or_else(|| want.certificates.then(|| Err(why.clone()))),
        timings: Timings { open_ms, ..taken.timings },
        refusals,
        incidents,
        sandbox,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
