//! `add`: what was given becomes one crawl of exact URLs and one crawl a file.

use super::{Context, report, wait};
use crate::args::{Add, Robots, Scope};
use crate::client::Client;
use crate::client::view::{Crawl, read};
use crate::failure::{Exit, Failure};
use crate::host::start;
use crate::output::cut;
use fonds_domain::{RobotsPolicy, Scope as DomainScope};
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;
use uuid::Uuid;

/// The service takes no more in one submission.
const INPUT_MAX: u64 = 10 * 1024 * 1024;
/// URLs of one submission.
const URLS_MAX: usize = 100_000;

/// One submission.
#[derive(Debug, PartialEq)]
enum Source {
    /// URLs as they were given.
    Urls(Vec<String>),
    /// The content of a file or of standard input, with its name.
    Input { name: String, text: String },
}

/// Submits, and with `--wait` waits and shows what became of it.
///
/// # Errors
/// The service's refusal; with `--wait` also what failed in the crawl.
pub async fn add(cx: &Context, args: Add) -> Result<(), Failure> {
    let sources = gather(&args.sources, &mut std::io::stdin().lock())?;
    let client = service(cx, args.allow_private).await?;
    let mut crawls = Vec::new();
    for source in &sources {
        let body = submission(&args, source);
        // The same key for a repeated request: a connection that broke off does not make two crawls.
        let key = Uuid::new_v4().to_string();
        let headers = [("Idempotency-Key", key.as_str())];
        let answer = match client.post("/v1/crawls", &body, &headers).await {
            Err(failure) if failure.exit == Exit::Unreachable => client.post("/v1/crawls", &body, &headers).await?,
            answer => answer?,
        };
        let crawl: Crawl = read(&answer);
        cx.out.value(&answer);
        cx.out.line(format_args!("crawl {} {}", crawl.id, what(source)));
        for planned in crawl.plan.iter().filter(|p| p.outcome != "capture") {
            let earlier = planned.snapshot_id.as_deref().map(|id| format!(" (snapshot {id})")).unwrap_or_default();
            cx.out.line(format_args!("  {}: {}{earlier}", planned.outcome.replace('_', " "), cut(&planned.url, 120)));
        }
        crawls.push(crawl.id);
    }
    if !args.wait {
        cx.out.note("fonds: the service works on it; `fonds crawl wait ID` shows its progress");
        return Ok(());
    }
    let mut end = Ok(());
    for id in &crawls {
        let crawl = wait::wait(cx, &client, id).await?;
        finish(cx, &client, &crawl).await?;
        end = end.and(report::verdict(&crawl));
    }
    end
}

/// Shows a crawl that is over.
///
/// # Errors
/// When the service cannot be asked.
pub(super) async fn finish(cx: &Context, client: &Client, crawl: &Crawl) -> Result<(), Failure> {
    if cx.out.json {
        for row in client.list("/v1/snapshots", &[("crawl", crawl.id.clone())], usize::MAX).await? {
            cx.out.value(&row);
        }
        cx.out.value(&client.get(&format!("/v1/crawls/{}", crawl.id), &[]).await?);
    } else {
        let report = report::Report::of(client, crawl).await?;
        report.print(cx, crawl);
        report.point_to_it(cx, crawl);
    }
    Ok(())
}

/// The service to submit to; started when none runs.
async fn service(cx: &Context, allow_private: bool) -> Result<Client, Failure> {
    let belongs = "--allow-private belongs to the service, not to a submission";
    if let Some(client) = Client::from_env()? {
        if allow_private {
            return Err(Failure::usage(format!("{belongs}, and FONDS_URL names one that runs elsewhere")));
        }
        return Ok(client);
    }
    let home = &cx.home;
    if let Some(host) = home.host() {
        if allow_private && !host.allow_private {
            return Err(Failure::new(
                "PRIVATE_NOT_ALLOWED",
                format!("{belongs}, and the fonds at {} runs without it", host.url),
            )
            .advise("Restart it: `fonds down`, then `fonds up --detach --allow-private`."));
        }
        return Client::of(&host);
    }
    cx.out.note(format_args!("fonds: nothing runs for {}; starting it", home.dir().display()));
    let args: &[String] = if allow_private { &["--allow-private".to_owned()] } else { &[] };
    let host = start::detached(home, args).await?;
    cx.out.note(format_args!("fonds: runs at {} (`fonds down` ends it)", host.url));
    Client::of(&host)
}

/// Reads what was given. URLs without a scheme are taken as https.
fn gather(given: &[String], stdin: &mut dyn Read) -> Result<Vec<Source>, Failure> {
    let mut urls = Vec::new();
    let mut inputs = Vec::new();
    for text in given {
        if text == "-" {
            inputs.push(Source::Input { name: "standard input".to_owned(), text: read_text("standard input", stdin)? });
        } else if let Some(path) = text.strip_prefix('@') {
            let file = std::fs::File::open(path).map_err(|e| Failure::io(path, &e).exit(Exit::Usage))?;
            let name =
                Path::new(path).file_name().map_or_else(|| path.to_owned(), |n| n.to_string_lossy().into_owned());
            inputs.push(Source::Input { name, text: read_text(path, &mut { file })? });
        } else {
            urls.push(as_url(text)?);
        }
    }
    if urls.len() > URLS_MAX {
        return Err(
            Failure::usage(format!("more than {URLS_MAX} URLs")).advise("Put them into files and give those as @FILE.")
        );
    }
    let mut sources = Vec::new();
    if !urls.is_empty() {
        sources.push(Source::Urls(urls));
    }
    sources.extend(inputs);
    Ok(sources)
}

fn as_url(text: &str) -> Result<String, Failure> {
    let text = text.trim();
    if text.contains("://") {
        return Ok(text.to_owned());
    }
    if Path::new(text).is_file() {
        return Err(
            Failure::usage(format!("{text} is a file")).advise(format!("To archive the URLs in it, write @{text}"))
        );
    }
    if text.is_empty() || text.contains(char::is_whitespace) || text.starts_with('-') {
        return Err(Failure::usage(format!("{text:?} is no URL")));
    }
    Ok(format!("https://{text}"))
}

fn read_text(name: &str, from: &mut dyn Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(INPUT_MAX + 1).read_to_end(&mut bytes).map_err(|e| Failure::io(name, &e))?;
    if bytes.len() as u64 > INPUT_MAX {
        return Err(Failure::usage(format!("{name} is larger than 10 MB")).advise("Split it into several files."));
    }
    // Bookmark exports of old browsers are not always UTF-8; their URLs are ASCII all the same.
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

fn what(source: &Source) -> String {
    match source {
        Source::Urls(urls) => crate::units::count(urls.len() as u64, "URL"),
        Source::Input { name, .. } => format!("from {name}"),
    }
}

/// The body of a submission. Only what was asked for is in it: defaults are the service's.
fn submission(args: &Add, source: &Source) -> Value {
    let mut config = Map::new();
    let mut set = |key: &str, value: Value, default: bool| {
        if !default {
            config.insert(key.to_owned(), value);
        }
    };
    set("extractors", json!(args.extract), args.extract.is_empty());
    set("allow", json!(args.allow), args.allow.is_empty());
    set("deny", json!(args.deny), args.deny.is_empty());
    set("only_new", json!(true), !args.only_new);
    set("scope", json!(scope(args.scope)), args.scope == Scope::Host);
    set("robots", json!(robots(args.robots)), args.robots == Robots::Off);
    if let (Source::Input { .. }, Some(format)) = (source, &args.format) {
        set("input_format", json!(format), false);
    }
    let mut limits = Map::new();
    limits.insert("max_depth".to_owned(), json!(args.depth));
    for (key, value) in
        [("max_urls", args.max_urls), ("max_size", args.max_size), ("timeout_s", args.timeout.map(u64::from))]
    {
        limits.extend(value.map(|v| (key.to_owned(), json!(v))));
    }
    let mut body = json!({"limits": limits, "config": config});
    match source {
        Source::Urls(urls) => body["urls"] = json!(urls),
        Source::Input { text, .. } => body["input"] = json!(text),
    }
    let label = match source {
        Source::Input { name, .. } if args.label.is_empty() && name != "standard input" => name,
        _ => &args.label,
    };
    if !label.is_empty() {
        body["label"] = json!(label.chars().take(200).collect::<String>());
    }
    if !args.tag.is_empty() {
        body["tags"] = json!(args.tag);
    }
    body
}

fn scope(scope: Scope) -> DomainScope {
    match scope {
        Scope::Any => DomainScope::Any,
        Scope::Domain => DomainScope::Domain,
        Scope::Host => DomainScope::Host,
        Scope::Prefix => DomainScope::Prefix,
    }
}

fn robots(robots: Robots) -> RobotsPolicy {
    match robots {
        Robots::Off => RobotsPolicy::Off,
        Robots::Obey => RobotsPolicy::Obey,
        Robots::Report => RobotsPolicy::Report,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use fonds_domain::{CrawlConfig, CrawlLimits};

    fn parse(line: &str) -> Add {
        let cli = Cli::try_parse_from(["fonds", "add"].into_iter().chain(line.split_whitespace())).expect("parses");
        let Command::Add(add) = cli.command else { panic!("not add") };
        add
    }

    #[test]
    fn what_is_given_becomes_submissions() {
        let dir = tempfile::tempdir().expect("temp dir");
        let file = dir.path().join("links.txt");
        std::fs::write(&file, "https://a.example/\n").expect("written");
        let at_file = format!("@{}", file.display());
        let given = ["https://x.example/".to_owned(), at_file, "-".to_owned(), "y.example:8080/p".to_owned()];
        let sources = gather(&given, &mut &b"https://b.example/"[..]).expect("gathered");
        assert_eq!(
            sources,
            [
                Source::Urls(vec!["https://x.example/".into(), "https://y.example:8080/p".into()]),
                Source::Input { name: "links.txt".into(), text: "https://a.example/\n".into() },
                Source::Input { name: "standard input".into(), text: "https://b.example/".into() },
            ]
        );
        let hint = gather(&[file.display().to_string()], &mut &b""[..]).expect_err("a file");
        assert!(hint.advice.contains("@/"), "{hint}");
        for bad in ["", "two words", "@/no/such/file"] {
            assert_eq!(gather(&[bad.to_owned()], &mut &b""[..]).expect_err(bad).exit, Exit::Usage);
        }
        let large = vec![b'x'; INPUT_MAX as usize + 1];
        assert_eq!(gather(&["-".to_owned()], &mut &large[..]).expect_err("large").exit, Exit::Usage);
    }

    #[test]
    fn flags_become_what_the_service_understands() {
        let add = parse(
            "u -d 2 --max-urls 10 --max-size 1k --timeout 1m --tag a --label l --only-new --extract pdf \
             --allow example.org --deny x --scope domain --robots report",
        );
        let body = submission(&add, &Source::Urls(vec!["https://u/".into()]));
        assert_eq!(body["urls"], json!(["https://u/"]));
        assert_eq!((&body["label"], &body["tags"]), (&json!("l"), &json!(["a"])));
        let limits: CrawlLimits = serde_json::from_value(body["limits"].clone()).expect("the service's own type");
        let expected = CrawlLimits {
            max_depth: 2,
            max_urls: Some(10),
            max_size: Some(1024),
            timeout_s: Some(60),
            ..CrawlLimits::default()
        };
        assert_eq!(limits, expected);
        let config: CrawlConfig = serde_json::from_value(body["config"].clone()).expect("the service's own type");
        assert!(config.only_new && config.wants("pdf") && !config.wants("dom"));
        assert_eq!((config.scope, config.robots), (DomainScope::Domain, RobotsPolicy::Report));
        assert_eq!((config.allow, config.deny), (vec!["example.org".to_owned()], vec!["x".to_owned()]));
    }

    #[test]
    fn defaults_are_left_to_the_service() {
        let body = submission(&parse("u"), &Source::Input { name: "b.html".into(), text: "t".into() });
        assert_eq!(body, json!({"limits": {"max_depth": 0}, "config": {}, "input": "t", "label": "b.html"}));
        let body =
            submission(&parse("u --format rss"), &Source::Input { name: "standard input".into(), text: "t".into() });
        assert_eq!(body["config"], json!({"input_format": "rss"}));
        assert!(submission(&parse("u --format rss"), &Source::Urls(vec![]))["config"].get("input_format").is_none());
    }
}
