//! responses.jsonl: every request the page made, with what became of it.

use super::{Extract, Failure, Made, done};
use crate::page::{File, Page};
use serde_json::json;

pub(super) const EXTRACT: Extract = Extract { name: "responses", applies: Page::to_render, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let rendered = done(page)?;
    let mut lines = String::new();
    for r in &rendered.capture.resources {
        let line = json!({
            "url": r.url,
            "method": r.method,
            "type": r.resource_type,
            "status": r.status,
            "mime": r.mime,
            "protocol": r.protocol,
            "remote_ip": r.remote_ip,
            "size": r.decoded_length,
            "encoded_length": r.encoded_length,
            "failed": r.failed,
            "started_at": r.started_at,
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    for refusal in &rendered.capture.refusals {
        let line = json!({"refused": refusal.target, "code": refusal.code.as_str(), "reason": refusal.reason});
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    let refused = rendered.capture.refusals.len();
    let mut line = format!("{} requests", rendered.capture.resources.len());
    if refused > 0 {
        line.push_str(&format!(", {refused} refused by the egress guard"));
    }
    Ok(Made::Files(vec![File::new("responses.jsonl", "application/x-ndjson", lines)], Some(line)))
}
