//! What both tasks are made of, built once per process.

use bytes::Bytes;
use fonds_blobs::BlobStore;
use fonds_store::Db;
use fonds_web::fetch::Fetcher;
use fonds_web::guard::Guard;
use fonds_web::robots::Robots;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Database, blobs, and the ways out.
#[derive(Clone)]
pub struct Deps {
    /// The database.
    pub db: Db,
    /// Where objects go.
    pub blobs: Arc<dyn BlobStore>,
    /// Plain HTTP.
    pub fetcher: Fetcher,
    /// robots.txt of the hosts met.
    pub robots: Arc<Robots>,
    /// What may be connected to; the browser's proxy enforces the same.
    pub guard: Guard,
    /// Where large bodies are spooled.
    pub spool: PathBuf,
    /// Icons met lately, so that a site's icon is asked for once and not once a page.
    pub icons: Arc<Icons>,
}

/// A small cache of icons by URL.
#[derive(Default)]
pub struct Icons(Mutex<HashMap<String, (Instant, Option<Icon>)>>);

/// An icon as fetched.
#[derive(Clone)]
pub(crate) struct Icon {
    /// Media type.
    pub(crate) mime: String,
    /// The file.
    pub(crate) bytes: Bytes,
}

const ICON_TTL: Duration = Duration::from_secs(600);
const ICONS_MAX: usize = 512;

impl Icons {
    /// What is known of the icon at a URL: `Some(None)` when it is known to be missing.
    pub(crate) fn get(&self, url: &str) -> Option<Option<Icon>> {
        let icons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        icons.get(url).filter(|(at, _)| at.elapsed() < ICON_TTL).map(|(_, icon)| icon.clone())
    }

    /// Remembers an icon, or that there is none.
    pub(crate) fn put(&self, url: String, icon: Option<Icon>) {
        let mut icons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if icons.len() >= ICONS_MAX {
            icons.clear();
        }
        icons.insert(url, (Instant::now(), icon));
    }
}
