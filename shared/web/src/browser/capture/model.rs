//! What is asked of a capture and what comes of it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::browser::code::{CaptureCode, OutputError};
use crate::proxy::{GuardProxy, RefusalRecord};

/// The way out of a tab.
#[derive(Clone)]
pub enum Egress {
    /// The guard, listening for this tab alone: what it refuses is this capture's.
    Guard(Arc<GuardProxy>),
    /// Some other HTTP proxy, for tests and measurements. Nothing guards what it connects to.
    Unguarded(SocketAddr),
}

impl Egress {
    /// Where the browser connects to.
    pub fn addr(&self) -> SocketAddr {
        match self {
            Self::Guard(proxy) => proxy.addr(),
            Self::Unguarded(addr) => *addr,
        }
    }
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Egress({})", self.addr())
    }
}

/// A document fetched before by the HTTP path. The browser is given these bytes instead of asking
/// the origin a second time.
#[derive(Debug, Clone)]
pub struct MainDocument {
    /// Where the redirects ended: what the browser navigates to.
    pub final_url: String,
    /// Status.
    pub status: u16,
    /// Header fields as received. Those about coding and length are left out by the capture.
    pub headers: Vec<(String, String)>,
    /// The body without its content coding.
    pub body: Bytes,
}

/// Which outputs are taken. Requests, redirects, timings and the title always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a set of independent choices")]
pub struct Outputs {
    /// Full-page PNG.
    pub screenshot: bool,
    /// PDF, A4.
    pub pdf: bool,
    /// The document as it stands, serialised, open shadow roots as templates.
    pub dom: bool,
    /// MHTML.
    pub mhtml: bool,
    /// The accessibility tree.
    pub accessibility: bool,
    /// Console messages and uncaught errors.
    pub console: bool,
    /// Bodies of the responses.
    pub bodies: bool,
    /// Links of the live document.
    pub outlinks: bool,
    /// Meta, Open Graph, JSON-LD.
    pub seo: bool,
    /// Certificate chains of the origins spoken to.
    pub certificates: bool,
}

impl Outputs {
    /// Every output.
    pub const ALL: Self = Self {
        screenshot: true,
        pdf: true,
        dom: true,
        mhtml: true,
        accessibility: true,
        console: true,
        bodies: true,
        outlinks: true,
        seo: true,
        certificates: true,
    };
    /// None but what is always taken.
    pub const NONE: Self = Self {
        screenshot: false,
        pdf: false,
        dom: false,
        mhtml: false,
        accessibility: false,
        console: false,
        bodies: false,
        outlinks: false,
        seo: false,
        certificates: false,
    };
}

/// Time limits of the outputs, each counted from when its own turn comes.
#[derive(Debug, Clone, Copy)]
pub struct OutputTimeouts {
    /// DOM, title, links and meta, taken together.
    pub dom: Duration,
    /// Screenshot.
    pub screenshot: Duration,
    /// PDF.
    pub pdf: Duration,
    /// MHTML.
    pub mhtml: Duration,
    /// Accessibility tree.
    pub accessibility: Duration,
    /// Bodies still on their way when everything else is done.
    pub bodies: Duration,
    /// Certificates.
    pub certificates: Duration,
}

impl Default for OutputTimeouts {
    fn default() -> Self {
        Self {
            dom: Duration::from_secs(15),
            screenshot: Duration::from_secs(20),
            pdf: Duration::from_secs(30),
            mhtml: Duration::from_secs(20),
            accessibility: Duration::from_secs(15),
            bodies: Duration::from_secs(10),
            certificates: Duration::from_secs(5),
        }
    }
}

/// A cookie set before the navigation.
#[derive(Debug, Clone, Serialize)]
pub struct Cookie {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// Domain; with a leading dot also its subdomains.
    pub domain: String,
    /// Path.
    pub path: String,
    /// Only over https.
    pub secure: bool,
    /// Hidden from scripts.
    #[serde(rename = "httpOnly")]
    pub http_only: bool,
}

/// What to capture and how.
#[derive(Debug, Clone)]
pub struct CaptureRequest {
    /// The page.
    pub url: String,
    /// Its document, when it was fetched already.
    pub main_document: Option<MainDocument>,
    /// The only way out.
    pub egress: Egress,
    /// What to take.
    pub outputs: Outputs,
    /// Window in CSS pixels, when other than the browser's.
    pub viewport: Option<(u32, u32)>,
    /// From the navigation to the end of waiting for load and idle, whatever the page does.
    pub load_timeout: Duration,
    /// How long the network must be quiet after the load event.
    pub idle: Duration,
    /// Scroll through once, so that late pictures load.
    pub scroll: bool,
    /// The most that scrolling may take.
    pub scroll_timeout: Duration,
    /// Hide consent banners.
    pub close_banners: bool,
    /// URLs the browser refuses to load; `*` stands for any text.
    pub block_urls: Vec<String>,
    /// Larger bodies are left out, bytes decoded.
    pub max_body_bytes: u64,
    /// All bodies together; loading is stopped when more has been received.
    pub max_total_bytes: u64,
    /// After so many requests loading is stopped.
    pub max_requests: usize,
    /// After so many navigations of the page by its own scripts they are stopped.
    pub max_navigations: usize,
    /// Larger documents, PDFs and so on fail with `OUTPUT_TOO_LARGE`, bytes.
    pub max_output_bytes: usize,
    /// The screenshot is cut at this height in CSS pixels.
    pub screenshot_max_height: u32,
    /// Time limits of the outputs.
    pub timeouts: OutputTimeouts,
    /// Header fields added to requests to the page's own origin, and to no other.
    pub extra_headers: Vec<(String, String)>,
    /// Cookies set before the navigation.
    pub cookies: Vec<Cookie>,
    /// Instead of the browser's.
    pub user_agent: Option<String>,
    /// Go on when a certificate is not valid.
    pub ignore_tls_errors: bool,
    /// Ends the capture early.
    pub cancel: CancellationToken,
}

impl CaptureRequest {
    /// A request with the usual limits and every output.
    pub fn new(url: impl Into<String>, egress: Egress) -> Self {
        Self {
            url: url.into(),
            main_document: None,
            egress,
            outputs: Outputs::ALL,
            viewport: None,
            load_timeout: Duration::from_secs(30),
            idle: Duration::from_millis(500),
            scroll: true,
            scroll_timeout: Duration::from_secs(8),
            close_banners: true,
            block_urls: Vec::new(),
            max_body_bytes: 32 * 1024 * 1024,
            max_total_bytes: 128 * 1024 * 1024,
            max_requests: 3000,
            max_navigations: 20,
            max_output_bytes: 64 * 1024 * 1024,
            screenshot_max_height: 16_384,
            timeouts: OutputTimeouts::default(),
            extra_headers: Vec::new(),
            cookies: Vec::new(),
            user_agent: None,
            ignore_tls_errors: false,
            cancel: CancellationToken::new(),
        }
    }

    /// What the browser navigates to.
    pub fn target(&self) -> &str {
        self.main_document.as_ref().map_or(&self.url, |doc| &doc.final_url)
    }
}

/// One exchange: every hop of a redirect is one of its own.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about an exchange")]
pub struct Resource {
    /// The browser's id of the request; hops of one redirect share it.
    pub request_id: String,
    /// URL without fragment.
    pub url: String,
    /// Method.
    pub method: String,
    /// `Document`, `Stylesheet`, `Image`, `Script`, `Fetch` and so on, as the browser calls them.
    pub resource_type: String,
    /// The frame that asked, when it was one.
    pub frame_id: Option<String>,
    /// Whether it is a document of the page's main frame.
    pub main_frame: bool,
    /// When the request was made.
    pub started_at: DateTime<Utc>,
    /// Header fields as sent where the browser tells (cookies included), else as intended.
    pub request_headers: Vec<(String, String)>,
    /// Whether [`Self::request_headers`] are what went over the wire.
    pub request_headers_raw: bool,
    /// The request's body.
    pub post_data: Option<Bytes>,
    /// Status; none when no response came.
    pub status: Option<u16>,
    /// Reason phrase; empty in HTTP/2.
    pub status_text: String,
    /// Header fields as received: in order and with duplicates when the browser had the raw text
    /// (HTTP/1.1), else sorted by name with duplicates apart.
    pub response_headers: Vec<(String, String)>,
    /// The raw head, status line first, when the browser had it (HTTP/1.1).
    pub response_head: Option<String>,
    /// `http/1.1`, `h2` and so on.
    pub protocol: Option<String>,
    /// Address of the server; none when only the proxy's is known.
    pub remote_ip: Option<IpAddr>,
    /// Media type as the browser took it.
    pub mime: String,
    /// Charset as the browser took it; empty when it is no text.
    pub charset: String,
    /// Bytes of the body without its content coding, exactly as served.
    pub body: Option<Bytes>,
    /// Why there is no body.
    pub body_error: Option<String>,
    /// Bytes of the body without its content coding, as counted by the browser.
    pub decoded_length: u64,
    /// Bytes over the wire, head included.
    pub encoded_length: u64,
    /// From a cache of the browser: nothing went over the wire.
    pub from_cache: bool,
    /// Answered by a service worker (they are bypassed, so this should not be).
    pub from_service_worker: bool,
    /// Answered with [`MainDocument`]: the exchange itself was recorded by the HTTP path.
    pub fulfilled: bool,
    /// Why the request failed: a network error or the reason it was blocked.
    pub failed: Option<String>,
    /// Index of the hop that redirected here.
    pub redirected_from: Option<usize>,
    /// Whether the exchange ended, one way or the other, before the capture did.
    pub finished: bool,
}

/// A step from one address of the page to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// From.
    pub from: String,
    /// To.
    pub to: String,
    /// The redirecting status; none when a script or meta refresh did it.
    pub status: Option<u16>,
}

/// A console message, an uncaught error, or an entry of the browser's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsoleEntry {
    /// `console`, `exception` or `log`.
    pub source: &'static str,
    /// `log`, `warning`, `error` and so on.
    pub level: String,
    /// The text, at most 4 KiB.
    pub text: String,
    /// Where, when known.
    pub url: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// When.
    pub at: DateTime<Utc>,
}

/// A link of the live document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Outlink {
    /// Absolute URL of any scheme.
    pub url: String,
    /// Its text, at most 300 characters.
    pub text: String,
    /// Its `rel`.
    pub rel: String,
}

/// A certificate chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsChain {
    /// `https://host[:port]`.
    pub origin: String,
    /// DER, the server's own first.
    pub certificates: Vec<Bytes>,
    /// Protocol and cipher, such as `TLS 1.3` and `AES_128_GCM`.
    pub protocol: Option<String>,
    /// Cipher.
    pub cipher: Option<String>,
}

/// A screenshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    /// PNG.
    pub png: Bytes,
    /// Whether the page is higher than the limit.
    pub truncated: bool,
}

/// Milliseconds each part took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Timings {
    /// Opening the context and the page.
    pub open_ms: u64,
    /// From the navigation to the load event.
    pub load_ms: Option<u64>,
    /// From the navigation to load and a quiet network, or to the limit.
    pub settle_ms: u64,
    /// Banners and scrolling.
    pub behave_ms: u64,
    /// All outputs.
    pub outputs_ms: u64,
    /// Everything.
    pub total_ms: u64,
}

/// What had to be stopped, and other facts worth a warning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a capture")]
pub struct Incidents {
    /// Dialogs opened by scripts and dismissed at once.
    pub dialogs: u32,
    /// Text of the first few dialogs.
    pub dialog_texts: Vec<String>,
    /// Windows the page wanted to open.
    pub popups: u32,
    /// Downloads refused.
    pub downloads: Vec<String>,
    /// Web sockets opened.
    pub web_sockets: Vec<String>,
    /// Navigations of the page by itself.
    pub navigations: u32,
    /// They were too many and scripts were switched off.
    pub navigation_loop: bool,
    /// Scripts never yielded and were terminated.
    pub scripts_terminated: bool,
    /// Requests were too many; the rest was not loaded.
    pub too_many_requests: bool,
    /// Bodies were too large together; the rest was not loaded.
    pub too_many_bytes: bool,
    /// Console messages were too many; the rest was dropped.
    pub console_truncated: bool,
    /// Links were too many; the rest was dropped.
    pub outlinks_truncated: bool,
    /// The browser told more than could be kept up with; exchanges may be missing.
    pub events_dropped: bool,
    /// Scrolling ended at its limit.
    pub scroll_capped: bool,
    /// Banners hidden.
    pub banners: u32,
    /// The page went elsewhere while outputs were taken: they may show different documents.
    pub moved_during_outputs: bool,
}

/// An output: not asked for, there, or missing with the reason.
pub type Output<T> = Option<Result<T, OutputError>>;

/// All that came of one load.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Where the page ended.
    pub final_url: String,
    /// Its title.
    pub title: Option<String>,
    /// Why the document did not load: a network error such as `net::ERR_CONNECTION_REFUSED`.
    pub navigation_error: Option<String>,
    /// The navigation was a download: the document is not one a browser shows.
    pub is_download: bool,
    /// Why the capture ended early; what was there until then is kept.
    pub aborted: Option<CaptureCode>,
    /// The load event came.
    pub loaded: bool,
    /// The network became quiet before the limit.
    pub idle_reached: bool,
    /// How the page got from its first address to its last.
    pub redirects: Vec<Redirect>,
    /// Every exchange, in the order of the requests.
    pub resources: Vec<Resource>,
    /// Console.
    pub console: Vec<ConsoleEntry>,
    /// Screenshot.
    pub screenshot: Output<Screenshot>,
    /// PDF.
    pub pdf: Output<Bytes>,
    /// Serialised document.
    pub dom: Output<String>,
    /// MHTML.
    pub mhtml: Output<Bytes>,
    /// The `nodes` of the accessibility tree, JSON.
    pub accessibility: Output<Bytes>,
    /// Links.
    pub outlinks: Output<Vec<Outlink>>,
    /// Meta, Open Graph, JSON-LD.
    pub seo: Output<Value>,
    /// Certificate chains; origins whose chain the browser no longer had are left out.
    pub certificates: Output<Vec<TlsChain>>,
    /// Times.
    pub timings: Timings,
    /// What the guard refused this capture.
    pub refusals: Vec<RefusalRecord>,
    /// What had to be stopped.
    pub incidents: Incidents,
    /// Whether the browser's sandbox was on.
    pub sandbox: bool,
}
