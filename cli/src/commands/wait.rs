//! Waiting for crawls: shows progress until each is over. Interrupted, the work goes on in the service.

use super::Context;
use crate::client::Client;
use crate::client::view::{Crawl, read};
use crate::failure::{Exit, Failure};
use crate::progress::Progress;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a service may be away (a restart) before waiting for it is given up.
const OUTAGE: Duration = Duration::from_secs(60);
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);

/// Waits until the crawl is over and returns it.
///
/// # Errors
/// 130 when interrupted; unreachable when the service stays away.
pub async fn wait(cx: &Context, client: &Client, id: &str) -> Result<Crawl, Failure> {
    tokio::select! {
        crawl = watch(cx, client, id) => crawl,
        _ = tokio::signal::ctrl_c() => {
            cx.out.note(format_args!("\nfonds: interrupted; the crawl goes on in the service. Watch it again: fonds crawl wait {id}"));
            Err(Failure::new("INTERRUPTED", format!("no longer waiting for crawl {id}"))
                .advise("The crawl goes on in the service; `fonds crawl cancel` would end it.")
                .exit(Exit::Interrupted))
        }
    }
}

async fn watch(cx: &Context, client: &Client, id: &str) -> Result<Crawl, Failure> {
    let mut progress = Progress::new(cx.out.json);
    let mut pause = SHORTEST;
    let mut last_answer = Instant::now();
    let end = loop {
        match client.get(&format!("/v1/crawls/{id}"), &[]).await {
            Ok(value) => {
                last_answer = Instant::now();
                let crawl: Crawl = read(&value);
                progress.update(&crawl);
                if crawl.is_over() {
                    break Ok(crawl);
                }
            }
            Err(failure) if failure.exit == Exit::Unreachable && last_answer.elapsed() < OUTAGE => {}
            Err(failure) => break Err(failure),
        }
        sleep(pause).await;
        // Soon for one page, gently for thousands.
        pause = (pause * 5 / 4).min(LONGEST);
    };
    progress.end();
    end
}
