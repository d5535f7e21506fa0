//! Logs and metrics: the subscriber, the names of fields, and embedded-metric lines.
//!
//! Logs are JSON lines on standard error in functions and services, readable lines on a terminal.
//! Identifiers stand in the message and as dotted fields (`run.id`, `run.kind`, `run.attempt`);
//! durations end in `_ms`. Metrics are CloudWatch embedded-metric lines, so they need no agent.
#![warn(missing_docs)]

use serde_json::json;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Where log lines go and how they look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON lines.
    Json,
    /// For people.
    Plain,
}

/// Installs the subscriber; `FONDS_LOG` (or `RUST_LOG`) filters, `info` by default. A second call
/// does nothing, so tests may call it freely.
pub fn init(format: Option<Format>) {
    let filter = std::env::var("FONDS_LOG")
        .or_else(|_| std::env::var("RUST_LOG"))
        .ok()
        .and_then(|f| EnvFilter::try_new(f).ok())
        .unwrap_or_else(|| EnvFilter::new("info,sqlx=warn,hyper=warn,h2=warn,rustls=warn,aws_config=warn"));
    let terminal = std::io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { Format::Plain } else { Format::Json });
    let registry = tracing_subscriber::registry().with(filter);
    let installed = match format {
        Format::Json => registry
            .with(fmt::layer().json().flatten_event(true).with_current_span(false).with_writer(std::io::stderr))
            .try_init(),
        Format::Plain => {
            registry.with(fmt::layer().with_target(false).with_ansi(terminal).with_writer(std::io::stderr)).try_init()
        }
    };
    // Already installed: the first one stays.
    drop(installed);
}

/// One CloudWatch embedded-metric line: `metrics` are (name, unit, value) under the dimension
/// `kind`. Returned as text, so that the caller decides whether metrics are wanted.
#[must_use]
pub fn metric_line(kind: &str, metrics: &[(&str, &str, f64)]) -> String {
    let mut line = json!({
        "_aws": {
            "Timestamp": chrono::Utc::now().timestamp_millis(),
            "CloudWatchMetrics": [{
                "Namespace": "fonds",
                "Dimensions": [["kind"]],
                "Metrics": metrics.iter().map(|(n, u, _)| json!({"Name": n, "Unit": u})).collect::<Vec<_>>(),
            }],
        },
        "kind": kind,
    });
    for (name, _, value) in metrics {
        line[*name] = json!(value);
    }
    line.to_string()
}

/// Whether metric lines are wanted: in Lambda always, elsewhere with `FONDS_METRICS=1`.
#[must_use]
pub fn metrics_wanted() -> bool {
    std::env::var_os("AWS_LAMBDA_FUNCTION_NAME").is_some()
        || std::env::var_os("FONDS_METRICS").is_some_and(|v| v == "1")
}

/// Writes a metric line to standard output, where the Lambda log stream picks it up.
#[expect(clippy::print_stdout, reason = "the embedded-metric format is read from standard output")]
pub fn emit(kind: &str, metrics: &[(&str, &str, f64)]) {
    if metrics_wanted() {
        println!("{}", metric_line(kind, metrics));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_line_names_its_dimension_and_values() {
        let line: serde_json::Value =
            serde_json::from_str(&metric_line("snapshot", &[("runs", "Count", 3.0)])).expect("JSON");
        assert_eq!(line["kind"], "snapshot");
        assert_eq!(line["runs"], 3.0);
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Unit"], "Count");
    }
}
