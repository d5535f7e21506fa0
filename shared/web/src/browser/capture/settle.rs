//! Waiting for the page, and what is done to it before the outputs.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::outputs::{Taken, World};
use super::tab::Tab;

const BEHAVE: &str = include_str!("js/behave.js");
/// From the load event, the longest wait for a network that never becomes quiet.
const MAX_AFTER_LOAD: Duration = Duration::from_secs(10);
/// The same after scrolling.
const MAX_AFTER_SCROLL: Duration = Duration::from_secs(5);
/// Between two steps of scrolling: time for a frame and for the requests it makes.
const SCROLL_STEP: Duration = Duration::from_millis(60);

/// Consent banners of the widespread kinds.
const BANNERS: &[&str] = &[
    "#onetrust-consent-sdk",
    "#CybotCookiebotDialog",
    "#CybotCookiebotDialogBodyUnderlay",
    ".fc-consent-root",
    "#didomi-host",
    "#qc-cmp2-container",
    ".qc-cmp2-container",
    "[id^=\"sp_message_container\"]",
    "#usercentrics-root",
    "#usercentrics-cmp-ui",
    "#truste-consent-track",
    ".truste_overlay",
    ".truste_box_overlay",
    "#cookie-law-info-bar",
    ".cc-window.cc-banner",
    "#cookiescript_injected",
    ".osano-cm-window",
    "#iubenda-cs-banner",
    ".cky-consent-container",
    ".cky-overlay",
    "#tarteaucitronRoot",
    "#axeptio_overlay",
    "#consent_blackbar",
    "#hs-eu-cookie-confirmation",
    ".evidon-banner",
    "#klaro",
    "#BorlabsCookieBox",
    "#cmpbox",
    "#cmpbox2",
    "#ppms_cm_popup_overlay",
    "#cmplz-cookiebanner-container",
    ".moove-gdpr-info-bar-container",
    "#gdpr-cookie-message",
    "#cookie-notice",
    "amp-consent",
    "#shopify-pc__banner",
    ".termly-styles-root",
    "#transcend-consent-manager",
    "#ketch-consent-overlay",
];

/// What the behaviours did.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct Behaviour {
    #[serde(default)]
    pub(super) banners: u32,
    #[serde(default)]
    pub(super) capped: bool,
}

impl Tab<'_> {
    /// Waits for the load event and a quiet network; false when a limit came first.
    pub(super) async fn settle(&self, started: Instant) -> bool {
        self.quiet(started + self.request.load_timeout, MAX_AFTER_LOAD).await
    }

    async fn quiet(&self, hard: Instant, after_load: Duration) -> bool {
        loop {
            let (settles, loaded) = {
                let recorder = self.recorder();
                if recorder.incidents.navigation_loop {
                    return false;
                }
                (recorder.settles_at(self.request.idle), recorder.loaded_at)
            };
            let now = Instant::now();
            if settles.is_some_and(|at| at <= now) {
                return true;
            }
            let limit = loaded.map_or(hard, |at| hard.min(at + after_load));
            if limit <= now {
                return false;
            }
            let wake = settles.map_or(limit, |at| limit.min(at));
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Hides banners, scrolls, and waits for what that loads.
    pub(super) async fn behave(&self, taken: &mut Taken) {
        let request = self.request;
        if !request.scroll && !request.close_banners {
            return;
        }
        let want = json!({
            "closeBanners": request.close_banners,
            "selectors": BANNERS,
            "scroll": request.scroll,
            "scrollMs": u64::try_from(request.scroll_timeout.as_millis()).unwrap_or(u64::MAX),
            "stepMs": u64::try_from(SCROLL_STEP.as_millis()).unwrap_or(u64::MAX),
            "maxHeight": request.screenshot_max_height.max(1) * 2,
        });
        let Some(world) = World::open(self).await else { return };
        let limit = request.scroll_timeout + Duration::from_secs(3);
        let before = self.recorder().resources.len();
        match world.evaluate::<Behaviour>(self, BEHAVE, &want, limit).await {
            Ok((behaviour, _)) => taken.behaviour = behaviour,
            Err(error) => tracing::debug!(%error, "behaviours ended early"),
        }
        taken.world = Some(world);
        // Scrolling that asked for nothing needs no wait.
        if self.recorder().resources.len() > before {
            let now = Instant::now();
            taken.idle_reached &= self.quiet(now + MAX_AFTER_SCROLL, MAX_AFTER_SCROLL).await;
        }
    }

    /// Waits for bodies still on their way, within their limit.
    pub(super) async fn bodies_done(&self) {
        let limit = Instant::now() + self.request.timeouts.bodies;
        while self.recorder().bodies_pending > 0 && Instant::now() < limit {
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(limit) => {}
            }
        }
    }
}
