//! Links as an independent parser finds them.

use crate::tools;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use url::Url;

/// A page and the bytes it was served from.
pub(crate) struct Served {
    pub(crate) url: Url,
    pub(crate) file: PathBuf,
}

/// The links of each page, by the page's URL; `None` when there is no Python.
pub(crate) async fn of(pages: &[Served]) -> Option<BTreeMap<Url, BTreeSet<Url>>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/links.py");
    let mut command = Command::new("python3");
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let Ok(mut python) = command.spawn() else {
        tools::missing("python3");
        return None;
    };
    let mut stdin = python.stdin.take().expect("a pipe");
    let mut asked = String::new();
    for page in pages {
        asked.push_str(&serde_json::json!({"url": page.url.as_str(), "file": page.file}).to_string());
        asked.push('\n');
    }
    // Both at once: neither pipe may fill up while the other is waited for.
    let write = async move {
        stdin.write_all(asked.as_bytes()).await.ok();
    };
    let (output, ()) = tokio::join!(python.wait_with_output(), write);
    let text = tools::said("the independent parser", &output.expect("python3 runs"));
    let lists: Vec<Vec<String>> = text.lines().map(|line| serde_json::from_str(line).expect("a list")).collect();
    assert_eq!(lists.len(), pages.len());
    Some(pages.iter().zip(lists).map(|(page, list)| (page.url.clone(), normal(list))).collect())
}

/// As the WHATWG standard writes them, without fragments: the form in which two parsers can be compared.
pub(crate) fn normal(links: impl IntoIterator<Item = impl AsRef<str>>) -> BTreeSet<Url> {
    links
        .into_iter()
        .filter_map(|link| Url::parse(link.as_ref()).ok())
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .map(bare)
        .collect()
}

/// Without its fragment.
pub(crate) fn bare(mut url: Url) -> Url {
    url.set_fragment(None);
    url
}
