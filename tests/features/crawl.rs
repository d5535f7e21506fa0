//! The whole way of a crawl.

use fonds_domain::{CrawlStatus, StopReason};
use fonds_store::search;
use fonds_tests::{World, depth, file_of, plain, status_of};
use fonds_warc::WaczReader;
use fonds_web::testing::{Message, Origin, OriginConfig, Reply};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use std::io::Cursor;

fn page(title: &str, links: &[&str]) -> Reply {
    let links: String = links.iter().map(|l| format!("<p><a href=\"{l}\">to {l}</a></p>")).collect();
    Reply::html(format!("<!doctype html><title>{title}</title><h1>{title}</h1>{links}"))
}

async fn small_site() -> Origin {
    let long = "All about herons, told at length. ".repeat(60);
    let config = OriginConfig::new()
        .route("/", page("Home", &["/a", "/b", "/moved", "/missing", "/paper.pdf"]))
        .route("/a", page("A", &["/b", "/deep"]))
        .route("/b", Reply::html(format!("<title>B</title><article><h1>Herons</h1><p>{long}</p></article>")))
        .route("/deep", page("Deep", &["/deeper"]))
        .route("/deeper", page("Deeper", &[]))
        .route("/moved", Reply::redirect(301, "/a2"))
        .route("/a2", page("Arrived", &[]))
        .route("/missing", Message::new(404, "text/html", "<title>Not here</title>gone"))
        .route("/paper.pdf", Reply::ok("application/pdf", "%PDF-1.4\n%%EOF\n"));
    Origin::start(config).await.expect("an origin")
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_crawl_captures_every_page_in_reach_and_seals(pool: PgPool) {
    let origin = small_site().await;
    let world = World::new(pool);
    let id = world.crawl(origin.url("/").as_str(), plain(), depth(2)).await;

    let crawl = world.load(id).await;
    assert_eq!((crawl.status, crawl.stop_reason), (CrawlStatus::Sealed, Some(StopReason::Done)));
    let lines = world.snapshots(id).await;
    let mut seen: Vec<(String, i32, Option<i32>, Option<String>)> = lines
        .iter()
        .map(|l| {
            (
                l.url.trim_start_matches(origin.url("/").as_str()).to_owned(),
                l.depth,
                l.http_status,
                l.error_code.clone(),
            )
        })
        .collect();
    seen.sort();
    let ok = |url: &str, depth| (url.to_owned(), depth, Some(200), None);
    let expected = [
        ok("", 0),
        ok("a", 1),
        ok("b", 1),
        ok("deep", 2),
        ("missing".to_owned(), 1, Some(404), Some("HTTP_ERROR".to_owned())),
        ok("moved", 1),
        ok("paper.pdf", 1),
    ];
    assert_eq!(seen, expected);
    let moved = lines.iter().find(|l| l.url.ends_with("/moved")).expect("captured");
    assert_eq!(moved.final_url.as_deref(), Some(origin.url("/a2").as_str()));
    assert_eq!(moved.title.as_deref(), Some("Arrived"));
    assert!(file_of(moved, "redirects/redirects.jsonl").is_some());
    assert_eq!(origin.hits("/a"), 1, "a page is asked for once");
    assert!(lines.iter().all(|l| l.tags == ["test"]), "tags are inherited");
    assert_eq!(world.open_runs().await, 0);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn every_file_of_every_result_is_where_its_row_says(pool: PgPool) {
    let origin = small_site().await;
    let world = World::new(pool);
    let id = world.crawl(origin.url("/").as_str(), plain(), depth(2)).await;

    let mut files = 0;
    for line in world.snapshots(id).await {
        assert_eq!(status_of(&line, "warc"), Some("succeeded"), "{}", line.url);
        for file in line.results.iter().flat_map(|r| &r.files) {
            let bytes = world.file(file).await;
            assert_eq!(bytes.len() as u64, file.size, "{} of {}", file.path, line.url);
            if !file.sha256.is_empty() {
                assert_eq!(hex::encode(Sha256::digest(&bytes)), file.sha256, "{} of {}", file.path, line.url);
            }
            files += 1;
        }
        if line.url.ends_with("/b") {
            let text = file_of(&line, "htmltotext/htmltotext.txt").expect("text");
            assert!(String::from_utf8_lossy(&world.file(text).await).contains("All about herons"));
            assert_eq!(status_of(&line, "readability"), Some("succeeded"));
        }
        if line.url.ends_with("/paper.pdf") {
            let pdf = file_of(&line, "staticfile/paper.pdf").expect("the file");
            assert_eq!(&world.file(pdf).await[..], b"%PDF-1.4\n%%EOF\n");
            assert_eq!(pdf.mime, "application/pdf");
        }
    }
    assert!(files > 40, "{files}");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn the_object_of_a_capture_is_a_sound_wacz_and_the_crawl_lists_it(pool: PgPool) {
    let origin = small_site().await;
    let world = World::new(pool);
    let id = world.crawl(origin.url("/").as_str(), plain(), depth(1)).await;

    let lines = world.snapshots(id).await;
    let warc = file_of(&lines[0], "warc/data.warc.gz").expect("a WARC");
    let object = world.object(&warc.object).await;
    let (mut wacz, warnings) = WaczReader::open_verified(Cursor::new(object.to_vec())).expect("sound");
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(wacz.pages().expect("pages").len(), 1);
    // The page's part of a WARC is a WARC: its first record is the response.
    let part = world.file(warc).await;
    let mut reader = fonds_warc::WarcReader::new(&part[..]).expect("a WARC");
    let record = reader.next_record().expect("readable").expect("a record");
    assert_eq!(record.header().get("WARC-Type"), Some("response"));

    let files: serde_json::Value = sqlx::query_scalar("SELECT files FROM crawl WHERE id = $1")
        .bind(id.0)
        .fetch_one(world.db.pool())
        .await
        .expect("row");
    let names: Vec<_> = files.as_array().expect("a list").iter().map(|f| f["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["index.jsonl", "index.json", "index.html", "collection.json"]);
    let index = world.object(&format!("crawls/{id}/index.jsonl")).await;
    assert_eq!(String::from_utf8_lossy(&index).lines().count(), lines.len());
    let collection: serde_json::Value =
        serde_json::from_slice(&world.object(&format!("crawls/{id}/collection.json")).await).expect("JSON");
    assert!(!collection["resources"].as_array().expect("resources").is_empty());
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_body_already_held_becomes_a_revisit(pool: PgPool) {
    let body = "the very same text, again and again. ".repeat(80);
    let config = OriginConfig::new()
        .route("/one", Reply::ok("text/plain", body.clone()))
        .route("/two", Reply::ok("text/plain", body));
    let origin = Origin::start(config).await.expect("an origin");
    let world = World::new(pool);
    let first = world
        .crawl(
            origin.url("/one").as_str(),
            fonds_domain::CrawlConfig { dedup: fonds_domain::DedupScope::Library, ..plain() },
            depth(0),
        )
        .await;
    let second = world
        .crawl(
            origin.url("/two").as_str(),
            fonds_domain::CrawlConfig { dedup: fonds_domain::DedupScope::Library, ..plain() },
            depth(0),
        )
        .await;

    let output = |line: &fonds_store::listing::Line| {
        line.results.iter().find(|r| r.extractor == "warc").and_then(|r| r.output.clone())
    };
    let (one, two) = (world.snapshots(first).await, world.snapshots(second).await);
    assert_eq!(output(&one[0]).as_deref(), Some("2 records, 0 of them revisits"));
    assert_eq!(output(&two[0]).as_deref(), Some("2 records, 1 of them revisits"));
    // The second crawl's collection holds the object that its revisit refers to.
    let held = &file_of(&one[0], "warc/data.warc.gz").expect("a WARC").object;
    let collection = world.object(&format!("crawls/{second}/collection.json")).await;
    assert!(String::from_utf8_lossy(&collection).contains(held.as_str()));
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn only_new_says_what_became_of_each_url(pool: PgPool) {
    let origin = small_site().await;
    let world = World::new(pool);
    world.crawl(origin.url("/a").as_str(), plain(), depth(0)).await;
    let config = fonds_domain::CrawlConfig { only_new: true, deny: vec!["/deep$".into()], ..plain() };
    let input = format!("{}\n{}\n{}\n", origin.url("/a"), origin.url("/b"), origin.url("/deep"));
    let id = world.crawl(&input, config.clone(), depth(0)).await;

    let lines = world.snapshots(id).await;
    assert_eq!(lines.iter().map(|l| l.url.as_str()).collect::<Vec<_>>(), [origin.url("/b").as_str()]);
    let report: serde_json::Value = sqlx::query_scalar("SELECT setup_report FROM crawl WHERE id = $1")
        .bind(id.0)
        .fetch_one(world.db.pool())
        .await
        .expect("row");
    assert_eq!(report["counts"]["already_archived"], 1);
    let fate: Vec<_> =
        report["urls"].as_array().expect("a list").iter().map(|u| u["code"].as_str().expect("a code")).collect();
    assert_eq!(fate.len(), 2);
    assert!(fate.contains(&"ALREADY_ARCHIVED") && fate.contains(&"DENIED_BY_RULES"), "{fate:?}");

    // A crawl with nothing left to do ends at once and says why.
    let again =
        world.crawl(origin.url("/a").as_str(), fonds_domain::CrawlConfig { only_new: true, ..plain() }, depth(0)).await;
    let crawl = world.load(again).await;
    assert_eq!((crawl.status, crawl.stop_reason), (CrawlStatus::Sealed, Some(StopReason::NoViableUrls)));
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_page_is_found_by_its_text_and_title(pool: PgPool) {
    let origin = small_site().await;
    let world = World::new(pool);
    world.crawl(origin.url("/b").as_str(), plain(), depth(0)).await;
    let mut conn = world.db.conn().await.expect("database");
    let query = search::Query { text: "herons length".to_owned(), limit: 5, ..search::Query::default() };
    let found = search::search(&mut conn, &query).await.expect("searched");
    let hit = found.hits.first().map(|hit| hit.snapshot.url.clone());
    assert_eq!(hit.as_deref(), Some(origin.url("/b").as_str()));
}
