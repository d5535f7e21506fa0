//! A context, its one page, and their end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::event::METHODS;
use super::model::{CaptureRequest, Timings};
use super::recorder::{Limits, Recorder};
use crate::browser::cdp::{CdpError, Connection, Events, PendingCall, Session};
use crate::browser::code::BrowserError;
use crate::browser::launch::Browser;

/// Commands that need no page.
const PROMPT: Duration = Duration::from_secs(10);
/// Events that may wait unread, bytes.
const MAX_QUEUED: usize = 64 * 1024 * 1024;

/// One capture's page.
pub(super) struct Tab<'a> {
    pub(super) browser: &'a Browser,
    pub(super) request: &'a CaptureRequest,
    pub(super) session: Session,
    /// The target's id is its main frame's id.
    pub(super) frame: String,
    pub(super) changed: Notify,
    pub(super) timings: Timings,
    recorder: Mutex<Recorder>,
    context: Context,
}

/// Why a navigation gave no page.
#[derive(Debug)]
pub(super) struct NavigationFailure {
    /// The browser's text for it.
    pub(super) error: String,
    /// The answer was one to keep as a file.
    pub(super) is_download: bool,
}

impl NavigationFailure {
    fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), is_download: false }
    }
}

/// A browser context, disposed of when dropped.
struct Context {
    connection: Connection,
    id: String,
    disposed: bool,
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.disposed {
            // Nobody waits for the answer; the command is on its way all the same.
            drop(self.dispose());
        }
    }
}

impl Context {
    fn dispose(&mut self) -> PendingCall {
        self.disposed = true;
        let id = &self.id;
        self.connection.root().send("Target.disposeBrowserContext", &json!({ "browserContextId": id }))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewContext {
    browser_context_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewTarget {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSession {
    session_id: String,
}

impl<'a> Tab<'a> {
    /// Opens an empty page in a new context, ready to navigate.
    pub(super) async fn open(
        browser: &'a Browser,
        request: &'a CaptureRequest,
    ) -> Result<(Self, Events), BrowserError> {
        let root = browser.connection().root();
        let created: NewContext = root
            .call(
                "Target.createBrowserContext",
                &json!({
                    "disposeOnDetach": true,
                    "proxyServer": format!("http://{}", request.egress.addr()),
                    "proxyBypassList": "<-loopback>",
                }),
                PROMPT,
            )
            .await?
            .decode()?;
        let context =
            Context { connection: browser.connection().clone(), id: created.browser_context_id, disposed: false };
        let id = &context.id;
        let downloads =
            root.send("Browser.setDownloadBehavior", &json!({ "behavior": "deny", "browserContextId": id }));
        let cookies = (!request.cookies.is_empty())
            .then(|| root.send("Storage.setCookies", &json!({ "browserContextId": id, "cookies": request.cookies })));
        let mut target = json!({ "url": "about:blank", "browserContextId": id });
        if let (Some((width, height)), true, Some(target)) =
            (request.viewport, browser.has_bare_windows(), target.as_object_mut())
        {
            target.insert("width".to_owned(), width.into());
            target.insert("height".to_owned(), height.into());
        }
        let target: NewTarget = root.call("Target.createTarget", &target, PROMPT).await?.decode()?;
        downloads.within(PROMPT).await?;
        if let Some(cookies) = cookies {
            cookies.within(PROMPT).await?;
        }
        let attach = json!({ "targetId": target.target_id, "flatten": true });
        let attached: NewSession = root.call("Target.attachToTarget", &attach, PROMPT).await?.decode()?;
        let session = browser.connection().session(&attached.session_id);
        let events = session.subscribe(METHODS, MAX_QUEUED);
        let tab = Self {
            browser,
            request,
            recorder: Mutex::new(Recorder::new(Limits::of(request), &target.target_id, Instant::now())),
            session,
            frame: target.target_id,
            changed: Notify::new(),
            timings: Timings::default(),
            context,
        };
        tab.prepare().await?;
        Ok((tab, events))
    }

    /// Everything that must be in force before the first request. The answers are awaited: a
    /// navigation sent right behind the commands loses the end of its own document.
    async fn prepare(&self) -> Result<(), CdpError> {
        let request = self.request;
        let mut commands: Vec<(&'static str, Value)> = vec![
            ("Network.enable", self.network_enable()),
            ("Network.setBypassServiceWorker", json!({ "bypass": true })),
            ("Page.enable", json!({})),
            ("Inspector.enable", json!({})),
            ("Target.setAutoAttach", json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true })),
        ];
        if !self.browser.has_bare_windows() {
            let (width, height) = request.viewport.unwrap_or(self.browser.window());
            let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
            commands.push(("Emulation.setDeviceMetricsOverride", size));
        }
        if request.outputs.console {
            commands.push(("Runtime.enable", json!({})));
            commands.push(("Log.enable", json!({})));
        }
        if !request.block_urls.is_empty() {
            commands.push(("Network.setBlockedURLs", json!({ "urls": request.block_urls })));
        }
        if let Some(agent) = &request.user_agent {
            commands.push(("Emulation.setUserAgentOverride", json!({ "userAgent": agent })));
        }
        if request.ignore_tls_errors {
            commands.push(("Security.setIgnoreCertificateErrors", json!({ "ignore": true })));
        }
        if let Some(patterns) = self.intercepted() {
            commands.push(("Fetch.enable", json!({ "patterns": patterns })));
        }
        let calls = commands.iter().map(|(method, params)| self.session.send(method, params).within(PROMPT));
        try_join_all(calls).await.map(drop)
    }

    /// Parameters of `Network.enable`, for the page and its workers.
    pub(super) fn network_enable(&self) -> Value {
        let request = self.request;
        let mut params = json!({ "maxPostDataSize": 1024 * 1024 });
        if let (true, Some(map)) = (request.outputs.bodies, params.as_object_mut()) {
            map.insert("enableDurableMessages".to_owned(), true.into());
            map.insert("maxTotalBufferSize".to_owned(), request.max_total_bytes.into());
            map.insert("maxResourceBufferSize".to_owned(), request.max_body_bytes.into());
        }
        params
    }

    /// What the Fetch domain holds for us: as little as possible, since every match waits.
    fn intercepted(&self) -> Option<Value> {
        let request = self.request;
        let mut patterns = Vec::new();
        if !request.extra_headers.is_empty()
            && let Ok(url) = url::Url::parse(request.target())
        {
            let origin = url.origin().ascii_serialization();
            patterns.push(json!({ "urlPattern": format!("{}/*", literal(&origin)), "requestStage": "Request" }));
        } else if request.main_document.is_some() {
            patterns.push(json!({
                "urlPattern": literal(&normal(request.target())),
                "resourceType": "Document",
                "requestStage": "Request",
            }));
        }
        (!patterns.is_empty()).then(|| patterns.into())
    }

    /// Navigates.
    pub(super) async fn navigate(&self) -> Result<(), NavigationFailure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Navigated {
            error_text: Option<String>,
            #[serde(default)]
            is_download: bool,
        }
        let params = json!({ "url": self.request.target() });
        let reply = self.session.call("Page.navigate", &params, self.request.load_timeout).await;
        match reply.and_then(|reply| reply.decode::<Navigated>()) {
            Ok(Navigated { error_text: Some(error), is_download }) if !error.is_empty() => {
                Err(NavigationFailure { error, is_download })
            }
            Ok(_) => Ok(()),
            Err(CdpError::Timeout { .. }) => Err(NavigationFailure::new("net::ERR_TIMED_OUT")),
            Err(error) => Err(NavigationFailure::new(error.to_string())),
        }
    }

    /// The page's scripts do not yield: ends what runs, and from the second time on also what would
    /// run next.
    pub(super) async fn interrupt(&self) {
        let repeated = {
            let mut recorder = self.recorder();
            std::mem::replace(&mut recorder.incidents.scripts_terminated, true)
        };
        let end = || drop(self.session.send("Runtime.terminateExecution", &json!({})));
        if !repeated {
            return end();
        }
        let mut off = self.session.send("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
        // The page's timers and this command wait in the same queue: whichever of them comes first.
        for _ in 0..10 {
            end();
            if tokio::time::timeout(Duration::from_millis(200), &mut off).await.is_ok() {
                return;
            }
        }
    }

    /// What was recorded so far. Never held across an await.
    pub(super) fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the page and its context. A browser that cannot do that in time is not used again.
    pub(super) async fn dispose(&mut self) {
        self.session.unroute();
        let call = self.context.dispose();
        if let Err(CdpError::Timeout { .. }) = call.within(Duration::from_secs(3)).await {
            tracing::warn!("a browser context could not be closed; renewing the browser");
            self.browser.mark_unhealthy();
        }
    }

    pub(super) fn into_recorder(self) -> Recorder {
        self.recorder.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A URL as the network knows it: in the browser's spelling, without its fragment.
pub(super) fn normal(text: &str) -> String {
    match url::Url::parse(text) {
        Ok(mut url) => {
            url.set_fragment(None);
            url.into()
        }
        Err(_) => text.to_owned(),
    }
}

/// A URL as a pattern that matches it alone.
pub(super) fn literal(url: &str) -> String {
    let mut pattern = String::with_capacity(url.len() + 8);
    for c in url.chars() {
        if matches!(c, '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
