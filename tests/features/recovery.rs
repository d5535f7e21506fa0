//! What dies, what is lost, what comes twice: the work goes on.

use fonds_blobs::BlobStore as _;
use fonds_domain::{CrawlStatus, Kind};
use fonds_store::runs::{self, Select, Settlement, Verdict};
use fonds_tests::{World, depth, plain};
use fonds_web::testing::{Origin, OriginConfig};
use sqlx::PgPool;
use std::time::Duration;

async fn site(pages: usize) -> Origin {
    Origin::start(OriginConfig { pages, ..OriginConfig::new() }).await.expect("an origin")
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_claim_whose_holder_died_is_rescued_and_a_late_settle_changes_nothing(pool: PgPool) {
    let origin = site(10).await;
    let world = World::new(pool);
    let id = world.submit(origin.url("/site/").as_str(), plain(), depth(2)).await;
    // Somebody claims the set-up and is never heard of again.
    let mut conn = world.db.conn().await.expect("database");
    let lost = runs::claim(&mut conn, Kind::CrawlSetup, &Select::Next(1)).await.expect("claimed");
    assert_eq!(lost.len(), 1);
    drop(conn);
    assert_eq!(world.drain().await, 0, "the lease is respected while it lives");

    fonds_task::testing::elapse(&world.db, Duration::from_secs(80)).await;
    world.sweep().await;
    world.settle().await;
    let crawl = world.load(id).await;
    assert_eq!((crawl.status, crawl.n_snapshots), (CrawlStatus::Sealed, 10));

    // The frozen holder thaws.
    let late = Settlement { run: lost[0].id, lease: lost[0].lease, verdict: Verdict::Succeeded };
    let mut conn = world.db.conn().await.expect("database");
    assert!(runs::settle(&mut conn, &[late]).await.expect("asked").is_empty());
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_run_that_kills_its_holder_every_time_is_given_up_and_the_crawl_still_seals(pool: PgPool) {
    let origin = site(3).await;
    let world = World::new(pool);
    let id = world.submit(origin.url("/site/").as_str(), plain(), depth(0)).await;
    fonds_task::testing::drain(&[world.runner(Kind::CrawlSetup)]).await;
    for _ in 0..Kind::SnapshotPlain.policy().attempts {
        let mut conn = world.db.conn().await.expect("database");
        let held = runs::claim(&mut conn, Kind::SnapshotPlain, &Select::Next(10)).await.expect("claimed");
        assert_eq!(held.len(), 1);
        drop(conn);
        fonds_task::testing::elapse(&world.db, Duration::from_secs(80)).await;
        fonds_task::testing::drain(&[world.runner(Kind::Sweep)]).await;
        let mut conn = world.db.conn().await.expect("database");
        fonds_store::sweep::enqueue_sweep(&mut conn).await.expect("enqueued");
        drop(conn);
        fonds_task::testing::drain(&[world.runner(Kind::Sweep)]).await;
    }
    world.settle().await;
    let lines = world.snapshots(id).await;
    assert_eq!(lines[0].error_code.as_deref(), Some("LEASE_EXPIRED"));
    assert_eq!(world.load(id).await.status, CrawlStatus::Sealed);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn runs_that_were_lost_are_made_again_and_duplicates_do_nothing(pool: PgPool) {
    let origin = site(12).await;
    let world = World::new(pool);
    let id = world.submit(origin.url("/site/").as_str(), plain(), depth(1)).await;
    fonds_task::testing::drain(&[world.runner(Kind::CrawlSetup)]).await;
    sqlx::query("DELETE FROM task_run WHERE kind = 'snapshot-plain'").execute(world.db.pool()).await.expect("lost");
    sqlx::query("UPDATE snapshot SET created_at = now() - interval '5 minutes'")
        .execute(world.db.pool())
        .await
        .expect("aged");
    world.sweep().await;
    world.settle().await;
    let crawl = world.load(id).await;
    assert_eq!(crawl.status, CrawlStatus::Sealed);
    let runs: i64 =
        sqlx::query_scalar("SELECT count(*) FROM task_run WHERE kind = 'snapshot-plain' AND status = 'succeeded'")
            .fetch_one(world.db.pool())
            .await
            .expect("counted");
    assert_eq!(runs as u64, crawl.n_snapshots, "one run a page, whoever enqueued it how often");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn what_lies_in_the_store_without_a_row_is_kept_for_a_day(pool: PgPool) {
    let world = World::new(pool);
    let stray = fonds_blobs::BlobKey::parse("snapshots/0/stray.wacz").expect("a key");
    world
        .blobs
        .put_if_absent(&stray, fonds_blobs::PutBody::from(&b"loser"[..]), "application/wacz+zip")
        .await
        .expect("put");
    world.sweep().await;
    assert!(world.blobs.head(&stray).await.expect("asked").is_some(), "its capture may still settle");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_sweep_of_a_healthy_system_changes_nothing_but_its_tick(pool: PgPool) {
    let origin = site(8).await;
    let world = World::new(pool);
    world.crawl(origin.url("/site/").as_str(), plain(), depth(2)).await;
    let state = "SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM (SELECT s::text AS t FROM snapshot s
                 UNION ALL SELECT c::text FROM crawl c UNION ALL SELECT r::text FROM archive_result r
                 UNION ALL SELECT o::text FROM object o) x";
    let before: String = sqlx::query_scalar(state).fetch_one(world.db.pool()).await.expect("read");
    world.sweep().await;
    world.sweep().await;
    let after: String = sqlx::query_scalar(state).fetch_one(world.db.pool()).await.expect("read");
    assert_eq!(before, after);
}
