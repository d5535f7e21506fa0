//! The least a program can do to get the same outputs over the same protocol: what a capture is
//! measured against. It has no limits, no recovery and no record; it is no way to capture a page.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::cdp::{CdpError, Session};
use super::launch::Browser;

const LIMIT: Duration = Duration::from_secs(30);
const METHODS: &[&str] =
    &["Network.requestWillBeSent", "Network.loadingFinished", "Network.loadingFailed", "Page.loadEventFired"];

/// What one load gave, bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct BareLoad {
    /// Requests made.
    pub requests: usize,
    /// All bodies together.
    pub bodies: usize,
    /// Screenshot.
    pub png: usize,
    /// PDF.
    pub pdf: usize,
    /// Serialised document.
    pub html: usize,
    /// MHTML.
    pub mhtml: usize,
    /// Nodes of the accessibility tree.
    pub nodes: usize,
}

/// What is asked of the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The cheaper settings a capture uses; without it every command has the protocol's defaults.
    pub tuned: bool,
    /// MHTML and the accessibility tree as well.
    pub every_output: bool,
}

/// Loads a page in a new context, waits for the load event and the end of every request, and takes all
/// bodies, a full-page PNG, a PDF and the DOM, and what else is asked for.
pub async fn load(browser: &Browser, url: &str, proxy: SocketAddr, ask: Ask) -> Result<BareLoad, CdpError> {
    let tuned = ask.tuned;
    let root = browser.connection().root();
    let context = json!({ "proxyServer": format!("http://{proxy}"), "proxyBypassList": "<-loopback>" });
    let context = text(&root, "Target.createBrowserContext", &context, "browserContextId").await?;
    let target = json!({ "url": "about:blank", "browserContextId": context });
    let target = text(&root, "Target.createTarget", &target, "targetId").await?;
    let attach = json!({ "targetId": target, "flatten": true });
    let session = text(&root, "Target.attachToTarget", &attach, "sessionId").await?;
    let session = browser.connection().session(&session);
    let mut events = session.subscribe(METHODS, usize::MAX);
    let network = if tuned {
        json!({ "enableDurableMessages": true, "maxTotalBufferSize": 100 << 20 })
    } else {
        json!({ "maxTotalBufferSize": 100 << 20 })
    };
    session.call("Network.enable", &network, LIMIT).await?;
    session.call("Page.enable", &json!({}), LIMIT).await?;
    session.call("Page.navigate", &json!({ "url": url }), LIMIT).await?;

    let mut out = BareLoad::default();
    let mut open = HashSet::new();
    let mut bodies = Vec::new();
    let mut loaded = false;
    while !(loaded && open.is_empty()) {
        let Ok(Some(event)) = tokio::time::timeout(LIMIT, events.recv()).await else {
            return Err(CdpError::Timeout { method: "load", limit: LIMIT });
        };
        let params: Value = event.decode()?;
        let id = params["requestId"].as_str().unwrap_or_default().to_owned();
        match event.method {
            "Network.requestWillBeSent" => {
                out.requests += 1;
                open.insert(id);
            }
            "Network.loadingFinished" => {
                bodies.push(session.send("Network.getResponseBody", &json!({ "requestId": id })));
                open.remove(&id);
            }
            "Network.loadingFailed" => {
                open.remove(&id);
            }
            _ => loaded = true,
        }
    }
    for body in join_all(bodies).await {
        let body: Value = body?.decode()?;
        let text = body["body"].as_str().unwrap_or_default();
        out.bodies += if body["base64Encoded"] == true { decoded(text) } else { text.len() };
    }
    let html = json!({ "expression": "document.documentElement.outerHTML", "returnByValue": true });
    let html: Value = session.call("Runtime.evaluate", &html, LIMIT).await?.decode()?;
    out.html = html["result"]["value"].as_str().unwrap_or_default().len();
    let shot = json!({ "format": "png", "captureBeyondViewport": true, "optimizeForSpeed": tuned });
    out.png = decoded(&text(&session, "Page.captureScreenshot", &shot, "data").await?);
    let pdf = json!({ "printBackground": true, "preferCSSPageSize": true, "paperWidth": 8.27, "paperHeight": 11.69 });
    out.pdf = decoded(&text(&session, "Page.printToPDF", &pdf, "data").await?);
    if ask.every_output {
        out.mhtml = text(&session, "Page.captureSnapshot", &json!({ "format": "mhtml" }), "data").await?.len();
        let tree: Value = session.call("Accessibility.getFullAXTree", &json!({}), LIMIT).await?.decode()?;
        out.nodes = tree["nodes"].as_array().map_or(0, Vec::len);
    }
    session.unroute();
    root.call("Target.disposeBrowserContext", &json!({ "browserContextId": context }), LIMIT).await?;
    Ok(out)
}

async fn text(session: &Session, method: &'static str, params: &Value, field: &str) -> Result<String, CdpError> {
    let mut reply: Value = session.call(method, params, LIMIT).await?.decode()?;
    match reply.get_mut(field).map(Value::take) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(CdpError::Malformed { method, detail: format!("no {field}") }),
    }
}

fn decoded(text: &str) -> usize {
    STANDARD.decode(text).map_or(0, |bytes| bytes.len())
}
