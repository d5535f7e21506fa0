//! `open`: a file of a snapshot in the desktop's program for it, or its address.

use super::Context;
use crate::args::Open;
use crate::client::Client;
use crate::client::find::snapshot;
use crate::client::view::{File, Link, Snapshot, read};
use crate::failure::Failure;
use serde_json::json;
use std::process::{Command, Stdio};

/// What a person most likely wants to see, best first.
const PREFERRED: [&str; 7] = ["singlefile", "screenshot", "pdf", "readability", "staticfile", "dom", "htmltotext"];

/// Opens or prints.
///
/// # Errors
/// `NO_SUCH_OUTPUT` when the snapshot has no such file.
pub async fn open(cx: &Context, args: Open) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    let row = snapshot(&client, &args.id).await?;
    let page: Snapshot = read(&row);
    let (extractor, file) = choose(&page, args.output.as_deref())?;
    let link: Link = read(&client.get(&file.href, &[("link", "true".to_owned())]).await?);
    cx.out.value(
        &json!({"snapshot": page.id, "output": extractor, "path": file.path, "url": link.url, "size": file.size}),
    );
    cx.out.line(&link.url);
    let screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|v| std::env::var_os(v).is_some());
    if args.print || cx.out.json || !(screen || cfg!(target_os = "macos")) {
        return Ok(());
    }
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened =
        Command::new(opener).arg(&link.url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if opened.is_err() {
        cx.out.note("fonds: no program to open it was found; the address is good for 15 minutes");
    }
    Ok(())
}

fn choose(page: &Snapshot, wanted: Option<&str>) -> Result<(String, File), Failure> {
    let with_files = || page.results.iter().filter(|r| !r.files.is_empty());
    let found = match wanted {
        Some(name) => with_files().find(|r| r.extractor == name),
        None => PREFERRED
            .iter()
            .find_map(|name| with_files().find(|r| r.extractor == *name))
            .or_else(|| with_files().next()),
    };
    let failure = || {
        let names: Vec<&str> = with_files().map(|r| r.extractor.as_str()).collect();
        let has =
            if names.is_empty() { "It has no files.".to_owned() } else { format!("It has: {}.", names.join(", ")) };
        let what = wanted.map_or_else(|| "no file".to_owned(), |w| format!("no output {w}"));
        Failure::new("NO_SUCH_OUTPUT", format!("snapshot {} has {what}", page.id)).advise(has)
    };
    let result = found.ok_or_else(failure)?;
    // An output may have a description beside what one looks at.
    let seen = |file: &&File| {
        ["text/html", "image/", "application/pdf", "multipart/related"].iter().any(|kind| file.mime.starts_with(kind))
    };
    let file = result.files.iter().find(seen).or(result.files.first()).cloned().ok_or_else(failure)?;
    Ok((result.extractor.clone(), file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_output_there_is_is_opened() {
        let page: Snapshot = read(&json!({"id": "i", "results": [
            {"extractor": "headers", "files": [{"path": "headers.json"}]},
            {"extractor": "singlefile", "files": []},
            {"extractor": "screenshot", "files": [{"path": "screenshot.png"}, {"path": "screenshot.webp"}]},
            {"extractor": "readability", "files": [
                {"path": "article.json", "mime": "application/json"},
                {"path": "content.html", "mime": "text/html; charset=utf-8"}]}]}));
        assert_eq!(choose(&page, None).expect("found").1.path, "screenshot.png");
        assert_eq!(choose(&page, Some("headers")).expect("found").1.path, "headers.json");
        assert_eq!(choose(&page, Some("readability")).expect("found").1.path, "content.html");
        let failure = choose(&page, Some("pdf")).expect_err("none");
        assert!(failure.advice.contains("headers, screenshot"), "{failure}");
        assert!(choose(&Snapshot::default(), None).is_err());
    }
}
