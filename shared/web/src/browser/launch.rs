//! One browser process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};

use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, Command};
use tokio_util::sync::CancellationToken;

use super::cdp::Connection;
use super::config::{BrowserConfig, SandboxMode};
use super::process::{Group, Usage, usage};
use super::profile::Profile;
use super::{BrowserError, flags};

/// The user the browser runs as when this process is root and the configuration names none.
const NOBODY: (u32, u32) = (65534, 65534);

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserInfo {
    /// Name and version, such as `HeadlessChrome/156.0.8078.108`.
    pub product: String,
    /// The `User-Agent` it sends by default.
    pub user_agent: String,
    /// Version of the protocol.
    pub protocol: String,
    /// Whether Chromium's sandbox is on. When it is not, a page that breaks out of its renderer has
    /// all that the browser's user has.
    pub sandbox: bool,
    /// The binary.
    pub binary: PathBuf,
    /// Process id, which is also its process group.
    pub pid: i32,
}

/// One browser process. Dropping it kills the whole process group and removes the profile.
#[derive(Debug)]
pub struct Browser {
    connection: Connection,
    info: BrowserInfo,
    ended: CancellationToken,
    kill: CancellationToken,
    close_timeout: Duration,
    window: (u32, u32),
    unhealthy: AtomicBool,
}

#[derive(Deserialize)]
struct Version {
    product: String,
    #[serde(rename = "userAgent")]
    user_agent: String,
    #[serde(rename = "protocolVersion")]
    protocol: String,
}

impl Browser {
    /// Starts a browser and waits for its first answer.
    pub async fn launch(config: &BrowserConfig) -> Result<Self, BrowserError> {
        let binary = flags::find_binary(config)?;
        match config.sandbox {
            SandboxMode::Required => Self::start(config, &binary, true).await,
            SandboxMode::Off => Self::start(config, &binary, false).await,
            SandboxMode::Auto => match Self::start(config, &binary, true).await {
                Err(BrowserError::Launch(reason)) => {
                    tracing::warn!(reason, "no browser with a sandbox; trying without");
                    Self::start(config, &binary, false).await
                }
                other => other,
            },
        }
    }

    async fn start(config: &BrowserConfig, binary: &Path, sandbox: bool) -> Result<Self, BrowserError> {
        let owner = owner(config);
        let profile = Profile::create(&config.user_data_root, owner).map_err(|e| launch_error("profile folder", &e))?;
        let (mut child, connection) =
            spawn(config, binary, profile.path(), owner, sandbox).map_err(|e| launch_error("process", &e))?;
        let stderr = Tail::follow(child.stderr.take());
        let group =
            child.id().and_then(Group::new).ok_or_else(|| BrowserError::Launch("the process has no id".to_owned()))?;
        let pid = group.id();
        let ended = CancellationToken::new();
        let kill = CancellationToken::new();
        tokio::spawn(watch(child, group, profile, connection.clone(), kill.clone(), ended.clone()));
        let browser = Self {
            connection,
            info: BrowserInfo {
                product: String::new(),
                user_agent: String::new(),
                protocol: String::new(),
                sandbox,
                binary: binary.to_owned(),
                pid,
            },
            ended,
            kill,
            close_timeout: config.close_timeout,
            window: config.window,
            unhealthy: AtomicBool::new(false),
        };
        browser.greet(config.launch_timeout, &stderr).await
    }

    async fn greet(mut self, limit: Duration, stderr: &Tail) -> Result<Self, BrowserError> {
        let root = self.connection.root();
        let version: Result<Version, _> = match root.call("Browser.getVersion", &serde_json::json!({}), limit).await {
            Ok(reply) => reply.decode(),
            Err(error) => Err(error),
        };
        match version {
            Ok(version) => {
                self.info.product = version.product;
                self.info.user_agent = version.user_agent;
                self.info.protocol = version.protocol;
                if !self.info.sandbox {
                    tracing::warn!("the browser runs without its sandbox");
                }
                Ok(self)
            }
            Err(error) => {
                self.kill.cancel();
                self.ended.cancelled().await;
                Err(BrowserError::Launch(format!("{error}; it said: {}", stderr.text())))
            }
        }
    }

    /// What runs.
    pub const fn info(&self) -> &BrowserInfo {
        &self.info
    }

    /// The protocol connection.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether it can take another capture.
    pub fn is_alive(&self) -> bool {
        self.connection.is_alive() && !self.unhealthy.load(Ordering::Relaxed)
    }

    /// Marks it as one that should not be used again: it left something undone.
    pub(super) fn mark_unhealthy(&self) {
        self.unhealthy.store(true, Ordering::Relaxed);
    }

    /// The window's size when a capture asks for no other.
    pub(super) const fn window(&self) -> (u32, u32) {
        self.window
    }

    /// Whether a page's size is its window's: a full browser has bars around it.
    pub(super) fn has_bare_windows(&self) -> bool {
        flags::is_headless_shell(&self.info.binary)
    }

    /// What its processes use now.
    pub fn usage(&self) -> Usage {
        usage(self.info.pid)
    }

    /// Asks it to end, kills it after [`BrowserConfig::close_timeout`], and returns when no process
    /// and no profile is left.
    pub async fn close(&self) {
        self.connection.close();
        if tokio::time::timeout(self.close_timeout, self.ended.cancelled()).await.is_err() {
            self.kill.cancel();
            self.ended.cancelled().await;
        }
    }

    /// Returns when the process has ended and its profile is removed.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.kill.cancel();
        self.connection.close();
    }
}

fn launch_error(what: &str, error: &std::io::Error) -> BrowserError {
    BrowserError::Launch(format!("{what}: {error}"))
}

/// The user to run as; none means the one we are.
fn owner(config: &BrowserConfig) -> Option<(u32, u32)> {
    rustix::process::geteuid().is_root().then(|| config.run_as.unwrap_or(NOBODY))
}

fn spawn(
    config: &BrowserConfig,
    binary: &Path,
    profile: &Path,
    owner: Option<(u32, u32)>,
    sandbox: bool,
) -> std::io::Result<(Child, Connection)> {
    let (their_in, our_out) = std::io::pipe()?;
    let (our_in, their_out) = std::io::pipe()?;
    // A larger buffer means fewer wake-ups for screenshots and bodies; being refused is harmless.
    let _ = rustix::pipe::fcntl_setpipe_size(&our_out, 1024 * 1024);
    let _ = rustix::pipe::fcntl_setpipe_size(&our_in, 1024 * 1024);
    let mut command = Command::new("/bin/sh");
    command
        // No core dumps: forty crashes would fill a function's disk. Set by a shell that is replaced
        // by the browser, because only the process itself may do it before the first child is forked.
        .args(["-c", "ulimit -c 0; exec \"$0\" \"$@\""])
        .arg(binary)
        .args(flags::arguments(config, binary, profile, sandbox))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .current_dir(profile);
    environment(&mut command, profile, &config.lang);
    if let Some((uid, gid)) = owner {
        // The standard library drops the supplementary groups as well.
        command.uid(uid).gid(gid);
    }
    command
        .fd_mappings(vec![
            FdMapping { parent_fd: their_in.into(), child_fd: 3 },
            FdMapping { parent_fd: their_out.into(), child_fd: 4 },
        ])
        .map_err(std::io::Error::other)?;
    let child = command.spawn()?;
    // The command still holds the browser's ends: the pipes would never be seen as closed.
    drop(command);
    let connection =
        Connection::start(pipe::Receiver::from_owned_fd(our_in.into())?, pipe::Sender::from_owned_fd(our_out.into())?);
    Ok((child, connection))
}

/// Nothing of our own environment (it holds keys) but what fonts and libraries need.
fn environment(command: &mut Command, profile: &Path, lang: &str) {
    command.env_clear();
    for name in ["PATH", "LD_LIBRARY_PATH", "FONTCONFIG_PATH", "FONTCONFIG_FILE", "XDG_DATA_DIRS"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("HOME", profile)
        .env("XDG_CONFIG_HOME", profile)
        .env("XDG_CACHE_HOME", profile)
        .env("TMPDIR", profile.join("tmp"))
        .env("LANG", format!("{}.UTF-8", lang.replace('-', "_")))
        .env("TZ", "UTC")
        // It would look for a bus and complain at length.
        .env("DBUS_SESSION_BUS_ADDRESS", "disabled:");
}

/// Waits for the end of the process, or brings it about, then leaves nothing behind.
async fn watch(
    mut child: Child,
    group: Group,
    profile: Profile,
    connection: Connection,
    kill: CancellationToken,
    ended: CancellationToken,
) {
    // Also when this task is dropped with its runtime: the group's own drop kills.
    let _ended = ended.drop_guard();
    tokio::select! {
        _ = child.wait() => {}
        () = kill.cancelled() => {}
    }
    connection.close();
    group.kill();
    let _ = child.wait().await;
    // Renderers are killed a moment later than their leader is reaped.
    for _ in 0..50 {
        group.kill();
        group.reap();
        if !group.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    let _ = tokio::task::spawn_blocking(move || drop(profile)).await;
}

/// The last of what the browser wrote to its standard error.
#[derive(Debug, Clone, Default)]
struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    const MAX: usize = 4096;

    fn follow(stderr: Option<ChildStderr>) -> Self {
        let tail = Self::default();
        if let Some(mut stderr) = stderr {
            let tail = tail.clone();
            tokio::spawn(async move {
                let mut chunk = [0_u8; 2048];
                while let Ok(n) = stderr.read(&mut chunk).await {
                    if n == 0 {
                        break;
                    }
                    tail.push(chunk.get(..n).unwrap_or_default());
                }
            });
        }
        tail
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(Self::MAX);
        kept.drain(..excess);
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}
