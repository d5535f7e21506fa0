//! The emulator of S3 and SQS for tests: one a test process, gone with it.
//!
//! ```no_run
//! let Some(endpoint) = fonds_ministack::endpoint() else { return };
//! ```
#![warn(missing_docs)]

use std::io::{BufRead, BufReader, Error, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// Names the endpoint of an emulator that is already running, for test runs of many processes.
pub const ENDPOINT_VARIABLE: &str = "FONDS_MINISTACK_ENDPOINT";
/// The emulator takes any credentials; these are the ones tests use.
pub const CREDENTIALS: (&str, &str) = ("test", "test");
/// The region tests use.
pub const REGION: &str = "us-east-1";

/// An emulator and the pipe that keeps it: when this process ends, however it ends, the pipe closes and
/// `ministack.sh hold` stops the emulator.
struct Emulator {
    endpoint: String,
    _holder: Option<Child>,
}

/// The endpoint (`http://127.0.0.1:PORT`) of a running emulator, started by the first call unless
/// [`ENDPOINT_VARIABLE`] names one. `None`, after a line on standard error, when it cannot be started here.
///
/// # Panics
/// When it cannot be started and `CI` is `true`: there, a missing service is a failure.
pub fn endpoint() -> Option<&'static str> {
    static EMULATOR: OnceLock<Option<Emulator>> = OnceLock::new();
    let emulator = EMULATOR.get_or_init(|| match given().map_or_else(start, Ok) {
        Ok(emulator) => Some(emulator),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "MiniStack cannot be started: {error}");
            eprintln!("SKIPPED: MiniStack cannot be started here ({error}); see localstack/README.md");
            None
        }
    });
    emulator.as_ref().map(|emulator| emulator.endpoint.as_str())
}

/// A name no other test uses, lower-case letters, digits and dashes: good for buckets and queues.
pub fn unique(prefix: &str) -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let random = RandomState::new().build_hasher().finish();
    format!("{prefix}-{random:016x}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn given() -> Option<Emulator> {
    let endpoint = std::env::var(ENDPOINT_VARIABLE).ok().filter(|endpoint| !endpoint.is_empty())?;
    Some(Emulator { endpoint: endpoint.trim_end_matches('/').to_owned(), _holder: None })
}

fn start() -> Result<Emulator, Error> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut holder = Command::new("bash")
        .arg(root.join("localstack/ministack.sh"))
        .arg(target.join("ministack"))
        .arg("hold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let output = holder.stdout.take().ok_or_else(|| Error::from(ErrorKind::BrokenPipe))?;
    let (mut output, mut endpoint, mut pid) = (BufReader::new(output), String::new(), String::new());
    output.read_line(&mut endpoint)?;
    // Read to the end of what the script says: a pipe closed before would end it.
    output.read_line(&mut pid)?;
    match endpoint.trim().strip_prefix("endpoint=") {
        Some(endpoint) => Ok(Emulator { endpoint: endpoint.to_owned(), _holder: Some(holder) }),
        None => {
            let mut reason = String::new();
            if let Some(mut stderr) = holder.stderr.take() {
                stderr.read_to_string(&mut reason)?;
            }
            Err(Error::other(format!("ministack.sh: {}, {}", holder.wait()?, reason.trim())))
        }
    }
}
