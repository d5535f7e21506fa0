//! Shows what this crate makes of a file, and what that costs.
//!
//! ```text
//! cargo run --release -p fonds-pages --example pages -- input FILE [BASE]
//! cargo run --release -p fonds-pages --example pages -- facts FILE URL
//! cargo run --release -p fonds-pages --example pages -- links URL_PREFIX DIR FILE...
//! cargo run --release -p fonds-pages --example pages -- bench [FILE...]
//! ```
#![expect(clippy::print_stdout, reason = "an example prints")]

use fonds_pages::html::{FactsOptions, facts_of};
use fonds_pages::inputs::{Hint, Limits, parse};
use fonds_pages::{singlefile, text};
use std::error::Error;
use std::time::Instant;
use url::Url;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["input", file, rest @ ..] => {
            let base = rest.first().map(|base| Url::parse(base)).transpose()?;
            let hint = Hint { file_name: Some(file), base: base.as_ref(), ..Hint::default() };
            let parsed = parse(&std::fs::read(file)?, &hint, &Limits::default());
            println!("{}", serde_json::to_string_pretty(&parsed)?);
        }
        ["facts", file, url] => {
            let facts = facts_of(&std::fs::read(file)?, None, &Url::parse(url)?, &FactsOptions::default());
            println!("{}", serde_json::to_string_pretty(&facts)?);
        }
        ["links", prefix, dir, files @ ..] => links(prefix, dir, files)?,
        ["bench", files @ ..] => bench(files)?,
        _ => println!("usage: pages input FILE [BASE] | facts FILE URL | links PREFIX DIR FILE... | bench [FILE...]"),
    }
    Ok(())
}

/// One line a link: the page, a tab, the link.
fn links(prefix: &str, dir: &str, files: &[&str]) -> Result<(), Box<dyn Error>> {
    for file in files {
        let path = file.strip_prefix(dir).unwrap_or(file).trim_start_matches('/');
        let url = Url::parse(prefix)?.join(path)?;
        let facts = facts_of(&std::fs::read(file)?, Some("text/html; charset=utf-8"), &url, &FactsOptions::default());
        for link in facts.outlinks() {
            println!("{url}\t{}", link.url);
        }
    }
    Ok(())
}

fn bench(files: &[&str]) -> Result<(), Box<dyn Error>> {
    let url = Url::parse("https://example.org/docs/page.html")?;
    let mut pages = vec![("made, 4 KiB".to_owned(), made(4 << 10)), ("made, 64 KiB".to_owned(), made(64 << 10))];
    for file in files {
        pages.push(((*file).to_owned(), std::fs::read(file)?));
    }
    println!(
        "{:40} {:>9} {:>6} {:>12} {:>12} {:>12} {:>12}",
        "page", "bytes", "links", "facts+text", "markdown", "readability", "singlefile"
    );
    for (name, bytes) in pages {
        let html = String::from_utf8_lossy(&bytes).into_owned();
        let options = FactsOptions::default();
        let found = facts_of(&bytes, None, &url, &options).links.len();
        let facts = time(|| facts_of(&bytes, None, &url, &options));
        let markdown = time(|| text::markdown(&html));
        let article = time(|| text::readability(&html, &url));
        let single = time(|| singlefile::inline(&html, &url, &|_: &Url| None, &singlefile::Options::default()));
        let name: String = name.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
        println!(
            "{name:40} {:>9} {found:>6} {facts:>9.1} us {markdown:>9.1} us {article:>9.1} us {single:>9.1} us",
            bytes.len()
        );
    }
    Ok(())
}

/// The fastest of many runs, in microseconds.
fn time<T>(mut run: impl FnMut() -> T) -> f64 {
    let mut best = f64::MAX;
    let began = Instant::now();
    let mut runs = 0;
    while runs < 5 || (began.elapsed().as_millis() < 400 && runs < 2_000) {
        let start = Instant::now();
        std::hint::black_box(run());
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
        runs += 1;
    }
    best
}

/// A page of the usual mix: a head with metadata, navigation, paragraphs with links, pictures.
fn made(size: usize) -> Vec<u8> {
    let mut page = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page &amp; more</title>\
         <meta name=\"description\" content=\"What it is about\"><link rel=\"canonical\" href=\"/docs/page\">\
         <link rel=\"stylesheet\" href=\"/style.css\"><link rel=\"icon\" href=\"/favicon.ico\"></head><body><main>",
    );
    let mut n = 0;
    while page.len() < size {
        n += 1;
        page.push_str(&format!(
            "<div class=\"section\"><h2 id=\"s{n}\">Section {n}</h2><p>Some words about the matter, with <a href=\"/docs/{n}.html#top\">a \
             link</a> and <code>code &lt;{n}&gt;</code>, then some more words so that it reads like prose.</p>\
             <img src=\"/img/{n}.png\" alt=\"picture {n}\"></div>\n"
        ));
    }
    page.push_str("</main></body></html>");
    page.into_bytes()
}
