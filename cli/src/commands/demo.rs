//! `demo`: archives the bundled site into a folder of its own and shows what was kept. Leaves nothing
//! running unless asked to, and a few files to look at.

use super::{Context, export, host, report, wait};
use crate::args::{Demo, Export};
use crate::client::Client;
use crate::client::view::{Crawl, Snapshot, read};
use crate::demo::DemoSite;
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::host::start;
use crate::output::cut;
use crate::units::{size, time};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio::time::Instant;

/// Outputs shown for the first page.
const SHOWN_FILES: usize = 40;

/// Runs it.
///
/// # Errors
/// When a step does not end as it should.
pub async fn demo(cx: &Context, args: Demo) -> Result<(), Failure> {
    let stage = Stage::new(args.keep)?;
    let cx = Context { home: stage.home.clone(), out: cx.out };
    let began = Instant::now();
    let result = tokio::select! {
        result = show(&cx, &stage) => result,
        _ = tokio::signal::ctrl_c() => Err(Failure::new("INTERRUPTED", "the demo was interrupted").exit(Exit::Interrupted)),
    };
    if args.keep && result.is_ok() {
        cx.out.line(format_args!("\nIt still runs. End it: fonds down --data {}", stage.home.dir().display()));
        return result;
    }
    let ended = host::end(&cx.home).await;
    if result.is_ok() && ended.is_ok() {
        cx.out.line(format_args!("\nNothing is left running. All of it took {}.", time(began.elapsed())));
    }
    result.and(ended.map(drop))
}

/// Where the demo keeps its data.
struct Stage {
    home: Home,
    keep: bool,
    /// Removes the folder at the end.
    _temporary: Option<tempfile::TempDir>,
}

impl Stage {
    fn new(keep: bool) -> Result<Stage, Failure> {
        // In /tmp and not in the checkout: the database's user must be able to enter it, and a home
        // folder is often closed to it.
        let dir =
            tempfile::Builder::new().prefix("fonds-demo-").tempdir_in("/tmp").map_err(|e| Failure::io("/tmp", &e))?;
        open_to_all(dir.path())?;
        let home = Home::resolve(Some(&dir.path().join("data")))?;
        Ok(if keep {
            let _ = dir.keep();
            Stage { home, keep, _temporary: None }
        } else {
            Stage { home, keep, _temporary: Some(dir) }
        })
    }
}

fn open_to_all(dir: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o711)).map_err(|e| Failure::io(dir.display(), &e))
}

async fn show(cx: &Context, stage: &Stage) -> Result<(), Failure> {
    let out = cx.out;
    let site = DemoSite::start().await.map_err(|e| Failure::io("the demo site", &e))?;
    out.line(format_args!(
        "A small site of our own answers at {} (pages, pictures, scripts, a feed, a PDF, a dead link).",
        site.origin
    ));

    out.line("\n1. A page on this machine is refused unless the operator allows it");
    let client = Client::of(&start::detached(&cx.home, &[]).await?)?;
    let refused = crawl(cx, &client, &format!("{}/", site.origin), 0).await?;
    let reason = refused_reason(&client, &refused).await?;
    out.line(format_args!("   {}", cut(&reason, 200)));
    out.value(&json!({"step": "refused", "reason": reason}));
    host::end(&cx.home).await?;

    out.line("\n2. The same archive, started with --allow-private, captures the site two links deep");
    let file = start::detached(&cx.home, &["--allow-private".to_owned()]).await?;
    let client = Client::of(&file)?;
    let kept = crawl(cx, &client, &format!("{}/", site.origin), 2).await?;
    let report = report::Report::of(&client, &kept).await?;
    report.print(cx, &kept);
    out.value(&json!({"step": "captured", "crawl": kept.id, "pages": kept.counts.sealed, "results": kept.counts.results, "bytes": kept.counts.bytes}));
    expect(&kept)?;
    let first = report
        .pages
        .iter()
        .find(|p| p.depth == 0)
        .ok_or_else(|| Failure::new("DEMO_FAILED", "the first page is not in the archive"))?;
    files(cx, &client, first).await?;

    out.line("\n3. One page as a WACZ file, which any replay tool opens, and what a person looks at first");
    let folder = results_folder()?;
    let wacz = folder.join("quay.wacz");
    export::export(cx, Export { id: first.id.clone(), wacz: true, output: Some(wacz.clone()) }).await?;

    out.line("\n4. Where to look");
    save_files(cx, &client, first, &folder).await?;
    where_to_look(cx, &file, stage.keep);
    Ok(())
}

async fn crawl(cx: &Context, client: &Client, url: &str, depth: u16) -> Result<Crawl, Failure> {
    let answer = client.post("/v1/crawls", &json!({"urls": [url], "depth": depth, "label": "demo"}), &[]).await?;
    let crawl: Crawl = read(&answer);
    wait::wait(cx, client, &crawl.id).await
}

/// Why the page was not captured; that it was captured is a failure.
async fn refused_reason(client: &Client, crawl: &Crawl) -> Result<String, Failure> {
    let rows = client.list("/v1/snapshots", &[("crawl", crawl.id.clone())], 1).await?;
    let page: Snapshot = rows.first().map(read).unwrap_or_default();
    match page.error {
        Some(error) if error.code == "EGRESS_REFUSED" => Ok(error.line()),
        other => Err(Failure::new(
            "DEMO_FAILED",
            format!("a page on loopback was not refused as it should have been: {other:?}"),
        )),
    }
}

/// The site has one dead link; all else must be there.
fn expect(crawl: &Crawl) -> Result<(), Failure> {
    if crawl.counts.sealed < 10 || crawl.counts.failed > 1 {
        return Err(Failure::new(
            "DEMO_FAILED",
            format!(
                "{} pages were kept and {} failed; at least 10 and at most 1 were expected",
                crawl.counts.sealed, crawl.counts.failed
            ),
        )
        .advise("`fonds doctor` names what is missing on this machine."));
    }
    Ok(())
}

/// The files of a page, and the sizes by output.
async fn files(cx: &Context, client: &Client, page: &Snapshot) -> Result<(), Failure> {
    let row: Value = client.get(&format!("/v1/snapshots/{}", page.id), &[]).await?;
    cx.out.value(&row);
    let page: Snapshot = read(&row);
    cx.out.line(format_args!("\n   Kept of {}:", cut(&page.url, 100)));
    let mut sizes: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for result in &page.results {
        for file in &result.files {
            sizes.insert(file.path.clone(), (file.size, result.extractor.clone()));
        }
    }
    for (path, (bytes, extractor)) in sizes.iter().take(SHOWN_FILES) {
        cx.out.line(format_args!("     {:<28} {:>8}  {extractor}", cut(path, 28), size(*bytes)));
    }
    Ok(())
}

/// Where the files to look at are put: in the checkout when the root script started this, else in a
/// new folder.
fn results_folder() -> Result<PathBuf, Failure> {
    let made = match std::env::var_os("FONDS_ROOT").filter(|r| !r.is_empty()) {
        Some(root) => {
            let dir = Path::new(&root).join(".fonds/demo");
            std::fs::create_dir_all(&dir).map(|()| dir)
        }
        None => tempfile::Builder::new().prefix("fonds-demo-files-").tempdir_in("/tmp").map(tempfile::TempDir::keep),
    };
    made.map_err(|e| Failure::io("the folder for the demo's files", &e))
}

/// Copies what a person looks at first.
async fn save_files(cx: &Context, client: &Client, page: &Snapshot, folder: &Path) -> Result<(), Failure> {
    let page: Snapshot = read(&client.get(&format!("/v1/snapshots/{}", page.id), &[]).await?);
    for wanted in ["screenshot", "pdf", "singlefile"] {
        let Some(file) = page.results.iter().find(|r| r.extractor == wanted).and_then(|r| r.files.first()) else {
            continue;
        };
        let name = file.path.rsplit('/').next().unwrap_or(wanted);
        let path = folder.join(name);
        let bytes = export::save(client, &file.href, &page.id, path.clone()).await?;
        cx.out.line(format_args!("   {} ({})", path.display(), size(bytes)));
    }
    Ok(())
}

fn where_to_look(cx: &Context, host: &crate::home::HostFile, keep: bool) {
    let out = cx.out;
    if keep {
        out.line(format_args!("   API     {}/v1/crawls", host.url));
        out.line(format_args!("   token   {}", host.token));
        out.line(format_args!("   data    {}", cx.home.dir().display()));
    } else {
        out.line("   The archive itself is removed now; `fonds demo --keep` leaves it running for a look.");
    }
    out.line("   Your own: fonds up --detach, then fonds add https://example.org/ --wait");
}
