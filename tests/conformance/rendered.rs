//! One page drawn by the browser: every artifact of it, and its package before the judges.

use crate::{archive, judges, records, replay, tools};
use fonds_domain::{CrawlConfig, CrawlStatus, StopReason};
use fonds_store::listing::Line;
use fonds_tests::{World, depth, file_of};
use fonds_web::browser::BrowserError;
use fonds_web::testing::{Origin, OriginConfig, site};
use sqlx::PgPool;

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_rendered_page_has_every_artifact_and_the_judges_agree(pool: PgPool) {
    let world = World::new(pool);
    match world.browser.warm().await {
        Err(BrowserError::Missing(places)) => return tools::missing(&format!("Chromium (looked for: {places})")),
        started => drop(started.expect("the browser starts")),
    }
    let origin = Origin::start(OriginConfig { pages: 3, ..OriginConfig::new() }).await.expect("an origin");
    let id = world.crawl(origin.url("/site/").as_str(), CrawlConfig::default(), depth(0)).await;

    let crawl = world.load(id).await;
    assert_eq!((crawl.status, crawl.stop_reason), (CrawlStatus::Sealed, Some(StopReason::Done)));
    let lines = world.snapshots(id).await;
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!((line.http_status, &line.error_code), (Some(200), &None), "{:?}", line.error);
    let failed: Vec<_> = line.results.iter().filter(|r| r.status == "failed").collect();
    assert!(failed.is_empty(), "{failed:?}");
    artifacts(&world, line).await;

    let archive = archive::unpack(&world, id).await;
    let kept = records::sound(&archive);
    let captures: Vec<_> = kept.iter().filter(|k| k.is_capture()).collect();
    assert!(captures.len() >= site::REQUESTS_PER_PAGE - 1, "{} captures", captures.len());
    let memories = replay::ask_origin(captures).await;
    drop(origin);
    if let Some(folder) = tools::judges() {
        judges::agree(&folder, &archive).await;
        replay::agrees(&folder, &archive, &memories).await;
        eprintln!("{} captures of the rendered page replayed", memories.len());
    }
}

async fn artifacts(world: &World, line: &Line) {
    let file = async |path: &str| match file_of(line, path) {
        Some(file) => world.file(file).await,
        None => panic!("no {path}"),
    };
    let text = async |path: &str| String::from_utf8(file(path).await.to_vec()).expect("UTF-8");

    let shot = file("screenshot/screenshot.png").await;
    assert!(shot.starts_with(b"\x89PNG\r\n\x1a\n") && shot.ends_with(b"IEND\xaeB`\x82"), "no whole PNG");
    let side = |at: usize| u32::from_be_bytes([shot[at], shot[at + 1], shot[at + 2], shot[at + 3]]);
    assert!(side(16) >= 800 && side(20) >= 600, "{} x {}", side(16), side(20));
    // A blank page of this size takes a few kilobytes.
    assert!(shot.len() > 20_000, "{} bytes of screenshot", shot.len());

    let pdf = file("pdf/output.pdf").await;
    assert!(pdf.starts_with(b"%PDF-") && pdf.len() > 5_000, "{} bytes of PDF", pdf.len());

    // Written by the page's script from what it fetched.
    let drawn = "data of page 0";
    let dom = text("dom/output.html").await;
    assert!(dom.contains(drawn), "the scripts have not run");
    let single = text("singlefile/singlefile.html").await;
    assert!(single.contains(drawn) && single.contains("data:image/png;base64,"), "the pictures are not inlined");
    assert!(!single.contains("src=\"/site/"), "a reference is left");

    let tree: serde_json::Value = serde_json::from_str(&text("accessibility/accessibility.json").await).expect("JSON");
    assert!(tree.to_string().contains("Page 0"), "the heading is not in the accessibility tree");

    let responses = text("responses/responses.jsonl").await;
    let asked: Vec<serde_json::Value> =
        responses.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(asked.len() >= site::REQUESTS_PER_PAGE - 1, "{} requests", asked.len());
    assert!(asked.iter().all(|r| r["status"] == 200), "{responses}");
    assert!(responses.contains("/site/0/data.json"), "{responses}");
}
