//! `list`, `search`, `tasks`.

use super::Context;
use crate::args::{List, Search, Tasks};
use crate::client::Client;
use crate::client::find::crawl_id;
use crate::client::view::{Snapshot, Task, read};
use crate::failure::Failure;
use crate::output::{clean, cut, moment};
use crate::units::{size, time};
use serde_json::Value;
use std::time::Duration;

/// Snapshots, the newest first.
///
/// # Errors
/// The service's refusal.
pub async fn list(cx: &Context, args: List) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    let mut filters = Vec::new();
    if let Some(id) = &args.crawl {
        filters.push(("crawl", crawl_id(&client, id).await?));
    }
    let given = [
        ("tag", args.tag),
        ("domain", args.domain),
        ("url", args.url),
        ("url_prefix", args.url_prefix),
        ("status", args.status),
    ];
    filters.extend(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
    if args.failed {
        filters.push(("failed", "true".to_owned()));
    }
    let rows = client.list("/v1/snapshots", &filters, args.paging.limit).await?;
    cx.out.rows(&rows, &["ID", "CREATED", "STATUS", "HTTP", "SIZE", "URL", "TITLE"], |row| {
        let page: Snapshot = read(row);
        vec![
            page.id,
            moment(&page.created_at),
            page.error.map_or(page.status, |e| e.code),
            page.http_status.map_or_else(|| "-".to_owned(), |s| s.to_string()),
            size(page.size),
            cut(&page.url, 70),
            labelled(&cut(page.title.as_deref().unwrap_or_default(), 50), &page.tags),
        ]
    });
    Ok(())
}

/// A text and, behind it, tags.
pub(super) fn labelled(text: &str, tags: &[String]) -> String {
    let tags: Vec<String> = tags.iter().map(|t| format!("#{}", clean(t))).collect();
    format!("{text} {}", tags.join(" ")).trim().to_owned()
}

/// Full-text search.
///
/// # Errors
/// The service's refusal.
pub async fn search(cx: &Context, args: Search) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    let mut query = vec![("q", args.query.join(" ")), ("limit", args.limit.to_string())];
    query.extend(args.tag.map(|t| ("tag", t)));
    query.extend(args.domain.map(|d| ("domain", d)));
    if let Some(id) = &args.crawl {
        query.push(("crawl", crawl_id(&client, id).await?));
    }
    let answer = client.get("/v1/search", &query).await?;
    let items = answer["items"].as_array().cloned().unwrap_or_default();
    for item in &items {
        cx.out.value(item);
        let page: Snapshot = read(&item["snapshot"]);
        let title = page.title.as_deref().map_or_else(|| "(no title)".to_owned(), clean);
        cx.out.line(format_args!("{}  {title}", page.id));
        cx.out.line(format_args!("    {}", cut(&page.url, 120)));
        let snippet = snippet(&item["snippet"]);
        if !snippet.is_empty() {
            cx.out.line(format_args!("    {snippet}"));
        }
    }
    if items.is_empty() {
        cx.out.line("(nothing found)");
    }
    if answer["capped"].as_bool() == Some(true) {
        cx.out.note("fonds: more than 1,000 pages match; the newest 1,000 were ranked. Add words, --tag or --domain.");
    }
    Ok(())
}

/// A snippet with its hits marked as `*hits*`.
fn snippet(parts: &Value) -> String {
    let text = |part: &Value| {
        let text = part["text"].as_str().unwrap_or_default();
        if part["hit"].as_bool() == Some(true) { format!("*{text}*") } else { text.to_owned() }
    };
    cut(&parts.as_array().into_iter().flatten().map(text).collect::<String>(), 240)
}

/// What the service is working on.
///
/// # Errors
/// The service's refusal.
pub async fn tasks(cx: &Context, args: Tasks) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    let mut filters = vec![("status", args.status)];
    filters.extend(args.kind.map(|k| ("kind", k)));
    if let Some(id) = &args.crawl {
        filters.push(("crawl", crawl_id(&client, id).await?));
    }
    let rows = client.list("/v1/tasks", &filters, args.paging.limit).await?;
    cx.out.rows(&rows, &["ID", "KIND", "STATUS", "TRY", "FOR", "LEASE LEFT", "ABOUT"], |row| {
        let task: Task = read(row);
        let seconds =
            |s: Option<f64>| s.map_or_else(|| "-".to_owned(), |s| time(Duration::from_secs_f64(s.clamp(0.0, 1e9))));
        let status = if task.held { "held".to_owned() } else { task.status };
        vec![
            task.id,
            task.kind,
            status,
            format!("{}/{}", task.attempt, task.max_attempts),
            seconds(task.running_s),
            seconds(task.lease_left_s),
            task.error.map_or_else(
                || task.crawl_id.map(|c| format!("crawl {c}")).unwrap_or_default(),
                |e| cut(&e.line(), 100),
            ),
        ]
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_snippet_marks_its_hits() {
        let parts = json!([{"text": "the ", "hit": false}, {"text": "lamp", "hit": true}, {"text": "\u{1b}[0m is lit", "hit": false}]);
        assert_eq!(snippet(&parts), "the *lamp*\u{fffd}[0m is lit");
        assert_eq!(snippet(&Value::Null), "");
    }

    #[test]
    fn tags_stand_behind() {
        assert_eq!(labelled("t", &["a".into(), "b".into()]), "t #a #b");
        assert_eq!(labelled("", &[]), "");
    }
}
