//! redirects.jsonl: every hop that led to the final answer.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};
use serde_json::json;

pub(super) const EXTRACT: Extract = Extract { name: "redirects", applies: |page| page.fetched.hops.len() > 1, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let mut lines = String::new();
    for hop in &page.fetched.hops {
        let location = hop.headers.get(http::header::LOCATION).map(|v| String::from_utf8_lossy(v.as_bytes()));
        let line = json!({
            "url": hop.url.as_str(),
            "status": hop.status.as_u16(),
            "location": location,
            "remote_address": hop.remote_addr.to_string(),
            "date": hop.started_at,
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    let line = format!("{} redirects to {}", page.fetched.hops.len() - 1, page.final_url());
    Ok(Made::Files(vec![File::new("redirects.jsonl", "application/x-ndjson", lines)], Some(line)))
}
