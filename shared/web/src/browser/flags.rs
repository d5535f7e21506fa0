//! The command line and where the binary is.

use std::path::{Path, PathBuf};

use super::BrowserError;
use super::config::BrowserConfig;

/// Looked for in this order. The Debian wrapper script in `/usr/bin` is not used: it stays as a shell
/// between us and the browser.
const BINARIES: &[&str] = &[
    "/usr/lib/chromium/chromium-headless-shell",
    "/opt/chromium/chromium-headless-shell",
    "/opt/chromium/chrome-headless-shell",
    "/usr/bin/chromium-headless-shell",
    "/usr/lib/chromium/chromium",
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/opt/google/chrome/chrome",
    "/usr/bin/google-chrome",
    "/usr/bin/google-chrome-stable",
];

/// The configured binary, else `FONDS_CHROMIUM`, else the first that exists.
pub(super) fn find_binary(config: &BrowserConfig) -> Result<PathBuf, BrowserError> {
    let named = config.binary.clone().or_else(|| std::env::var_os("FONDS_CHROMIUM").map(PathBuf::from));
    if let Some(path) = named {
        return if path.is_file() { Ok(path) } else { Err(BrowserError::Missing(path.display().to_string())) };
    }
    BINARIES
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
        .ok_or_else(|| BrowserError::Missing(BINARIES.join(", ")))
}

/// Whether this is the small headless build, which knows no other mode.
pub(super) fn is_headless_shell(binary: &Path) -> bool {
    binary.file_name().is_some_and(|name| name.to_string_lossy().contains("headless-shell"))
}

/// Parts of Chromium that talk to servers nobody asked about, change what is loaded, or cost memory.
const DISABLED_FEATURES: &[&str] = &[
    // One renderer a page: its frames share it. Captures are apart by their browser contexts, and
    // one process less a frame is both cheaper and one event stream less.
    "IsolateOrigins",
    "site-per-process",
    // Would ask for another URL than the one that is archived.
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    // Would keep, or load, pages nobody looks at.
    "BackForwardCache",
    "Prerender2",
    "SpareRendererForSitePerProcess",
    // Services of the vendor.
    "AutofillServerCommunication",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "InterestFeedContentSuggestions",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "Translate",
];

const FIXED: &[&str] = &[
    "--remote-debugging-pipe",
    "--disable-site-isolation-trials",
    // No way out but the proxy of the tab: names are never resolved by the browser (addresses
    // written as numbers neither, which is why the proxy's own has to be excepted), QUIC and WebRTC
    // would be UDP past it, and loopback is not exempt. The proxy named here leads nowhere; every
    // capture's context names its own.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--disable-quic",
    // The headless build knows the first, the full one the second.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
    // Nothing of its own accord.
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-service-autorun",
    "--password-store=basic",
    "--use-mock-keychain",
    // A tab that is not in front works like one that is.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    // What is seen.
    "--block-new-web-contents",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--mute-audio",
    "--disable-gpu",
];

/// Below this the shared memory file system is too small for four tabs.
const MIN_SHM: u64 = 512 * 1024 * 1024;

/// Everything after the binary's name.
pub(super) fn arguments(config: &BrowserConfig, binary: &Path, profile: &Path, sandbox: bool) -> Vec<String> {
    let mut args: Vec<String> = FIXED.iter().map(|flag| (*flag).to_owned()).collect();
    args.push(format!("--disable-features={}", DISABLED_FEATURES.join(",")));
    args.push(format!("--user-data-dir={}", profile.display()));
    args.push(format!("--window-size={},{}", config.window.0, config.window.1));
    args.push(format!("--lang={}", config.lang));
    args.push(format!("--accept-lang={}", config.lang));
    if let Some(agent) = &config.user_agent {
        args.push(format!("--user-agent={agent}"));
    }
    if !is_headless_shell(binary) {
        args.push("--headless=new".to_owned());
    }
    if !sandbox {
        args.push("--no-sandbox".to_owned());
    }
    if small_shm() {
        args.push("--disable-dev-shm-usage".to_owned());
    }
    args.extend(config.extra_args.iter().cloned());
    args
}

fn small_shm() -> bool {
    rustix::fs::statvfs("/dev/shm").map_or(true, |fs| fs.f_bavail.saturating_mul(fs.f_frsize) < MIN_SHM)
}
