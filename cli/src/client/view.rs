//! The parts of the API's answers that the commands show. Fields that are missing are empty: an older
//! or newer service is shown as far as it can be.

use serde::Deserialize;
use serde_json::Value;

/// An error of a row.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RowError {
    pub code: String,
    pub detail: Option<String>,
    pub advice: Option<String>,
}

impl RowError {
    /// The code and the most telling sentence.
    #[must_use]
    pub fn line(&self) -> String {
        match self.detail.as_deref().filter(|d| !d.is_empty()).or(self.advice.as_deref()) {
            Some(text) => format!("{}: {text}", self.code),
            None => self.code.clone(),
        }
    }
}

/// A crawl.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Crawl {
    pub id: String,
    pub status: String,
    pub stop_reason: Option<String>,
    pub label: String,
    pub tags: Vec<String>,
    pub created_at: String,
    pub sealed_at: Option<String>,
    pub counts: Counts,
    pub progress: f64,
    pub setup_done: bool,
    pub error: Option<RowError>,
    pub limits: Limits,
    pub setup_report: Option<Value>,
    pub files: Vec<File>,
    pub href: String,
    pub plan: Vec<Planned>,
}

impl Crawl {
    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.status == "sealed"
    }
}

/// What a crawl amounts to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Counts {
    pub snapshots: u64,
    pub open: u64,
    pub sealed: u64,
    pub failed: u64,
    pub results: u64,
    pub results_failed: u64,
    pub bytes: u64,
}

/// A crawl's limits that matter to its progress.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Limits {
    pub max_depth: u16,
    pub max_urls: Option<u64>,
}

/// What will become of a submitted URL.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Planned {
    pub url: String,
    pub outcome: String,
    pub snapshot_id: Option<String>,
}

/// A file of a crawl or a result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct File {
    // A crawl's files have a name, a result's a path.
    #[serde(alias = "name")]
    pub path: String,
    pub mime: String,
    pub size: u64,
    pub sha256: Option<String>,
    pub href: String,
}

/// A snapshot.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    pub id: String,
    pub crawl_id: String,
    pub url: String,
    pub final_url: Option<String>,
    pub host: String,
    pub depth: u16,
    pub title: Option<String>,
    pub tags: Vec<String>,
    pub status: String,
    pub step: Option<String>,
    pub http_status: Option<u16>,
    pub mime: Option<String>,
    pub size: u64,
    pub n_ok: u64,
    pub n_failed: u64,
    pub error: Option<RowError>,
    pub created_at: String,
    pub downloaded_at: Option<String>,
    pub href: String,
    pub wacz: Option<String>,
    pub results: Vec<Outcome>,
}

/// The result of one extractor.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Outcome {
    pub extractor: String,
    pub status: String,
    pub output: Option<String>,
    pub error: Option<RowError>,
    pub attempt: u32,
    pub duration_ms: Option<u64>,
    pub files: Vec<File>,
}

/// A task run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Task {
    pub id: String,
    pub kind: String,
    pub status: String,
    pub crawl_id: Option<String>,
    pub attempt: u32,
    pub max_attempts: u32,
    pub running_s: Option<f64>,
    pub lease_left_s: Option<f64>,
    pub not_before: Option<String>,
    pub held: bool,
    pub created_at: String,
    pub error: Option<RowError>,
}

/// A signed link.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Link {
    pub url: String,
    pub size: Option<u64>,
    pub sha256: Option<String>,
}

/// Reads an answer; what does not fit is empty rather than an error.
#[must_use]
pub fn read<T: Default + for<'de> Deserialize<'de>>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_read_as_far_as_they_fit() {
        let crawl: Crawl = read(&json!({"id": "x", "status": "sealed", "counts": {"snapshots": 3}, "new_field": 1,
            "files": [{"name": "index.jsonl", "size": 3}]}));
        assert!(crawl.is_over());
        assert_eq!((crawl.counts.snapshots, crawl.files[0].path.as_str()), (3, "index.jsonl"));
        let odd: Crawl = read(&json!("no crawl"));
        assert!(odd.id.is_empty());
    }

    #[test]
    fn an_error_says_the_most_telling_thing() {
        let full = RowError { code: "C".into(), detail: Some("d".into()), advice: Some("a".into()) };
        assert_eq!(full.line(), "C: d");
        assert_eq!(RowError { detail: None, ..full.clone() }.line(), "C: a");
        assert_eq!(RowError { detail: None, advice: None, ..full }.line(), "C");
    }
}
