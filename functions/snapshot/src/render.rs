//! The `render` stage: one load in the browser, every output from it.

use crate::fetch::look_at_dom;
use crate::page::{Content, DOCUMENT_MAX, Render, Rendered};
use fonds_domain::{CrawlConfig, ErrorCode, Extractor};
use fonds_store::crawls::Crawl;
use fonds_task::{Cx, Signal};
use fonds_web::browser::{BrowserHandle, CaptureRequest, Egress, MainDocument, Outputs};
use fonds_web::fetch::FetchResult;
use fonds_web::guard::Guard;
use fonds_web::proxy::{GuardProxy, ProxyConfig};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;

/// How often a running capture asks whether its crawl still wants it.
const SIGNAL_EVERY: Duration = Duration::from_secs(3);
/// Kept of the slice for deriving and storing.
const STORE_RESERVE: Duration = Duration::from_secs(45);

/// What the browser is for.
pub(crate) struct Renderer {
    /// The warm browser.
    pub(crate) browser: BrowserHandle,
    /// What may be connected to.
    pub(crate) guard: Guard,
}

impl Renderer {
    /// Loads the page that was fetched and takes every wanted output of it.
    pub(crate) async fn render(
        &self,
        cx: &Cx,
        crawl: &Crawl,
        url: &Url,
        fetched: &FetchResult,
        content: &Content,
    ) -> Render {
        if !content.is_html {
            return Render::None;
        }
        let (Some(hop), Some(body)) = (fetched.answer(), &content.decoded) else {
            let (code, why) = content.problem.clone().unwrap_or((ErrorCode::PAGE_TOO_LARGE, String::new()));
            return Render::Failed(code, why);
        };
        let byte_cap = Some(crawl.limits.snapshot_max_size.unwrap_or(crawl.config.body_max));
        let proxy =
            match GuardProxy::start(self.guard.clone(), ProxyConfig { byte_cap, ..ProxyConfig::default() }).await {
                Ok(proxy) => Arc::new(proxy),
                Err(e) => return Render::Failed(ErrorCode::INTERNAL, format!("the guard proxy: {e}")),
            };
        let mut request = request(&crawl.config, url, Egress::Guard(proxy));
        // The fragment is not part of the exchange, but scripts of single-page sites look at it.
        let mut target = hop.url.clone();
        target.set_fragment(url.fragment());
        request.main_document = Some(MainDocument {
            final_url: target.to_string(),
            status: hop.status.as_u16(),
            headers: hop
                .headers
                .iter()
                .map(|(n, v)| (n.to_string(), String::from_utf8_lossy(v.as_bytes()).into_owned()))
                .collect(),
            body: body.clone(),
        });
        let left = cx.budget.remaining().saturating_sub(STORE_RESERVE).max(Duration::from_secs(10));
        request.load_timeout = request.load_timeout.min(left / 2);
        let cancel = request.cancel.clone();
        let watch = watch(cx, cancel);
        let capture = tokio::time::timeout(left, self.browser.capture(request));
        let outcome = tokio::select! {
            outcome = capture => outcome,
            never = watch => match never {},
        };
        match outcome {
            Ok(Ok(capture)) => {
                let facts =
                    capture.dom.as_ref().and_then(|d| d.as_ref().ok()).filter(|d| d.len() as u64 <= DOCUMENT_MAX);
                let facts = facts.map(|dom| {
                    let base = Url::parse(&capture.final_url).unwrap_or_else(|_| hop.url.clone());
                    look_at_dom(dom, &base, 1 << 20)
                });
                Render::Done(Rendered { capture, facts })
            }
            Ok(Err(e)) => Render::Failed(ErrorCode::named(e.code()), e.to_string()),
            Err(_) => Render::Failed(ErrorCode::EXTRACTOR_TIMEOUT, "the slice left no more time".to_owned()),
        }
    }
}

/// A pause or cancel is seen within the load, not only after it.
async fn watch(cx: &Cx, cancel: CancellationToken) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(SIGNAL_EVERY).await;
        if matches!(cx.signal().await, Ok(Signal::Cancel | Signal::Lost)) {
            cancel.cancel();
        }
    }
}

fn request(config: &CrawlConfig, url: &Url, egress: Egress) -> CaptureRequest {
    let wants = |name: &str| config.wants(name);
    let timeout = |name: &str| Extractor::named(name).map_or(Duration::from_secs(60), |x| config.timeout_of(x));
    let mut request = CaptureRequest::new(url.as_str(), egress);
    request.outputs = Outputs {
        screenshot: wants("screenshot"),
        pdf: wants("pdf"),
        // Text, links and the single file are made from the document after scripts ran.
        dom: true,
        mhtml: wants("mhtml"),
        accessibility: wants("accessibility"),
        console: wants("consolelog"),
        bodies: wants("warc") || wants("singlefile") || wants("wacz"),
        outlinks: true,
        seo: false,
        certificates: false,
    };
    request.timeouts.screenshot = timeout("screenshot");
    request.timeouts.pdf = timeout("pdf");
    request.timeouts.dom = timeout("dom");
    request.timeouts.mhtml = timeout("mhtml");
    request.timeouts.accessibility = timeout("accessibility");
    request.load_timeout = config.timeout_s.map_or(Duration::from_secs(30), |s| Duration::from_secs(u64::from(s)));
    request.scroll = config.scroll;
    request.close_banners = config.close_banners;
    request.block_urls.clone_from(&config.block);
    request.user_agent.clone_from(&config.user_agent);
    request
}
