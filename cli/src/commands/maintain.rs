//! `tag`, `rm`, `sweep`, `token`, `migrate`.

use super::Context;
use crate::args::{Migrate, Rm, Tag, Token};
use crate::client::find::{find, token_id};
use crate::client::view::{Snapshot, read};
use crate::client::{Client, no_host};
use crate::failure::Failure;
use crate::host::ticker::enqueue_sweep;
use crate::output::{clean, moment};
use fonds_store::{Db, DbConfig};
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A sweep has two slices of this length at most.
const SWEEP_PATIENCE: Duration = Duration::from_secs(300);

/// Adds and removes tags.
///
/// # Errors
/// The service's refusal.
pub async fn tag(cx: &Context, args: Tag) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    let found = find(&client, &args.id).await?;
    let answer = client.patch(&found.path(), &json!({"add_tags": args.add, "remove_tags": args.remove})).await?;
    cx.out.value(&answer);
    let row: Snapshot = read(&answer);
    let tags: Vec<String> = row.tags.iter().map(|t| clean(t)).collect();
    cx.out.line(format_args!(
        "{}: {}",
        found.id(),
        if tags.is_empty() { "no tags".to_owned() } else { tags.join(", ") }
    ));
    Ok(())
}

/// Deletes snapshots and crawls; a crawl with all of its snapshots.
///
/// # Errors
/// The first refusal; what was deleted before it is named.
pub async fn rm(cx: &Context, args: Rm) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    // All are found before any is deleted: a mistyped id deletes nothing.
    let mut found = Vec::new();
    for id in &args.ids {
        found.push(find(&client, id).await?);
    }
    if !args.yes && !confirmed(&found.iter().map(|f| f.path().replace("/v1/", "")).collect::<Vec<_>>())? {
        return Err(Failure::new("NOT_CONFIRMED", "nothing was deleted"));
    }
    for row in &found {
        let answer = client.delete(&row.path()).await?;
        cx.out.value(&answer);
        cx.out.line(format_args!("deleted {}", row.path().replace("/v1/", "")));
    }
    Ok(())
}

fn confirmed(what: &[String]) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage("deleting needs --yes where nobody can be asked"));
    }
    crate::output::eprint_line(&format!("Delete {}? [y/N]", what.join(", ")));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|e| Failure::io("standard input", &e))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Queues a sweep and waits until it has run.
///
/// # Errors
/// When there is no host, or the sweep fails.
pub async fn sweep(cx: &Context) -> Result<(), Failure> {
    let host = cx.home.host().ok_or_else(|| {
        no_host(&cx.home)
            .advise("The sweep runs where the service runs; in the cloud its schedule does it every minute.")
    })?;
    let client = Client::of(&host)?;
    let db = open_database(&host.database_url)?;
    let queued = enqueue_sweep(&db).await;
    db.close().await;
    let Some(run) = queued? else {
        cx.out.value(&json!({"sweep": "under way"}));
        cx.out.line("a sweep is under way already");
        return Ok(());
    };
    let id = run.id.to_string();
    let until = Instant::now() + SWEEP_PATIENCE;
    loop {
        let rows = client.list("/v1/tasks", &[("status", "all".to_owned()), ("kind", "sweep".to_owned())], 20).await?;
        let row = rows.into_iter().find(|r| r["id"].as_str() == Some(&id)).unwrap_or(Value::Null);
        match row["status"].as_str() {
            Some("queued" | "running") | None if Instant::now() < until => sleep(Duration::from_millis(200)).await,
            Some("succeeded" | "discarded") => {
                cx.out.value(&row);
                cx.out.line("swept");
                return Ok(());
            }
            _ => {
                let error: crate::client::view::RowError = read(&row["error"]);
                let detail =
                    if error.code.is_empty() { "the sweep has not ended in time".to_owned() } else { error.line() };
                return Err(Failure::new("SWEEP_FAILED", detail).advise("See `fonds tasks --kind sweep --status all`."));
            }
        }
    }
}

fn open_database(url: &str) -> Result<Db, Failure> {
    Ok(Db::connect_lazy(&DbConfig { url: url.to_owned(), max_connections: 1 })?)
}

/// Tokens.
///
/// # Errors
/// The service's refusal.
pub async fn token(cx: &Context, args: Token) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    match args {
        Token::Create { name, scope, expires } => {
            let mut body = json!({"name": name, "scopes": [scope]});
            if let Some(after) = expires {
                body["expires_after"] = json!(after);
            }
            let answer = client.post("/v1/tokens", &body, &[]).await?;
            cx.out.value(&answer);
            cx.out.line(answer["secret"].as_str().unwrap_or_default());
            cx.out.note("fonds: this secret is shown once; keep it. Use it as FONDS_TOKEN or `Authorization: Bearer`.");
        }
        Token::List => {
            let rows = client.list("/v1/tokens", &[], usize::MAX).await?;
            cx.out.rows(&rows, &["ID", "NAME", "SCOPE", "CREATED", "LAST USED", "STATE"], |row| {
                let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
                let state = match (row["revoked_at"].as_str(), row["expires_at"].as_str()) {
                    (Some(at), _) => format!("revoked {}", moment(at)),
                    (None, Some(at)) => format!("until {}", moment(at)),
                    (None, None) => "good".to_owned(),
                };
                let scopes: Vec<&str> =
                    row["scopes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let used = row["last_used_at"].as_str().map_or_else(|| "never".to_owned(), moment);
                vec![text("id"), clean(&text("name")), scopes.join(","), moment(&text("created_at")), used, state]
            });
        }
        Token::Revoke { id } => {
            let id = token_id(&client, &id).await?;
            client.delete(&format!("/v1/tokens/{id}")).await?;
            cx.out.value(&json!({"id": id, "revoked": true}));
            cx.out.line(format_args!("token {id} is revoked"));
        }
    }
    Ok(())
}

/// Applies the migrations that are missing.
///
/// # Errors
/// When the database cannot be reached or is newer than this program.
pub async fn migrate(cx: &Context, args: Migrate) -> Result<(), Failure> {
    let url = args.database_url.or_else(|| cx.home.host().map(|h| h.database_url)).ok_or_else(|| {
        Failure::usage("no database: give --database-url URL")
            .advise("The private database of `fonds up` is migrated when it starts.")
    })?;
    let db = open_database(&url)?;
    // Reached first: a database that is away is another failure than a migration that does not apply.
    let done = async {
        db.conn().await.map(drop)?;
        db.migrate().await
    }
    .await;
    db.close().await;
    done?;
    cx.out.value(&json!({"migrated": true}));
    cx.out.line("the database is at this version");
    Ok(())
}
