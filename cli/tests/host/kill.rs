//! Something is killed in the middle of a crawl of a hundred pages, and the crawl still ends whole.

use crate::archive::{Archive, kill, until};
use fonds_web::testing::{Origin, OriginConfig};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const PAGES: usize = 100;
/// Outputs that need the browser, and few of them: what is tested is the kill.
const RENDERED: &str = "headers,title,warc,wacz,screenshot,dom,htmltotext,dom_outlinks,parse_html_urls";
const PLAIN: &str = "headers,title,warc,wacz,htmltotext,parse_html_urls";

/// A site of a hundred pages, and an archive that crawls it.
struct Crawling {
    archive: Archive,
    id: String,
    origin: Origin,
    _runtime: tokio::runtime::Runtime,
    /// Process groups of browsers, as they were seen.
    browsers: BTreeSet<i32>,
}

impl Crawling {
    fn start(outputs: &str, latency: Duration) -> Option<Crawling> {
        let archive = Archive::new()?;
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let config = OriginConfig { pages: PAGES, latency, ..OriginConfig::new() };
        let origin = runtime.block_on(Origin::start(config)).expect("an origin");
        archive.up_with(&["--allow-private"]);
        let made = archive.json(&["add", origin.url("/site/").as_str(), "--depth", "3", "--extract", outputs]);
        let id = made["id"].as_str().unwrap_or_else(|| panic!("an id: {made}")).to_owned();
        Some(Crawling { archive, id, origin, _runtime: runtime, browsers: BTreeSet::new() })
    }

    fn crawl(&self) -> Option<Value> {
        let out = self.archive.fonds(&["crawl", "show", &self.id, "--json"]);
        // While the database is away there is no answer.
        out.status.success().then(|| serde_json::from_slice(&out.stdout).expect("JSON"))
    }

    /// Waits until so many pages are sealed, and answers how many are open.
    fn half_way(&mut self, sealed: u64) -> u64 {
        let end = Instant::now() + Duration::from_secs(180);
        loop {
            self.look_for_browsers();
            if let Some(crawl) = self.crawl() {
                let count = |name: &str| crawl["counts"][name].as_u64().expect("a number");
                if count("sealed") >= sealed {
                    assert_eq!(crawl["status"], "started", "the kill comes too late: {crawl}");
                    return count("open");
                }
            }
            assert!(Instant::now() < end, "no progress\n{}", self.archive.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn look_for_browsers(&mut self) {
        let found = processes_with(&format!("--user-data-dir={}", self.archive.home.dir().display()));
        self.browsers.extend(found.into_iter().filter_map(group_of));
    }

    /// Waits for the seal; then everything is there, once, and nothing else is left.
    fn seals_whole(mut self) {
        let end = Instant::now() + Duration::from_secs(240);
        let crawl = loop {
            self.look_for_browsers();
            match self.crawl() {
                Some(crawl) if crawl["status"] == "sealed" => break crawl,
                other => assert!(Instant::now() < end, "not sealed: {other:?}\n{}", self.archive.log()),
            }
            std::thread::sleep(Duration::from_millis(100));
        };
        assert_eq!(crawl["stop_reason"], "done", "{crawl}");
        assert_eq!(crawl["counts"]["snapshots"], PAGES, "{crawl}");
        assert_eq!((&crawl["counts"]["failed"], &crawl["counts"]["results_failed"]), (&0.into(), &0.into()), "{crawl}");

        let said = self.archive.answer(&["list", "--crawl", &self.id, "-n", "1000", "--json"]);
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        for line in said.lines() {
            let snapshot: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((&snapshot["status"], &snapshot["http_status"]), (&"sealed".into(), &200.into()), "{snapshot}");
            *times.entry(snapshot["url"].as_str().expect("a URL").to_owned()).or_default() += 1;
        }
        let mut expected: BTreeMap<String, u32> =
            (1..PAGES).map(|n| (self.origin.url(&format!("/site/{n}/")).to_string(), 1)).collect();
        expected.insert(self.origin.url("/site/").to_string(), 1);
        assert_eq!(times, expected, "every page once");

        // The collection can be read to its last byte.
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("crawl.wacz");
        self.archive.answer(&["export", &self.id, "--wacz", "-o", path.to_str().expect("a path")]);
        assert!(std::fs::metadata(path).expect("written").len() > 50_000);

        self.archive.answer(&["down"]);
        until("every browser process has ended", || {
            !all_processes().any(|pid| group_of(pid).is_some_and(|group| self.browsers.contains(&group)))
        });
        let left = processes_with(self.archive.home.dir().to_str().expect("a path"));
        assert!(left.is_empty(), "{left:?} still run");
    }
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("a process table");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Processes with this text in their command line.
fn processes_with(text: &str) -> Vec<u32> {
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    all_processes().filter(has).collect()
}

/// The process group: proc_pid_stat(5), field 5.
fn group_of(pid: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(2)?.parse().ok()
}

#[test]
fn the_host_is_killed_in_the_middle_of_a_crawl() {
    let Some(mut crawling) = Crawling::start(RENDERED, Duration::ZERO) else { return };
    let open = crawling.half_way(30);
    assert!(open > 20, "in the middle");
    let host = crawling.archive.home.host().expect("a host");
    kill(host.pid, Signal::KILL);
    until("the browser ends with its host", || {
        !all_processes().any(|pid| group_of(pid).is_some_and(|group| crawling.browsers.contains(&group)))
    });
    until("the folder is free", || !crawling.archive.home.is_held());
    crawling.archive.up_with(&["--allow-private"]);
    crawling.seals_whole();
}

#[test]
fn the_browser_is_killed_in_the_middle_of_a_crawl() {
    let Some(mut crawling) = Crawling::start(RENDERED, Duration::ZERO) else { return };
    for sealed in [20, 45] {
        crawling.half_way(sealed);
        let browser = processes_with(&format!("--user-data-dir={}", crawling.archive.home.dir().display()));
        kill(*browser.first().expect("a browser"), Signal::KILL);
    }
    crawling.seals_whole();
}

#[test]
fn the_database_is_killed_in_the_middle_of_a_crawl() {
    // Slow enough that there is a middle.
    let Some(mut crawling) = Crawling::start(PLAIN, Duration::from_millis(150)) else { return };
    let open = crawling.half_way(11);
    assert!(open > 20, "in the middle");
    let pid_file = crawling.archive.home.cluster().join("postmaster.pid");
    let postmaster = std::fs::read_to_string(pid_file).expect("runs");
    kill(postmaster.lines().next().and_then(|pid| pid.trim().parse().ok()).expect("a pid"), Signal::KILL);
    crawling.seals_whole();
}
