//! A host of a test's own.

use fonds_cli::home::{Home, HostFile};
use fonds_cli::host::cluster::{installed, processes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A data folder with the commands that work on it; whatever still runs is ended with it.
pub(crate) struct Archive {
    pub(crate) home: Home,
    _dir: TempDir,
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.fonds(&["down"]);
    }
}

impl Archive {
    pub(crate) fn new() -> Option<Archive> {
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

    pub(crate) fn fonds(&self, args: &[&str]) -> Output {
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
    pub(crate) fn answer(&self, args: &[&str]) -> String {
        let out = self.fonds(args);
        let (said, err) = (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success(), "{args:?}: {} {err}\n{}", out.status, self.log());
        said
    }

    pub(crate) fn up(&self) -> HostFile {
        self.up_with(&[])
    }

    /// Starts a host with more arguments.
    pub(crate) fn up_with(&self, args: &[&str]) -> HostFile {
        self.answer(&[&["up", "--detach"], args].concat());
        self.home.host().expect("a host")
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let said = self.answer(&[args, &["--json"]].concat());
        serde_json::from_str(said.lines().last().unwrap_or_default())
            .unwrap_or_else(|e| panic!("{args:?}: {e}: {said}"))
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.host_log()).unwrap_or_default()
    }

    pub(crate) fn servers(&self) -> Vec<u32> {
        processes(&self.home.cluster())
    }
}

pub(crate) fn kill(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, signal).expect("signalled");
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}
