//! The private cluster against a real PostgreSQL: made, killed, left behind, moved, ended.
//!
//! Without PostgreSQL these say so and pass, but fail where CI says that everything is there.

use fonds_cli::home::Home;
use fonds_cli::host::cluster::{Cluster, ClusterConfig, ClusterError, State, installed, processes};
use fonds_store::{Db, DbConfig};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// A data folder that PostgreSQL's user can enter; none without PostgreSQL.
fn data() -> Option<(TempDir, Home)> {
    if installed().is_empty() {
        assert!(std::env::var_os("CI").is_none(), "PostgreSQL is missing");
        eprintln!("PostgreSQL is not installed: not tested");
        return None;
    }
    let dir = tempfile::Builder::new().prefix("fonds-cluster-").tempdir_in("/tmp").expect("temp dir");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o711)).expect("opened");
    let home = Home::resolve(Some(&dir.path().join("data"))).expect("a folder");
    home.prepare().expect("prepared");
    Some((dir, home))
}

fn database(url: &str) -> Db {
    Db::connect_lazy(&DbConfig { url: url.to_owned(), max_connections: 2 }).expect("a URL")
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::KILL).expect("killed");
}

async fn ready(state: &mut tokio::sync::watch::Receiver<State>, other_than: u32) -> u32 {
    let wait = state.wait_for(|s| matches!(s, State::Ready { pid } if *pid != other_than));
    let state = timeout(PATIENCE, wait).await.expect("in time").expect("kept").clone();
    let State::Ready { pid } = state else { panic!("{state:?}") };
    pid
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_made_migrated_killed_restarted_and_ended() {
    let Some((_dir, home)) = data() else { return };
    let config = ClusterConfig::of(&home).expect("installed");
    let cluster = Cluster::start(config.clone()).await.expect("started");
    let mut state = cluster.state();
    let first = ready(&mut state, 0).await;
    let db = database(&config.url());
    db.migrate().await.expect("migrated");

    kill(first);
    let second = ready(&mut state, first).await;
    assert_ne!(first, second);
    // What was committed is there, and the pool finds the new server.
    db.migrate().await.expect("nothing to do");
    db.conn().await.expect("a connection");
    db.close().await;

    timeout(PATIENCE, cluster.stop()).await.expect("ended in time");
    assert_eq!(*state.borrow(), State::Stopped);
    assert_eq!(processes(&config.dir), [0u32; 0]);
    assert!(!config.dir.join("postmaster.pid").exists(), "ended cleanly");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_path_and_a_quoted_one_are_no_obstacle() {
    let Some((dir, _)) = data() else { return };
    for name in [&"x".repeat(120), "it's a \"folder\", with $ and é"] {
        let home = Home::resolve(Some(&dir.path().join(name))).expect("a folder");
        home.prepare().expect("prepared");
        let config = ClusterConfig::of(&home).expect("installed");
        let cluster = Cluster::start(config.clone()).await.unwrap_or_else(|e| panic!("{name}: {e}"));
        let db = database(&config.url());
        db.conn().await.unwrap_or_else(|e| panic!("{name}: {e}"));
        db.close().await;
        timeout(PATIENCE, cluster.stop()).await.expect("ended in time");
        if config.socket_dir.starts_with("/tmp") && !config.socket_dir.starts_with(dir.path()) {
            std::fs::remove_dir_all(&config.socket_dir).expect("removed");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_made_cluster_is_made_anew_and_a_foreign_one_named() {
    let Some((_dir, home)) = data() else { return };
    let config = ClusterConfig::of(&home).expect("installed");
    let half = config.dir.with_extension("new");
    std::fs::create_dir_all(half.join("base")).expect("made");
    std::fs::write(half.join("PG_VERSION"), "15\n").expect("written");
    let cluster = Cluster::start(config.clone()).await.expect("started");
    assert!(!half.exists());
    timeout(PATIENCE, cluster.stop()).await.expect("ended in time");

    std::fs::write(config.dir.join("PG_VERSION"), "3\n").expect("written");
    let error = ClusterConfig::of(&home).expect_err("no such version");
    assert!(matches!(&error, ClusterError::NoBinaries { wanted, .. } if wanted.starts_with('3')), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_can_reach_it() {
    let Some((_dir, home)) = data() else { return };
    let config = ClusterConfig::of(&home).expect("installed");
    let cluster = Cluster::start(config.clone()).await.expect("started");
    for folder in [&config.dir, &config.socket_dir] {
        let mode = std::fs::metadata(folder).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", folder.display());
    }
    let listening = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let own = processes(&config.dir);
    assert!(!own.is_empty() && !listening.is_empty());
    assert!(!holds_tcp_listener(&own, &listening), "nothing listens on a port");
    timeout(PATIENCE, cluster.stop()).await.expect("ended in time");
}

/// Whether one of the processes has a listening TCP socket open.
fn holds_tcp_listener(pids: &[u32], table: &str) -> bool {
    let inodes: Vec<&str> = table
        .lines()
        .filter_map(|l| {
            let fields: Vec<&str> = l.split_whitespace().collect();
            (fields.get(3) == Some(&"0A")).then(|| fields.get(9).copied()).flatten()
        })
        .collect();
    pids.iter().any(|pid| {
        let fds =
            std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).into_iter().flatten().flatten();
        fds.filter_map(|fd| std::fs::read_link(fd.path()).ok())
            .any(|to| inodes.iter().any(|inode| to.to_string_lossy() == format!("socket:[{inode}]")))
    })
}
