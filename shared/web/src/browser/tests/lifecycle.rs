//! Processes: none lost, none left.

use std::path::Path;

use tokio::time::Instant;

use super::*;
use crate::browser::{BrowserHandle, CaptureCode};
use crate::testing::Reply;

fn kill9(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Waits until no process of the group is left.
async fn group_ends(pid: i32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if rustix::process::test_kill_process_group(pid).is_err() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// A handle whose profiles are below a folder of the test's own.
fn handle(change: impl FnOnce(&mut BrowserConfig)) -> (BrowserHandle, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), None, None).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let mut config = BrowserConfig { user_data_root: folder.path().to_owned(), ..config() };
    change(&mut config);
    (BrowserHandle::new(config), folder)
}

async fn present() -> bool {
    match browser().await {
        Some(browser) => {
            browser.close().await;
            true
        }
        None => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_browser_fails_its_capture_and_the_next_one_has_another() {
    if !present().await {
        return;
    }
    let (handle, folder) = handle(|_| {});
    let origin = serve(
        OriginConfig::new()
            .route("/slow", Reply::html("<title>s</title>first<img src=/faults/silent>"))
            .route("/ok", Reply::html("<title>ok</title>")),
    )
    .await;
    let info = handle.warm().await.unwrap();
    let mut slow = request(origin.url("/slow"), DOM).await;
    slow.load_timeout = Duration::from_secs(60);
    let running = tokio::spawn({
        let handle = handle.clone();
        async move { handle.capture(slow).await }
    });
    while origin.hits("/faults/silent") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let killed = Instant::now();
    kill9(info.pid);
    let capture = running.await.unwrap().unwrap();
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
    assert_eq!(capture.aborted, Some(CaptureCode::BrowserGone));
    assert_eq!(capture.dom.unwrap().unwrap_err().code, CaptureCode::BrowserGone);
    assert_eq!(capture.resources[0].status, Some(200), "what was there is kept");
    assert!(group_ends(info.pid).await);

    let next = handle.capture(request(origin.url("/ok"), DOM).await).await.unwrap();
    assert_eq!(next.title.as_deref(), Some("ok"));
    assert_eq!(handle.launches(), 2);
    let second = handle.warm().await.unwrap();
    handle.close().await;
    assert!(group_ends(second.pid).await);
    assert_eq!(entries(folder.path()), 0, "a profile was left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_renewed_after_its_captures_and_when_it_is_too_large() {
    if !present().await {
        return;
    }
    let (twice, folder) = handle(|config| config.max_captures = 2);
    let origin = serve(OriginConfig::new().route("/ok", Reply::html("<title>ok</title>"))).await;
    let mut requests = Vec::new();
    for _ in 0..5 {
        requests.push(request(origin.url("/ok"), DOM).await);
    }
    // Four tabs at once; whoever comes too late for a browser waits for the next.
    let done = futures_util::future::join_all(requests.into_iter().map(|r| twice.capture(r))).await;
    for capture in done {
        assert_eq!(capture.unwrap().title.as_deref(), Some("ok"));
    }
    assert!((2..=3).contains(&twice.launches()), "{}", twice.launches());
    assert_eq!(entries(folder.path()), 1);
    twice.close().await;
    assert_eq!(entries(folder.path()), 0);

    let (small, _folder) = handle(|config| config.max_memory = Some(1));
    for _ in 0..9 {
        small.capture(request(origin.url("/ok"), Outputs::NONE).await).await.unwrap();
    }
    assert_eq!(small.launches(), 2);
    small.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_everything_leaves_nothing() {
    if !present().await {
        return;
    }
    let (handle, folder) = handle(|_| {});
    let info = handle.warm().await.unwrap();
    assert!(handle.usage().await.processes >= 3);
    let origin = serve(OriginConfig::new().route("/p", Reply::html("<title>p</title><img src=/faults/silent>"))).await;
    // A capture that is dropped half way.
    let half = request(origin.url("/p"), DOM).await;
    let dropped = tokio::time::timeout(Duration::from_secs(2), handle.capture(half)).await;
    assert!(dropped.is_err());
    let targets = async {
        let slot = handle.capture(request(origin.url("/faults/status/200"), Outputs::NONE).await).await;
        slot.is_ok()
    };
    assert!(targets.await, "the browser is still good");
    drop(handle);
    assert!(group_ends(info.pid).await);
    let end = Instant::now() + Duration::from_secs(5);
    while entries(folder.path()) > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn a_runtime_that_goes_away_takes_the_browser_with_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(browser) = runtime.block_on(browser()) else { return };
    let pid = browser.info().pid;
    drop(runtime);
    let again = tokio::runtime::Runtime::new().unwrap();
    assert!(again.block_on(group_ends(pid)));
    drop(browser);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_ends_the_browser() {
    let Some(browser) = browser().await else { return };
    let pid = browser.info().pid;
    // What happens to the pipe when this process is killed; nothing is sent and nobody is signalled.
    browser.connection().close();
    assert!(group_ends(pid).await);
    assert!(!browser.is_alive());
    let refused = browser.capture(request("http://127.0.0.1:1/", Outputs::NONE).await).await;
    assert_eq!(refused.unwrap_err().code(), "BROWSER_GONE");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_ends_a_capture_at_once() {
    let Some(browser) = browser().await else { return };
    let origin = serve(OriginConfig::new().route("/p", Reply::html("<title>p</title><img src=/faults/silent>"))).await;
    let slow = request(origin.url("/p"), DOM).await;
    let cancel = slow.cancel.clone();
    let capture = browser.capture(slow);
    let (capture, at) = tokio::join!(capture, async {
        while origin.hits("/faults/silent") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
        Instant::now()
    });
    assert!(at.elapsed() < Duration::from_secs(5));
    assert_eq!(capture.unwrap().aborted, Some(CaptureCode::Cancelled));
    browser.close().await;
}

#[tokio::test]
async fn a_missing_binary_is_told() {
    let config = BrowserConfig { binary: Some("/nowhere/chromium".into()), ..BrowserConfig::default() };
    let error = Browser::launch(&config).await.unwrap_err();
    assert_eq!((error.code(), error.is_permanent()), ("TOOL_MISSING", true));
    let config = BrowserConfig { binary: Some("/bin/false".into()), ..BrowserConfig::default() };
    let error = Browser::launch(&config).await.unwrap_err();
    assert_eq!(error.code(), "BROWSER_LAUNCH_FAILED");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_user_namespaces_the_sandbox_is_off_and_that_is_told() {
    let Some(real) = browser().await else { return };
    assert!(real.info().sandbox, "the sandbox is on where it can be");
    // A browser that does what Chromium does on a machine that has none.
    let folder = tempfile::tempdir().unwrap();
    let open: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open.clone()).unwrap();
    let script = folder.path().join("chromium-headless-shell");
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--no-sandbox*) exec {} \"$@\" ;;\n*) echo 'No usable sandbox!' >&2; exit 1 ;;\nesac\n",
        real.info().binary.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, open).unwrap();
    real.close().await;

    let required =
        BrowserConfig { binary: Some(script.clone()), sandbox: crate::browser::SandboxMode::Required, ..config() };
    let error = Browser::launch(&required).await.unwrap_err();
    assert!(error.to_string().contains("No usable sandbox!"), "{error}");
    let auto = BrowserConfig { binary: Some(script), ..config() };
    let browser = Browser::launch(&auto).await.unwrap();
    assert!(!browser.info().sandbox);
    let origin = serve(OriginConfig::new().route("/p", Reply::html("<title>p</title>"))).await;
    let capture = browser.capture(request(origin.url("/p"), DOM).await).await.unwrap();
    assert!(!capture.sandbox);
    assert_eq!(capture.title.as_deref(), Some("p"));
    browser.close().await;
}
