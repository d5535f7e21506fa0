//! A warm browser shared by several tabs, renewed when it must be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedRwLockReadGuard, RwLock, Semaphore};

use super::capture::{Capture, CaptureRequest};
use super::config::BrowserConfig;
use super::launch::{Browser, BrowserInfo};
use super::{BrowserError, Usage};

/// A browser that is always there: started at the first capture, shared by
/// [`BrowserConfig::tabs`] captures at a time, and replaced when it died, when it has served
/// [`BrowserConfig::max_captures`], or when it holds more than [`BrowserConfig::max_memory`]. A
/// replacement waits for the captures that run (each is bounded), so that there is never a second
/// browser in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct BrowserHandle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: BrowserConfig,
    tabs: Semaphore,
    slot: Arc<RwLock<Slot>>,
    launched: AtomicU32,
}

#[derive(Debug, Default)]
struct Slot {
    browser: Option<Browser>,
    captures: AtomicU32,
}

impl Slot {
    fn usable(&self, config: &BrowserConfig) -> Option<&Browser> {
        let browser = self.browser.as_ref()?;
        let fresh = self.captures.load(Ordering::Relaxed) < config.max_captures.max(1);
        (fresh && browser.is_alive()).then_some(browser)
    }
}

/// Looking through `/proc` costs a millisecond or two: not for every capture.
const MEMORY_CHECK_EVERY: u32 = 8;

impl BrowserHandle {
    /// Nothing is started yet.
    pub fn new(config: BrowserConfig) -> Self {
        Self(Arc::new(Shared {
            tabs: Semaphore::new(config.tabs.max(1)),
            slot: Arc::default(),
            launched: AtomicU32::new(0),
            config,
        }))
    }

    /// Starts the browser if none runs, and says what runs.
    pub async fn warm(&self) -> Result<BrowserInfo, BrowserError> {
        let slot = self.0.usable().await?;
        slot.browser.as_ref().map(|b| b.info().clone()).ok_or(BrowserError::Gone)
    }

    /// Captures a page in a tab of its own, as soon as one is free. See [`Browser::capture`].
    pub async fn capture(&self, request: CaptureRequest) -> Result<Capture, BrowserError> {
        let cancelled = request.cancel.clone();
        let ready = async {
            let permit = self.0.tabs.acquire().await.map_err(|_| BrowserError::Gone)?;
            Ok::<_, BrowserError>((permit, self.0.usable().await?))
        };
        let (permit, slot) = tokio::select! {
            ready = ready => ready?,
            () = cancelled.cancelled() => return Err(BrowserError::Cancelled),
        };
        let browser = slot.browser.as_ref().ok_or(BrowserError::Gone)?;
        let served = slot.captures.fetch_add(1, Ordering::Relaxed);
        let result = Box::pin(browser.capture(request)).await;
        if served % MEMORY_CHECK_EVERY == MEMORY_CHECK_EVERY - 1 {
            self.0.check_memory(browser).await;
        }
        drop(permit);
        result
    }

    /// What the browser uses now; nothing when none runs.
    pub async fn usage(&self) -> Usage {
        let slot = self.0.slot.read().await;
        slot.browser.as_ref().map(Browser::usage).unwrap_or_default()
    }

    /// How often a browser was started.
    pub fn launches(&self) -> u32 {
        self.0.launched.load(Ordering::Relaxed)
    }

    /// Ends the browser once the captures that run are done; the next capture starts another.
    pub async fn close(&self) {
        let mut slot = self.0.slot.write().await;
        if let Some(browser) = slot.browser.take() {
            browser.close().await;
        }
    }
}

impl Shared {
    async fn usable(&self) -> Result<OwnedRwLockReadGuard<Slot>, BrowserError> {
        loop {
            let slot = Arc::clone(&self.slot).read_owned().await;
            if slot.usable(&self.config).is_some() {
                return Ok(slot);
            }
            drop(slot);
            let mut slot = self.slot.write().await;
            if slot.usable(&self.config).is_some() {
                continue;
            }
            if let Some(old) = slot.browser.take() {
                old.close().await;
            }
            slot.browser = Some(Browser::launch(&self.config).await?);
            slot.captures = AtomicU32::new(0);
            self.launched.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn check_memory(&self, browser: &Browser) {
        let Some(limit) = self.config.max_memory else {
            return;
        };
        let pid = browser.info().pid;
        let look = tokio::task::spawn_blocking(move || super::process::usage(pid));
        if let Ok(Ok(usage)) = tokio::time::timeout(Duration::from_secs(5), look).await
            && usage.memory > limit
        {
            tracing::info!(bytes = usage.memory, limit, "the browser holds too much memory; renewing it");
            browser.mark_unhealthy();
        }
    }
}
