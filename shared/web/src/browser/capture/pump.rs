//! Takes events and does what they make necessary.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::event::Paused;
use super::model::MainDocument;
use super::recorder::Action;
use super::tab::{Tab, normal};
use crate::browser::cdp::{CdpError, Events, PendingCall, Reply, Session};
use crate::browser::code::CaptureCode;

type Bodies = FuturesUnordered<BoxFuture<'static, (usize, Result<Bytes, String>)>>;

/// Header fields that describe bytes other than those given to the browser.
const NOT_FULFILLED: &[&str] =
    &["connection", "content-encoding", "content-length", "keep-alive", "trailer", "transfer-encoding", "upgrade"];

/// Goes on until nothing more can come.
pub(super) async fn run(tab: &Tab<'_>, events: &mut Events) -> CaptureCode {
    let mut pump = Pump {
        tab,
        bodies: FuturesUnordered::new(),
        fulfilment: None,
        sessions: vec![tab.session.clone()],
        document_given: false,
    };
    let connection = tab.browser.connection().clone();
    let mut actions = Vec::new();
    let mut burst = 0_u32;
    loop {
        tokio::select! {
            () = connection.gone() => return CaptureCode::BrowserGone,
            () = tab.request.cancel.cancelled() => return CaptureCode::Cancelled,
            Some(event) = events.recv() => {
                let crashed = {
                    let mut recorder = tab.recorder();
                    recorder.take(&event, Instant::now(), &mut actions);
                    recorder.crashed
                };
                if crashed {
                    return CaptureCode::PageCrashed;
                }
                for action in actions.drain(..) {
                    pump.act(action, events);
                }
                tab.changed.notify_one();
                burst += 1;
                if burst >= MAX_BURST {
                    // A page that never stops telling things must not keep the script from its time
                    // limits: they share one task, and one budget.
                    burst = 0;
                    tokio::task::yield_now().await;
                }
            }
            Some((index, body)) = pump.bodies.next() => {
                tab.recorder().body(index, body);
                tab.changed.notify_one();
            }
            (paused, answer) = pending(&mut pump.fulfilment) => pump.given(&paused, answer),
        }
    }
}

/// Events taken in one go.
const MAX_BURST: u32 = 32;

/// The value of a future that may not be there; takes it away when it is ready.
async fn pending<T>(slot: &mut Option<BoxFuture<'static, T>>) -> T {
    match slot.as_mut() {
        Some(future) => {
            let value = future.await;
            *slot = None;
            value
        }
        None => std::future::pending().await,
    }
}

struct Pump<'a> {
    tab: &'a Tab<'a>,
    bodies: Bodies,
    /// The answer to giving the document to the browser.
    fulfilment: Option<BoxFuture<'static, (Paused, Result<Reply, CdpError>)>>,
    /// By event tag: the page first, then workers and frames of other processes.
    sessions: Vec<Session>,
    document_given: bool,
}

/// More workers than this are let go unrecorded; what they load still passes the guard.
const MAX_SESSIONS: usize = 64;

impl Pump<'_> {
    fn act(&mut self, action: Action, events: &Events) {
        match action {
            Action::FetchBody { tag, request_id, index } => {
                let session = self.sessions.get(tag as usize).unwrap_or(&self.tab.session);
                let call = session.send("Network.getResponseBody", &json!({ "requestId": request_id }));
                self.bodies.push(Box::pin(body(index, call)));
            }
            Action::Dialog { accept, insistent } => self.dialog(accept, insistent),
            Action::Attached { session_id } => self.attached(&session_id, events),
            Action::CloseTarget { target_id } => {
                let root = self.tab.browser.connection().root();
                drop(root.send("Target.closeTarget", &json!({ "targetId": target_id })));
            }
            Action::Paused(paused) => self.paused(&paused),
            Action::StopLoading => {
                for session in &self.sessions {
                    drop(session.send("Network.setBlockedURLs", &json!({ "urls": ["*"] })));
                }
                drop(self.tab.session.send("Page.stopLoading", &json!({})));
            }
            Action::StopScripts => {
                let session = &self.tab.session;
                drop(session.send("Emulation.setScriptExecutionDisabled", &json!({ "value": true })));
                drop(session.send("Page.stopLoading", &json!({})));
            }
            Action::StopConsole => {
                drop(self.tab.session.send("Runtime.disable", &json!({})));
                drop(self.tab.session.send("Log.disable", &json!({})));
            }
        }
    }

    fn dialog(&self, accept: bool, insistent: bool) {
        let session = &self.tab.session;
        if insistent {
            // The script waits inside the dialog: it is ended as soon as that returns.
            drop(session.send("Runtime.terminateExecution", &json!({})));
            self.tab.recorder().incidents.scripts_terminated = true;
        }
        drop(session.send("Page.handleJavaScriptDialog", &json!({ "accept": accept })));
    }

    fn attached(&mut self, session_id: &str, events: &Events) {
        let session = self.tab.browser.connection().session(session_id);
        if self.sessions.len() < MAX_SESSIONS
            && let Ok(tag) = u32::try_from(self.sessions.len())
        {
            session.route(events.sink(), tag);
            drop(session.send("Network.enable", &self.tab.network_enable()));
            let auto = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
            drop(session.send("Target.setAutoAttach", &auto));
            self.sessions.push(session.clone());
        }
        drop(session.send("Runtime.runIfWaitingForDebugger", &json!({})));
    }

    fn paused(&mut self, paused: &Paused) {
        let request = self.tab.request;
        if let Some(document) = &request.main_document
            && !self.document_given
            && paused.resource_type == "Document"
            && paused.frame_id == self.tab.frame
            && matches!(paused.request.method.as_str(), "" | "GET")
            && paused.request.url == normal(&document.final_url)
        {
            self.document_given = true;
            self.fulfil(paused, document);
            return;
        }
        self.let_go(paused);
    }

    /// Lets the request go on to the origin, with the fields added that are asked for.
    fn let_go(&self, paused: &Paused) {
        let request = self.tab.request;
        let mut params = json!({ "requestId": paused.request_id });
        if !request.extra_headers.is_empty()
            && let Some(map) = params.as_object_mut()
        {
            let ours = |name: &str| request.extra_headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
            let kept = paused.request.headers.0.iter().filter(|(name, _)| !ours(name));
            let headers: Vec<_> = kept
                .chain(&request.extra_headers)
                .map(|(name, value)| json!({ "name": name, "value": value }))
                .collect();
            map.insert("headers".to_owned(), headers.into());
        }
        drop(self.tab.session.send("Fetch.continueRequest", &params));
    }

    fn fulfil(&mut self, paused: &Paused, document: &MainDocument) {
        let headers: Vec<_> = document
            .headers
            .iter()
            .filter(|(name, _)| !NOT_FULFILLED.iter().any(|n| name.eq_ignore_ascii_case(n)))
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect();
        let params = json!({
            "requestId": paused.request_id,
            "responseCode": document.status,
            "responseHeaders": headers,
            "body": STANDARD.encode(&document.body),
        });
        let paused = paused.clone();
        let call = self.tab.session.send("Fetch.fulfillRequest", &params);
        self.fulfilment = Some(Box::pin(async move { (paused, call.await) }));
    }

    /// The browser took the document, or did not and asks the origin after all.
    fn given(&self, paused: &Paused, answer: Result<Reply, CdpError>) {
        match (answer, &self.tab.request.main_document) {
            (Ok(_), Some(document)) => self.tab.recorder().fulfilled(&paused.request.url, &document.body),
            (Err(error), _) => {
                tracing::warn!(%error, "the browser did not take the document");
                self.let_go(paused);
            }
            (Ok(_), None) => {}
        }
        if self.tab.request.extra_headers.is_empty() {
            // Nothing else is to be held; a second load of the same URL asks the origin.
            drop(self.tab.session.send("Fetch.disable", &json!({})));
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseBody<'a> {
    #[serde(borrow)]
    body: Cow<'a, str>,
    base64_encoded: bool,
}

async fn body(index: usize, call: PendingCall) -> (usize, Result<Bytes, String>) {
    let result = match call.await {
        Ok(reply) => decode(&reply),
        Err(CdpError::Refused { message, .. }) => Err(message),
        Err(error) => Err(error.to_string()),
    };
    (index, result)
}

fn decode(reply: &Reply) -> Result<Bytes, String> {
    let ResponseBody { body, base64_encoded } = reply.decode().map_err(|e| e.to_string())?;
    if base64_encoded {
        STANDARD.decode(body.as_bytes()).map(Bytes::from).map_err(|e| e.to_string())
    } else {
        Ok(Bytes::from(body.into_owned()))
    }
}
