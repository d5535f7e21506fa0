use std::{
    collections::HashSet,
    io::{Read, Write},
};

use chrono::{DateTime, Utc};

use super::{
    PackageMeta, Page, Resource, WaczError,
    package::{datapackage, datapackage_digest, pages_jsonl},
};
use crate::{
    cdxj::{CdxjIndex, compress},
    digest::{ContentFacts, Sha256Digest},
    zipfile::StoredZip,
};

/// An index above this size is written in compressed blocks with a second index.
const LARGE_INDEX: usize = 4 << 20;
const LINES_PER_BLOCK: usize = 1024;

/// The data of an entry.
pub enum Content<'a> {
    /// In memory.
    Bytes(&'a [u8]),
    /// From a reader whose facts were taken before ([`ContentFacts::of_reader`], [`crate::WarcWriter::finish`]).
    Reader {
        /// Length and checks of all that the reader gives.
        facts: ContentFacts,
        /// The data, from its first byte to its end.
        reader: &'a mut dyn Read,
    },
}

impl<'a> From<&'a [u8]> for Content<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Content<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl std::fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Reader { facts, .. } => write!(f, "Reader({} bytes)", facts.len),
        }
    }
}

/// Where an entry's bytes lie in the package: `offset..offset + len` of the object is the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPlace {
    /// Path in the package.
    pub path: String,
    /// Offset of the first data byte in the package.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// SHA-256 of the data.
    pub sha256: Sha256Digest,
}

/// A finished package.
#[derive(Debug)]
pub struct FinishedWacz<W> {
    /// The output.
    pub out: W,
    /// Length and digest of the whole package.
    pub facts: ContentFacts,
    /// All entries in order.
    pub entries: Vec<EntryPlace>,
}

/// Writes a package front to back; the output need not seek. All entries are stored, never deflated.
///
/// Order is free; usual is WARC, artifacts, index, pages, then [`WaczWriter::finish`].
pub struct WaczWriter<W: Write> {
    zip: StoredZip<W>,
    entries: Vec<EntryPlace>,
    resources: Vec<Resource>,
    paths: HashSet<String>,
    poisoned: bool,
}

impl<W: Write> WaczWriter<W> {
    /// Starts a package; `modified` is the date of its entries, so that equal input gives equal bytes.
    pub fn new(out: W, modified: DateTime<Utc>) -> Self {
        Self {
            zip: StoredZip::new(out, modified),
            entries: Vec::new(),
            resources: Vec::new(),
            paths: HashSet::new(),
            poisoned: false,
        }
    }

    /// Adds `archive/<name>`; the name must end in `.warc.gz` (or `.warc` for a plain one).
    ///
    /// # Errors
    /// Those of [`WaczWriter::add`].
    pub fn add_warc<'a>(&mut self, name: &str, content: impl Into<Content<'a>>) -> Result<EntryPlace, WaczError> {
        if !name.ends_with(".warc.gz") && !name.ends_with(".warc") {
            return Err(WaczError::BadPath(name.to_owned()));
        }
        self.add(&format!("archive/{name}"), content)
    }

    /// Adds an artifact as [`artifact_path`] names it.
    ///
    /// # Errors
    /// Those of [`WaczWriter::add`].
    pub fn add_artifact<'a>(
        &mut self,
        extractor: &str,
        file: &str,
        content: impl Into<Content<'a>>,
    ) -> Result<EntryPlace, WaczError> {
        self.add(&artifact_path(extractor, file), content)
    }

    /// Adds the index: `indexes/index.cdx`, or `index.cdx.gz` and `index.idx` above 4 MiB.
    ///
    /// # Errors
    /// Those of [`WaczWriter::add`].
    pub fn add_index(&mut self, index: CdxjIndex) -> Result<(), WaczError> {
        let text = index.into_text();
        if text.len() <= LARGE_INDEX {
            self.add("indexes/index.cdx", text.as_bytes())?;
        } else {
            let compressed = compress(&text, LINES_PER_BLOCK, "index.cdx.gz");
            self.add("indexes/index.cdx.gz", &compressed.data)?;
            self.add("indexes/index.idx", compressed.idx.as_bytes())?;
        }
        Ok(())
    }

    /// Adds `pages/pages.jsonl`.
    ///
    /// # Errors
    /// Those of [`WaczWriter::add`].
    pub fn add_pages(&mut self, pages: &[Page]) -> Result<EntryPlace, WaczError> {
        self.add("pages/pages.jsonl", pages_jsonl(pages).as_bytes())
    }

    /// Adds any file under any path and lists it.
    ///
    /// # Errors
    /// [`WaczError::BadPath`] (nothing is written then), and those of output and reader, after which the package is lost.
    pub fn add<'a>(&mut self, path: &str, content: impl Into<Content<'a>>) -> Result<EntryPlace, WaczError> {
        let place = self.put(path, content.into())?;
        self.resources.push(Resource {
            name: place.path.rsplit('/').next().unwrap_or_default().to_lowercase(),
            path: place.path.clone(),
            hash: Some(place.sha256.to_string()),
            bytes: Some(place.len),
            stats: None,
            hashing: None,
            kind: (!is_defined_by_format(path)).then(|| "file".to_owned()),
        });
        Ok(place)
    }

    fn put(&mut self, path: &str, content: Content<'_>) -> Result<EntryPlace, WaczError> {
        if self.poisoned {
            return Err(WaczError::Poisoned);
        }
        if !is_safe_path(path) || !self.paths.insert(path.to_owned()) {
            return Err(WaczError::BadPath(path.to_owned()));
        }
        let (facts, offset) = match content {
            Content::Bytes(bytes) => {
                let facts = ContentFacts::of(bytes);
                (facts, self.zip.add_bytes(path, &facts, bytes))
            }
            Content::Reader { facts, reader } => (facts, self.zip.add(path, &facts, reader)),
        };
        let offset = offset.inspect_err(|_| self.poisoned = true)?;
        let place = EntryPlace { path: path.to_owned(), offset, len: facts.len, sha256: facts.sha256 };
        self.entries.push(place.clone());
        Ok(place)
    }

    /// Writes `datapackage.json`, `datapackage-digest.json` and the zip directory.
    ///
    /// # Errors
    /// [`WaczError::Incomplete`] when the WARC, the index or the page list is missing, and those of the output.
    pub fn finish(mut self, meta: &PackageMeta) -> Result<FinishedWacz<W>, WaczError> {
        for (folder, what) in [("archive/", "WARC"), ("indexes/", "index"), ("pages/pages.jsonl", "page list")] {
            if !self.resources.iter().any(|r| r.path.starts_with(folder)) {
                return Err(WaczError::Incomplete(what));
            }
        }
        let package = datapackage(meta, &self.resources);
        self.put("datapackage.json", Content::Bytes(package.as_bytes()))?;
        self.put("datapackage-digest.json", Content::Bytes(datapackage_digest(&package).as_bytes()))?;
        let (out, facts) = self.zip.finish()?;
        Ok(FinishedWacz { out, facts, entries: self.entries })
    }
}

impl<W: Write> std::fmt::Debug for WaczWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaczWriter").field("entries", &self.entries).finish_non_exhaustive()
    }
}

/// `artifacts/<extractor>-<file>`: one folder deep, since a common validator compares only the last two parts of a path.
/// What is no letter, digit, `.`, `_` or `-` becomes `_`; the middle of a long name becomes a piece of its digest. Names that end like
/// compressed files get `.bin` appended: validators of data packages unpack those, and refuse the package when that fails.
#[must_use]
pub fn artifact_path(extractor: &str, file: &str) -> String {
    const MAX: usize = 150;
    let full = format!("{extractor}-{file}");
    let safe: String =
        full.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' }).collect();
    let safe = safe.trim_start_matches('.');
    let ending = if is_unpacked_by_validators(safe) { ".bin" } else { "" };
    if safe.len() <= MAX {
        return format!("artifacts/{safe}{ending}");
    }
    let digest = Sha256Digest::of(full.as_bytes()).hex();
    format!("artifacts/{}-{}-{}{ending}", &safe[..90], &digest[..12], &safe[safe.len() - 40..])
}

fn is_unpacked_by_validators(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".zip", ".gz", ".bz2", ".xz"].iter().any(|ending| name.ends_with(ending))
}

fn is_defined_by_format(path: &str) -> bool {
    ["archive/", "indexes/", "pages/"].iter().any(|folder| path.starts_with(folder))
}

/// Relative, without `..`, empty parts, backslashes, drive letters and controls.
pub(super) fn is_safe_path(path: &str) -> bool {
    path.len() <= 1024
        && !path.chars().any(|c| c.is_control() || matches!(c, '\\' | ':'))
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}
