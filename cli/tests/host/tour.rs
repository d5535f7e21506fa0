//! A first afternoon with it: everything a newcomer types, against a live host.

use crate::archive::{Archive, until};
use fonds_web::testing::{Origin, OriginConfig, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Outputs of a plain page.
const PLAIN: &str = "headers,title,warc,wacz,htmltotext,readability,parse_html_urls,search";

fn lines(said: &str) -> Vec<Value> {
    said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// The answer to a plain GET, head and body.
fn fetched(address: &str) -> String {
    let url = url::Url::parse(address).unwrap_or_else(|e| panic!("{e}: {address}"));
    let host = format!("{}:{}", url.host_str().expect("a host"), url.port().expect("a port"));
    let mut stream = std::net::TcpStream::connect(&host).expect("connected");
    let target = &url[url::Position::BeforePath..];
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("asked");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_site_is_added_looked_at_exported_and_removed() {
    let Some(archive) = Archive::new() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let config = OriginConfig { pages: 12, ..OriginConfig::new() }.route("/gone", Reply::raw(&b""[..]));
    let origin = runtime.block_on(Origin::start(config)).expect("an origin");
    let site = origin.url("/site/").to_string();

    // Nothing runs: `add` starts the host itself, and a private page is refused and says why.
    let refused = archive.fonds(&["add", &site, "--extract", PLAIN, "--wait", "--json"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("EGRESS_REFUSED"), "{refused:?}");
    assert_eq!(origin.served(), 0, "not one request went out");
    let private = archive.fonds(&["add", &site, "--allow-private"]);
    let said = String::from_utf8_lossy(&private.stderr).into_owned();
    assert!(private.status.code() == Some(1) && said.contains("PRIVATE_NOT_ALLOWED"), "{said}");
    archive.answer(&["down"]);
    archive.up_with(&["--allow-private"]);

    let said = archive.answer(&["add", &site, "-d", "2", "-t", "tour", "--extract", PLAIN, "--wait", "--json"]);
    let crawl = lines(&said).pop().expect("the crawl, last");
    assert_eq!((&crawl["status"], &crawl["counts"]["snapshots"]), (&"sealed".into(), &12.into()), "{crawl}");
    let id = crawl["id"].as_str().expect("an id");

    let listed = lines(&archive.answer(&["list", "--tag", "tour", "-n", "100", "--json"]));
    assert_eq!(listed.len(), 12);
    assert_eq!(lines(&archive.answer(&["list", "--crawl", id, "-n", "5", "--json"])).len(), 5);
    let found = lines(&archive.answer(&["search", "paragraph", "page", "7", "--tag", "tour", "--json"]));
    assert!(found.iter().any(|hit| hit.to_string().contains("/site/7/")), "{found:?}");
    let text = archive.answer(&["search", "archive keeps", "-n", "3"]);
    assert!(text.contains("Page "), "{text}");

    let page = listed.iter().find(|s| s["url"].as_str().is_some_and(|u| u.ends_with("/site/3/"))).expect("page 3");
    let page = page["id"].as_str().expect("an id");
    let shown = archive.json(&["show", page]);
    assert_eq!(shown["title"], "Page 3 of the test site");
    assert!(archive.answer(&["show", page]).contains("htmltotext"));
    // The address opens without a token in a header: that is what a browser does with it.
    let address = archive.answer(&["open", page, "readability", "--print"]);
    let body = fetched(address.trim());
    assert!(body.starts_with("HTTP/1.1 200") && body.contains("of page 3. The archive keeps"), "{address}: {body}");

    let folder = tempfile::tempdir().expect("a folder");
    for (what, name) in [(page, "page.wacz"), (id, "crawl.wacz")] {
        let path = folder.path().join(name);
        archive.answer(&["export", what, "--wacz", "-o", path.to_str().expect("a path")]);
        assert_eq!(std::fs::read(&path).expect("written").get(..4), Some(&b"PK\x03\x04"[..]), "{name}");
    }

    archive.answer(&["tag", page, "--add", "kept", "--remove", "tour"]);
    assert_eq!(lines(&archive.answer(&["list", "--tag", "kept", "--json"])).len(), 1);
    archive.answer(&["rm", page, "--yes"]);
    assert_eq!(archive.fonds(&["show", page]).status.code(), Some(1), "it is gone");
    assert_eq!(lines(&archive.answer(&["list", "--crawl", id, "-n", "100", "--json"])).len(), 11);
    archive.answer(&["sweep", "--once"]);
    assert!(!lines(&archive.answer(&["tasks", "--status", "all", "--json"])).is_empty());
    archive.answer(&["rm", id, "--yes"]);
    until("the crawl is gone", || archive.fonds(&["show", id]).status.code() == Some(1));
    archive.answer(&["down"]);
}

#[test]
fn a_crawl_is_paused_resumed_cancelled_and_left_running() {
    let Some(archive) = Archive::new() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let config = OriginConfig { pages: 400, latency: Duration::from_millis(300), ..OriginConfig::new() };
    let origin = runtime.block_on(Origin::start(config)).expect("an origin");
    archive.up_with(&["--allow-private"]);
    let made = archive.json(&["add", origin.url("/site/").as_str(), "-d", "4", "--extract", PLAIN]);
    let id = made["id"].as_str().expect("an id").to_owned();
    let crawl = || archive.json(&["crawl", "show", &id]);
    until("some pages are held", || crawl()["counts"]["sealed"].as_u64() > Some(5));
    archive.answer(&["crawl", "pause", &id]);
    until("what ran has ended", || lines(&archive.answer(&["tasks", "--crawl", &id, "--json"])).is_empty());
    let held = crawl();
    assert_eq!(held["status"], "paused");
    assert_eq!(origin.served(), {
        crawl();
        origin.served()
    });
    archive.answer(&["crawl", "resume", &id]);
    until("it goes on", || crawl()["counts"]["sealed"].as_u64() > held["counts"]["sealed"].as_u64());

    // Ctrl-C ends the waiting, not the crawl.
    let waiting = Command::new(env!("CARGO_BIN_EXE_fonds"))
        .args(["crawl", "wait", &id])
        .env("FONDS_HOME", archive.home.dir())
        .env_remove("FONDS_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    std::thread::sleep(Duration::from_millis(700));
    let pid = i32::try_from(waiting.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::INT).expect("signalled");
    let out = waiting.wait_with_output().expect("ended");
    assert_eq!(out.status.code(), Some(130), "{out:?}");
    assert_eq!(crawl()["status"], "started", "the work goes on in the service");

    archive.answer(&["crawl", "cancel", &id]);
    until("it is over", || crawl()["status"] == "sealed" && crawl()["counts"]["open"] == 0);
    assert_eq!(crawl()["stop_reason"], "cancelled");
    archive.answer(&["down"]);
}
