//! Server processes that outlived their host: after a `kill -9` of the host the server runs on, and
//! after a `kill -9` of the server its backends need a moment to notice. Both keep a new server from
//! starting on the same files, so they are found and ended first.

use super::pidfile::PidFile;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long processes are given after each signal.
const PATIENCE: [(Signal, Duration); 3] = [
    // Fast shutdown: sessions are ended, everything is written.
    (Signal::INT, Duration::from_secs(30)),
    // Immediate shutdown: recovery at the next start.
    (Signal::QUIT, Duration::from_secs(10)),
    (Signal::KILL, Duration::from_secs(10)),
];

/// Name of the cluster in the titles of its processes, so that they can be told from those of any
/// other server on the machine.
#[must_use]
pub(super) fn cluster_name(cluster: &Path) -> String {
    format!("fonds-{}", crate::host::short_hash(cluster))
}

/// Pids of every process of this cluster, the postmaster among them. Empty where there is no `/proc`.
#[must_use]
pub fn processes(cluster: &Path) -> Vec<u32> {
    let Ok(owner) = std::fs::metadata(cluster).map(|m| m.uid()) else { return Vec::new() };
    let name = cluster_name(cluster);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|e| e.metadata().is_ok_and(|m| m.uid() == owner))
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|cmd| belongs(&cmd, cluster, &name)))
        .collect()
}

/// Whether a command line is that of a process of the cluster: the postmaster names the folder
/// (`postgres -D DIR`), the others have the cluster's name in their title (`postgres: NAME: ...`).
fn belongs(cmdline: &[u8], cluster: &Path, name: &str) -> bool {
    let mut args = cmdline.split(|b| *b == 0);
    let first = args.next().unwrap_or_default();
    if let Some(title) = first.strip_prefix(b"postgres: ") {
        return title.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b":"));
    }
    first.ends_with(b"postgres")
        && args.next() == Some(b"-D".as_slice())
        && args.next() == Some(cluster.as_os_str().as_encoded_bytes())
}

/// Ends every process of the cluster and takes away a pid file that would keep a server from
/// starting. Returns how many processes there were.
///
/// # Errors
/// When processes remain in spite of everything.
pub async fn clear(cluster: &Path) -> Result<usize, std::io::Error> {
    let found = processes(cluster);
    let postmaster = PidFile::read(cluster).map(|f| f.pid).filter(|pid| found.contains(pid));
    for (signal, patience) in PATIENCE {
        // The postmaster takes its children with it; told themselves, they would only end their sessions.
        let targets = match postmaster {
            Some(pid) if signal != Signal::KILL && processes(cluster).contains(&pid) => vec![pid],
            _ => processes(cluster),
        };
        if targets.is_empty() {
            break;
        }
        for pid in targets {
            send(pid, signal);
        }
        let until = Instant::now() + patience;
        while !processes(cluster).is_empty() && Instant::now() < until {
            sleep(Duration::from_millis(50)).await;
        }
    }
    if !processes(cluster).is_empty() {
        return Err(std::io::Error::other("processes of an earlier database server do not end"));
    }
    // With no process left, the file is a leftover. The server would see that itself, unless its
    // pid is now that of something else, as happens after a restart of a container.
    match std::fs::remove_file(cluster.join("postmaster.pid")) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(found.len()),
    }
}

/// Sends a signal; a process that is gone is no error.
pub(super) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw)
        && let Err(error) = kill_process(pid, signal)
        && error != rustix::io::Errno::SRCH
    {
        tracing::warn!(%error, "a database process could not be signalled");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processes_of_this_cluster_belong() {
        let dir = Path::new("/data/pg");
        let name = "fonds-0123456789ab";
        let cases: [(&[u8], bool); 8] = [
            (b"/usr/lib/postgresql/15/bin/postgres\0-D\0/data/pg\0-c\0x=y\0", true),
            (b"/usr/lib/postgresql/15/bin/postgres\0-D\0/data/pg2\0", false),
            (b"/usr/lib/postgresql/15/bin/postgres\0-c\0-D\0/data/pg\0", false),
            (b"postgres: fonds-0123456789ab: checkpointer \0\0\0", true),
            (b"postgres: fonds-0123456789abc: checkpointer \0", false),
            (b"postgres: 15/main: checkpointer \0", false),
            (b"vim\0-D\0/data/pg\0", false),
            (b"", false),
        ];
        for (cmdline, expected) in cases {
            assert_eq!(belongs(cmdline, dir, name), expected, "{}", String::from_utf8_lossy(cmdline));
        }
    }

    #[tokio::test]
    async fn a_pid_file_of_nobody_is_taken_away() {
        let dir = tempfile::tempdir().expect("temp dir");
        // Our own pid: alive, but no server.
        std::fs::write(dir.path().join("postmaster.pid"), format!("{}\n", std::process::id())).expect("written");
        assert_eq!(clear(dir.path()).await.expect("cleared"), 0);
        assert!(!dir.path().join("postmaster.pid").exists());
        assert_eq!(clear(dir.path()).await.expect("nothing to do"), 0);
    }
}
