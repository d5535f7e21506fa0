//! What keeps a claimed snapshot from being captured now, or at all.

use crate::closing::Effect;
use crate::deps::Deps;
use fonds_domain::{CrawlStatus, ErrorCode, RobotsPolicy, SnapshotStatus};
use fonds_store::capture::{self, Snapshot};
use fonds_store::crawls::{self, Crawl};
use fonds_store::{StoreError, hosts};
use fonds_task::{Cx, Task, TaskError};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Longest wait for a host within a slice; a longer one gives the run back.
const WAIT_MAX: Duration = Duration::from_secs(8);

/// What is to be done with a claimed run.
pub(crate) enum Decision {
    /// Capture it.
    Go(Box<Snapshot>, Arc<Crawl>),
    /// Not while the crawl is paused.
    Hold,
    /// The crawl is over.
    Cancel(Effect),
    /// A limit or rule keeps it out.
    Skip(Effect),
    /// Too many at once: again after a while.
    Wait(Duration),
    /// The row is gone or captured already.
    Gone,
}

/// Reads snapshots and crawls of a set of runs and decides about each.
pub(crate) async fn decide(deps: &Deps, runs: &[&Cx]) -> Result<Vec<Decision>, TaskError> {
    let mut conn = deps.db.conn().await?;
    let ids: Vec<_> = runs.iter().filter_map(|cx| cx.entity.map(Into::into)).collect();
    let snapshots: HashMap<_, _> = capture::load(&mut conn, &ids).await?.into_iter().map(|s| (s.id.0, s)).collect();
    let wanted: BTreeSet<_> = snapshots.values().map(|s| s.crawl).collect();
    let wanted: Vec<_> = wanted.into_iter().collect();
    let crawls: HashMap<_, _> =
        crawls::load(&mut conn, &wanted).await?.into_iter().map(|c| (c.id, Arc::new(c))).collect();
    let mut out = Vec::with_capacity(runs.len());
    for cx in runs {
        let snapshot = cx.entity.and_then(|id| snapshots.get(&id));
        let crawl = snapshot.and_then(|s| crawls.get(&s.crawl));
        let (Some(snapshot), Some(crawl)) = (snapshot, crawl) else {
            out.push(Decision::Gone);
            continue;
        };
        let mut decision = of(snapshot, crawl);
        if let (Decision::Go(..), Some(max)) = (&decision, crawl.limits.max_concurrent) {
            let mut tx = deps.db.begin().await?;
            if capture::running_beside(&mut tx, crawl.id, cx.run).await? >= i64::from(max) {
                decision = Decision::Wait(Duration::from_millis(700));
            }
            tx.commit().await?;
        }
        out.push(decision);
    }
    Ok(out)
}

fn of(snapshot: &Snapshot, crawl: &Arc<Crawl>) -> Decision {
    if snapshot.status == SnapshotStatus::Sealed {
        return Decision::Gone;
    }
    match crawl.status {
        CrawlStatus::Paused => Decision::Hold,
        CrawlStatus::Sealed => Decision::Cancel(Effect::unrun(snapshot, ErrorCode::CANCELLED, "")),
        // The submitted pages are captured whatever the limits say.
        _ if snapshot.depth > 0 && crawl.exhausted().is_some() => {
            let why = crawl.exhausted().map_or("", |r| r.as_str());
            Decision::Skip(Effect::unrun(snapshot, ErrorCode::LIMIT_REACHED, why))
        }
        _ => Decision::Go(Box::new(snapshot.clone()), crawl.clone()),
    }
}

/// What the host says about a page that is about to be captured.
pub(crate) enum HostSays {
    /// Go on; with a note on robots.txt when it was asked for.
    Go(Option<String>),
    /// Not captured.
    Skip(Effect),
    /// Not for a while.
    Wait(Duration),
}

/// Asks robots.txt and the host's gate.
pub(crate) async fn host(deps: &Deps, snapshot: &Snapshot, crawl: &Crawl, url: &Url) -> Result<HostSays, StoreError> {
    let config = &crawl.config;
    let mut delay = Duration::from_millis(u64::from(config.host_delay_ms));
    let mut note = None;
    let policy = match config.robots {
        RobotsPolicy::Off => None,
        RobotsPolicy::Obey => Some(fonds_web::robots::RobotsPolicy::Obey),
        RobotsPolicy::Report => Some(fonds_web::robots::RobotsPolicy::Report),
    };
    if let Some(policy) = policy {
        let verdict = deps.robots.check(url, policy).await;
        if !verdict.may_capture {
            let why = format!("robots.txt: {}", verdict.reason.as_str());
            return Ok(HostSays::Skip(Effect::unrun(snapshot, ErrorCode::ROBOTS_DENIED, &why)));
        }
        if !verdict.allowed {
            note = Some("robots.txt disallows this URL".to_owned());
        }
        if let Some(wish) = verdict.crawl_delay {
            delay = delay.max(wish);
        }
    }
    if !hosts::is_public(&snapshot.host) || delay.is_zero() {
        return Ok(HostSays::Go(note));
    }
    let mut conn = deps.db.conn().await?;
    let gate = hosts::gate(&mut conn, &snapshot.host, delay).await?;
    drop(conn);
    if u32::try_from(gate.fail_streak).unwrap_or(0) >= config.host_max_failures.max(1) {
        let why = format!("{} failures in a row", gate.fail_streak);
        return Ok(HostSays::Skip(Effect::unrun(snapshot, ErrorCode::HOST_UNREACHABLE, &why)));
    }
    if gate.wait > WAIT_MAX {
        return Ok(HostSays::Wait(gate.wait));
    }
    tokio::time::sleep(gate.wait).await;
    Ok(HostSays::Go(note))
}

/// Writes down how a public host behaved.
pub(crate) async fn record_host(
    deps: &Deps,
    snapshot: &Snapshot,
    error: Option<ErrorCode>,
    retry_after: Option<Duration>,
) {
    if !hosts::is_public(&snapshot.host) {
        return;
    }
    let write = async {
        let mut conn = deps.db.conn().await?;
        hosts::record(&mut conn, &snapshot.host, error.map(ErrorCode::as_str), retry_after).await
    };
    if let Err(error) = write.await {
        tracing::warn!(%error, host = %snapshot.host, "host behaviour not recorded");
    }
}

/// The outcome of a decision that is not to capture.
pub(crate) fn outcome<T: Task<Effect = Effect>>(decision: Decision) -> Option<fonds_task::Outcome<T>> {
    use fonds_task::Outcome;
    Some(match decision {
        Decision::Go(..) => return None,
        Decision::Hold => Outcome::Hold,
        Decision::Cancel(effect) => Outcome::Cancel(Some(effect)),
        Decision::Skip(effect) => Outcome::Done(effect),
        Decision::Wait(delay) => Outcome::Snooze(delay),
        Decision::Gone => Outcome::Discard("the snapshot is sealed or deleted"),
    })
}
