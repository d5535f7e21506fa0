//! Progress of a crawl: a bar on a terminal, a line now and then elsewhere.

use crate::client::view::Crawl;
use crate::output::{eprint_line, on_terminal};
use crate::units::{size, time};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;
use tokio::time::Instant;

/// Plain lines come at most this often; an end and a change of status at once.
const EVERY: Duration = Duration::from_secs(10);

/// Shows one crawl.
pub struct Progress {
    bar: Option<ProgressBar>,
    silent: bool,
    began: Instant,
    last: Option<(Instant, String)>,
}

impl Progress {
    /// For a crawl; silent when programs read.
    #[must_use]
    pub fn new(silent: bool) -> Progress {
        let bar = (!silent && on_terminal()).then(|| {
            let style = ProgressStyle::with_template("{spinner} [{bar:32}] {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(1).with_style(style.progress_chars("=> "));
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Progress { bar, silent, began: Instant::now(), last: None }
    }

    /// The crawl as it is now.
    pub fn update(&mut self, crawl: &Crawl) {
        let text = describe(crawl, self.began.elapsed());
        if let Some(bar) = &self.bar {
            bar.set_length(crawl.counts.snapshots.max(1));
            bar.set_position(crawl.counts.sealed);
            bar.set_message(text);
            return;
        }
        let due = self.last.as_ref().is_none_or(|(at, status)| at.elapsed() >= EVERY || *status != crawl.status);
        if !self.silent && due {
            eprint_line(&format!("fonds: {text}"));
            self.last = Some((Instant::now(), crawl.status.clone()));
        }
    }

    /// Takes the bar away.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// One line that says how far the crawl is.
#[must_use]
pub fn describe(crawl: &Crawl, elapsed: Duration) -> String {
    let n = &crawl.counts;
    let mut parts = Vec::new();
    if !crawl.setup_done && n.snapshots == 0 && !crawl.is_over() {
        parts.push(if crawl.status == "queued" { "queued" } else { "reading the input" }.to_owned());
    } else {
        parts.push(format!("{} of {} pages", n.sealed, n.snapshots));
        if n.failed > 0 {
            parts.push(format!("{} failed", n.failed));
        }
        parts.push(size(n.bytes));
    }
    match crawl.status.as_str() {
        "paused" => parts.push("paused".to_owned()),
        "sealed" => parts.push("done".to_owned()),
        _ if crawl.setup_done && n.open == 0 && n.snapshots > 0 => parts.push("sealing".to_owned()),
        _ => {}
    }
    parts.push(time(elapsed));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::view::{Counts, Crawl};

    #[test]
    fn a_line_says_how_far_it_is() {
        let counts = |snapshots, sealed, failed, bytes| Counts {
            snapshots,
            sealed,
            failed,
            bytes,
            open: snapshots - sealed,
            ..Counts::default()
        };
        let crawl =
            |status: &str, setup_done, counts| Crawl { status: status.into(), setup_done, counts, ..Crawl::default() };
        let cases = [
            (crawl("queued", false, counts(0, 0, 0, 0)), "queued, 5.0 s"),
            (crawl("started", false, counts(0, 0, 0, 0)), "reading the input, 5.0 s"),
            (crawl("started", true, counts(8, 3, 0, 2048)), "3 of 8 pages, 2.0 KB, 5.0 s"),
            (crawl("started", true, counts(8, 3, 2, 0)), "3 of 8 pages, 2 failed, 0 B, 5.0 s"),
            (crawl("paused", true, counts(8, 3, 0, 0)), "3 of 8 pages, 0 B, paused, 5.0 s"),
            (crawl("started", true, counts(8, 8, 0, 0)), "8 of 8 pages, 0 B, sealing, 5.0 s"),
            (crawl("sealed", true, counts(8, 8, 0, 0)), "8 of 8 pages, 0 B, done, 5.0 s"),
            (crawl("sealed", false, counts(0, 0, 0, 0)), "0 of 0 pages, 0 B, done, 5.0 s"),
        ];
        for (crawl, expected) in cases {
            assert_eq!(describe(&crawl, Duration::from_secs(5)), expected);
        }
    }

    #[test]
    fn a_silent_progress_shows_nothing_and_does_not_fail() {
        let mut progress = Progress::new(true);
        progress.update(&Crawl::default());
        progress.end();
    }
}
