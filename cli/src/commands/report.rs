//! What became of a crawl: every page that failed and every output that failed, with its reason.

use super::Context;
use crate::client::Client;
use crate::client::view::{Crawl, Snapshot, read};
use crate::failure::Failure;
use crate::output::cut;
use crate::units::{count, size};
use serde_json::Value;

/// Pages shown one by one; a larger crawl is summed up and its failures are named.
const SHOWN: usize = 50;
/// Failures named one by one.
const NAMED: usize = 20;
/// Pages whose outputs are looked through for failures.
const LOOKED_INTO: usize = 50;

/// A finished crawl, looked into.
#[derive(Debug, Default)]
pub struct Report {
    /// Its pages, oldest first, at most `SHOWN`.
    pub pages: Vec<Snapshot>,
    /// Pages that failed: the URL and the reason.
    pub failed_pages: Vec<(String, String)>,
    /// Outputs that failed: the extractor, the URL and the reason.
    pub failed_outputs: Vec<(String, String, String)>,
}

impl Report {
    /// Reads it from the service.
    ///
    /// # Errors
    /// When the service cannot be asked.
    pub async fn of(client: &Client, crawl: &Crawl) -> Result<Report, Failure> {
        let of_crawl = |extra: Option<&'static str>| {
            let mut query = vec![("crawl", crawl.id.clone())];
            query.extend(extra.map(|e| (e, "true".to_owned())));
            query
        };
        let mut report = Report::default();
        let pages = client.list("/v1/snapshots", &of_crawl(None), SHOWN).await?;
        // Newest first is how lists come; a person reads from the page they asked for.
        report.pages = pages.iter().rev().map(read).collect();
        if crawl.counts.failed > 0 {
            for row in client.list("/v1/snapshots", &of_crawl(Some("failed")), NAMED).await? {
                let page: Snapshot = read(&row);
                let reason = page
                    .error
                    .as_ref()
                    .map_or_else(|| "no reason was kept".to_owned(), super::super::client::view::RowError::line);
                report.failed_pages.push((page.url, reason));
            }
        }
        if crawl.counts.results_failed > 0 {
            for row in client.list("/v1/snapshots", &of_crawl(Some("failed_results")), LOOKED_INTO).await? {
                let id = row.get("id").and_then(Value::as_str).unwrap_or_default();
                let page: Snapshot = read(&client.get(&format!("/v1/snapshots/{id}"), &[]).await?);
                for result in page.results.iter().filter(|r| r.status == "failed") {
                    let reason =
                        result.error.as_ref().map_or_else(String::new, super::super::client::view::RowError::line);
                    report.failed_outputs.push((result.extractor.clone(), page.url.clone(), reason));
                }
            }
        }
        Ok(report)
    }

    /// Prints it.
    pub fn print(&self, cx: &Context, crawl: &Crawl) {
        let n = &crawl.counts;
        let reason = match crawl.stop_reason.as_deref() {
            None | Some("done") => String::new(),
            Some(reason) => format!(", stopped by {reason}"),
        };
        cx.out.line(format_args!(
            "{}: {}, {}, {}{reason}",
            if crawl.label.is_empty() {
                format!("crawl {}", crawl.id)
            } else {
                format!("{} (crawl {})", crawl.label, crawl.id)
            },
            count(n.sealed, "page"),
            count(n.results, "result"),
            size(n.bytes),
        ));
        if n.snapshots <= SHOWN as u64 {
            for page in &self.pages {
                cx.out.line(format_args!("  {}", page_line(page)));
            }
        }
        if let Some(error) = &crawl.error {
            cx.out.line(format_args!("  the crawl: {}", error.line()));
        }
        self.name(
            "failed page",
            n.failed,
            self.failed_pages.iter().map(|(url, why)| format!("{}  {}", cut(url, 100), cut(why, 160))),
            cx,
        );
        self.name(
            "failed output",
            n.results_failed,
            self.failed_outputs.iter().map(|(what, url, why)| format!("{what} of {}  {}", cut(url, 80), cut(why, 160))),
            cx,
        );
    }

    /// Prints how to look at the first page.
    pub fn point_to_it(&self, cx: &Context, crawl: &Crawl) {
        if let Some(page) = self.pages.first() {
            cx.out.line(format_args!("look at it: fonds open {}   fonds show {}", page.id, crawl.id));
        }
    }

    fn name(&self, what: &str, total: u64, lines: impl Iterator<Item = String>, cx: &Context) {
        if total == 0 {
            return;
        }
        cx.out.line(format_args!("  {}:", count(total, what)));
        let mut shown = 0;
        for line in lines.take(NAMED) {
            cx.out.line(format_args!("    {line}"));
            shown += 1;
        }
        if shown < total {
            cx.out.line(format_args!("    and {} more", total - shown));
        }
    }
}

/// A page in one line: how it went, its status, size and title.
fn page_line(page: &Snapshot) -> String {
    let state = match (&page.error, page.status.as_str()) {
        (Some(_), _) => "failed",
        (None, "sealed") => "ok",
        (None, other) => other,
    };
    let status = page.http_status.map_or_else(|| "-".to_owned(), |s| s.to_string());
    let title = page.title.as_deref().map(|t| format!("  {}", cut(t, 50))).unwrap_or_default();
    let outputs = format!(
        "{} ok{}",
        page.n_ok,
        if page.n_failed > 0 { format!(", {} failed", page.n_failed) } else { String::new() }
    );
    format!("{state:<6} {status:>3}  {:<60}  {outputs:<16} {:>7}{title}", cut(&page.url, 60), size(page.size))
}

/// Whether anything of the crawl failed, as the command's own failure.
///
/// # Errors
/// What failed, counted; it was named before.
pub fn verdict(crawl: &Crawl) -> Result<(), Failure> {
    let n = &crawl.counts;
    let mut parts = Vec::new();
    if n.failed > 0 {
        parts.push(count(n.failed, "page"));
    }
    if n.results_failed > 0 {
        parts.push(count(n.results_failed, "output"));
    }
    if let Some(error) = &crawl.error {
        return Err(Failure::new(
            &error.code,
            format!("crawl {}: {}", crawl.id, error.detail.clone().unwrap_or_default()),
        )
        .advise(error.advice.clone().unwrap_or_default()));
    }
    match crawl.stop_reason.as_deref() {
        Some("cancelled") => Err(Failure::new("CANCELLED", format!("crawl {} was cancelled", crawl.id))),
        Some("no_viable_urls") => {
            Err(Failure::new("NO_URLS", format!("crawl {} found no URL to archive in its input", crawl.id)))
        }
        _ if parts.is_empty() => Ok(()),
        _ => Err(Failure::new(
            "INCOMPLETE",
            format!("{} of crawl {} failed; everything else is archived", parts.join(" and "), crawl.id),
        )
        .advise(format!("Each is named above and in `fonds show {}`.", crawl.id))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::view::{Counts, RowError};
    use crate::failure::Exit;

    #[test]
    fn a_crawl_with_failures_fails_the_command() {
        let crawl = |counts, stop: &str, error: Option<RowError>| Crawl {
            id: "c".into(),
            counts,
            stop_reason: Some(stop.into()),
            error,
            ..Crawl::default()
        };
        let clean = Counts { snapshots: 2, sealed: 2, ..Counts::default() };
        assert!(verdict(&crawl(clean, "done", None)).is_ok());
        assert!(verdict(&crawl(clean, "crawl_max_urls", None)).is_ok(), "a limit is what was asked for");
        let failed =
            verdict(&crawl(Counts { failed: 1, results_failed: 2, ..clean }, "done", None)).expect_err("failed");
        assert_eq!(failed.exit, Exit::Failed);
        assert!(failed.detail.starts_with("1 page and 2 outputs"), "{failed}");
        assert_eq!(verdict(&crawl(clean, "cancelled", None)).expect_err("cancelled").code, "CANCELLED");
        assert_eq!(verdict(&crawl(clean, "no_viable_urls", None)).expect_err("nothing").code, "NO_URLS");
        let error = RowError { code: "NO_URLS".into(), detail: Some("empty".into()), advice: None };
        assert_eq!(verdict(&crawl(clean, "done", Some(error))).expect_err("error").code, "NO_URLS");
    }

    #[test]
    fn a_page_is_one_line() {
        let mut page = Snapshot {
            url: "http://x/".into(),
            status: "sealed".into(),
            http_status: Some(200),
            n_ok: 14,
            size: 2048,
            title: Some("A\u{1b}b".into()),
            ..Snapshot::default()
        };
        let line = page_line(&page);
        assert!(
            line.starts_with("ok     200  http://x/ ")
                && line.contains("14 ok")
                && line.ends_with("2.0 KB  A\u{fffd}b"),
            "{line}"
        );
        page.error = Some(RowError::default());
        page.http_status = None;
        page.n_failed = 1;
        assert!(page_line(&page).starts_with("failed   -  ") && page_line(&page).contains("14 ok, 1 failed"));
    }
}
