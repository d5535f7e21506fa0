//! Pages over plain HTTP, in batches: one claim, one dedup look-up, one object and one settle for up
//! to fifty of them.

use crate::closing::{self, Effect, SEARCH_TEXT_MAX};
use crate::deps::Deps;
use crate::gate::{self, Decision, HostSays};
use crate::links::{self, Rules};
use crate::package::{self, Made};
use crate::page::{Page, Render};
use crate::{extractors, fetch, records};
use fonds_domain::{ErrorCode, Kind, Scope};
use fonds_store::capture::{self, Snapshot};
use fonds_store::crawls::Crawl;
use fonds_store::runs::RunRef;
use fonds_store::{Conn, StoreError};
use fonds_task::{Cx, Item, Outcome, Task, TaskError};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use url::Url;

/// Requests of one batch at once.
const AT_ONCE: usize = 16;

/// Captures pages without a browser.
pub struct SnapshotPlain(
    /// Database, blobs, ways out.
    pub Deps,
);

impl Task for SnapshotPlain {
    const KIND: Kind = Kind::SnapshotPlain;
    type Input = Option<()>;
    type Cursor = ();
    type Effect = Effect;

    async fn run(&self, cx: &Cx, _: &Option<()>, (): ()) -> Result<Outcome<Self>, TaskError> {
        let mut outcomes = capture_all(&self.0, &[cx]).await;
        outcomes.pop().unwrap_or(Ok(Outcome::Discard("no run")))
    }

    async fn run_batch(&self, items: &[Item<Self>]) -> Vec<Result<Outcome<Self>, TaskError>> {
        let runs: Vec<&Cx> = items.iter().map(|item| &item.cx).collect();
        capture_all(&self.0, &runs).await
    }

    async fn apply(&self, conn: &mut Conn, effects: &[&Effect]) -> Result<Vec<RunRef>, StoreError> {
        closing::apply(conn, effects).await
    }
}

type Ended = Result<Outcome<SnapshotPlain>, TaskError>;

async fn capture_all(deps: &Deps, runs: &[&Cx]) -> Vec<Ended> {
    let decisions = match gate::decide(deps, runs).await {
        Ok(decisions) => decisions,
        Err(error) => {
            let text = error.to_string();
            return runs
                .iter()
                .map(|_| Err(TaskError::transient(ErrorCode::INTERNAL, anyhow::anyhow!("{text}"))))
                .collect();
        }
    };
    let mut ended: Vec<Option<Ended>> = Vec::with_capacity(runs.len());
    let mut wanted = Vec::new();
    for (i, decision) in decisions.into_iter().enumerate() {
        match decision {
            Decision::Go(snapshot, crawl) => {
                ended.push(None);
                wanted.push((i, runs[i], snapshot, crawl));
            }
            other => ended.push(gate::outcome(other).map(Ok)),
        }
    }
    let mut fetches: Vec<BoxFuture<'_, (usize, Result<Fetched, Ended>)>> = Vec::with_capacity(wanted.len());
    for (i, cx, snapshot, crawl) in wanted {
        fetches.push(Box::pin(async move { (i, one(deps, cx, *snapshot, crawl).await) }));
    }
    let fetched: Vec<_> = futures_util::stream::iter(fetches).buffer_unordered(AT_ONCE).collect().await;
    let mut by_crawl: BTreeMap<_, Vec<(usize, Fetched)>> = BTreeMap::new();
    for (i, result) in fetched {
        match result {
            Ok(fetched) => by_crawl.entry(fetched.crawl.id).or_default().push((i, fetched)),
            Err(end) => ended[i] = Some(end),
        }
    }
    for (_, pages) in by_crawl {
        let positions: Vec<usize> = pages.iter().map(|(i, _)| *i).collect();
        let lease = runs[positions[0]].lease;
        match store(deps, lease, pages).await {
            Ok(effects) => {
                for (i, effect) in effects {
                    ended[i] = Some(Ok(Outcome::Done(effect)));
                }
            }
            Err(error) => {
                let text = error.to_string();
                for i in positions {
                    ended[i] = Some(Err(TaskError::transient(ErrorCode::BLOB_UNAVAILABLE, anyhow::anyhow!("{text}"))));
                }
            }
        }
    }
    ended
        .into_iter()
        .map(|end| end.unwrap_or_else(|| Err(TaskError::transient(ErrorCode::INTERNAL, anyhow::anyhow!("no outcome")))))
        .collect()
}

/// A page whose answer is here and not looked at yet.
struct Fetched {
    snapshot: Snapshot,
    crawl: Arc<Crawl>,
    attempt: i32,
    url: Url,
    result: fonds_web::fetch::FetchResult,
    robots_note: Option<String>,
}

async fn one(deps: &Deps, cx: &Cx, snapshot: Snapshot, crawl: Arc<Crawl>) -> Result<Fetched, Ended> {
    let Ok(url) = Url::parse(&snapshot.url) else {
        return Err(Ok(Outcome::Done(Effect::unrun(
            &snapshot,
            ErrorCode::INVALID_URL,
            "the stored URL does not parse",
        ))));
    };
    let robots_note = match gate::host(deps, &snapshot, &crawl, &url).await {
        Ok(HostSays::Go(note)) => note,
        Ok(HostSays::Skip(effect)) => return Err(Ok(Outcome::Done(effect))),
        Ok(HostSays::Wait(delay)) => return Err(Ok(Outcome::Snooze(delay))),
        Err(error) => return Err(Err(error.into())),
    };
    match fetch::fetch(deps, cx, &snapshot, &crawl, &url).await {
        Ok(result) => Ok(Fetched { snapshot, crawl, attempt: cx.attempt, url, result, robots_note }),
        Err(error) => Err(Err(error)),
    }
}

/// Looks at the pages of one crawl, derives, packs and closes them.
async fn store(
    deps: &Deps,
    lease: uuid::Uuid,
    pages: Vec<(usize, Fetched)>,
) -> Result<Vec<(usize, Effect)>, TaskError> {
    let crawl = pages[0].1.crawl.clone();
    let positions: HashMap<_, _> = pages.iter().map(|(i, f)| (f.snapshot.id, *i)).collect();
    let mut made = derive(deps, pages.into_iter().map(|(_, f)| f).collect()).await?;
    // In the order of their ids, so that an object does not depend on which answer came first.
    made.sort_by_key(|m| m.page.snapshot.id);
    let mut held = HashMap::new();
    let mut seeds = Vec::new();
    {
        let mut conn = deps.db.conn().await?;
        if let Some(scope) = closing::dedup_scope(&crawl.config, crawl.id) {
            let digests: Vec<_> = made.iter().flat_map(|m| records::digests(&m.page)).collect();
            if !digests.is_empty() {
                held = capture::held_payloads(&mut conn, scope, &digests).await?;
            }
        }
        if crawl.config.scope == Scope::Prefix {
            seeds = capture::seeds(&mut conn, crawl.id).await?.iter().filter_map(|u| Url::parse(u).ok()).collect();
        }
    }
    let stored = package::store(deps, lease, made, held).await?;
    let rules = Rules::of(&crawl.config);
    Ok(stored
        .into_iter()
        .filter_map(|s| {
            let position = *positions.get(&s.page.snapshot.id)?;
            Some((position, closing::close(s, rules.as_ref(), &seeds)))
        })
        .collect())
}

/// Looks at every answer and runs the extractors, on the threads for CPU work.
async fn derive(deps: &Deps, pages: Vec<Fetched>) -> Result<Vec<Made>, TaskError> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let mut lanes: Vec<Vec<Fetched>> = (0..cores.min(pages.len()).max(1)).map(|_| Vec::new()).collect();
    let n = lanes.len();
    for (i, page) in pages.into_iter().enumerate() {
        lanes[i % n].push(page);
    }
    let looked = futures_util::future::try_join_all(
        lanes
            .into_iter()
            .map(|lane| tokio::task::spawn_blocking(move || lane.into_iter().map(look).collect::<Vec<_>>())),
    )
    .await
    .map_err(|e| TaskError::permanent(ErrorCode::PANICKED, e))?;
    let mut made = Vec::new();
    for mut page in looked.into_iter().flatten() {
        if page.config().wants("favicon") && page.content.is_html {
            let named = page.content.facts.as_ref().and_then(|f| f.icons.first()).map(|i| i.url.clone());
            page.icon = fetch::icon(deps, named.as_deref(), page.final_url()).await;
        }
        let page = Arc::new(page);
        let outputs = extractors::run_all(&page).await;
        made.push(Made { page, outputs });
    }
    Ok(made)
}

fn look(fetched: Fetched) -> Page {
    let max_text = if ["htmltotext", "search", "wacz"].iter().any(|x| fetched.crawl.config.wants(x)) {
        1 << 20
    } else {
        SEARCH_TEXT_MAX
    };
    let content = fetch::look(&fetched.result, max_text, false);
    let mut page = Page {
        snapshot: fetched.snapshot,
        crawl: fetched.crawl,
        attempt: fetched.attempt,
        url: fetched.url,
        fetched: fetched.result,
        content,
        render: Render::None,
        icon: None,
        found: Vec::new(),
        robots_note: fetched.robots_note,
    };
    page.found = links::find(&page);
    page
}
