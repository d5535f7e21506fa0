//! Console messages, within bounds.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::model::ConsoleEntry;
use crate::browser::cdp::{CdpError, Event};

const MAX_ENTRIES: usize = 1000;
const MAX_TEXT: usize = 4096;

/// What was written to the console so far.
#[derive(Debug, Default)]
pub(super) struct Console {
    pub(super) entries: Vec<ConsoleEntry>,
    pub(super) truncated: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Called {
    #[serde(rename = "type")]
    level: String,
    args: Vec<Remote>,
    #[serde(default)]
    timestamp: f64,
    stack_trace: Option<Stack>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Remote {
    #[serde(rename = "type", default)]
    kind: String,
    value: Option<Value>,
    unserializable_value: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stack {
    call_frames: Vec<CallFrame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallFrame {
    url: String,
    line_number: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thrown {
    #[serde(default)]
    timestamp: f64,
    exception_details: Details,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(default)]
    text: String,
    exception: Option<Remote>,
    url: Option<String>,
    line_number: Option<i64>,
}

#[derive(Deserialize)]
struct Logged {
    entry: LogEntry,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogEntry {
    level: String,
    text: String,
    url: Option<String>,
    line_number: Option<i64>,
    #[serde(default)]
    timestamp: f64,
}

impl Console {
    /// Takes one of the three events; false when no more are wanted.
    pub(super) fn take(&mut self, event: &Event) -> Result<bool, CdpError> {
        if self.entries.len() >= MAX_ENTRIES {
            self.truncated = true;
            return Ok(false);
        }
        let entry = match event.method {
            "Runtime.consoleAPICalled" => called(event.decode()?),
            "Runtime.exceptionThrown" => thrown(event.decode()?),
            _ => logged(event.decode()?),
        };
        self.entries.push(entry);
        Ok(true)
    }
}

fn called(called: Called) -> ConsoleEntry {
    let mut text = String::new();
    for arg in &called.args {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&shown(arg));
        if text.len() > MAX_TEXT {
            break;
        }
    }
    let frame = called.stack_trace.and_then(|s| s.call_frames.into_iter().next());
    ConsoleEntry {
        source: "console",
        level: called.level,
        text: cut(text),
        line: frame.as_ref().and_then(|f| line(f.line_number)),
        url: frame.map(|f| f.url).filter(|url| !url.is_empty()),
        at: at(called.timestamp),
    }
}

fn thrown(thrown: Thrown) -> ConsoleEntry {
    let details = thrown.exception_details;
    let text = match details.exception.as_ref() {
        Some(exception) => format!("{} {}", details.text, shown(exception)),
        None => details.text,
    };
    ConsoleEntry {
        source: "exception",
        level: "error".to_owned(),
        text: cut(text),
        url: details.url,
        line: details.line_number.and_then(line),
        at: at(thrown.timestamp),
    }
}

fn logged(logged: Logged) -> ConsoleEntry {
    let entry = logged.entry;
    ConsoleEntry {
        source: "log",
        level: entry.level,
        text: cut(entry.text),
        url: entry.url,
        line: entry.line_number.and_then(line),
        at: at(entry.timestamp),
    }
}

fn shown(arg: &Remote) -> String {
    match (&arg.value, &arg.unserializable_value, &arg.description) {
        (Some(Value::String(text)), ..) => text.clone(),
        (Some(value), ..) => value.to_string(),
        (None, Some(text), _) | (None, None, Some(text)) => text.clone(),
        (None, None, None) => arg.kind.clone(),
    }
}

/// The protocol counts lines from 0.
fn line(number: i64) -> Option<u32> {
    u32::try_from(number.checked_add(1)?).ok()
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = text.floor_char_boundary(MAX_TEXT);
        text.truncate(end);
    }
    text
}

/// Milliseconds since the epoch.
#[expect(clippy::cast_possible_truncation, reason = "a float out of range saturates, and is then no date")]
fn at(millis: f64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros((millis * 1000.0) as i64).unwrap_or_default()
}
