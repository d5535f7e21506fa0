//! Starting the host as a process of its own, for `up --detach` and for commands that need one.

use crate::failure::{Exit, Failure};
use crate::home::{Home, HostFile};
use crate::host::cluster::last_lines;
use std::fs::OpenOptions;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Making the database for the first time and recovering it after a crash take their time.
const PATIENCE: Duration = Duration::from_secs(330);

/// Starts `fonds up` with these arguments in the background and waits until it answers. It goes on
/// when this process ends.
///
/// # Errors
/// When it ends instead; with the last lines of its log.
pub async fn detached(home: &Home, args: &[String]) -> Result<HostFile, Failure> {
    home.prepare()?;
    super::rotate(&home.host_log());
    let open = || OpenOptions::new().create(true).append(true).open(home.host_log());
    let log = open().map_err(|e| Failure::io(home.host_log().display(), &e))?;
    let said_before = log.metadata().map_or(0, |m| m.len());
    let errors = log.try_clone().map_err(|e| Failure::io("the host's log", &e))?;
    let program = std::env::current_exe().map_err(|e| Failure::io("this program", &e))?;
    let mut child = Command::new(program)
        .arg("up")
        .arg("--data")
        .arg(home.dir())
        .arg("--detached")
        .args(args)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .map_err(|e| Failure::io("fonds up", &e))?;
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(host) = home.host()
            && host.pid == child.id()
        {
            return Ok(host);
        }
        if let Some(failure) = ended(&mut child, home, said_before) {
            return Err(failure);
        }
        if Instant::now() >= until {
            return Err(Failure::new(
                "HOST_NOT_READY",
                format!("fonds up is not ready after {} s", PATIENCE.as_secs()),
            )
            .advise(format!("It may still come up. Its log: {}", home.host_log().display())));
        }
        sleep(Duration::from_millis(50)).await;
    }
}

fn ended(child: &mut Child, home: &Home, said_before: u64) -> Option<Failure> {
    let status = child.try_wait().ok().flatten()?;
    let log = std::fs::read(home.host_log()).unwrap_or_default();
    let new = log.get(usize::try_from(said_before).unwrap_or(0)..).unwrap_or_default();
    let said = String::from_utf8_lossy(new);
    // The host names its own failure; that is what the person should read.
    if let Some(failure) = said.lines().rev().find_map(read_failure) {
        return Some(failure);
    }
    Some(
        Failure::new("HOST_FAILED", format!("fonds up ended ({status}):\n{}", last_lines(&said, 8)))
            .advise(format!("Its log: {}", home.host_log().display())),
    )
}

/// The line that a detached host ends with.
fn read_failure(line: &str) -> Option<Failure> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let error = value.get("error")?;
    let text = |key: &str| error.get(key).and_then(|v| v.as_str()).map(str::to_owned);
    Some(Failure {
        exit: Exit::Failed,
        code: text("code")?,
        detail: text("detail")?,
        advice: text("advice").unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failure_of_a_detached_host_is_told_as_its_own() {
        let failure = Failure::new("PORT_IN_USE", "port 1 is taken").advise("Choose another.");
        let read = read_failure(&failure.json()).expect("reads");
        assert_eq!(read.to_string(), failure.to_string());
        assert!(read_failure("{\"level\":\"ERROR\"}").is_none());
        assert!(read_failure("plain").is_none());
    }
}
