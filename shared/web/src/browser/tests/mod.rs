//! Against a real Chromium (`FONDS_CHROMIUM` names another one). Without one they say so and pass,
//! except where `CI=true`.

mod bytes;
mod hostile;
mod lifecycle;
mod outputs;
mod wall;

use std::sync::Arc;
use std::time::Duration;

use super::{Browser, BrowserConfig, BrowserError, Capture, CaptureRequest, Egress, Outputs, Resource};
use crate::guard::{Guard, GuardConfig};
use crate::proxy::{GuardProxy, ProxyConfig};
use crate::testing::{Origin, OriginConfig};

/// A browser of its own for a test, none where none is installed.
async fn browser() -> Option<Browser> {
    match Browser::launch(&config()).await {
        Ok(browser) => Some(browser),
        Err(error @ BrowserError::Missing(_)) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{error}");
            eprintln!("not tested: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn config() -> BrowserConfig {
    BrowserConfig {
        // Compilers next door make everything slow.
        launch_timeout: Duration::from_secs(60),
        ..BrowserConfig::default()
    }
}

async fn guard_proxy(config: GuardConfig) -> Arc<GuardProxy> {
    Arc::new(GuardProxy::start(Guard::new(config), ProxyConfig::default()).await.unwrap())
}

/// A way out to loopback.
async fn open_egress() -> Egress {
    Egress::Guard(guard_proxy(GuardConfig { allow_private: true, ..GuardConfig::default() }).await)
}

/// A request without the waits a reader would notice, for what the test is about.
async fn request(url: impl Into<String>, outputs: Outputs) -> CaptureRequest {
    CaptureRequest { outputs, idle: Duration::from_millis(250), ..CaptureRequest::new(url, open_egress().await) }
}

const DOM: Outputs = Outputs { dom: true, bodies: true, ..Outputs::NONE };

async fn serve(config: OriginConfig) -> Origin {
    Origin::start(config).await.unwrap()
}

fn resource<'a>(capture: &'a Capture, end: &str) -> &'a Resource {
    capture
        .resources
        .iter()
        .find(|r| r.url.ends_with(end))
        .unwrap_or_else(|| panic!("{end} is not among {:#?}", urls(capture)))
}

fn urls(capture: &Capture) -> Vec<&str> {
    capture.resources.iter().map(|r| r.url.as_str()).collect()
}

fn dom(capture: &Capture) -> &str {
    capture.dom.as_ref().unwrap().as_ref().unwrap()
}
