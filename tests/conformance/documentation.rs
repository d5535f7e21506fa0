//! A crawl of documentation that people wrote and publish: Debian's HTML of the Python manual.

use crate::links::{self, Served, bare, normal};
use crate::records::Kept;
use crate::{archive, judges, records, replay, tools};
use fonds_domain::{CrawlId, CrawlLimits, CrawlStatus, StopReason};
use fonds_store::listing::Line;
use fonds_tests::{World, depth, file_of, plain, status_of};
use fonds_warc::RecordType;
use fonds_web::testing::{Origin, OriginConfig};
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use url::Url;

const PLACES: [&str; 3] =
    ["/usr/share/doc/python3.11/html", "/usr/share/doc/python3-doc/html", "/usr/share/doc/python3/html"];
const PAGES: u64 = 60;
const MAX_DEPTH: u16 = 2;
/// Which pages are replayed: the same ones on every run.
const SEED: &str = "fonds conformance 1";
const REPLAYED: usize = 10;

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn documentation_is_kept_whole_and_others_can_read_it(pool: PgPool) {
    let Some(root) = root() else {
        return tools::missing("HTML documentation (apt-get install python3-doc, or FONDS_CONFORMANCE_DOCS)");
    };
    let pages = std::env::var("FONDS_CONFORMANCE_PAGES").map_or(PAGES, |n| n.parse().expect("a number of pages"));
    let config = OriginConfig { files: Some(root.clone()), ..OriginConfig::new() };
    let origin = Origin::start(config).await.expect("an origin");
    let start = origin.url("/");
    let world = World::new(pool);
    let limits = CrawlLimits { max_urls: Some(pages), ..depth(MAX_DEPTH) };
    let id = world.crawl(start.as_str(), plain(), limits).await;

    let lines = world.snapshots(id).await;
    every_page_is_sealed(&world, id, &lines, &root).await;
    let html = html_pages(&lines, &root);
    if let Some(theirs) = links::of(&html).await {
        links_are_those_of_another_parser(&world, &lines, &theirs).await;
        let reached = no_page_is_lost(&start, &lines, &theirs, pages);
        let reason = if reached { StopReason::MaxUrls } else { StopReason::Done };
        assert_eq!(world.load(id).await.stop_reason, Some(reason));
    }

    let archive = archive::unpack(&world, id).await;
    let kept = records::sound(&archive);
    every_page_has_its_record(&lines, &kept);
    let memories = replay::ask_origin(some(&kept)).await;
    drop(origin);
    let revisits = kept.iter().filter(|k| k.kind == RecordType::Revisit).count();
    // The same body as that of the folder, which was there first.
    if lines.iter().any(|l| asked(l) == start.join("index.html").expect("a URL")) {
        assert!(revisits > 0, "the front page is stored twice");
    }
    eprintln!(
        "{} pages, {} of them HTML; {} objects, {} records, {revisits} revisits",
        lines.len(),
        html.len(),
        archive.objects.len(),
        kept.len()
    );
    if let Some(folder) = tools::judges() {
        judges::agree(&folder, &archive).await;
        replay::agrees(&folder, &archive, &memories).await;
        eprintln!("{} captures replayed", memories.len());
    }
}

/// The documentation's folder, if it is installed.
fn root() -> Option<PathBuf> {
    let named = std::env::var_os("FONDS_CONFORMANCE_DOCS").map(PathBuf::from);
    let places = named.into_iter().chain(PLACES.map(PathBuf::from));
    places.into_iter().find(|place| place.join("index.html").is_file())
}

/// The URL a page was asked for, as it went over the wire.
fn asked(line: &Line) -> Url {
    bare(line.url.parse().expect("a URL"))
}

/// The file that a web server gives for a URL.
fn served(root: &Path, url: &Url) -> Option<PathBuf> {
    let mut file = root.to_owned();
    // These file names need no percent-decoding: Sphinx makes them from module names.
    file.extend(url.path_segments().expect("a path").filter(|s| !s.is_empty()));
    if file.is_dir() {
        file.push("index.html");
    }
    file.is_file().then_some(file)
}

fn html_pages(lines: &[Line], root: &Path) -> Vec<Served> {
    let html = lines.iter().filter(|l| l.http_status == Some(200) && l.mime.as_deref() == Some("text/html"));
    html.map(asked).map(|url| Served { file: served(root, &url).expect("it was served"), url }).collect()
}

async fn every_page_is_sealed(world: &World, id: CrawlId, lines: &[Line], root: &Path) {
    let crawl = world.load(id).await;
    assert_eq!(crawl.status, CrawlStatus::Sealed);
    let open: i64 = sqlx::query_scalar("SELECT count(*) FROM snapshot WHERE crawl_id = $1 AND status <> 'sealed'")
        .bind(id.0)
        .fetch_one(world.db.pool())
        .await
        .expect("counted");
    assert_eq!((open, world.open_runs().await), (0, 0));
    for line in lines {
        // A link into nothing is kept as what it is.
        let status = if served(root, &asked(line)).is_some() { 200 } else { 404 };
        assert_eq!(line.http_status, Some(status), "{}: {:?}", line.url, line.error);
        assert!(line.downloaded_at.is_some(), "{}", line.url);
        for extractor in ["warc", "wacz", "headers", "hashes"] {
            assert_eq!(status_of(line, extractor), Some("succeeded"), "{extractor} of {}", line.url);
        }
        let failed: Vec<_> = line.results.iter().filter(|r| r.status == "failed").collect();
        assert!(failed.is_empty(), "{}: {failed:?}", line.url);
    }
}

async fn links_are_those_of_another_parser(world: &World, lines: &[Line], theirs: &BTreeMap<Url, BTreeSet<Url>>) {
    let mut compared = 0;
    for line in lines {
        let Some(theirs) = theirs.get(&asked(line)) else { continue };
        let ours = match file_of(line, "parse_html_urls/urls.jsonl") {
            Some(file) => {
                let bytes = world.file(file).await;
                let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
                let values = text.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).expect("JSON"));
                normal(values.map(|v| v["url"].as_str().expect("a URL").to_owned()))
            }
            None => BTreeSet::new(),
        };
        let names = |a: &BTreeSet<Url>, b: &BTreeSet<Url>| a.difference(b).map(Url::to_string).collect::<Vec<_>>();
        let (only_ours, only_theirs) = (names(&ours, theirs), names(theirs, &ours));
        assert!(
            only_ours.is_empty() && only_theirs.is_empty(),
            "{}: only we find {only_ours:?}; only the other parser finds {only_theirs:?}",
            line.url
        );
        compared += ours.len();
    }
    eprintln!("{compared} links on {} pages are those of another parser", theirs.len());
    assert!(compared > theirs.len(), "hardly any links: {compared}");
}

/// What is captured is what the other parser's links lead to, in as many steps, and nothing less
/// unless the limit says so. Whether it did.
fn no_page_is_lost(start: &Url, lines: &[Line], theirs: &BTreeMap<Url, BTreeSet<Url>>, pages: u64) -> bool {
    let mut reach: BTreeMap<Url, u16> = BTreeMap::from([(start.clone(), 0)]);
    for depth in 0..MAX_DEPTH {
        let here: Vec<Url> = reach.iter().filter(|(_, d)| **d == depth).map(|(url, _)| url.clone()).collect();
        let links = here.iter().filter_map(|url| theirs.get(url)).flatten();
        let inside = links.filter(|link| link.origin() == start.origin());
        for link in inside.cloned().collect::<Vec<_>>() {
            reach.entry(link).or_insert(depth + 1);
        }
    }
    let captured: BTreeMap<Url, u16> =
        lines.iter().map(|l| (asked(l), u16::try_from(l.depth).expect("a depth"))).collect();
    assert_eq!(captured.len(), lines.len(), "a page is there twice");
    for (url, depth) in &captured {
        assert_eq!(reach.get(url), Some(depth), "{url}");
    }
    let expected = (reach.len() as u64).min(pages);
    let lost: Vec<&Url> = reach.keys().filter(|url| !captured.contains_key(url)).take(20).collect();
    assert_eq!(captured.len() as u64, expected, "not captured, among others: {lost:?}");
    // Breadth first: nothing of a deeper step as long as a nearer one is left.
    let deepest = captured.values().max();
    let nearer = reach.iter().filter(|(_, d)| Some(*d) < deepest);
    let skipped: Vec<&Url> = nearer.map(|(url, _)| url).filter(|url| !captured.contains_key(url)).collect();
    assert!(skipped.is_empty(), "deeper pages were captured before {skipped:?}");
    reach.len() as u64 > pages
}

fn every_page_has_its_record(lines: &[Line], kept: &[Kept]) {
    let captures: BTreeSet<&str> = kept.iter().filter(|k| k.is_capture()).map(|k| k.uri.as_str()).collect();
    let requests = kept.iter().filter(|k| k.kind == RecordType::Request).count();
    for line in lines {
        assert!(captures.contains(asked(line).as_str()), "no record of {}", line.url);
    }
    assert_eq!((captures.len(), requests), (lines.len(), lines.len()), "one exchange a page");
}

/// Ten captures drawn by the seed, and the first revisits, since those are the ones a player may lose.
fn some(kept: &[Kept]) -> Vec<&Kept> {
    let mut captures: Vec<&Kept> = kept.iter().filter(|k| k.is_capture()).collect();
    captures.sort_by_cached_key(|k| {
        // The port is another one on every run.
        let path = Url::parse(&k.uri).map(|u| u.path().to_owned()).unwrap_or_default();
        Sha256::digest(format!("{SEED} {path}"))
    });
    let (drawn, rest) = captures.split_at(REPLAYED.min(captures.len()));
    let revisits = rest.iter().filter(|k| k.kind == RecordType::Revisit).take(3);
    drawn.iter().chain(revisits).copied().collect()
}
