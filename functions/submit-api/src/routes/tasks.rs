//! GET /v1/tasks: what runs, since when, and how it went.

use super::named;
use crate::auth::Reader;
use crate::config::ApiState;
use crate::extract::Params;
use crate::page::Paging;
use crate::problem::Problem;
use crate::shapes::system::Task;
use crate::shapes::{Page, names};
use axum::Json;
use axum::extract::State;
use fonds_domain::{CrawlId, Kind, RunId, RunStatus};
use fonds_store::query::{self, TaskFilter};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

/// Filters of the list of tasks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TaskQuery {
    /// Rows of a page, 1 to 200; 50 when absent.
    limit: Option<u32>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// `queued`, `running` (when absent), `succeeded`, `failed`, `cancelled`, `discarded` or `all`.
    status: Option<String>,
    /// Of this kind.
    #[serde(default, deserialize_with = "named")]
    #[param(value_type = Option<names::TaskKind>)]
    kind: Option<Kind>,
    /// Of this crawl; only among those that run.
    #[serde(default, deserialize_with = "named")]
    crawl: Option<Uuid>,
}

/// List tasks, newest first; those that run unless asked otherwise.
#[utoipa::path(get, path = "/v1/tasks", tag = "system", operation_id = "listTasks", params(TaskQuery),
    responses((status = 200, description = "A page", body = Page<Task>)))]
pub(crate) async fn list(
    State(state): State<ApiState>,
    _: Reader,
    Params(q): Params<TaskQuery>,
) -> Result<Json<Page<Task>>, Problem> {
    let paging = Paging::new(q.limit, q.cursor.as_deref())?;
    let status = match q.status.as_deref() {
        None | Some("") => Some(RunStatus::Running),
        Some("all") => None,
        Some(name) => Some(name.parse::<RunStatus>().map_err(|e| Problem::field("status", e.to_string()))?),
    };
    if q.crawl.is_some() && status != Some(RunStatus::Running) {
        return Err(Problem::field("crawl", "goes only with status=running; see /v1/snapshots?crawl= for the rest"));
    }
    let filter = TaskFilter { status, kind: q.kind, crawl: q.crawl.map(CrawlId) };
    let mut tx = state.list_tx().await?;
    let rows = query::tasks(&mut tx, &filter, paging.before.map(RunId), paging.fetch()).await?;
    Ok(Json(Page::new(rows, paging.limit, |r| r.id.to_string(), Task::from)))
}
