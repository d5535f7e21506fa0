use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::WACZ_VERSION;
use crate::digest::Sha256Digest;

/// What the package says about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PackageMeta {
    /// Title of the collection.
    pub title: Option<String>,
    /// Longer description, Markdown.
    pub description: Option<String>,
    /// When the package was made.
    pub created: DateTime<Utc>,
    /// What made it, such as `fonds 0.1.0`.
    pub software: String,
    /// The page to open first.
    pub main_page_url: Option<String>,
    /// When that page was captured.
    pub main_page_date: Option<DateTime<Utc>>,
    /// Properties of the caller's own; those the format defines are not overridden.
    pub extra: Map<String, Value>,
}

/// A file of the package as listed in `datapackage.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Short name.
    #[serde(default)]
    pub name: String,
    /// Path in the zip.
    pub path: String,
    /// `sha256:<hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The form of hash and length before WACZ 1.1.
    #[serde(default, skip_serializing)]
    pub stats: Option<Stats>,
    /// The algorithm of `stats.hash`.
    #[serde(default, skip_serializing)]
    pub hashing: Option<String>,
    /// `file` for artifacts: data package validators take a `.csv`, `.xlsx` or `.jsonl` for a table of theirs otherwise and
    /// refuse the package when a page's own file is not a good one.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Hash and length as WACZ 1.0 wrote them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Stats {
    /// Hex digest.
    #[serde(default)]
    pub hash: Option<String>,
    /// Length in bytes.
    #[serde(default)]
    pub bytes: Option<u64>,
}

impl Resource {
    /// `algorithm:hex` in either form.
    #[must_use]
    pub fn stated_hash(&self) -> Option<String> {
        match (&self.hash, &self.stats) {
            (Some(hash), _) if hash.contains(':') => Some(hash.clone()),
            (Some(hash), _) => Some(format!("{}:{hash}", self.hashing.as_deref().unwrap_or("md5"))),
            (None, Some(Stats { hash: Some(hash), .. })) => {
                Some(format!("{}:{hash}", self.hashing.as_deref().unwrap_or("sha256")))
            }
            _ => None,
        }
    }

    /// Length in either form.
    #[must_use]
    pub fn stated_bytes(&self) -> Option<u64> {
        self.bytes.or_else(|| self.stats.as_ref().and_then(|s| s.bytes))
    }
}

/// `datapackage.json` as read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Package {
    /// `data-package`.
    #[serde(default)]
    pub profile: Option<String>,
    /// Version of the format.
    #[serde(default)]
    pub wacz_version: Option<String>,
    /// The files.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// Title.
    #[serde(default)]
    pub title: Option<String>,
    /// Description.
    #[serde(default)]
    pub description: Option<String>,
    /// When it was made, as written.
    #[serde(default)]
    pub created: Option<String>,
    /// What made it.
    #[serde(default)]
    pub software: Option<String>,
    /// Main page; writers differ in the case of the last letters.
    #[serde(default, rename = "mainPageUrl", alias = "mainPageURL")]
    pub main_page_url: Option<String>,
    /// Date of the main page.
    #[serde(default, rename = "mainPageDate")]
    pub main_page_date: Option<String>,
}

/// A line of `pages/pages.jsonl`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// An id of the caller's own, such as the snapshot's. One is made up of URL and time when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// URL of the page.
    pub url: String,
    /// RFC 3339.
    pub ts: String,
    /// Title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Text of the page, for full-text search in players.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Anything else (`size`, `seed`, `depth`, ...).
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Page {
    /// A page with the two required properties.
    #[must_use]
    pub fn new(url: impl Into<String>, captured: DateTime<Utc>) -> Self {
        Self { url: url.into(), ts: rfc3339(captured), ..Self::default() }
    }
}

pub(super) fn rfc3339(date: DateTime<Utc>) -> String {
    date.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The page list with its header line.
pub(super) fn pages_jsonl(pages: &[Page]) -> String {
    let mut header = json!({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"});
    if pages.iter().any(|page| page.text.is_some()) {
        header["hasText"] = Value::Bool(true);
    }
    let mut out = format!("{header}\n");
    for page in pages {
        let mut page = page.clone();
        if page.id.is_none() {
            // Not required, but validators that see a table take a row without id and title for an empty one.
            let name = format!("{} {}", page.ts, page.url);
            page.id = Some(Sha256Digest::of(name.as_bytes()).hex()[..16].to_owned());
        }
        // A page is strings and JSON values, which always serialise.
        out.push_str(&serde_json::to_string(&page).unwrap_or_default());
        out.push('\n');
    }
    out
}

/// `datapackage.json`.
pub(super) fn datapackage(meta: &PackageMeta, resources: &[Resource]) -> String {
    let mut package = Map::new();
    package.insert("profile".into(), "data-package".into());
    package.insert("wacz_version".into(), WACZ_VERSION.into());
    describe(&mut package, meta);
    package.insert("resources".into(), json!(resources));
    finish(package, &meta.extra)
}

/// `datapackage-digest.json`.
pub(super) fn datapackage_digest(datapackage: &str) -> String {
    let hash = Sha256Digest::of(datapackage.as_bytes());
    format!("{:#}\n", json!({"path": "datapackage.json", "hash": hash.to_string()}))
}

fn describe(package: &mut Map<String, Value>, meta: &PackageMeta) {
    let mut set = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            package.insert(name.to_owned(), value.into());
        }
    };
    set("title", meta.title.clone());
    set("description", meta.description.clone());
    set("created", Some(rfc3339(meta.created)));
    set("software", Some(meta.software.clone()).filter(|s| !s.is_empty()));
    set("mainPageUrl", meta.main_page_url.clone());
    set("mainPageDate", meta.main_page_date.map(rfc3339));
}

fn finish(mut package: Map<String, Value>, extra: &Map<String, Value>) -> String {
    for (name, value) in extra {
        package.entry(name.clone()).or_insert_with(|| value.clone());
    }
    format!("{:#}\n", Value::Object(package))
}

/// One package of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionItem {
    /// Name shown for it.
    pub name: String,
    /// URL, or path relative to the collection file.
    pub path: String,
    /// SHA-256 of the package.
    pub sha256: Sha256Digest,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A multi-WACZ collection file: players load all packages as one archive, so revisits find their originals.
///
/// The profile is `multi-wacz-package`, the word players look for (the draft text of multi-wacz 0.1.0 says `multi-wacz`).
#[must_use]
pub fn collection_json(meta: &PackageMeta, items: &[CollectionItem]) -> String {
    let mut package = Map::new();
    package.insert("profile".into(), "multi-wacz-package".into());
    describe(&mut package, meta);
    let resources: Vec<Value> = items
        .iter()
        .map(|item| json!({"name": item.name, "path": item.path, "hash": item.sha256.to_string(), "bytes": item.bytes}))
        .collect();
    package.insert("resources".into(), resources.into());
    finish(package, &meta.extra)
}
