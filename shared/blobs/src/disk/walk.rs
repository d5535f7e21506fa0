//! Listing a tree of files in the order S3 lists keys.

use std::fs;
use std::io;
use std::path::Path;

use super::tree::{Tree, etag, modified};
use crate::{BlobEntry, BlobError, BlobKey, Page, PageToken};

struct Walk<'a> {
    prefix: &'a str,
    after: Option<&'a str>,
    limit: usize,
    page: Page,
    last: Option<String>,
}

/// One page of what is below the tree's objects. Reads only folders that can hold keys of the page.
pub(super) fn page(tree: &Tree, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page, BlobError> {
    let mut walk = Walk { prefix, after, limit, page: Page::default(), last: None };
    let more = walk.folder(tree.objects(), "")?;
    if more {
        walk.page.next = walk.last.map(PageToken);
    }
    Ok(walk.page)
}

impl Walk<'_> {
    /// Adds what is in the folder; `true` when the page was full before everything was seen.
    fn folder(&mut self, folder: &Path, key: &str) -> Result<bool, BlobError> {
        for (name, is_folder) in sorted(folder)? {
            let key = format!("{key}{name}");
            if is_folder {
                if self.may_hold(&key) && self.folder(&folder.join(name.trim_end_matches('/')), &key)? {
                    return Ok(true);
                }
            } else if key.starts_with(self.prefix) && self.after.is_none_or(|after| key.as_str() > after) {
                if self.page.entries.len() + self.page.skipped.len() == self.limit {
                    return Ok(true);
                }
                self.add(&folder.join(&name), key)?;
            }
        }
        Ok(false)
    }

    /// Whether keys below `folder` (which ends with a slash) can be in this page.
    fn may_hold(&self, folder: &str) -> bool {
        let prefixed = folder.starts_with(self.prefix) || self.prefix.starts_with(folder);
        prefixed && self.after.is_none_or(|after| after.starts_with(folder) || folder > after)
    }

    fn add(&mut self, path: &Path, key: String) -> Result<(), BlobError> {
        let about = match fs::symlink_metadata(path) {
            Ok(about) => about,
            // Deleted since the folder was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.last = Some(key.clone());
        match BlobKey::parse(key) {
            Ok(key) if about.is_file() => {
                self.page.entries.push(BlobEntry {
                    key,
                    size: about.len(),
                    etag: etag(&about),
                    modified: modified(&about),
                });
            }
            Ok(key) => self.page.skipped.push(key.into()),
            Err(_) => self.page.skipped.push(path.to_string_lossy().into_owned()),
        }
        Ok(())
    }
}

/// The names in a folder in the byte order their keys have, in which a folder sorts as `name/`. A folder that is gone is
/// empty.
fn sorted(folder: &Path) -> Result<Vec<(String, bool)>, BlobError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error.into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let mut name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type()?.is_dir();
        if is_folder {
            name.push('/');
        }
        names.push((name, is_folder));
    }
    names.sort_unstable();
    Ok(names)
}
