//! Limits, pause, resume, cancel.

use fonds_domain::{CrawlLimits, CrawlStatus, StopReason};
use fonds_store::crawls::{self, Change};
use fonds_tests::{World, depth, plain};
use fonds_web::testing::{Origin, OriginConfig};
use sqlx::PgPool;

async fn site(pages: usize) -> Origin {
    Origin::start(OriginConfig { pages, ..OriginConfig::new() }).await.expect("an origin")
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn max_urls_is_exact_however_many_settle_at_once(pool: PgPool) {
    let origin = site(200).await;
    let world = World::new(pool);
    let limits = CrawlLimits { max_urls: Some(37), ..depth(8) };
    let id = world.submit(origin.url("/site/").as_str(), plain(), limits).await;
    futures_util::future::join_all((0..4).map(|_| world.drain())).await;
    world.settle().await;

    let crawl = world.load(id).await;
    assert_eq!(crawl.n_snapshots, 37);
    assert_eq!(world.snapshots(id).await.len(), 37);
    assert_eq!((crawl.status, crawl.stop_reason), (CrawlStatus::Sealed, Some(StopReason::MaxUrls)));
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_size_limit_stops_discovery_and_keeps_the_submitted_page(pool: PgPool) {
    let origin = site(60).await;
    let world = World::new(pool);
    let limits = CrawlLimits { max_size: Some(1), ..depth(3) };
    let id = world.crawl(origin.url("/site/").as_str(), plain(), limits).await;

    let crawl = world.load(id).await;
    assert_eq!((crawl.status, crawl.stop_reason), (CrawlStatus::Sealed, Some(StopReason::MaxSize)));
    let lines = world.snapshots(id).await;
    assert_eq!(lines[0].http_status, Some(200), "the submitted page is always captured");
    assert_eq!(lines.iter().filter(|l| l.http_status.is_some()).count(), 1);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_paused_crawl_does_nothing_until_it_is_resumed(pool: PgPool) {
    let origin = site(30).await;
    let world = World::new(pool);
    let id = world.submit(origin.url("/site/").as_str(), plain(), depth(3)).await;
    let mut conn = world.db.conn().await.expect("database");
    assert!(matches!(crawls::pause(&mut conn, id).await.expect("paused"), Change::Done(_)));
    assert_eq!(crawls::pause(&mut conn, id).await.expect("asked"), Change::Already);
    drop(conn);
    world.drain().await;
    world.sweep().await;
    assert_eq!(origin.served(), 0, "nothing starts while the crawl is paused");
    assert_eq!(world.load(id).await.status, CrawlStatus::Paused);

    let mut conn = world.db.conn().await.expect("database");
    let Change::Done(rings) = crawls::resume(&mut conn, id).await.expect("resumed") else { panic!("not resumed") };
    assert_eq!(rings.len(), 1, "the held run is rung");
    drop(conn);
    world.settle().await;
    let crawl = world.load(id).await;
    assert_eq!((crawl.status, crawl.n_snapshots), (CrawlStatus::Sealed, 30));
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_cancelled_crawl_is_over_at_once_and_its_pages_are_closed(pool: PgPool) {
    let origin = site(200).await;
    let world = World::new(pool);
    let input: String = (0..150).map(|i| format!("{}\n", origin.url(&format!("/site/{i}")))).collect();
    let id = world.submit(&input, plain(), depth(0)).await;
    // Set-up only: the pages are queued.
    let runner = world.runner(fonds_domain::Kind::CrawlSetup);
    fonds_task::testing::drain(&[runner]).await;
    let mut conn = world.db.conn().await.expect("database");
    assert!(matches!(crawls::cancel(&mut conn, id).await.expect("cancelled"), Change::Done(_)));
    assert_eq!(crawls::resume(&mut conn, id).await.expect("asked"), Change::Refused(CrawlStatus::Sealed));
    drop(conn);
    assert_eq!(world.load(id).await.status, CrawlStatus::Sealed);
    world.sweep().await;
    world.settle().await;

    let lines = world.snapshots(id).await;
    assert_eq!(lines.len(), 150);
    assert!(lines.iter().all(|l| l.error_code.as_deref() == Some("CANCELLED")));
    assert_eq!(origin.served(), 0);
    assert_eq!(world.load(id).await.stop_reason, Some(StopReason::Cancelled));
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn expired_crawls_go_with_their_objects(pool: PgPool) {
    use fonds_blobs::BlobStore as _;
    let origin = site(5).await;
    let world = World::new(pool);
    let gone = world.crawl(origin.url("/site/").as_str(), plain(), depth(2)).await;
    let kept = world.crawl(origin.url("/site/").as_str(), plain(), depth(0)).await;
    let mut conn = world.db.conn().await.expect("database");
    crawls::delete(&mut conn, gone).await.expect("marked");
    drop(conn);
    world.sweep().await;
    world.sweep().await;

    assert!(world.snapshots(gone).await.is_empty());
    let left = world.blobs.list("snapshots/", None, 100).await.expect("listed").entries;
    assert_eq!(left.len(), 1, "only the other crawl's object is left");
    assert!(left[0].key.as_str().contains(&kept.to_string()));
}
