//! Making a cluster: `initdb`, our settings and the database, whole or not at all.

use super::{ClusterConfig, ClusterError, NAME};
use crate::user::RunAs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Settings for a small machine that is used for other things too, written once at the end of
/// `postgresql.conf`, where an operator may change them.
const SETTINGS: &str = "
# ---- fonds ----
max_connections = 80
shared_buffers = 128MB
work_mem = 8MB
maintenance_work_mem = 64MB
random_page_cost = 1.1
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
# A commit is kept when it is answered; those that come together share a flush.
synchronous_commit = on
commit_delay = 200
commit_siblings = 3
# No replicas: less to write.
wal_level = minimal
max_wal_senders = 0
wal_compression = on
max_wal_size = 1GB
checkpoint_timeout = 15min
# Queue tables: dead rows are taken away before they slow the claims.
autovacuum_naptime = 20s
autovacuum_vacuum_scale_factor = 0.05
idle_in_transaction_session_timeout = 5min
log_min_duration_statement = 2s
log_line_prefix = '%m [%p] '
log_checkpoints = off
";

/// The major version a cluster was made with; none when there is no cluster.
#[must_use]
pub fn major_of(cluster: &Path) -> Option<u32> {
    std::fs::read_to_string(cluster.join("PG_VERSION")).ok()?.trim().parse().ok()
}

/// Makes the cluster beside its place and moves it there when it is complete, so that a machine
/// that stops in between starts anew and not half.
///
/// # Errors
/// When a program fails; its output is in the error.
pub(super) fn create(config: &ClusterConfig) -> Result<(), ClusterError> {
    let new = config.dir.with_extension("new");
    remove(&new)?;
    make_owned(&new, config.owner.as_ref())?;
    can_enter(&new, config.owner.as_ref())?;
    let initdb = |locale: &str| {
        let mut cmd = command(config, "initdb");
        cmd.arg("--pgdata").arg(&new).args(["--username", NAME, "--encoding", "UTF8", "--locale", locale]);
        // Whoever can enter the socket's folder may connect, and that is its owner alone.
        cmd.args(["--auth-local", "trust", "--auth-host", "reject", "--data-checksums", "--no-instructions"]);
        run(cmd, "initdb", None)
    };
    // A locale that knows letters of all languages but sorts by code point; C where it is missing.
    if let Err(first) = initdb("C.UTF-8") {
        tracing::warn!(error = %first, "initdb with C.UTF-8 failed; trying C");
        remove(&new)?;
        make_owned(&new, config.owner.as_ref())?;
        initdb("C")?;
    }
    let conf = new.join("postgresql.conf");
    let text = std::fs::read_to_string(&conf).map_err(|e| ClusterError::io(&conf, e))? + SETTINGS;
    // Written in place, so that its owner stays.
    std::fs::write(&conf, text).map_err(|e| ClusterError::io(&conf, e))?;
    let mut single = command(config, "postgres");
    single.arg("--single").arg("-D").arg(&new).arg("postgres");
    run(single, "postgres", Some(&format!("CREATE DATABASE {NAME}\n")))?;
    std::fs::rename(&new, &config.dir).map_err(|e| ClusterError::io(&config.dir, e))?;
    // So that the move itself survives a power cut.
    if let Some(parent) = config.dir.parent() {
        std::fs::File::open(parent).and_then(|d| d.sync_all()).map_err(|e| ClusterError::io(parent, e))?;
    }
    Ok(())
}

/// A PostgreSQL program with a clean environment (`PGDATA` and the like would mislead it), as the
/// cluster's owner, and in a folder that every user may enter.
pub(super) fn command(config: &ClusterConfig, program: &str) -> Command {
    let mut cmd = Command::new(config.binaries.program(program));
    cmd.env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::null());
    if let Some(owner) = &config.owner {
        cmd.uid(owner.uid).gid(owner.gid);
    }
    // Its own group: Ctrl-C in a terminal is ours to handle, not the server's.
    cmd.process_group(0);
    cmd
}

fn run(mut cmd: Command, what: &'static str, input: Option<&str>) -> Result<(), ClusterError> {
    let failed = |detail: String| ClusterError::Program { what, detail };
    cmd.stdout(Stdio::piped()).stderr(Stdio::piped());
    if input.is_some() {
        cmd.stdin(Stdio::piped());
    }
    let mut child = cmd.spawn().map_err(|e| failed(e.to_string()))?;
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        // A program that ends early says why itself.
        let _ = std::io::Write::write_all(&mut stdin, text.as_bytes());
    }
    let out = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).trim().to_owned();
    // A single-user server reports a failed statement and still ends with 0.
    if out.status.success() && !said.lines().any(|l| l.contains("ERROR:") || l.contains("FATAL:")) {
        return Ok(());
    }
    Err(failed(super::last_lines(&said, 12)))
}

fn remove(dir: &Path) -> Result<(), ClusterError> {
    match std::fs::remove_dir_all(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(ClusterError::io(dir, e)),
        _ => Ok(()),
    }
}

/// Makes a folder only its owner may enter. One that is there must be the owner's already: in a
/// shared folder such as `/tmp` anyone could have put it there.
pub(super) fn make_owned(dir: &Path, owner: Option<&RunAs>) -> Result<(), ClusterError> {
    let io = |e| ClusterError::io(dir, e);
    let uid = owner.map_or_else(|| rustix::process::geteuid().as_raw(), |o| o.uid);
    match std::fs::DirBuilder::new().create(dir) {
        Ok(()) => {
            std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)).map_err(io)?;
            if let Some(owner) = owner {
                chown(dir, Some(owner.uid), Some(owner.gid)).map_err(io)?;
            }
            Ok(())
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            let meta = std::fs::symlink_metadata(dir).map_err(io)?;
            if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o077 != 0 {
                return Err(ClusterError::NotOurs { dir: dir.to_owned() });
            }
            Ok(())
        }
        Err(e) => Err(io(e)),
    }
}

/// The owner must be able to pass every folder on the way; PostgreSQL's own message does not say which.
fn can_enter(dir: &Path, owner: Option<&RunAs>) -> Result<(), ClusterError> {
    let Some(owner) = owner else { return Ok(()) };
    match closed_to(dir, owner) {
        Some(at) => Err(ClusterError::Unreachable { at, user: owner.name.clone(), dir: dir.to_owned() }),
        None => Ok(()),
    }
}

fn closed_to(dir: &Path, user: &RunAs) -> Option<PathBuf> {
    dir.ancestors()
        .skip(1)
        .find(|at| {
            std::fs::metadata(at).is_ok_and(|m| {
                let bit = if m.uid() == user.uid {
                    0o100
                } else if m.gid() == user.gid {
                    0o010
                } else {
                    0o001
                };
                m.mode() & bit == 0
            })
        })
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_that_keeps_a_user_out_is_named() {
        let dir = tempfile::tempdir_in("/tmp").expect("temp dir");
        let stranger = RunAs { name: "x".into(), uid: 4_000_000, gid: 4_000_000 };
        let closed = dir.path().join("closed");
        std::fs::create_dir_all(closed.join("a/b")).expect("made");
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.path(), mode(0o755)).expect("set");
        std::fs::set_permissions(&closed, mode(0o700)).expect("set");
        assert_eq!(closed_to(&closed.join("a/b"), &stranger), Some(closed.clone()));
        std::fs::set_permissions(&closed, mode(0o711)).expect("set");
        assert_eq!(closed_to(&closed.join("a/b"), &stranger), None);
    }

    #[test]
    fn a_folder_laid_by_another_is_refused() {
        let dir = tempfile::tempdir().expect("temp dir");
        let place = dir.path().join("run");
        make_owned(&place, None).expect("made");
        make_owned(&place, None).expect("ours");
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).expect("set");
        assert!(matches!(make_owned(&place, None), Err(ClusterError::NotOurs { .. })));
        std::fs::remove_dir(&place).expect("gone");
        std::os::unix::fs::symlink("/tmp", &place).expect("link");
        assert!(matches!(make_owned(&place, None), Err(ClusterError::NotOurs { .. })));
    }
}
