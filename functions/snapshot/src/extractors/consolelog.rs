//! console.jsonl: what the page wrote to its console, and its uncaught errors.

use super::{Extract, Failure, Made, done};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "consolelog", applies: Page::to_render, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let entries = &done(page)?.capture.console;
    if entries.is_empty() {
        return Ok(Made::Nothing("the page wrote nothing to its console"));
    }
    let mut lines = String::new();
    for entry in entries {
        lines.push_str(&serde_json::to_string(entry).unwrap_or_default());
        lines.push('\n');
    }
    let line = format!("{} entries", entries.len());
    Ok(Made::Files(vec![File::new("console.jsonl", "application/x-ndjson", lines)], Some(line)))
}
