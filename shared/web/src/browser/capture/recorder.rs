//! Turns protocol events into exchanges. No IO: what must be done is returned as [`Action`]s.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::console::Console;
use super::event::{
    Attached, DataReceived, Dialog, FrameNavigated, HeaderList, LoadingFailed, LoadingFinished, OfFrame, OfRequest,
    Paused, RequestExtra, RequestWillBeSent, ResponseData, ResponseExtra, ResponseReceived, SecurityDetails, WithUrl,
};
use super::exchange::{apply, apply_extra, egress_failure, has_body, post_data, without_proxy};
use super::model::{CaptureRequest, Incidents, Redirect, Resource};
use super::reencode::served_bytes;
use crate::browser::cdp::{CdpError, Event};

/// Marks a redirect that the browser made up.
const INTERNAL_REDIRECT: &str = "Non-Authoritative-Reason";

/// Something to be done because of an event.
#[derive(Debug)]
pub(super) enum Action {
    /// Ask for the body of a finished exchange.
    FetchBody { tag: u32, request_id: String, index: usize },
    /// Answer a dialog.
    Dialog { accept: bool, insistent: bool },
    /// A worker or frame waits to be let go.
    Attached { session_id: String },
    /// A window that must not be.
    CloseTarget { target_id: String },
    /// A request waits to be answered or let go.
    Paused(Paused),
    /// Load nothing more.
    StopLoading,
    /// Run no more scripts.
    StopScripts,
    /// Report no more console messages.
    StopConsole,
}

/// What the limits are.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub(super) bodies: bool,
    pub(super) body_bytes: u64,
    pub(super) total_bytes: u64,
    pub(super) requests: usize,
    pub(super) navigations: u32,
    pub(super) proxy: SocketAddr,
}

impl Limits {
    pub(super) fn of(request: &CaptureRequest) -> Self {
        Self {
            bodies: request.outputs.bodies,
            body_bytes: request.max_body_bytes,
            total_bytes: request.max_total_bytes,
            requests: request.max_requests,
            navigations: u32::try_from(request.max_navigations).unwrap_or(u32::MAX),
            proxy: request.egress.addr(),
        }
    }
}

/// One request id: the hops of a redirect share it.
#[derive(Debug, Default)]
struct Track {
    tag: u32,
    hops: Vec<Hop>,
    /// The network stack's own account of each hop; may come before or after the hop itself.
    sent: Vec<HeaderList>,
    received: Vec<ResponseExtra>,
    done: bool,
    counted: bool,
}

#[derive(Debug)]
struct Hop {
    index: usize,
    /// Whether the network stack tells of it: unknown until the response.
    has_extra: Option<bool>,
}

/// All that was seen so far.
#[derive(Debug)]
pub(super) struct Recorder {
    limits: Limits,
    main_frame: String,
    tracks: HashMap<String, Track>,
    pub(super) resources: Vec<Resource>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) console: Console,
    pub(super) incidents: Incidents,
    pub(super) security: HashMap<String, Option<SecurityDetails>>,
    pub(super) final_url: Option<String>,
    pub(super) loaded_at: Option<Instant>,
    pub(super) crashed: bool,
    pub(super) bodies_pending: usize,
    in_flight: usize,
    last_activity: Instant,
    received: u64,
    reserved: u64,
}

impl Recorder {
    pub(super) fn new(limits: Limits, main_frame: &str, now: Instant) -> Self {
        Self {
            limits,
            main_frame: main_frame.to_owned(),
            tracks: HashMap::new(),
            resources: Vec::new(),
            redirects: Vec::new(),
            console: Console::default(),
            incidents: Incidents::default(),
            security: HashMap::new(),
            final_url: None,
            loaded_at: None,
            crashed: false,
            bodies_pending: 0,
            in_flight: 0,
            last_activity: now,
            received: 0,
            reserved: 0,
        }
    }

    /// When the page counts as settled if nothing more happens: a quiet network, or one that stands
    /// still for longer although a request is open (a stream, a long poll).
    pub(super) fn settles_at(&self, idle: Duration) -> Option<Instant> {
        self.loaded_at?;
        let wait = if self.in_flight == 0 { idle } else { (idle * 4).max(Duration::from_secs(2)) };
        Some(self.last_activity + wait)
    }

    /// Takes an event; what it makes necessary is appended to `actions`.
    pub(super) fn take(&mut self, event: &Event, now: Instant, actions: &mut Vec<Action>) {
        if let Err(error) = self.dispatch(event, now, actions) {
            tracing::debug!(%error, "browser event not understood");
        }
    }

    fn dispatch(&mut self, event: &Event, now: Instant, actions: &mut Vec<Action>) -> Result<(), CdpError> {
        match event.method {
            "Network.dataReceived" => {
                let data: DataReceived<'_> = event.decode()?;
                self.data(&data, now, actions);
            }
            "Network.requestWillBeSent" => self.sent(event.decode()?, event.tag, now, actions),
            "Network.requestWillBeSentExtraInfo" => {
                let extra: RequestExtra = event.decode()?;
                self.tracks.entry(extra.request_id).or_default().sent.push(extra.headers);
            }
            "Network.responseReceived" => self.responded(event.decode()?, now),
            "Network.responseReceivedExtraInfo" => {
                let extra: ResponseExtra = event.decode()?;
                self.tracks.entry(extra.request_id.clone()).or_default().received.push(extra);
            }
            "Network.loadingFinished" => {
                let end: LoadingFinished = event.decode()?;
                self.finished(&end.request_id, bytes_of(end.encoded_data_length), now, actions);
            }
            "Network.loadingFailed" => self.failed(event.decode()?, now),
            "Network.requestServedFromCache" => {
                let of: OfRequest = event.decode()?;
                if let Some(resource) = self.current(&of.request_id) {
                    resource.from_cache = true;
                }
            }
            "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                if !self.console.take(event)? {
                    actions.push(Action::StopConsole);
                }
            }
            _ => self.page_event(event, now, actions)?,
        }
        Ok(())
    }

    fn page_event(&mut self, event: &Event, now: Instant, actions: &mut Vec<Action>) -> Result<(), CdpError> {
        match event.method {
            "Page.frameNavigated" => self.navigated(event.decode()?, now, actions),
            "Page.frameStoppedLoading" => {
                let of: OfFrame = event.decode()?;
                self.frame_stopped(&of.frame_id, now, actions);
            }
            "Page.loadEventFired" => {
                self.loaded_at.get_or_insert(now);
                self.last_activity = now;
            }
            "Page.javascriptDialogOpening" => {
                let dialog: Dialog = event.decode()?;
                self.dialog(dialog, actions);
            }
            "Page.windowOpen" => self.incidents.popups += 1,
            "Page.downloadWillBegin" => {
                let of: WithUrl = event.decode()?;
                push_some(&mut self.incidents.downloads, of.url);
            }
            "Network.webSocketCreated" => {
                let of: WithUrl = event.decode()?;
                push_some(&mut self.incidents.web_sockets, of.url);
            }
            "Target.attachedToTarget" => {
                let attached: Attached = event.decode()?;
                actions.push(if attached.target_info.kind == "page" {
                    Action::CloseTarget { target_id: attached.target_info.target_id }
                } else {
                    Action::Attached { session_id: attached.session_id }
                });
            }
            "Inspector.targetCrashed" => self.crashed |= event.tag == 0,
            "Fetch.requestPaused" => actions.push(Action::Paused(event.decode()?)),
            _ => {}
        }
        Ok(())
    }

    fn sent(&mut self, event: RequestWillBeSent, tag: u32, now: Instant, actions: &mut Vec<Action>) {
        // Nothing of these goes over a network, and a page can make any number of them.
        if !is_network(&event.request.url) {
            return;
        }
        self.last_activity = now;
        let previous = match event.redirect_response {
            Some(response) => self.redirected(&event.request_id, response, event.redirect_has_extra_info),
            None if self.tracks.get(&event.request_id).is_some_and(|t| !t.hops.is_empty()) => {
                // The same request, told by a second session (a worker's own script).
                return;
            }
            None => None,
        };
        if self.resources.len() >= self.limits.requests {
            if !self.incidents.too_many_requests {
                self.incidents.too_many_requests = true;
                actions.push(Action::StopLoading);
            }
            return;
        }
        let main_frame = event.kind == "Document" && event.frame_id.as_deref() == Some(self.main_frame.as_str());
        if let (true, Some(previous)) = (main_frame, previous.and_then(|i| self.resources.get(i))) {
            let (from, status) = (previous.url.clone(), previous.status);
            push_some(&mut self.redirects, Redirect { from, to: event.request.url.clone(), status });
        }
        let index = self.resources.len();
        let track = self.tracks.entry(event.request_id.clone()).or_default();
        track.tag = tag;
        track.hops.push(Hop { index, has_extra: None });
        if track.hops.len() == 1 && counts(&event.kind) {
            track.counted = true;
            self.in_flight += 1;
        }
        let post_data = post_data(&event.request);
        self.resources.push(Resource {
            request_id: event.request_id,
            url: event.request.url,
            method: event.request.method,
            resource_type: event.kind,
            frame_id: event.frame_id,
            main_frame,
            started_at: wall_time(event.wall_time),
            request_headers: event.request.headers.0,
            post_data,
            redirected_from: previous,
            ..Resource::default()
        });
    }

    /// Ends the current hop of a request with the response that redirects.
    fn redirected(&mut self, id: &str, response: ResponseData, has_extra: Option<bool>) -> Option<usize> {
        let hop = self.tracks.get_mut(id)?.hops.last_mut()?;
        hop.has_extra = has_extra;
        let internal = response.headers.0.iter().any(|(name, _)| name == INTERNAL_REDIRECT);
        let index = hop.index;
        let proxy = self.limits.proxy;
        let resource = self.resources.get_mut(index)?;
        resource.encoded_length = bytes_of(response.encoded_data_length);
        resource.finished = true;
        apply(resource, response, proxy);
        // The browser redirected itself (HSTS): no server said so.
        resource.from_cache |= internal;
        Some(index)
    }

    fn responded(&mut self, event: ResponseReceived, now: Instant) {
        self.last_activity = now;
        let Some(track) = self.tracks.get_mut(&event.request_id) else { return };
        let Some(hop) = track.hops.last_mut() else { return };
        hop.has_extra = event.has_extra_info;
        let index = hop.index;
        if let Some(origin) = https_origin(&event.response.url) {
            let details = event.response.security_details.clone();
            if self.security.len() < 64 {
                self.security.entry(origin).or_insert(details);
            }
        }
        let proxy = self.limits.proxy;
        if let Some(resource) = self.resources.get_mut(index) {
            apply(resource, event.response, proxy);
        }
    }

    fn data(&mut self, data: &DataReceived<'_>, now: Instant, actions: &mut Vec<Action>) {
        let Some(resource) = self.current(&data.request_id) else { return };
        let more = bytes_of(data.data_length);
        resource.decoded_length = resource.decoded_length.saturating_add(more);
        self.last_activity = now;
        self.received = self.received.saturating_add(more);
        if self.received > self.limits.total_bytes && !self.incidents.too_many_bytes {
            self.incidents.too_many_bytes = true;
            actions.push(Action::StopLoading);
        }
    }

    fn finished(&mut self, id: &str, encoded: u64, now: Instant, actions: &mut Vec<Action>) {
        let Some((tag, index)) = self.end(id, now) else { return };
        let limits = (self.limits.body_bytes, self.limits.total_bytes.saturating_sub(self.reserved));
        let held_before = self.resources.get(index).is_some_and(|r| r.from_cache && self.holds(&r.url));
        let Some(resource) = self.resources.get_mut(index) else { return };
        resource.encoded_length = encoded;
        if !self.limits.bodies || !has_body(resource) {
            return;
        }
        if held_before {
            resource.body_error = Some("FROM_CACHE".to_owned());
        } else if resource.decoded_length > limits.0 {
            resource.body_error = Some("BODY_TOO_LARGE".to_owned());
        } else if resource.decoded_length > limits.1 {
            resource.body_error = Some("SNAPSHOT_TOO_LARGE".to_owned());
        } else {
            self.reserved += resource.decoded_length;
            self.bodies_pending += 1;
            actions.push(Action::FetchBody { tag, request_id: id.to_owned(), index });
        }
    }

    fn holds(&self, url: &str) -> bool {
        self.resources.iter().any(|r| r.url == url && !r.from_cache && r.finished)
    }

    fn failed(&mut self, event: LoadingFailed, now: Instant) {
        let Some((_, index)) = self.end(&event.request_id, now) else { return };
        if let Some(resource) = self.resources.get_mut(index) {
            resource.failed = Some(match (event.blocked_reason, event.cors_error_status) {
                (Some(reason), _) => format!("blocked: {reason}"),
                (None, Some(cors)) => format!("CORS: {}", cors.cors_error),
                (None, None) => event.error_text,
            });
        }
    }

    /// Marks a request as ended, once.
    fn end(&mut self, id: &str, now: Instant) -> Option<(u32, usize)> {
        let track = self.tracks.get_mut(id)?;
        let index = track.hops.last()?.index;
        if track.done {
            return None;
        }
        track.done = true;
        if track.counted {
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        self.last_activity = now;
        if let Some(resource) = self.resources.get_mut(index) {
            resource.finished = true;
        }
        Some((track.tag, index))
    }

    /// A frame that stopped loading has its document: the browser does not always say so.
    fn frame_stopped(&mut self, frame: &str, now: Instant, actions: &mut Vec<Action>) {
        let ended: Vec<String> = self
            .tracks
            .iter()
            .filter(|(_, track)| !track.done)
            .filter(|(_, track)| {
                track.hops.last().and_then(|hop| self.resources.get(hop.index)).is_some_and(|r| {
                    r.resource_type == "Document" && r.frame_id.as_deref() == Some(frame) && r.status.is_some()
                })
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in ended {
            self.finished(&id, 0, now, actions);
        }
    }

    fn navigated(&mut self, event: FrameNavigated, now: Instant, actions: &mut Vec<Action>) {
        if event.frame.parent_id.is_some() {
            return;
        }
        self.last_activity = now;
        let url = event.frame.url + &event.frame.url_fragment;
        if url == "about:blank" && self.final_url.is_none() {
            return;
        }
        if let Some(from) = self.final_url.replace(url.clone()) {
            self.loaded_at = None;
            self.incidents.navigations += 1;
            push_some(&mut self.redirects, Redirect { from, to: url, status: None });
            if self.incidents.navigations > self.limits.navigations && !self.incidents.navigation_loop {
                self.incidents.navigation_loop = true;
                actions.push(Action::StopScripts);
            }
        }
    }

    fn dialog(&mut self, dialog: Dialog, actions: &mut Vec<Action>) {
        self.incidents.dialogs += 1;
        if self.incidents.dialogs <= 10 {
            let mut text = dialog.message;
            text.truncate(text.floor_char_boundary(500));
            self.incidents.dialog_texts.push(text);
        }
        actions.push(Action::Dialog { accept: dialog.kind == "beforeunload", insistent: self.incidents.dialogs > 5 });
    }

    /// The answer to [`Action::FetchBody`].
    pub(super) fn body(&mut self, index: usize, body: Result<Bytes, String>) {
        self.bodies_pending = self.bodies_pending.saturating_sub(1);
        let Some(resource) = self.resources.get_mut(index).filter(|r| !r.fulfilled) else { return };
        match body {
            Ok(bytes) if bytes.len() as u64 > self.limits.body_bytes => {
                resource.body_error = Some("BODY_TOO_LARGE".to_owned());
            }
            // A text that was decoded on the way. Its length gives it away; nothing is kept as served that
            // was not.
            Ok(bytes) if resource.decoded_length > 0 && resource.decoded_length != bytes.len() as u64 => {
                resource.body = served_bytes(&bytes, &resource.charset, resource.decoded_length);
                if resource.body.is_none() {
                    resource.body_error = Some("BODY_REENCODED".to_owned());
                }
            }
            Ok(bytes) => {
                resource.decoded_length = bytes.len() as u64;
                resource.body = Some(bytes);
            }
            Err(error) => resource.body_error = Some(error),
        }
    }

    /// Marks the request that was answered with bytes of our own.
    pub(super) fn fulfilled(&mut self, url: &str, body: &Bytes) {
        let main = self.resources.iter_mut().find(|r| r.main_frame && r.url == url);
        if let Some(resource) = main {
            resource.fulfilled = true;
            resource.body = Some(body.clone());
            resource.decoded_length = body.len() as u64;
        }
    }

    /// Gives every hop what the network stack told of it, and ends the recording.
    pub(super) fn close(&mut self) {
        for track in self.tracks.values_mut() {
            let mut sent = std::mem::take(&mut track.sent).into_iter();
            let mut received = std::mem::take(&mut track.received).into_iter();
            for hop in track.hops.iter().filter(|hop| hop.has_extra != Some(false)) {
                let Some(resource) = self.resources.get_mut(hop.index) else { continue };
                if let Some(headers) = sent.next() {
                    resource.request_headers = without_proxy(headers.0);
                    resource.request_headers_raw = true;
                }
                if let Some(extra) = received.next() {
                    apply_extra(resource, extra);
                }
            }
        }
        for resource in &mut self.resources {
            egress_failure(resource);
            if resource.finished
                && resource.body.is_none()
                && resource.body_error.is_none()
                && has_body(resource)
                && self.limits.bodies
            {
                resource.body_error = Some("BODY_NOT_RECEIVED".to_owned());
            }
        }
    }

    fn current(&mut self, id: &str) -> Option<&mut Resource> {
        let index = self.tracks.get(id)?.hops.last()?.index;
        self.resources.get_mut(index)
    }
}

/// Whether the page is not settled while such a request is open.
fn counts(kind: &str) -> bool {
    !matches!(kind, "EventSource" | "WebSocket" | "Ping" | "CSPViolationReport" | "Preflight")
}

fn is_network(url: &str) -> bool {
    url.starts_with("http:") || url.starts_with("https:")
}

fn https_origin(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    Some(format!("https://{host}"))
}

/// Lists a page can fill are kept short.
fn push_some<T>(list: &mut Vec<T>, item: T) {
    if list.len() < 100 {
        list.push(item);
    }
}

/// A count the protocol gives as a number of any kind.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float out of range saturates")]
fn bytes_of(number: f64) -> u64 {
    number.max(0.0) as u64
}

/// Seconds since the epoch.
#[expect(clippy::cast_possible_truncation, reason = "a float out of range saturates, and is then no date")]
fn wall_time(seconds: f64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros((seconds * 1e6) as i64).unwrap_or_default()
}
