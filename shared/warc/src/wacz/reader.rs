use std::{
    collections::{HashMap, HashSet},
    io::{self, Read, Seek},
};

use sha2::{Digest as _, Sha256};
use zip::{CompressionMethod, ZipArchive, result::ZipError};

use super::{Package, Page, Resource, WaczError, WaczFault, writer::is_safe_path};
use crate::{cdxj::CdxjEntry, digest::Sha256Digest};

/// Manifests and page lists above this are refused; indexes may be larger.
const MAX_JSON: u64 = 64 << 20;
const MAX_INDEX: u64 = 1 << 30;

/// An entry of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryInfo {
    /// Path in the zip.
    pub path: String,
    /// Length of the content, bytes.
    pub len: u64,
    /// Whether it is stored as is, so that it can be read by range.
    pub stored: bool,
    /// Offset of its first stored byte.
    pub offset: Option<u64>,
}

/// Reads a package of any origin. Nothing is trusted: sizes are capped, paths are names only, hashes are checked by [`WaczReader::verify`].
pub struct WaczReader<R> {
    zip: ZipArchive<R>,
    package: Package,
    entries: Vec<EntryInfo>,
    /// Met while opening.
    faults: Vec<WaczFault>,
}

impl<R: Read + Seek> WaczReader<R> {
    /// Opens a package: zip directory and `datapackage.json`.
    ///
    /// # Errors
    /// [`WaczError::NotZip`], and [`WaczError::Refused`] without a readable manifest of a known version.
    pub fn open(inner: R) -> Result<Self, WaczError> {
        let mut zip = ZipArchive::new(inner).map_err(zip_error)?;
        let (entries, faults) = list(&mut zip)?;
        let mut reader = Self { zip, package: serde_json::from_str("{}").map_err(io::Error::from)?, entries, faults };
        let bytes = match reader.read("datapackage.json", MAX_JSON) {
            Err(WaczError::NoEntry(_)) => return Err(WaczError::Refused(WaczFault::NoDatapackage)),
            other => other?,
        };
        reader.package =
            serde_json::from_slice(&bytes).map_err(|e| WaczError::Refused(WaczFault::BadDatapackage(e.to_string())))?;
        match reader.package.wacz_version.as_deref() {
            None => Err(WaczError::Refused(WaczFault::NoVersion)),
            Some(version) if version.starts_with("1.") => Ok(reader),
            Some(version) => Err(WaczError::Refused(WaczFault::UnknownVersion(version.chars().take(40).collect()))),
        }
    }

    /// Opens and verifies a package; the first reason to refuse it is the error, the rest is returned.
    ///
    /// # Errors
    /// Those of [`WaczReader::open`] and [`WaczReader::verify`].
    pub fn open_verified(inner: R) -> Result<(Self, Vec<WaczFault>), WaczError> {
        let mut reader = Self::open(inner)?;
        let faults = reader.verify()?;
        match faults.iter().find(|fault| fault.is_refusal()) {
            Some(fault) => Err(WaczError::Refused(fault.clone())),
            None => Ok((reader, faults)),
        }
    }

    /// The manifest.
    #[must_use]
    pub fn package(&self) -> &Package {
        &self.package
    }

    /// All entries in the order of the zip's directory.
    #[must_use]
    pub fn entries(&self) -> &[EntryInfo] {
        &self.entries
    }

    /// Paths of the WARC files.
    pub fn warcs(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|e| e.path.as_str()).filter(|p| p.starts_with("archive/"))
    }

    /// Reads an entry as a stream, decompressed.
    ///
    /// # Errors
    /// [`WaczError::NoEntry`], and what makes the entry unreadable.
    pub fn entry(&mut self, path: &str) -> Result<impl Read + use<'_, R>, WaczError> {
        let index = self.index_of(path)?;
        self.zip.by_index(index).map_err(zip_error)
    }

    /// Reads an entry into memory, `limit` bytes at most.
    ///
    /// # Errors
    /// [`WaczError::NoEntry`], [`WaczError::TooLarge`] and what makes the entry unreadable.
    pub fn read(&mut self, path: &str, limit: u64) -> Result<Vec<u8>, WaczError> {
        let mut bytes = Vec::new();
        // What the zip says about sizes may be a lie, so the stream itself is cut.
        self.entry(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(WaczError::TooLarge { path: path.to_owned(), limit });
        }
        Ok(bytes)
    }

    /// The pages of `pages/pages.jsonl` (and none of other lists). Lines that are no pages are left out; [`WaczReader::verify`] tells.
    ///
    /// # Errors
    /// Those of [`WaczReader::read`].
    pub fn pages(&mut self) -> Result<Vec<Page>, WaczError> {
        let bytes = self.read("pages/pages.jsonl", MAX_JSON)?;
        Ok(String::from_utf8_lossy(&bytes).lines().skip(1).filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// The whole index as text, all blocks decompressed, without `!meta` lines.
    ///
    /// # Errors
    /// Those of [`WaczReader::read`].
    pub fn index_text(&mut self) -> Result<String, WaczError> {
        let paths: Vec<String> = self
            .entries
            .iter()
            .map(|e| e.path.clone())
            .filter(|p| {
                p.starts_with("indexes/") && [".cdx", ".cdxj", ".cdx.gz", ".cdxj.gz"].iter().any(|x| p.ends_with(x))
            })
            .collect();
        let mut text = String::new();
        for path in paths {
            let bytes = self.read(&path, MAX_INDEX)?;
            let lines = if bytes.starts_with(&[0x1f, 0x8b]) { gunzip(&path, &bytes)? } else { bytes };
            for line in String::from_utf8_lossy(&lines).lines().filter(|l| !l.is_empty() && !l.starts_with('!')) {
                text.push_str(line);
                text.push('\n');
            }
        }
        Ok(text)
    }

    fn index_of(&self, path: &str) -> Result<usize, WaczError> {
        self.zip.index_for_name(path).ok_or_else(|| WaczError::NoEntry(path.to_owned()))
    }

    /// Checks everything: zip, manifest, hash and length of every file, digest file, WARC, index and page list.
    ///
    /// # Errors
    /// Those of the underlying reader. What is wrong with the package is in the list.
    pub fn verify(&mut self) -> Result<Vec<WaczFault>, WaczError> {
        let mut faults = self.faults.clone();
        if let Err(e) = self.zip.validate_header_consistency() {
            faults.push(WaczFault::InconsistentZip(e.to_string()));
        }
        if self.package.profile.as_deref() != Some("data-package") {
            faults.push(WaczFault::NoProfile);
        }
        self.verify_resources(&mut faults)?;
        self.verify_digest(&mut faults)?;
        self.verify_warcs(&mut faults)?;
        self.verify_index(&mut faults)?;
        self.verify_pages(&mut faults)?;
        Ok(faults)
    }

    fn verify_resources(&mut self, faults: &mut Vec<WaczFault>) -> Result<(), WaczError> {
        let listed: HashMap<String, Resource> =
            self.package.resources.iter().map(|r| (r.path.clone(), r.clone())).collect();
        let present: HashSet<String> = self.entries.iter().map(|e| e.path.clone()).collect();
        let mut missing: Vec<&String> = listed.keys().filter(|path| !present.contains(*path)).collect();
        missing.sort_unstable();
        faults.extend(missing.into_iter().map(|path| WaczFault::Missing(path.clone())));
        for path in self.entries.iter().map(|e| e.path.clone()).collect::<Vec<_>>() {
            if matches!(path.as_str(), "datapackage.json" | "datapackage-digest.json") {
                continue;
            }
            match listed.get(&path) {
                None => faults.push(WaczFault::Unlisted(path)),
                Some(resource) => faults.extend(self.verify_resource(resource)?),
            }
        }
        Ok(())
    }

    fn verify_resource(&mut self, resource: &Resource) -> Result<Option<WaczFault>, WaczError> {
        let path = resource.path.clone();
        let stated = resource.stated_bytes();
        let (len, sha256) = match self.hash_entry(&path, stated.unwrap_or(u64::MAX)) {
            Ok(found) => found,
            Err(WaczError::Io(e)) if is_source_error(&e) => return Err(WaczError::Io(e)),
            Err(_) => return Ok(Some(WaczFault::Unreadable(path))),
        };
        if stated.is_some_and(|stated| stated != len) {
            return Ok(Some(WaczFault::SizeMismatch(path)));
        }
        Ok(match resource.stated_hash().as_deref().and_then(|hash| hash.strip_prefix("sha256:").map(str::to_owned)) {
            None => Some(WaczFault::UncheckedHash(path)),
            Some(hash) if hash.parse::<Sha256Digest>() == Ok(sha256) => None,
            Some(_) => Some(WaczFault::HashMismatch(path)),
        })
    }

    /// Hashes an entry, stopping soon after `stated` bytes.
    fn hash_entry(&mut self, path: &str, stated: u64) -> Result<(u64, Sha256Digest), WaczError> {
        let mut stream = self.entry(path)?.take(stated.saturating_add(1));
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        let mut len = 0;
        loop {
            let n = stream.read(&mut buffer)?;
            if n == 0 {
                return Ok((len, hasher.into()));
            }
            hasher.update(&buffer[..n]);
            len += n as u64;
        }
    }

    fn verify_digest(&mut self, faults: &mut Vec<WaczFault>) -> Result<(), WaczError> {
        let digest = match self.read("datapackage-digest.json", MAX_JSON) {
            Err(WaczError::NoEntry(_)) => {
                faults.push(WaczFault::NoDigest);
                return Ok(());
            }
            other => other?,
        };
        let (_, actual) = self.hash_entry("datapackage.json", MAX_JSON)?;
        let stated: Option<Sha256Digest> = serde_json::from_slice::<serde_json::Value>(&digest)
            .ok()
            .and_then(|value| value.get("hash")?.as_str()?.parse().ok());
        if stated != Some(actual) {
            faults.push(WaczFault::DigestMismatch);
        }
        Ok(())
    }

    fn verify_warcs(&mut self, faults: &mut Vec<WaczFault>) -> Result<(), WaczError> {
        let warcs: Vec<EntryInfo> = self
            .entries
            .iter()
            .filter(|e| e.path.starts_with("archive/") && e.path.contains(".warc"))
            .cloned()
            .collect();
        if warcs.is_empty() {
            faults.push(WaczFault::NoWarc);
        }
        for warc in warcs {
            let gzip = self.read_start(&warc.path)?.starts_with(&[0x1f, 0x8b]);
            if gzip && !warc.stored {
                faults.push(WaczFault::Deflated(warc.path.clone()));
            }
            if gzip && !warc.path.ends_with(".gz") {
                faults.push(WaczFault::GzipNotInName(warc.path));
            }
        }
        Ok(())
    }

    fn read_start(&mut self, path: &str) -> Result<Vec<u8>, WaczError> {
        let mut start = Vec::new();
        match self.entry(path).and_then(|entry| Ok(entry.take(2).read_to_end(&mut start)?)) {
            Err(WaczError::Io(e)) if is_source_error(&e) => Err(WaczError::Io(e)),
            _ => Ok(start),
        }
    }

    fn verify_index(&mut self, faults: &mut Vec<WaczFault>) -> Result<(), WaczError> {
        let has_index = self.entries.iter().any(|e| e.path.starts_with("indexes/"));
        if !has_index {
            faults.push(WaczFault::NoIndex);
            return Ok(());
        }
        let text = match self.index_text() {
            Ok(text) => text,
            Err(WaczError::Io(e)) if is_source_error(&e) => return Err(WaczError::Io(e)),
            Err(e) => {
                faults.push(WaczFault::BadIndex(e.to_string()));
                return Ok(());
            }
        };
        if text.is_empty() {
            faults.push(WaczFault::BadIndex("no lines".to_owned()));
        } else if !text.lines().is_sorted() {
            faults.push(WaczFault::BadIndex("not sorted".to_owned()));
        } else if let Some((number, error)) =
            text.lines().enumerate().find_map(|(i, line)| CdxjEntry::parse(line).err().map(|e| (i + 1, e)))
        {
            faults.push(WaczFault::BadIndex(format!("line {number}: {error}")));
        }
        Ok(())
    }

    fn verify_pages(&mut self, faults: &mut Vec<WaczFault>) -> Result<(), WaczError> {
        let bytes = match self.read("pages/pages.jsonl", MAX_JSON) {
            Ok(bytes) => bytes,
            Err(WaczError::NoEntry(_)) => {
                faults.push(WaczFault::NoPages);
                return Ok(());
            }
            Err(WaczError::Io(e)) if is_source_error(&e) => return Err(WaczError::Io(e)),
            Err(e) => {
                faults.push(WaczFault::BadPages(e.to_string()));
                return Ok(());
            }
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let header: Option<serde_json::Value> = lines.next().and_then(|line| serde_json::from_str(line).ok());
        if header.is_none_or(|h| h.get("format").is_none()) {
            faults.push(WaczFault::BadPages("no header line".to_owned()));
        } else if let Some(number) = lines.position(|line| serde_json::from_str::<Page>(line).is_err()) {
            faults.push(WaczFault::BadPages(format!("page {} lacks url or ts", number + 1)));
        }
        Ok(())
    }
}

impl<R> std::fmt::Debug for WaczReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaczReader")
            .field("package", &self.package)
            .field("entries", &self.entries.len())
            .finish_non_exhaustive()
    }
}

fn list<R: Read + Seek>(zip: &mut ZipArchive<R>) -> Result<(Vec<EntryInfo>, Vec<WaczFault>), WaczError> {
    let mut entries = Vec::new();
    let mut faults = Vec::new();
    for index in 0..zip.len() {
        let entry = zip.by_index_raw(index).map_err(zip_error)?;
        let path = String::from_utf8_lossy(entry.name_raw()).into_owned();
        if path.ends_with('/') && entry.size() == 0 {
            continue;
        }
        if !is_safe_path(&path) {
            faults.push(WaczFault::UnsafePath(path));
            continue;
        }
        if entry.encrypted() {
            faults.push(WaczFault::Encrypted(path.clone()));
        }
        entries.push(EntryInfo {
            len: entry.size(),
            stored: entry.compression() == CompressionMethod::Stored,
            offset: entry.data_start(),
            path,
        });
    }
    Ok((entries, faults))
}

fn gunzip(path: &str, bytes: &[u8]) -> Result<Vec<u8>, WaczError> {
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).take(MAX_INDEX + 1).read_to_end(&mut out)?;
    if out.len() as u64 > MAX_INDEX {
        return Err(WaczError::TooLarge { path: path.to_owned(), limit: MAX_INDEX });
    }
    Ok(out)
}

/// Errors of the storage below, unlike those the zip and gzip decoders make of bad bytes.
fn is_source_error(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof | io::ErrorKind::Other
    )
}

fn zip_error(error: ZipError) -> WaczError {
    match error {
        ZipError::Io(e) => WaczError::Io(e),
        other => WaczError::NotZip(other.to_string()),
    }
}
