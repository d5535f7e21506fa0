//! How a browser is started.

use std::path::PathBuf;
use std::time::Duration;

/// Whether Chromium's own sandbox is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// On; when the browser cannot start with it (no user namespaces: AWS Lambda, some containers),
    /// off, which [`BrowserInfo::sandbox`](super::BrowserInfo::sandbox) tells.
    #[default]
    Auto,
    /// On, or no browser at all.
    Required,
    /// Off.
    Off,
}

/// How a browser is started and when it is renewed.
#[derive(Debug, Clone)]
pub struct BrowserConfig {
    /// The binary; by default `FONDS_CHROMIUM`, else `chromium-headless-shell`, else Chromium or
    /// Chrome where they are usually installed.
    pub binary: Option<PathBuf>,
    /// Profiles are made, and removed, below this folder. It must be reachable by the user the
    /// browser runs as.
    pub user_data_root: PathBuf,
    /// User and group ids the browser runs as. When this process is root and none is given, the
    /// browser runs as `65534:65534` (nobody): Chromium must not run as root. Ignored when not root.
    pub run_as: Option<(u32, u32)>,
    /// Chromium's sandbox.
    pub sandbox: SandboxMode,
    /// More command line flags, last.
    pub extra_args: Vec<String>,
    /// Window size in CSS pixels.
    pub window: (u32, u32),
    /// Instead of the browser's own.
    pub user_agent: Option<String>,
    /// `Accept-Language` and `navigator.language`.
    pub lang: String,
    /// Tabs used at the same time.
    pub tabs: usize,
    /// After so many captures the browser is renewed.
    pub max_captures: u32,
    /// Above this many bytes of private memory, summed over its processes, the browser is renewed.
    pub max_memory: Option<u64>,
    /// From the start of the process to its first answer.
    pub launch_timeout: Duration,
    /// From the request to end to being killed.
    pub close_timeout: Duration,
}

impl Default for BrowserConfig {
    fn default() -> Self {
        Self {
            binary: None,
            user_data_root: std::env::temp_dir(),
            run_as: None,
            sandbox: SandboxMode::Auto,
            extra_args: Vec::new(),
            window: (1440, 900),
            user_agent: None,
            lang: "en-US".to_owned(),
            tabs: 4,
            max_captures: 200,
            max_memory: Some(2 * 1024 * 1024 * 1024),
            launch_timeout: Duration::from_secs(20),
            close_timeout: Duration::from_secs(2),
        }
    }
}
