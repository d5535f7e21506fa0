//! Start, status and end; what comes back after a kill; tokens.

use crate::archive::{Archive, kill, until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

#[test]
fn up_status_and_down_leave_nothing_behind() {
    let Some(archive) = Archive::new() else { return };
    let host = archive.up();
    let status = archive.json(&["status"]);
    assert_eq!((&status["running"], status["url"].as_str()), (&Value::Bool(true), Some(host.url.as_str())));
    assert!(status.get("token").is_none(), "a status may be shown to others");
    assert!(host.url.starts_with("http://127.0.0.1:"));

    // One at a time, and the second says where the first is.
    let second = archive.fonds(&["up", "--detach"]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1));
    assert!(said.contains("ALREADY_RUNNING") && said.contains(&host.url), "{said}");

    let token = std::fs::read_to_string(archive.home.token()).expect("a token");
    assert_eq!(token.trim(), host.token);
    archive.answer(&["down"]);
    assert!(!archive.home.is_held());
    assert!(archive.servers().is_empty(), "the database ended with it");

    assert_eq!(archive.up().token, host.token, "scripts keep their token");
    archive.answer(&["down"]);
}

#[test]
fn a_killed_host_is_followed_by_one_that_ends_its_database() {
    let Some(archive) = Archive::new() else { return };
    let host = archive.up();
    kill(host.pid, Signal::KILL);
    until("the folder is free", || !archive.home.is_held());
    let orphans = archive.servers();
    assert!(!orphans.is_empty(), "PostgreSQL outlives a killed host");
    assert_eq!(archive.fonds(&["status"]).status.code(), Some(3));

    let next = archive.up();
    assert_ne!(next.pid, host.pid);
    assert!(archive.servers().iter().all(|pid| !orphans.contains(pid)), "one server at a time");
    assert_eq!(archive.json(&["status"])["running"], true);

    // `down` finds a left database too.
    kill(next.pid, Signal::KILL);
    until("the folder is free", || !archive.home.is_held());
    archive.answer(&["down"]);
    assert!(archive.servers().is_empty());
}

#[test]
fn a_killed_database_comes_back_under_a_running_host() {
    let Some(archive) = Archive::new() else { return };
    archive.up();
    let pid_file = archive.home.cluster().join("postmaster.pid");
    let postmaster = || -> Option<u32> { std::fs::read_to_string(&pid_file).ok()?.lines().next()?.trim().parse().ok() };
    let first = postmaster().expect("runs");
    kill(first, Signal::KILL);
    until("another database server", || postmaster().is_some_and(|pid| pid != first));
    until("the API has its database again", || archive.fonds(&["status"]).status.success());
    archive.answer(&["down"]);
}

#[test]
fn what_is_wrong_with_a_start_is_told_by_the_command_that_started_it() {
    let Some(archive) = Archive::new() else { return };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("any port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let out = archive.fonds(&["up", "--detach", "--port", &port]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("PORT_IN_USE") && said.contains(&port), "{said}");
    assert!(!archive.home.is_held() && archive.servers().is_empty(), "a failed start leaves nothing");
}

#[test]
fn tokens_are_made_used_and_revoked() {
    let Some(archive) = Archive::new() else { return };
    let host = archive.up();
    let made = archive.json(&["token", "create", "reader", "--scope", "read"]);
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    let list = |secret: &str| {
        let mut cmd = Command::new(env!("CARGO_BIN_EXE_fonds"));
        cmd.args(["list"]).env("FONDS_URL", &host.url).env("FONDS_TOKEN", secret).stdin(Stdio::null());
        let out = cmd.output().expect("runs");
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    assert_eq!(list(&secret).0, Some(0));
    archive.answer(&["token", "revoke", &made["id"].as_str().expect("an id").replace('-', "")[..20]]);
    let (code, said) = list(&secret);
    assert!(code == Some(1) && said.contains("UNAUTHENTICATED"), "{said}");
    assert_eq!(archive.fonds(&["token", "revoke", "ffffffff"]).status.code(), Some(1));
    archive.answer(&["down"]);
}
