//! The one-process host as its user meets it: started, asked, killed, started again, ended.
//!
//! Without PostgreSQL these say so and pass, but fail where CI says that everything is there.

use fonds_cli::home::{Home, HostFile};
use fonds_cli::host::cluster::{installed, processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A data folder with the commands that work on it; whatever still runs is ended with it.
struct Archive {
    home: Home,
    _dir: TempDir,
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.fonds(&["down"]);
    }
}

impl Archive {
    fn new() -> Option<Archive> {
        if installed().is_empty() {
            assert!(std::env::var_os("CI").is_none(), "PostgreSQL is missing");
            eprintln!("PostgreSQL is not installed: not tested");
            return None;
        }
        let dir = tempfile::Builder::new().prefix("fonds-host-").tempdir_in("/tmp").expect("temp dir");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o711)).expect("opened");
        let home = Home::resolve(Some(&dir.path().join("data"))).expect("a folder");
        Some(Archive { home, _dir: dir })
    }

    fn fonds(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_fonds"))
            .args(args)
            .env("FONDS_HOME", self.home.dir())
            .env_remove("FONDS_URL")
            .env_remove("FONDS_DATABASE_URL")
            .stdin(Stdio::null())
            .output()
            .expect("runs")
    }

    /// Runs a command that must succeed and returns what it printed.
    fn answer(&self, args: &[&str]) -> String {
        let out = self.fonds(args);
        let (said, err) = (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success(), "{args:?}: {} {err}\n{}", out.status, self.log());
        said
    }

    fn up(&self) -> HostFile {
        self.answer(&["up", "--detach"]);
        self.home.host().expect("a host")
    }

    fn json(&self, args: &[&str]) -> Value {
        let said = self.answer(&[args, &["--json"]].concat());
        serde_json::from_str(said.lines().last().unwrap_or_default())
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {said}"))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.host_log()).unwrap_or_default()
    }

    fn servers(&self) -> Vec<u32> {
        processes(&self.home.cluster())
    }
}

fn kill(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, signal).expect("signalled");
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

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
