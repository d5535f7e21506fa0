//! Pages that do not want to be captured. Each ends in time, says what it did, and leaves a browser
//! that works.

use tokio::time::Instant;

use super::*;
use crate::browser::CaptureCode;
use crate::testing::{Message, Reply};

const SHORT: Duration = Duration::from_secs(3);

/// Captures `page` with a short load limit and checks that the next page still works.
async fn capture_of(browser: &Browser, page: &str, outputs: Outputs) -> (Capture, Duration) {
    let origin = serve(
        OriginConfig::new()
            .route("/p", Reply::html(page.to_owned()))
            .route("/ok", Reply::html("<title>ok</title>fine"))
            .handle("/again", |_| Reply::html("<title>again</title>")),
    )
    .await;
    let mut hostile = request(origin.url("/p"), outputs).await;
    hostile.load_timeout = SHORT;
    let started = Instant::now();
    let capture = browser.capture(hostile).await.unwrap();
    let took = started.elapsed();
    let next = browser.capture(request(origin.url("/ok"), DOM).await).await.unwrap();
    assert_eq!(next.title.as_deref(), Some("ok"), "{next:?}");
    (capture, took)
}

const TAKEN: Outputs = Outputs { dom: true, screenshot: true, pdf: true, bodies: true, ..Outputs::NONE };

fn all_taken(capture: &Capture) -> bool {
    matches!((&capture.dom, &capture.screenshot, &capture.pdf), (Some(Ok(_)), Some(Ok(_)), Some(Ok(_))))
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_never_yield() {
    let Some(browser) = browser().await else { return };
    for page in [
        "<!doctype html><title>spin</title><p>before</p><script>while (true) {}</script>",
        "<!doctype html><title>spin</title><p>before</p><script>setTimeout(() => { while (true) {} }, 30)</script>",
        "<!doctype html><title>spin</title><p>before</p><script>setInterval(() => { const t = Date.now(); while (Date.now() - t < 60000) {} }, 1)</script>",
    ] {
        let (capture, took) = capture_of(&browser, page, TAKEN).await;
        assert!(dom(&capture).contains("before"), "{page}");
        assert!(capture.incidents.scripts_terminated, "{page}");
        assert!(took < Duration::from_secs(40), "{took:?} for {page}");
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_without_end() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>d</title><p>before</p><script>while (true) alert('hello')</script>";
    let (capture, took) = capture_of(&browser, page, TAKEN).await;
    assert!(capture.incidents.dialogs >= 5, "{:?}", capture.incidents);
    assert_eq!(capture.incidents.dialog_texts[0], "hello");
    assert!(all_taken(&capture), "{capture:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    let page = "<!doctype html><title>d</title><script>onbeforeunload = (e) => { e.preventDefault(); return 'stay' };
        document.title = confirm('sure?') + ' ' + prompt('who?')</script>";
    let (capture, _) = capture_of(&browser, page, TAKEN).await;
    assert_eq!(capture.title.as_deref(), Some("false null"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_without_end() {
    let Some(browser) = browser().await else { return };
    let page =
        "<!doctype html><title>w</title><script>setInterval(() => window.open('/again?' + Math.random()), 2)</script>";
    let before = pages(&browser).await;
    let (capture, _) = capture_of(&browser, page, TAKEN).await;
    assert!(capture.incidents.popups > 10, "{:?}", capture.incidents);
    assert!(all_taken(&capture));
    assert_eq!(pages(&browser).await, before, "windows were left");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn navigations_without_end() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>n</title><p>here</p><script>location = '/p?' + Math.random()</script>";
    let (capture, took) = capture_of(&browser, page, TAKEN).await;
    assert!(capture.incidents.navigation_loop, "{:?}", capture.incidents);
    assert!(dom(&capture).contains("here"));
    assert!(took < Duration::from_secs(20), "{took:?}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_end() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>r</title><script>
        const go = () => fetch('/again?' + Math.random()).then(go, () => {}); for (let i = 0; i < 8; i++) go()</script>";
    let origin =
        serve(OriginConfig::new().route("/p", Reply::html(page)).handle("/again", |_| Reply::html("more"))).await;
    let mut endless = request(origin.url("/p"), TAKEN).await;
    endless.max_requests = 200;
    let capture = browser.capture(endless).await.unwrap();
    assert!(capture.incidents.too_many_requests);
    assert_eq!(capture.resources.len(), 200);
    assert!(all_taken(&capture));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_answers_without_end() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>s</title><p>shown</p><img src=/faults/silent><script>fetch('/faults/endless').then((r) => r.text())</script>";
    let origin = serve(OriginConfig::new().route("/p", Reply::html(page))).await;
    let mut endless = request(origin.url("/p"), TAKEN).await;
    endless.load_timeout = SHORT;
    endless.max_total_bytes = 20 * 1024 * 1024;
    let started = Instant::now();
    let capture = browser.capture(endless).await.unwrap();
    assert!(dom(&capture).contains("shown"));
    assert!(all_taken(&capture));
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_without_end() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>big</title><body><script>
        for (let i = 0; i < 300; i++) { const d = document.createElement('div'); d.textContent = 'x'.repeat(100000); document.body.append(d) }</script>";
    let origin = serve(OriginConfig::new().route("/p", Reply::html(page))).await;
    let mut big =
        request(origin.url("/p"), Outputs { dom: true, screenshot: true, outlinks: true, ..Outputs::NONE }).await;
    big.max_output_bytes = 10 * 1024 * 1024;
    big.screenshot_max_height = 1200;
    let capture = browser.capture(big).await.unwrap();
    assert_eq!(capture.dom.unwrap().unwrap_err().code, CaptureCode::OutputTooLarge);
    assert_eq!(capture.outlinks.unwrap().unwrap(), []);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_high_page_is_cut() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>high</title><div style='height:5000px'>x</div>";
    let origin = serve(OriginConfig::new().route("/p", Reply::html(page))).await;
    let mut high = request(origin.url("/p"), Outputs { screenshot: true, ..Outputs::NONE }).await;
    high.screenshot_max_height = 2000;
    let shot = browser.capture(high).await.unwrap().screenshot.unwrap().unwrap();
    assert!(shot.truncated);
    assert_eq!(u32::from_be_bytes(shot.png[20..24].try_into().unwrap()), 2000);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_page() {
    let Some(browser) = browser().await else { return };
    let attachment = Message::new(200, "text/html", "<p>x").with("Content-Disposition", "attachment; filename=x.html");
    let origin = serve(
        OriginConfig::new()
            .route("/file", attachment)
            .route("/none", Message::new(204, "text/html", ""))
            .route("/404", Message::new(404, "text/html", "<title>not here</title>")),
    )
    .await;
    let outputs = Outputs { dom: true, bodies: true, ..Outputs::NONE };
    let file = browser.capture(request(origin.url("/file"), outputs).await).await.unwrap();
    assert!(file.is_download);
    assert_eq!(file.navigation_error.as_deref(), Some("net::ERR_ABORTED"));
    assert_eq!(file.dom.unwrap().unwrap_err().code, CaptureCode::NavigationFailed);
    assert_eq!(file.incidents.downloads, [origin.url("/file").to_string()]);
    let none = browser.capture(request(origin.url("/none"), outputs).await).await.unwrap();
    assert!(none.navigation_error.is_some() && !none.is_download);
    let missing = browser.capture(request(origin.url("/404"), outputs).await).await.unwrap();
    assert_eq!((missing.title.as_deref(), missing.navigation_error), (Some("not here"), None));
    assert_eq!(missing.resources[0].status, Some(404));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_crashes_or_closes_itself() {
    let Some(browser) = browser().await else { return };
    let outputs = Outputs { dom: true, screenshot: true, ..Outputs::NONE };
    let origin = serve(OriginConfig::new().route("/c", Reply::html("<title>c</title><img src=/faults/silent>"))).await;
    let crash = request(origin.url("/c"), outputs).await;
    let (crashed, ()) = tokio::join!(browser.capture(crash), async {
        while origin.hits("/faults/silent") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        kill_renderers(browser.info().pid);
    });
    let crashed = crashed.unwrap();
    assert_eq!(crashed.aborted, Some(CaptureCode::PageCrashed), "{crashed:?}");
    assert_eq!(crashed.dom.unwrap().unwrap_err().code, CaptureCode::PageCrashed);
    let page = "<!doctype html><title>c</title><script>window.close()</script>";
    let (_, took) = capture_of(&browser, page, outputs).await;
    assert!(took < Duration::from_secs(30));
    browser.close().await;
}

/// What an exhausted memory does.
fn kill_renderers(group: i32) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let text = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let stat = text("stat");
        let in_group = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(2)?.parse().ok());
        if in_group == Some(group) && text("cmdline").contains("--type=renderer") {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Pages that are open, a full browser's own included.
async fn pages(browser: &Browser) -> Option<usize> {
    let root = browser.connection().root();
    let reply = root.call("Target.getTargets", &serde_json::json!({}), SHORT).await.unwrap();
    let targets: serde_json::Value = reply.decode().unwrap();
    targets["targetInfos"].as_array().map(|all| all.iter().filter(|t| t["type"] == "page").count())
}
