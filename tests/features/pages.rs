//! What servers do to crawlers, and what the guard refuses: each ends as a result with a code.

use fonds_tests::{World, depth, plain};
use fonds_web::fetch::MinRate;
use fonds_web::testing::{Origin, OriginConfig};
use sqlx::PgPool;
use std::time::Duration;

fn impatient(config: &mut fonds_web::fetch::FetcherConfig) {
    config.header_timeout = Duration::from_millis(800);
    config.idle_timeout = Duration::from_millis(800);
    config.total_timeout = Duration::from_secs(4);
    config.min_rate = MinRate { bytes_per_second: 1000, grace: Duration::from_millis(500) };
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn every_fault_of_a_server_ends_as_a_result_with_a_code(pool: PgPool) {
    // Path, code of the snapshot; none: captured without complaint.
    let cases: [(&str, Option<&str>); 19] = [
        ("redirect/3", None),
        ("loop", Some("REDIRECT_LOOP")),
        ("redirect-ftp", Some("REDIRECT_BAD_SCHEME")),
        ("gzip", None),
        ("gzip-plain", None),
        ("charset", None),
        ("zero", None),
        ("endless", Some("BODY_TOO_LARGE")),
        ("drip", Some("SLOW_BODY")),
        ("stall", Some("BODY_TIMEOUT")),
        ("silent", Some("HEADER_TIMEOUT")),
        ("short", Some("CONNECTION_CLOSED")),
        ("empty-reply", Some("CONNECTION_CLOSED")),
        ("http09", Some("HTTP_MALFORMED")),
        ("garbage", Some("HTTP_MALFORMED")),
        ("status/404", Some("HTTP_ERROR")),
        ("status/500", Some("HTTP_ERROR")),
        ("chunked", None),
        ("odd-head", None),
    ];
    let origin = Origin::start(OriginConfig::new()).await.expect("an origin");
    let world = World::with(pool, true, impatient);
    let input: String = cases.iter().map(|(p, _)| format!("{}\n", origin.url(&format!("/faults/{p}")))).collect();
    let config = fonds_domain::CrawlConfig { body_max: 2 << 20, ..plain() };
    let id = world.crawl(&input, config, depth(0)).await;

    let lines = world.snapshots(id).await;
    assert_eq!(lines.len(), cases.len());
    for (path, code) in cases {
        let line = lines.iter().find(|l| l.url.ends_with(&format!("/faults/{path}"))).expect("captured");
        assert_eq!(line.error_code.as_deref(), code, "{path}: {:?}", line.error);
        assert!(line.downloaded_at.is_some(), "{path}");
    }
    assert_eq!(world.open_runs().await, 0);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn private_addresses_are_refused_unless_the_operator_allows_them(pool: PgPool) {
    let origin = Origin::start(OriginConfig::new()).await.expect("an origin");
    let port = origin.url("/").port().expect("a port");
    let world = World::guarded(pool);
    let input = format!(
        "http://127.0.0.1:{port}/\nhttp://2130706433:{port}/x\nhttp://0177.0.0.1:{port}/y\nhttp://[::ffff:127.0.0.1]:{port}/\n\
         http://localhost:{port}/\nhttp://169.254.169.254/latest/meta-data/\nhttp://[64:ff9b::7f00:1]:{port}/\n"
    );
    let id = world.crawl(&input, plain(), depth(0)).await;
    let lines = world.snapshots(id).await;
    assert_eq!(lines.len(), 7);
    for line in &lines {
        assert_eq!(line.error_code.as_deref(), Some("EGRESS_REFUSED"), "{}", line.url);
    }
    assert_eq!(origin.connections(), 0);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn robots_are_obeyed_or_reported_as_asked(pool: PgPool) {
    use fonds_domain::{CrawlConfig, RobotsPolicy};
    use fonds_web::testing::Reply;
    let config = OriginConfig::new()
        .route("/robots.txt", Reply::ok("text/plain", "User-agent: *\nDisallow: /private\n"))
        .route("/private", Reply::html("<title>Private</title>"))
        .route("/open", Reply::html("<title>Open</title>"));
    let origin = Origin::start(config).await.expect("an origin");
    let world = World::new(pool);
    let input = format!("{}\n{}\n", origin.url("/private"), origin.url("/open"));
    let obey = CrawlConfig { robots: RobotsPolicy::Obey, ..plain() };
    let id = world.crawl(&input, obey, depth(0)).await;
    let codes: Vec<_> = world.snapshots(id).await.into_iter().map(|l| l.error_code).collect();
    assert_eq!(codes, [Some("ROBOTS_DENIED".to_owned()), None]);
    assert_eq!(origin.hits("/private"), 0);

    let report = CrawlConfig { robots: RobotsPolicy::Report, ..plain() };
    let id = world.crawl(&input, report, depth(0)).await;
    assert!(world.snapshots(id).await.iter().all(|l| l.error_code.is_none()));
    assert_eq!(origin.hits("/private"), 1);
}
