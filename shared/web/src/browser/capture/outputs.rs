//! The outputs, one after another, each failing alone.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::model::{Outlink, Output, Screenshot, Timings, TlsChain};
use super::settle::Behaviour;
use super::tab::Tab;
use crate::browser::cdp::{CdpError, Reply};
use crate::browser::code::{CaptureCode, OutputError};

const PAGE: &str = include_str!("js/page.js");
const MAX_LINKS: usize = 20_000;
/// Origins whose certificate is asked for.
const MAX_ORIGINS: usize = 32;

/// What the script has so far; outlives it when it is cut short.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) navigation_error: Option<String>,
    pub(super) is_download: bool,
    pub(super) idle_reached: bool,
    pub(super) moved: bool,
    pub(super) behaviour: Behaviour,
    pub(super) world: Option<World>,
    pub(super) url: Option<String>,
    pub(super) title: Option<String>,
    pub(super) dom: Output<String>,
    pub(super) outlinks: Output<Vec<Outlink>>,
    pub(super) outlinks_truncated: bool,
    pub(super) seo: Output<Value>,
    pub(super) screenshot: Output<Screenshot>,
    pub(super) pdf: Output<Bytes>,
    pub(super) mhtml: Output<Bytes>,
    pub(super) accessibility: Output<Bytes>,
    pub(super) certificates: Output<Vec<TlsChain>>,
    pub(super) timings: Timings,
}

/// A JavaScript world of our own in the page: it shares the document but none of the page's
/// functions, so the page cannot have replaced what our scripts use.
#[derive(Debug, Clone, Copy)]
pub(super) struct World(i64);

impl World {
    /// Opens one. This is also where a page shows whether its scripts ever yield: when they do not,
    /// they are terminated, and after that switched off.
    pub(super) async fn open(tab: &Tab<'_>) -> Option<Self> {
        for limit in [3, 2, 2] {
            match Self::create(tab, Duration::from_secs(limit)).await {
                Ok(world) => return Some(world),
                Err(CdpError::Timeout { .. }) => tab.interrupt().await,
                Err(error) => {
                    // Between two documents there is a moment without a frame to open it in.
                    tracing::debug!(%error, "no world in the page");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        None
    }

    async fn create(tab: &Tab<'_>, limit: Duration) -> Result<Self, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            execution_context_id: i64,
        }
        let params = json!({ "frameId": tab.frame, "worldName": "fonds" });
        let reply = tab.session.call("Page.createIsolatedWorld", &params, limit).await?;
        Ok(Self(reply.decode::<Created>()?.execution_context_id))
    }

    /// Calls a function written in JavaScript with one argument and returns its result with the size
    /// of the message it came in.
    pub(super) async fn evaluate<T: DeserializeOwned>(
        self,
        tab: &Tab<'_>,
        function: &str,
        argument: &Value,
        limit: Duration,
    ) -> Result<(T, usize), OutputError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Evaluated<'a> {
            #[serde(borrow)]
            result: Object<'a>,
            exception_details: Option<Value>,
        }
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow)]
            value: Option<&'a RawValue>,
        }
        let params = json!({
            "expression": format!("{}({argument})", function.trim_end()),
            "contextId": self.0,
            "returnByValue": true,
            "awaitPromise": true,
            "silent": true,
        });
        let reply = tab.session.call("Runtime.evaluate", &params, limit).await;
        if let Err(CdpError::Timeout { .. }) = &reply {
            tab.interrupt().await;
        }
        let reply = reply?;
        let evaluated: Evaluated<'_> = reply.decode()?;
        let value = match (evaluated.result.value, evaluated.exception_details) {
            (Some(value), None) => value,
            (_, details) => {
                let detail = details.map_or_else(|| "no value".to_owned(), |d| d.to_string());
                return Err(OutputError::new(CaptureCode::BrowserRefused, detail));
            }
        };
        let value = serde_json::from_str(value.get())
            .map_err(|e| OutputError::new(CaptureCode::BrowserRefused, e.to_string()))?;
        Ok((value, reply.len()))
    }
}

/// Takes every output that needs the page.
pub(super) async fn take_all(tab: &Tab<'_>, taken: &mut Taken) {
    let navigations = tab.recorder().incidents.navigations;
    let want = tab.request.outputs;
    let facts = document(tab, taken).await;
    let stuck = matches!(&facts, Err(error) if error.code == CaptureCode::ExtractorTimeout && taken.world.is_none());
    let height = facts.as_ref().map_or(0, |facts| facts.height);
    spread(tab, taken, facts);
    if stuck {
        // The page does not react to anything: each further output would only use up its limit.
        let error = || OutputError::new(CaptureCode::ExtractorTimeout, "the page does not react");
        taken.screenshot = want.screenshot.then(|| Err(error()));
        taken.pdf = want.pdf.then(|| Err(error()));
        taken.mhtml = want.mhtml.then(|| Err(error()));
        taken.accessibility = want.accessibility.then(|| Err(error()));
        return;
    }
    if want.screenshot {
        taken.screenshot = Some(unblocked(tab, screenshot(tab, height).await).await);
    }
    if want.pdf {
        taken.pdf = Some(unblocked(tab, pdf(tab).await).await);
    }
    if want.mhtml {
        taken.mhtml = Some(unblocked(tab, mhtml(tab).await).await);
    }
    if want.accessibility {
        taken.accessibility = Some(accessibility(tab).await);
    }
    taken.moved = tab.recorder().incidents.navigations > navigations;
}

/// An output that came too late was most likely held up by a script: the next one shall not be.
async fn unblocked<T>(tab: &Tab<'_>, output: Result<T, OutputError>) -> Result<T, OutputError> {
    if let Err(OutputError { code: CaptureCode::ExtractorTimeout, .. }) = &output {
        tab.interrupt().await;
    }
    output
}

/// What `page.js` returns.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Facts {
    url: String,
    title: String,
    html: Option<String>,
    html_length: Option<u64>,
    links: Option<Vec<Outlink>>,
    #[serde(default)]
    links_truncated: bool,
    seo: Option<Value>,
    #[serde(default)]
    height: u32,
}

async fn document(tab: &Tab<'_>, taken: &mut Taken) -> Result<Facts, OutputError> {
    let request = tab.request;
    let argument = json!({
        "dom": request.outputs.dom,
        "outlinks": request.outputs.outlinks,
        "seo": request.outputs.seo,
        "maxHtml": request.max_output_bytes,
        "maxLinks": MAX_LINKS,
    });
    // A page that navigates takes its worlds with it: asked once more in a new one.
    for _ in 0..2 {
        let world = match taken.world.take() {
            Some(world) => Some(world),
            None => World::open(tab).await,
        };
        let Some(world) = world else { break };
        match world.evaluate(tab, PAGE, &argument, request.timeouts.dom).await {
            Err(error) if error.code == CaptureCode::BrowserRefused => tracing::debug!(%error, "document"),
            other => {
                taken.world = Some(world);
                return other.map(|(facts, _)| facts);
            }
        }
    }
    Err(OutputError::new(CaptureCode::ExtractorTimeout, "the page does not react"))
}

fn spread(tab: &Tab<'_>, taken: &mut Taken, facts: Result<Facts, OutputError>) {
    let want = tab.request.outputs;
    match facts {
        Ok(facts) => {
            taken.url = Some(facts.url);
            taken.title = Some(facts.title).filter(|title| !title.is_empty());
            taken.outlinks_truncated = facts.links_truncated;
            let too_large = facts.html_length.unwrap_or(0);
            taken.dom = want.dom.then(|| {
                facts
                    .html
                    .ok_or_else(|| OutputError::new(CaptureCode::OutputTooLarge, format!("{too_large} characters")))
            });
            taken.outlinks = want.outlinks.then(|| Ok(facts.links.unwrap_or_default()));
            taken.seo = want.seo.then(|| Ok(facts.seo.unwrap_or_default()));
        }
        Err(error) => {
            taken.dom = want.dom.then(|| Err(error.clone()));
            taken.outlinks = want.outlinks.then(|| Err(error.clone()));
            taken.seo = want.seo.then_some(Err(error));
        }
    }
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    data: Cow<'a, str>,
}

fn base64_data(tab: &Tab<'_>, reply: &Reply) -> Result<Bytes, OutputError> {
    let Data { data } = reply.decode()?;
    fits(tab, data.len() / 4 * 3)?;
    STANDARD
        .decode(data.as_bytes())
        .map(Bytes::from)
        .map_err(|e| OutputError::new(CaptureCode::BrowserRefused, e.to_string()))
}

fn fits(tab: &Tab<'_>, bytes: usize) -> Result<(), OutputError> {
    if bytes > tab.request.max_output_bytes {
        return Err(OutputError::new(CaptureCode::OutputTooLarge, format!("{bytes} bytes")));
    }
    Ok(())
}

async fn screenshot(tab: &Tab<'_>, height: u32) -> Result<Screenshot, OutputError> {
    let request = tab.request;
    let (width, window) = request.viewport.unwrap_or(tab.browser.window());
    let truncated = height > request.screenshot_max_height;
    let mut params = json!({
        "format": "png",
        "fromSurface": true,
        // Twice as fast for a fifth more bytes.
        "optimizeForSpeed": true,
        // A page no higher than the window needs no second layout.
        "captureBeyondViewport": height > window,
    });
    if let (true, Some(map)) = (truncated, params.as_object_mut()) {
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": request.screenshot_max_height, "scale": 1 });
        map.insert("clip".to_owned(), clip);
    }
    let reply = tab.session.call("Page.captureScreenshot", &params, request.timeouts.screenshot).await?;
    Ok(Screenshot { png: base64_data(tab, &reply)?, truncated })
}

async fn pdf(tab: &Tab<'_>) -> Result<Bytes, OutputError> {
    // A4, in inches.
    let params = json!({
        "printBackground": true,
        "preferCSSPageSize": true,
        "paperWidth": 8.27,
        "paperHeight": 11.69,
    });
    let reply = tab.session.call("Page.printToPDF", &params, tab.request.timeouts.pdf).await?;
    base64_data(tab, &reply)
}

async fn mhtml(tab: &Tab<'_>) -> Result<Bytes, OutputError> {
    let params = json!({ "format": "mhtml" });
    let reply = tab.session.call("Page.captureSnapshot", &params, tab.request.timeouts.mhtml).await?;
    let Data { data } = reply.decode()?;
    fits(tab, data.len())?;
    Ok(Bytes::from(data.into_owned()))
}

async fn accessibility(tab: &Tab<'_>) -> Result<Bytes, OutputError> {
    #[derive(Deserialize)]
    struct Tree<'a> {
        #[serde(borrow)]
        nodes: &'a RawValue,
    }
    let limit = tab.request.timeouts.accessibility;
    let reply = tab.session.call("Accessibility.getFullAXTree", &json!({}), limit).await?;
    let Tree { nodes } = reply.decode()?;
    fits(tab, nodes.get().len())?;
    Ok(Bytes::copy_from_slice(nodes.get().as_bytes()))
}

/// The certificate chain of every https origin spoken to.
pub(super) async fn certificates(tab: &Tab<'_>) -> Vec<TlsChain> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Certificates {
        table_names: Vec<String>,
    }
    let origins: Vec<_> = {
        let recorder = tab.recorder();
        recorder.security.iter().take(MAX_ORIGINS).map(|(o, d)| (o.clone(), d.clone())).collect()
    };
    let limit = tab.request.timeouts.certificates;
    let calls = origins.into_iter().map(|(origin, details)| async move {
        let params = json!({ "origin": origin });
        let reply = tab.session.call("Network.getCertificate", &params, limit).await.ok()?;
        let Certificates { table_names } = reply.decode().ok()?;
        let certificates: Vec<Bytes> =
            table_names.iter().filter_map(|der| STANDARD.decode(der).ok().map(Bytes::from)).collect();
        (!certificates.is_empty()).then(|| TlsChain {
            origin,
            certificates,
            protocol: details.as_ref().map(|d| d.protocol.clone()),
            cipher: details.map(|d| d.cipher),
        })
    });
    let mut chains: Vec<TlsChain> = join_all(calls).await.into_iter().flatten().collect();
    chains.sort_by(|a, b| a.origin.cmp(&b.origin));
    chains
}
