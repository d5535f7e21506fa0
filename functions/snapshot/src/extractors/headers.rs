//! headers.json: the final answer's status and headers, and the request that got it.

use super::{Extract, Failure, Made, json_file};
use crate::page::Page;
use serde_json::{Value, json};

pub(super) const EXTRACT: Extract = Extract { name: "headers", applies: |page| page.answer().is_some(), run };

fn run(page: &Page) -> Result<Made, Failure> {
    let Some(hop) = page.answer() else { return Ok(Made::Nothing("no answer")) };
    let headers: Vec<Value> = hop
        .headers
        .iter()
        .map(|(name, value)| json!({"name": name.as_str(), "value": String::from_utf8_lossy(value.as_bytes())}))
        .collect();
    let request = String::from_utf8_lossy(&hop.request_head);
    let value = json!({
        "url": hop.url.as_str(),
        "status": hop.status.as_u16(),
        "protocol": hop.protocol,
        "remote_address": hop.remote_addr.to_string(),
        "date": hop.started_at,
        "ttfb_ms": hop.ttfb_ms,
        "total_ms": hop.total_ms,
        "headers": headers,
        "raw": String::from_utf8_lossy(&hop.response_head),
        "request": request,
        "robots": page.robots_note,
    });
    let line = format!("{} {}", hop.status.as_u16(), hop.media_type().unwrap_or_default());
    Ok(Made::Files(vec![json_file("headers.json", &value)], Some(line)))
}
