//! The private PostgreSQL cluster of a data folder: made once, reached through a socket in a folder
//! of its own and nothing else, a child of the host, restarted when it dies, ended with the host.

mod binaries;
mod create;
mod leftovers;
mod pidfile;

pub use binaries::{Binaries, OLDEST, choose, installed};
pub use create::major_of;
pub use leftovers::{clear as clear_leftovers, processes};

use crate::user::{POSTGRES_USER, RunAs, am_root, lookup};
use pidfile::PidFile;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Name of the database and of its superuser.
pub(crate) const NAME: &str = "fonds";
/// Only part of the socket's name; nothing listens on a port.
const PORT: u16 = 5432;
/// `sockaddr_un` holds 107 bytes; the socket's own name takes 19.
const SOCKET_DIR_MAX: usize = 88;
/// Recovery after a crash can take this long on a slow disk.
const START_PATIENCE: Duration = Duration::from_secs(300);
/// A server that ran this long did not die of what it started with: its next restart is quick again.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);
const SLOWEST_RESTART: Duration = Duration::from_secs(10);

/// Why there is no database.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// PostgreSQL is not installed, or in no version that fits.
    #[error("PostgreSQL {wanted} is needed; {found}")]
    NoBinaries {
        /// The version that would do.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// We are root and there is no user to run the server as.
    #[error("PostgreSQL refuses to run as root, and there is no user `{POSTGRES_USER}` to run it as")]
    NoUser,
    /// The server's user cannot get to its files.
    #[error("the user {user} cannot enter {at}, and so not {dir}")]
    Unreachable {
        /// The folder that is closed.
        at: PathBuf,
        /// The user.
        user: String,
        /// Where the cluster would be.
        dir: PathBuf,
    },
    /// A folder is there that another user made or may write to.
    #[error("{dir} is not this user's own folder")]
    NotOurs {
        /// The folder.
        dir: PathBuf,
    },
    /// A program failed.
    #[error("{what} failed: {detail}")]
    Program {
        /// Which program.
        what: &'static str,
        /// Its last lines.
        detail: String,
    },
    /// The server did not come up.
    #[error("PostgreSQL did not start: {0}")]
    NotReady(String),
    /// A file or folder could not be used.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl ClusterError {
    fn io(path: &Path, source: std::io::Error) -> ClusterError {
        ClusterError::Io { path: path.to_owned(), source }
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            ClusterError::NoBinaries { .. } => {
                "Debian and Ubuntu: apt-get install postgresql. Or name the folder of its programs in FONDS_POSTGRES_BIN, or use a database of your own with --database-url."
            }
            ClusterError::NoUser => "Create it (useradd --system postgres) or start fonds as another user than root.",
            ClusterError::Unreachable { .. } => {
                "Choose a folder it can enter with --data (such as /var/lib/fonds), or open that one (chmod o+x)."
            }
            ClusterError::NotOurs { .. } => "Remove it, or choose another data folder with --data.",
            ClusterError::Program { .. } | ClusterError::NotReady(_) | ClusterError::Io { .. } => {
                "See logs/postgres.log in the data folder, and `fonds doctor`."
            }
        }
    }
}

/// Where the cluster is and what runs it.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// The cluster's folder.
    pub dir: PathBuf,
    /// The folder of its socket.
    pub socket_dir: PathBuf,
    /// Its log.
    pub log: PathBuf,
    /// The user it runs as, when that is not ours.
    pub owner: Option<RunAs>,
    /// The programs.
    pub binaries: Binaries,
}

impl ClusterConfig {
    /// The cluster of a data folder, which must exist.
    ///
    /// # Errors
    /// When PostgreSQL or its user is missing.
    pub fn of(home: &crate::home::Home) -> Result<ClusterConfig, ClusterError> {
        // The server reports real paths, and so must what looks for its processes.
        let base = home.dir().canonicalize().map_err(|e| ClusterError::io(home.dir(), e))?;
        let dir = base.join("pg");
        let owner = if am_root() { Some(lookup(POSTGRES_USER).ok_or(ClusterError::NoUser)?) } else { None };
        let binaries = choose(&installed(), major_of(&dir))?;
        Ok(ClusterConfig { socket_dir: socket_dir(&base), log: home.logs().join("postgres.log"), dir, owner, binaries })
    }

    /// The URL of the database.
    #[must_use]
    pub fn url(&self) -> String {
        let host: String =
            url::form_urlencoded::byte_serialize(self.socket_dir.as_os_str().as_encoded_bytes()).collect();
        format!("postgres://{NAME}@localhost:{PORT}/{NAME}?host={host}")
    }
}

/// The socket's folder: in the data folder, or where that would be too long for a socket's address,
/// a folder of the same owner in `/tmp`.
fn socket_dir(base: &Path) -> PathBuf {
    let near = base.join("run");
    if near.as_os_str().len() <= SOCKET_DIR_MAX { near } else { Path::new("/tmp").join(leftovers::cluster_name(base)) }
}

/// What the server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// On its way up.
    Starting,
    /// Takes connections.
    Ready {
        /// The postmaster.
        pid: u32,
    },
    /// Ended.
    Stopped,
}

/// A running cluster. Dropped without [`Cluster::stop`], the server is killed and recovers at its next start.
#[derive(Debug)]
pub struct Cluster {
    stop: watch::Sender<Option<Signal>>,
    state: watch::Receiver<State>,
    keeper: JoinHandle<()>,
}

impl Cluster {
    /// Makes the cluster when there is none, ends what an earlier host left running on it, starts
    /// the server and waits until it takes connections.
    ///
    /// # Errors
    /// When it cannot be made or started.
    pub async fn start(config: ClusterConfig) -> Result<Cluster, ClusterError> {
        let ended = leftovers::clear(&config.dir).await.map_err(|e| ClusterError::io(&config.dir, e))?;
        if ended > 0 {
            tracing::warn!(processes = ended, "ended a database server that an earlier fonds left running");
        }
        if major_of(&config.dir).is_none() {
            tracing::info!(dir = %config.dir.display(), postgres = config.binaries.major, "making the database cluster");
            let config = config.clone();
            let made = tokio::task::spawn_blocking(move || create::create(&config)).await;
            made.map_err(|e| ClusterError::NotReady(e.to_string()))??;
        }
        create::make_owned(&config.socket_dir, config.owner.as_ref())?;
        let mut server = Server::spawn(&config)?;
        server.ready(&config).await?;
        let (stop, stopped) = watch::channel(None);
        let (states, state) = watch::channel(State::Ready { pid: server.pid });
        let keeper = tokio::spawn(keep(config, server, states, stopped));
        Ok(Cluster { stop, state, keeper })
    }

    /// What it is doing; changes are seen by `changed`.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Ends the server: sessions are cut, everything is written.
    pub async fn stop(self) {
        self.stop.send_replace(Some(Signal::INT));
        if let Err(error) = self.keeper.await {
            tracing::error!(%error, "the keeper of the database failed");
        }
    }
}

/// Tells a server to end at once and does not wait; it recovers at its next start.
pub fn interrupt(pid: u32) {
    leftovers::send(pid, Signal::QUIT);
}

/// One life of the server.
struct Server {
    child: Child,
    pid: u32,
    since: Instant,
}

impl Server {
    fn spawn(config: &ClusterConfig) -> Result<Server, ClusterError> {
        let log = open_log(&config.log).map_err(|e| ClusterError::io(&config.log, e))?;
        let mut cmd = create::command(config, "postgres");
        // `-D` comes first: it is how leftovers are known.
        cmd.arg("-D").arg(&config.dir);
        let settings = [
            "listen_addresses=".to_owned(),
            format!("unix_socket_directories={}", quoted(&config.socket_dir)),
            format!("port={PORT}"),
            "unix_socket_permissions=0700".to_owned(),
            format!("cluster_name={}", leftovers::cluster_name(&config.dir)),
            "logging_collector=off".to_owned(),
        ];
        for setting in settings {
            cmd.args(["-c", &setting]);
        }
        cmd.stdout(Stdio::null()).stderr(log);
        let failed = |e: std::io::Error| ClusterError::Program { what: "postgres", detail: e.to_string() };
        let child = Command::from(cmd).kill_on_drop(true).spawn().map_err(failed)?;
        let pid = child.id().ok_or_else(|| ClusterError::NotReady("it ended at once".to_owned()))?;
        Ok(Server { child, pid, since: Instant::now() })
    }

    /// Waits until the server takes connections, as `pg_ctl` does: by what it writes into its pid file.
    async fn ready(&mut self, config: &ClusterConfig) -> Result<(), ClusterError> {
        let until = Instant::now() + START_PATIENCE;
        loop {
            if PidFile::read(&config.dir).is_some_and(|f| f.is_ready(self.pid)) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let log = std::fs::read_to_string(&config.log).unwrap_or_default();
                return Err(ClusterError::NotReady(format!("{status}: {}", last_lines(&log, 6))));
            }
            if Instant::now() >= until {
                return Err(ClusterError::NotReady(format!("not within {} s", START_PATIENCE.as_secs())));
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends the server, if need be ever more roughly.
    async fn end(mut self, config: &ClusterConfig, first: Signal) {
        for (signal, patience) in [(first, 60), (Signal::QUIT, 10), (Signal::KILL, 10)] {
            leftovers::send(self.pid, signal);
            if timeout(Duration::from_secs(patience), self.child.wait()).await.is_ok() {
                break;
            }
        }
        if let Err(error) = leftovers::clear(&config.dir).await {
            tracing::error!(%error, "the database did not end");
        }
    }
}

/// Keeps a server running until told to stop.
async fn keep(
    config: ClusterConfig,
    first: Server,
    states: watch::Sender<State>,
    mut stopped: watch::Receiver<Option<Signal>>,
) {
    let mut server = first;
    let mut pause = Duration::ZERO;
    loop {
        let status = tokio::select! {
            status = server.child.wait() => status,
            signal = stop_signal(&mut stopped) => {
                server.end(&config, signal).await;
                break;
            }
        };
        states.send_replace(State::Starting);
        pause = next_pause(pause, server.since.elapsed());
        tracing::error!(exit = %describe(status), restart_in_ms = pause.as_millis(), "the database server died; it is restarted");
        let restarted = tokio::select! {
            restarted = restart(&config, &mut pause) => restarted,
            _ = stop_signal(&mut stopped) => break,
        };
        tracing::info!(pid = restarted.pid, "the database server runs again");
        states.send_replace(State::Ready { pid: restarted.pid });
        server = restarted;
    }
    states.send_replace(State::Stopped);
}

/// Tries for as long as it takes: a full disk is emptied, a removed mount comes back, and until
/// then the API answers that the database is unavailable.
async fn restart(config: &ClusterConfig, pause: &mut Duration) -> Server {
    loop {
        sleep(*pause).await;
        let attempt = async {
            leftovers::clear(&config.dir).await.map_err(|e| ClusterError::io(&config.dir, e))?;
            create::make_owned(&config.socket_dir, config.owner.as_ref())?;
            let mut server = Server::spawn(config)?;
            server.ready(config).await?;
            Ok::<_, ClusterError>(server)
        };
        match attempt.await {
            Ok(server) => return server,
            Err(error) => {
                *pause = next_pause(*pause, Duration::ZERO);
                tracing::error!(%error, retry_in_ms = pause.as_millis(), "the database server does not start");
            }
        }
    }
}

async fn stop_signal(stopped: &mut watch::Receiver<Option<Signal>>) -> Signal {
    match stopped.wait_for(Option::is_some).await {
        Ok(signal) => signal.unwrap_or(Signal::INT),
        // The cluster was dropped without a word: as rough as that.
        Err(_) => Signal::QUIT,
    }
}

/// Longer after each quick death, short again after a life.
fn next_pause(last: Duration, lived: Duration) -> Duration {
    if lived >= HEALTHY_AFTER || last.is_zero() { Duration::from_millis(100) } else { (last * 2).min(SLOWEST_RESTART) }
}

fn describe(status: std::io::Result<ExitStatus>) -> String {
    status.map_or_else(|e| e.to_string(), |s| s.to_string())
}

/// A list of folders is what the setting holds, so one with a comma or a quote must be quoted.
fn quoted(dir: &Path) -> String {
    format!("\"{}\"", dir.display().to_string().replace('"', "\"\""))
}

fn open_log(path: &Path) -> std::io::Result<std::fs::File> {
    crate::host::rotate(path);
    std::fs::OpenOptions::new().create(true).append(true).open(path)
}

/// The end of a text, where the reason of a failure stands.
pub(crate) fn last_lines(text: &str, n: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_has_a_short_address_however_long_the_folder() {
        assert_eq!(socket_dir(Path::new("/var/lib/fonds")), Path::new("/var/lib/fonds/run"));
        let long = PathBuf::from(format!("/{}", "x".repeat(100)));
        let dir = socket_dir(&long);
        assert!(dir.starts_with("/tmp") && dir.as_os_str().len() <= SOCKET_DIR_MAX, "{}", dir.display());
        assert_ne!(socket_dir(&long), socket_dir(&long.join("y")));
    }

    #[test]
    fn restarts_slow_down_and_recover() {
        let mut pause = Duration::ZERO;
        let mut seen = Vec::new();
        for _ in 0..9 {
            pause = next_pause(pause, Duration::from_secs(1));
            seen.push(pause.as_millis());
        }
        assert_eq!(seen, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(next_pause(pause, HEALTHY_AFTER).as_millis(), 100);
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        assert_eq!(last_lines("a\n\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("", 2), "");
    }
}
