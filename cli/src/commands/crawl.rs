//! `crawl`: list, show, pause, resume, cancel, wait.

use super::{Context, add, list, report, show, wait};
use crate::args::Crawl as Args;
use crate::client::find::crawl_id;
use crate::client::view::{Crawl, read};
use crate::client::{Client, Query};
use crate::failure::Failure;
use crate::output::{cut, moment};
use crate::units::size;
use serde_json::json;

/// One of the crawl commands.
///
/// # Errors
/// The service's refusal.
pub async fn crawl(cx: &Context, args: Args) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    match args {
        Args::List(paging) => crawls(cx, &client, &[], paging.limit).await,
        Args::Show(id) => {
            let id = crawl_id(&client, &id.id).await?;
            show::crawl(cx, &client, &id).await
        }
        Args::Pause(id) => act(cx, &client, &id.id, "pause").await,
        Args::Resume(id) => act(cx, &client, &id.id, "resume").await,
        Args::Cancel(id) => act(cx, &client, &id.id, "cancel").await,
        Args::Wait(id) => {
            let id = crawl_id(&client, &id.id).await?;
            let crawl = wait::wait(cx, &client, &id).await?;
            add::finish(cx, &client, &crawl).await?;
            report::verdict(&crawl)
        }
    }
}

async fn act(cx: &Context, client: &Client, id: &str, action: &str) -> Result<(), Failure> {
    let id = crawl_id(client, id).await?;
    let answer = client.patch(&format!("/v1/crawls/{id}"), &json!({"action": action})).await?;
    let crawl: Crawl = read(&answer);
    cx.out.value(&answer);
    let reason = crawl.stop_reason.as_deref().map(|r| format!(" ({r})")).unwrap_or_default();
    cx.out.line(format_args!("crawl {id} is {}{reason}", crawl.status));
    Ok(())
}

/// A table of crawls, the newest first.
///
/// # Errors
/// When the service cannot be asked.
pub(super) async fn crawls(cx: &Context, client: &Client, filters: Query<'_>, limit: usize) -> Result<(), Failure> {
    let rows = client.list("/v1/crawls", filters, limit).await?;
    cx.out.rows(&rows, &["ID", "CREATED", "STATUS", "PAGES", "FAILED", "SIZE", "LABEL"], |row| {
        let crawl: Crawl = read(row);
        let status = match crawl.stop_reason.as_deref() {
            Some(reason) if reason != "done" && crawl.is_over() => reason.to_owned(),
            _ => crawl.status.clone(),
        };
        vec![
            crawl.id,
            moment(&crawl.created_at),
            status,
            format!("{}/{}", crawl.counts.sealed, crawl.counts.snapshots),
            crawl.counts.failed.to_string(),
            size(crawl.counts.bytes),
            list::labelled(&cut(&crawl.label, 40), &crawl.tags),
        ]
    });
    Ok(())
}
