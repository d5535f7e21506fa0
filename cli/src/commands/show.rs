//! `show`: everything known about one snapshot or crawl.

use super::{Context, report};
use crate::client::Client;
use crate::client::find::{Found, find};
use crate::client::view::{Crawl, Snapshot, read};
use crate::failure::Failure;
use crate::output::{clean, cut, moment};
use crate::progress::describe;
use crate::units::size;
use serde_json::Value;
use std::time::Duration;

/// Shows what the id names.
///
/// # Errors
/// `NOT_FOUND`, or the service's refusal.
pub async fn show(cx: &Context, id: &str) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    let found = find(&client, id).await?;
    match found {
        Found::Crawl(_) => crawl(cx, &client, found.id()).await,
        Found::Snapshot(_) => {
            let row = client.get(&found.path(), &[]).await?;
            cx.out.value(&row);
            for line in snapshot_lines(&read(&row)) {
                cx.out.line(line);
            }
            Ok(())
        }
    }
}

/// Shows a crawl.
///
/// # Errors
/// When the service cannot be asked.
pub(super) async fn crawl(cx: &Context, client: &Client, id: &str) -> Result<(), Failure> {
    let row = client.get(&format!("/v1/crawls/{id}"), &[]).await?;
    cx.out.value(&row);
    if cx.out.json {
        return Ok(());
    }
    let crawl: Crawl = read(&row);
    if crawl.is_over() {
        let report = report::Report::of(client, &crawl).await?;
        report.print(cx, &crawl);
        report.point_to_it(cx, &crawl);
    } else {
        cx.out.line(format_args!("crawl {id} is {}: {}", crawl.status, describe(&crawl, running_for(&crawl))));
    }
    for line in setup_lines(crawl.setup_report.as_ref()) {
        cx.out.line(line);
    }
    for file in &crawl.files {
        cx.out.line(format_args!("  file {} ({})", file.path, size(file.size)));
    }
    Ok(())
}

fn running_for(crawl: &Crawl) -> Duration {
    let since = chrono::DateTime::parse_from_rfc3339(&crawl.created_at).ok();
    since.and_then(|t| (chrono::Utc::now() - t.to_utc()).to_std().ok()).unwrap_or_default()
}

/// What became of the input: its counts, as the set-up reported them.
fn setup_lines(report: Option<&Value>) -> Vec<String> {
    let Some(Value::Object(fields)) = report else { return Vec::new() };
    let counts: Vec<String> = fields
        .iter()
        .filter(|(_, v)| v.is_u64() || v.is_string())
        .map(|(k, v)| format!("{} {}", k.replace('_', " "), clean(v.as_str().unwrap_or(&v.to_string()))))
        .collect();
    if counts.is_empty() { Vec::new() } else { vec![format!("  input: {}", counts.join(", "))] }
}

fn snapshot_lines(page: &Snapshot) -> Vec<String> {
    let mut lines = vec![format!("snapshot {}", page.id), format!("  url       {}", clean(&page.url))];
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|v| !v.is_empty()) {
            lines.push(format!("  {name:<9} {value}"));
        }
    };
    add("led to", page.final_url.clone().filter(|u| *u != page.url).map(|u| clean(&u)));
    add("title", page.title.as_deref().map(clean));
    let step = page.step.as_deref().map(|s| format!(" ({s})")).unwrap_or_default();
    add("status", Some(format!("{}{step}", page.status)));
    add(
        "answer",
        page.http_status.map(|s| format!("{s} {}", clean(page.mime.as_deref().unwrap_or_default())).trim().to_owned()),
    );
    add("failed", page.error.as_ref().map(|e| clean(&e.line())));
    add("advice", page.error.as_ref().and_then(|e| e.advice.clone()));
    add("captured", page.downloaded_at.as_deref().map(moment));
    add("depth", Some(page.depth.to_string()));
    add("tags", Some(page.tags.iter().map(|t| clean(t)).collect::<Vec<_>>().join(", ")));
    add("crawl", Some(page.crawl_id.clone()));
    add("size", Some(size(page.size)));
    for result in &page.results {
        let why = result
            .error
            .as_ref()
            .map(crate::client::view::RowError::line)
            .or_else(|| result.output.clone())
            .unwrap_or_default();
        lines
            .push(format!("  {:<20} {:<10} {}", result.extractor, result.status, cut(&why, 110)).trim_end().to_owned());
        for file in &result.files {
            lines.push(format!("      {} ({}, {})", clean(&file.path), size(file.size), clean(&file.mime)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_snapshot_is_shown_with_every_result_and_its_reason() {
        let page = read(
            &json!({"id": "i", "url": "http://x/", "final_url": "http://y/", "title": "T\u{7}", "status": "sealed",
            "http_status": 404, "mime": "text/html", "tags": ["a"], "error": {"code": "HTTP_ERROR", "detail": null, "advice": "It is kept."},
            "results": [{"extractor": "pdf", "status": "failed", "error": {"code": "EXTRACTOR_TIMEOUT", "detail": "60 s"}},
                        {"extractor": "title", "status": "succeeded", "output": "T", "files": [{"path": "title.txt", "size": 1, "mime": "text/plain"}]}]}),
        );
        let text = snapshot_lines(&page).join("\n");
        for part in [
            "led to    http://y/",
            "title     T\u{fffd}",
            "answer    404 text/html",
            "failed    HTTP_ERROR: It is kept.",
            "pdf                  failed     EXTRACTOR_TIMEOUT: 60 s",
            "      title.txt (1 B, text/plain)",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn the_report_of_the_input_is_summed_up() {
        let report = json!({"format": "text", "urls": 3, "rejected": [], "not_admitted": 1});
        assert_eq!(setup_lines(Some(&report)), ["  input: format text, not admitted 1, urls 3"]);
        assert!(setup_lines(None).is_empty() && setup_lines(Some(&json!({}))).is_empty());
    }
}
