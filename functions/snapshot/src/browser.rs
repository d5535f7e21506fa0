//! One page with the browser.

use crate::closing::{self, Effect};
use crate::deps::Deps;
use crate::gate::{self, Decision, HostSays};
use crate::links::{self, Rules};
use crate::package::{self, Made};
use crate::page::{Page, Render};
use crate::render::Renderer;
use crate::{extractors, fetch, records};
use fonds_domain::{ErrorCode, Kind, Scope};
use fonds_store::capture::{self, Snapshot};
use fonds_store::crawls::Crawl;
use fonds_store::runs::RunRef;
use fonds_store::{Conn, StoreError};
use fonds_task::{Cx, Outcome, Signal, Task, TaskError};
use fonds_web::browser::BrowserHandle;
use std::collections::HashMap;
use std::sync::Arc;
use url::Url;

/// Captures pages with the browser.
pub struct SnapshotBrowser {
    deps: Deps,
    renderer: Renderer,
}

impl SnapshotBrowser {
    /// On a machine without Chromium what needs it fails with `TOOL_MISSING`, and everything else is
    /// captured.
    #[must_use]
    pub fn new(deps: Deps, browser: BrowserHandle) -> Self {
        let guard = deps.guard.clone();
        Self { deps, renderer: Renderer { browser, guard } }
    }
}

impl Task for SnapshotBrowser {
    const KIND: Kind = Kind::Snapshot;
    type Input = Option<()>;
    type Cursor = ();
    type Effect = Effect;

    async fn run(&self, cx: &Cx, _: &Option<()>, (): ()) -> Result<Outcome<Self>, TaskError> {
        let decision = gate::decide(&self.deps, &[cx]).await?.pop().unwrap_or(Decision::Gone);
        let (snapshot, crawl) = match decision {
            Decision::Go(snapshot, crawl) => (*snapshot, crawl),
            other => return Ok(gate::outcome(other).unwrap_or(Outcome::Discard("no decision"))),
        };
        let Ok(url) = Url::parse(&snapshot.url) else {
            let effect = Effect::unrun(&snapshot, ErrorCode::INVALID_URL, "the stored URL does not parse");
            return Ok(Outcome::Done(effect));
        };
        let robots_note = match gate::host(&self.deps, &snapshot, &crawl, &url).await? {
            HostSays::Go(note) => note,
            HostSays::Skip(effect) => return Ok(Outcome::Done(effect)),
            HostSays::Wait(delay) => return Ok(Outcome::Snooze(delay)),
        };
        self.stage(&snapshot, "fetch").await?;
        let fetched = fetch::fetch(&self.deps, cx, &snapshot, &crawl, &url).await?;
        let (fetched, content) = blocking(move || {
            let content = fetch::look(&fetched, 1 << 20, true);
            (fetched, content)
        })
        .await?;
        if let Some(end) = self.signalled(cx, &snapshot).await? {
            return Ok(end);
        }
        self.stage(&snapshot, "render").await?;
        let icon = async {
            let named = content.facts.as_ref().and_then(|f| f.icons.first()).map(|i| i.url.as_str());
            let page = fetched.answer().map_or(&url, |hop| &hop.url);
            if crawl.config.wants("favicon") && content.is_html {
                fetch::icon(&self.deps, named, page).await
            } else {
                None
            }
        };
        let render = self.renderer.render(cx, &crawl, &url, &fetched, &content);
        let (icon, render) = tokio::join!(icon, render);
        if let Some((code, why)) = broken(&render)
            && !cx.last_attempt
        {
            return Err(TaskError::transient(code, anyhow::anyhow!("{why}")));
        }
        if let Some(end) = self.signalled(cx, &snapshot).await? {
            return Ok(end);
        }
        self.stage(&snapshot, "derive").await?;
        let page = Page {
            snapshot,
            crawl,
            attempt: cx.attempt,
            url,
            fetched,
            content,
            render,
            icon,
            found: Vec::new(),
            robots_note,
        };
        self.finish(cx, page).await
    }

    async fn apply(&self, conn: &mut Conn, effects: &[&Effect]) -> Result<Vec<RunRef>, StoreError> {
        closing::apply(conn, effects).await
    }
}

impl SnapshotBrowser {
    /// Derives, parses, stores.
    async fn finish(&self, cx: &Cx, page: Page) -> Result<Outcome<Self>, TaskError> {
        let page = blocking(move || {
            let mut page = page;
            page.found = links::find(&page);
            Arc::new(page)
        })
        .await?;
        let crawl: Arc<Crawl> = page.crawl.clone();
        let outputs = extractors::run_all(&page).await;
        let (held, seeds) = self.surroundings(&page, &crawl).await?;
        let stored = package::store(&self.deps, cx.lease, vec![Made { page, outputs }], held).await?;
        let rules = Rules::of(&crawl.config);
        match stored.into_iter().next() {
            Some(stored) => Ok(Outcome::Done(closing::close(stored, rules.as_ref(), &seeds))),
            None => Err(TaskError::permanent(ErrorCode::INTERNAL, anyhow::anyhow!("nothing was stored"))),
        }
    }

    /// Bodies held already, and the crawl's first URLs where the scope is about them.
    async fn surroundings(&self, page: &Arc<Page>, crawl: &Crawl) -> Result<(records::Held, Vec<Url>), TaskError> {
        let mut held = HashMap::new();
        let mut seeds = Vec::new();
        let scope = closing::dedup_scope(&crawl.config, crawl.id);
        let digests = if scope.is_some() {
            let page = page.clone();
            blocking(move || records::digests(&page)).await?
        } else {
            Vec::new()
        };
        let mut conn = self.deps.db.conn().await?;
        if let Some(scope) = scope
            && !digests.is_empty()
        {
            held = capture::held_payloads(&mut conn, scope, &digests).await?;
        }
        if crawl.config.scope == Scope::Prefix {
            seeds = capture::seeds(&mut conn, crawl.id).await?.iter().filter_map(|u| Url::parse(u).ok()).collect();
        }
        Ok((held, seeds))
    }

    async fn stage(&self, snapshot: &Snapshot, stage: &str) -> Result<(), TaskError> {
        let mut conn = self.deps.db.conn().await?;
        Ok(capture::mark_stage(&mut conn, snapshot.id, stage).await?)
    }

    /// Between stages: a paused crawl gives the run back, a cancelled one ends it.
    async fn signalled(&self, cx: &Cx, snapshot: &Snapshot) -> Result<Option<Outcome<Self>>, TaskError> {
        Ok(match cx.signal().await? {
            Signal::Go => None,
            Signal::Pause => Some(Outcome::Hold),
            Signal::Cancel => Some(Outcome::Cancel(Some(Effect::unrun(snapshot, ErrorCode::CANCELLED, "")))),
            Signal::Lost => Some(Outcome::Discard("the lease was lost")),
        })
    }
}

/// Why a load is worth another attempt: what it ran in died under it. Outputs taken until then are
/// kept only when there is no attempt left.
fn broken(render: &Render) -> Option<(ErrorCode, String)> {
    let (code, why) = match render {
        Render::Failed(code, why) => (*code, why.clone()),
        Render::Done(rendered) => {
            let code = rendered.capture.aborted?;
            (ErrorCode::named(code.as_str()), "the capture ended early".to_owned())
        }
        Render::None => return None,
    };
    matches!(code, ErrorCode::BROWSER_GONE | ErrorCode::PAGE_CRASHED).then_some((code, why))
}

/// CPU work, off the threads that wait on sockets.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, TaskError> {
    tokio::task::spawn_blocking(work).await.map_err(|e| TaskError::permanent(ErrorCode::PANICKED, e))
}
