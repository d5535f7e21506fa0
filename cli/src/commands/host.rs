//! `up`, `down`, `status`.

use super::Context;
use crate::args::Up;
use crate::client::{Client, no_host};
use crate::failure::{Exit, Failure};
use crate::home::{Home, HostFile};
use crate::host::cluster::{clear_leftovers, processes};
use crate::host::{Host, HostOptions, start};
use crate::units::{count, size, time};
use rustix::process::{Pid, Signal, kill_process, setsid};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A host ends within its functions' margin, the API's grace and the database's shutdown.
const DOWN_PATIENCE: Duration = Duration::from_secs(120);

/// Runs the host, here or in the background.
///
/// # Errors
/// What kept it from starting.
pub async fn up(cx: &Context, args: Up) -> Result<(), Failure> {
    if args.detach && !args.detached {
        let host = start::detached(&cx.home, &arguments(&args)).await?;
        tell(cx, &host);
        return Ok(());
    }
    if args.detached && setsid().is_err() {
        tracing::debug!("already the leader of a process group");
    }
    fonds_telemetry::init(args.detached.then_some(fonds_telemetry::Format::Json));
    let options = HostOptions {
        home: cx.home.clone(),
        port: args.port,
        allow_private: args.allow_private,
        database_url: args.database_url,
        blobs: args.blobs,
    };
    let started = tokio::select! {
        started = Box::pin(Host::start(&options)) => started,
        // A start that is broken off drops what it had started, and the database with it.
        _ = tokio::signal::ctrl_c() => Err(Failure::new("INTERRUPTED", "interrupted while starting").exit(Exit::Interrupted)),
    };
    let host = match started {
        Ok(host) => host,
        Err(failure) if args.detached => {
            // Read by the process that started this one.
            crate::output::eprint_line(&failure.json());
            std::process::exit(failure.exit as i32);
        }
        Err(failure) => return Err(failure),
    };
    tracing::info!(url = host.file.url, data = %cx.home.dir().display(), "fonds is ready");
    if !args.detached {
        tell(cx, &host.file);
    }
    host.run().await
}

/// The arguments that a detached host is started with.
fn arguments(args: &Up) -> Vec<String> {
    let mut list = Vec::new();
    if let Some(port) = args.port {
        list.extend(["--port".to_owned(), port.to_string()]);
    }
    if args.allow_private {
        list.push("--allow-private".to_owned());
    }
    for (flag, value) in [("--database-url", &args.database_url), ("--blobs", &args.blobs)] {
        if let Some(value) = value {
            list.extend([flag.to_owned(), value.clone()]);
        }
    }
    list
}

/// Says where the host is and how to use it.
pub(super) fn tell(cx: &Context, host: &HostFile) {
    cx.out.value(&public(host, &cx.home, true));
    cx.out.line(format_args!("fonds runs at {} for {}", host.url, cx.home.dir().display()));
    cx.out.line(format_args!("  token   {}", host.token));
    cx.out.line(format_args!(
        "          (also in {}; make others with `fonds token create NAME`)",
        cx.home.token().display()
    ));
    cx.out.line("  next    fonds add https://example.org/ --depth 1 --wait");
    if host.allow_private {
        cx.out.line("  note    private and loopback addresses may be archived (--allow-private)");
    }
}

fn public(host: &HostFile, home: &Home, token: bool) -> Value {
    let mut value = json!({"running": true, "url": host.url, "pid": host.pid, "data": home.dir(), "blobs": host.blobs,
        "version": host.version, "allow_private": host.allow_private, "started_at": host.started_at});
    if token {
        value["token"] = json!(host.token);
    }
    value
}

/// Ends the host of the data folder, and a database that an earlier one left running.
///
/// # Errors
/// When it does not end.
pub async fn down(cx: &Context) -> Result<(), Failure> {
    let ended = end(&cx.home).await?;
    cx.out.value(&json!({"running": false, "ended": !matches!(ended, Ended::Nothing)}));
    match ended {
        Ended::Host(took) => cx.out.line(format_args!("ended after {}", time(took))),
        Ended::Leftovers => cx.out.line("ended the database that an earlier fonds had left running"),
        Ended::Nothing => cx.out.line(format_args!("no fonds runs for {}", cx.home.dir().display())),
    }
    Ok(())
}

/// What [`end`] ended.
pub(super) enum Ended {
    /// A host, which took this long.
    Host(Duration),
    /// The database of a killed host.
    Leftovers,
    /// Nothing ran.
    Nothing,
}

/// Ends what runs for the data folder and waits until it has ended.
///
/// # Errors
/// When it does not end.
pub(super) async fn end(home: &Home) -> Result<Ended, Failure> {
    let began = Instant::now();
    let Some(host) = home.host() else {
        if home.is_held() {
            return Err(Failure::new("HOST_BUSY", "fonds is starting or ending").advise("Try again in a moment."));
        }
        let Some(cluster) = home.cluster().canonicalize().ok().filter(|dir| !processes(dir).is_empty()) else {
            return Ok(Ended::Nothing);
        };
        clear_leftovers(&cluster).await.map_err(|e| Failure::io("the database", &e))?;
        return Ok(Ended::Leftovers);
    };
    let pid = i32::try_from(host.pid).ok().and_then(Pid::from_raw);
    let sent = pid.ok_or(rustix::io::Errno::SRCH).and_then(|pid| kill_process(pid, Signal::TERM));
    sent.map_err(|e| {
        Failure::new("NOT_ALLOWED", format!("fonds (process {}) cannot be ended: {e}", host.pid))
            .advise("It runs as another user: do this as that user or as root.")
    })?;
    while home.is_held() {
        if began.elapsed() > DOWN_PATIENCE {
            return Err(Failure::new("HOST_BUSY", format!("fonds has not ended after {} s", DOWN_PATIENCE.as_secs()))
                .advise(format!("See {}; a second `fonds down` ends it at once.", home.host_log().display())));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(Ended::Host(began.elapsed()))
}

/// What runs and where, and how much it holds.
///
/// # Errors
/// `NO_HOST` when nothing runs.
pub async fn status(cx: &Context) -> Result<(), Failure> {
    let remote = Client::from_env()?;
    let host = if remote.is_some() { None } else { cx.home.host() };
    let client = match (&remote, &host) {
        (Some(client), _) => client.clone(),
        (None, Some(host)) => Client::of(host)?,
        (None, None) => {
            cx.out.value(&json!({"running": false, "data": cx.home.dir()}));
            let left = cx.home.cluster().canonicalize().map(|dir| processes(&dir).len()).unwrap_or(0);
            if left > 0 {
                cx.out.note("fonds: a database of a killed fonds still runs; `fonds up` or `fonds down` ends it");
            }
            return Err(no_host(&cx.home));
        }
    };
    let stats = client.get("/v1/system/stats", &[]).await?;
    if cx.out.json {
        let mut value = host
            .as_ref()
            .map_or_else(|| json!({"running": true, "url": client.address()}), |h| public(h, &cx.home, false));
        value["stats"] = stats;
        cx.out.value(&value);
        return Ok(());
    }
    cx.out.line(format_args!("fonds {} at {}", stats["version"].as_str().unwrap_or("?"), client.address()));
    if let Some(host) = &host {
        let private = if host.allow_private { "; private addresses may be archived" } else { "" };
        cx.out.line(format_args!("  process    {} since {}{private}", host.pid, host.started_at));
        cx.out.line(format_args!("  data       {}", cx.home.dir().display()));
        cx.out.line(format_args!("  blobs      {}", host.blobs));
    }
    for line in stat_lines(&stats) {
        cx.out.line(line);
    }
    Ok(())
}

/// The counts, as lines. An estimate is marked `~`.
fn stat_lines(stats: &Value) -> Vec<String> {
    let number = |v: &Value| v["value"].as_u64().or_else(|| v.as_u64()).unwrap_or(0);
    let amount = |v: &Value| {
        let about = if v["exact"].as_bool() == Some(false) { "~" } else { "" };
        format!("{about}{}", number(v))
    };
    let crawls = &stats["crawls"];
    let mut lines = vec![
        format!(
            "  crawls     {} ({} queued, {} running, {} paused)",
            amount(&crawls["total"]),
            amount(&crawls["queued"]),
            amount(&crawls["started"]),
            amount(&crawls["paused"])
        ),
        format!("  snapshots  {} ({} open)", amount(&stats["snapshots"]["total"]), amount(&stats["snapshots"]["open"])),
        format!("  results    {}", amount(&stats["results"]["total"])),
        format!(
            "  stored     {} in {}",
            size(number(&stats["objects"]["bytes"])),
            count(number(&stats["objects"]["total"]), "object")
        ),
        format!("  database   {}", size(number(&stats["database_bytes"]))),
        format!("  last sweep {}", stats["sweep_last_tick"].as_str().unwrap_or("none yet")),
    ];
    for kind in stats["tasks"].as_array().into_iter().flatten() {
        let (queued, running) = (number(&kind["queued"]), number(&kind["running"]));
        if queued + running > 0 {
            let oldest = kind["oldest_due_s"].as_f64().unwrap_or(0.0).max(0.0);
            let oldest = if oldest >= 1.0 {
                format!(", the oldest waits since {}", time(Duration::from_secs_f64(oldest)))
            } else {
                String::new()
            };
            lines.push(format!(
                "  {:<10} {running} running, {queued} queued{oldest}",
                kind["kind"].as_str().unwrap_or("?")
            ));
        }
    }
    let failed = &stats["failed_tasks_24h"];
    if number(failed) > 0 {
        lines.push(format!("  failed     {} tasks in 24 h: see `fonds tasks --status failed`", amount(failed)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_with_what_is_estimated() {
        let stats = json!({"crawls": {"total": {"value": 12, "exact": true}, "queued": 0, "started": 1, "paused": 0},
            "snapshots": {"total": {"value": 20000, "exact": false}, "open": {"value": 3, "exact": true}},
            "results": {"total": {"value": 9, "exact": true}}, "objects": {"total": {"value": 1, "exact": true}, "bytes": {"value": 2048, "exact": true}},
            "tasks": [{"kind": "snapshot", "queued": {"value": 2, "exact": true}, "running": 1, "oldest_due_s": 75.0},
                      {"kind": "sweep", "queued": {"value": 0, "exact": true}, "running": 0, "oldest_due_s": null}],
            "failed_tasks_24h": {"value": 1, "exact": true}, "database_bytes": 1048576, "sweep_last_tick": null});
        let text = stat_lines(&stats).join("\n");
        for part in [
            "12 (0 queued, 1 running, 0 paused)",
            "~20000 (3 open)",
            "2.0 KB in 1 object",
            "snapshot   1 running, 2 queued, the oldest waits since 1 min 15 s",
            "1 tasks in 24 h",
            "none yet",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("sweep      "), "{text}");
        assert!(!stat_lines(&Value::Null).is_empty(), "an odd answer is no panic");
    }

    #[test]
    fn a_detached_host_is_started_as_asked() {
        let args = Up {
            port: Some(9),
            detach: true,
            allow_private: true,
            database_url: None,
            blobs: Some("s3://b/p".into()),
            detached: false,
        };
        assert_eq!(arguments(&args), ["--port", "9", "--allow-private", "--blobs", "s3://b/p"]);
    }
}
