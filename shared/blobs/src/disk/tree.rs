//! The blocking half: one call, one handful of system calls.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use uuid::Uuid;

use super::{Durability, copy_body, join_key};
use crate::store::clip;
use crate::{BlobError, BlobKey, BlobMeta, PutBody, PutOutcome};

/// How often a put starts over when folders vanish under it because a delete emptied them.
const FOLDER_RACES: u32 = 16;

#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    objects: PathBuf,
    types: PathBuf,
    pub(super) uploads: PathBuf,
    tmp: PathBuf,
    durability: Durability,
    /// Makes the names in `tmp` unique among processes and restarts.
    session: Uuid,
    written: AtomicU64,
}

impl Tree {
    pub(super) fn open(root: &Path, durability: Durability) -> Result<Self, BlobError> {
        let root = std::path::absolute(root)?;
        let tree = Self {
            objects: root.join("objects"),
            types: root.join("types"),
            uploads: root.join("uploads"),
            tmp: root.join("tmp"),
            root,
            durability,
            session: Uuid::new_v4(),
            written: AtomicU64::new(0),
        };
        for folder in [&tree.objects, &tree.types, &tree.uploads, &tree.tmp] {
            fs::create_dir_all(folder)?;
        }
        tree.clear_tmp(Utc::now() - TimeDelta::days(1))?;
        Ok(tree)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn objects(&self) -> &Path {
        &self.objects
    }

    pub(super) fn tmp_file(&self) -> PathBuf {
        self.tmp.join(format!("{}-{}", self.session.simple(), self.written.fetch_add(1, Ordering::Relaxed)))
    }

    fn clear_tmp(&self, before: DateTime<Utc>) -> io::Result<()> {
        for entry in fs::read_dir(&self.tmp)? {
            let entry = entry?;
            // Another process may clear at the same time.
            let Ok(about) = entry.metadata() else { continue };
            if about.is_file() && modified(&about) < before {
                fs::remove_file(entry.path()).ok();
            }
        }
        Ok(())
    }

    pub(super) fn put_if_absent(
        &self,
        key: &BlobKey,
        body: &PutBody,
        content_type: &str,
    ) -> Result<PutOutcome, BlobError> {
        // Spares the write when the bytes are there already, the usual case for content-addressed keys.
        if join_key(&self.objects, key).symlink_metadata().is_ok_and(|about| about.is_file()) {
            return Ok(PutOutcome::Existed);
        }
        let tmp = self.write_tmp(|file| copy_body(body, file))?;
        let outcome = self.publish(key, &tmp, content_type);
        if !matches!(outcome, Ok(PutOutcome::Created)) {
            fs::remove_file(&tmp).ok();
        }
        outcome
    }

    pub(super) fn replace(&self, key: &BlobKey, body: &PutBody, content_type: &str) -> Result<(), BlobError> {
        let tmp = self.write_tmp(|file| copy_body(body, file))?;
        let replaced = self.keep_type(key, content_type).and_then(|()| {
            self.retry_folders(key, &join_key(&self.objects, key), |target| fs::rename(&tmp, target))?;
            self.flush_folder(&join_key(&self.objects, key))
        });
        if replaced.is_err() {
            fs::remove_file(&tmp).ok();
        }
        replaced
    }

    /// Makes a finished file in `tmp` the object. Unless it answers `Created`, the file is still the caller's.
    pub(super) fn adopt(&self, key: &BlobKey, tmp: &Path, content_type: &str) -> Result<PutOutcome, BlobError> {
        if join_key(&self.objects, key).symlink_metadata().is_ok_and(|about| about.is_file()) {
            return Ok(PutOutcome::Existed);
        }
        self.publish(key, tmp, content_type)
    }

    /// [`Self::adopt`] for a caller that has just seen that there is no object: the type must not be touched when there is.
    fn publish(&self, key: &BlobKey, tmp: &Path, content_type: &str) -> Result<PutOutcome, BlobError> {
        let target = join_key(&self.objects, key);
        if self.durability == Durability::Flushed {
            File::open(tmp)?.sync_data()?;
        }
        // Before the object, so that no reader sees it without its type. Of two writers that race with different types,
        // one's type wins; for content-addressed keys both are right, and no other key has two writers.
        self.keep_type(key, content_type)?;
        match self.retry_folders(key, &target, |target| rename_new(tmp, target)) {
            Ok(()) => {
                self.flush_folder(&target)?;
                Ok(PutOutcome::Created)
            }
            Err(BlobError::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                if target.symlink_metadata()?.is_file() {
                    return Ok(PutOutcome::Existed);
                }
                Err(BlobError::Invalid(format!("{key} is a folder of blobs")))
            }
            Err(error) => Err(error),
        }
    }

    /// A new file in `tmp` with what `fill` writes; no file when it fails.
    pub(super) fn write_tmp(&self, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<PathBuf, BlobError> {
        let path = self.tmp_file();
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        if let Err(error) = fill(&mut file) {
            drop(file);
            fs::remove_file(&path).ok();
            return Err(error.into());
        }
        Ok(path)
    }

    /// Writes the media type beside the object where the key does not tell it, and takes away one that a writer killed
    /// half-way left.
    fn keep_type(&self, key: &BlobKey, content_type: &str) -> Result<(), BlobError> {
        let target = join_key(&self.types, key);
        if content_type == key.content_type() {
            return match fs::remove_file(&target) {
                Err(error) if !gone(&error) => Err(BlobError::from_io("put", key, error)),
                _ => Ok(()),
            };
        }
        let tmp = self.write_tmp(|file| io::Write::write_all(file, content_type.as_bytes()))?;
        if self.durability == Durability::Flushed {
            File::open(&tmp)?.sync_data()?;
        }
        let kept = self
            .retry_folders(key, &target, |target| fs::rename(&tmp, target))
            .and_then(|()| self.flush_folder(&target));
        if kept.is_err() {
            fs::remove_file(&tmp).ok();
        }
        kept
    }

    /// Runs `link` on `target`, making its folder when that is missing.
    fn retry_folders(
        &self,
        key: &BlobKey,
        target: &Path,
        link: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<(), BlobError> {
        for _ in 0..FOLDER_RACES {
            match link(target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let made = target.parent().map_or(Ok(()), |folder| self.make_folder(folder));
                    // A delete may take the upper folders away while the lower are made, or one that was there
                    // a moment ago. A file in a folder's place shows at the next try.
                    if let Err(error) = made
                        && !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
                    {
                        return Err(BlobError::from_io("put", key, error));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(BlobError::Io(error)),
                other => return other.map_err(|error| BlobError::from_io("put", key, error)),
            }
        }
        Err(BlobError::unavailable("put", format_args!("the folder of {key} keeps being removed")))
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        if self.durability == Durability::Cached {
            return fs::create_dir_all(folder);
        }
        // A new folder's own entry must reach the disk too.
        let missing: Vec<_> = folder.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
        fs::create_dir_all(folder)?;
        missing.iter().filter_map(|made| made.parent()).try_for_each(sync_folder)
    }

    fn flush_folder(&self, target: &Path) -> Result<(), BlobError> {
        match target.parent() {
            Some(folder) if self.durability == Durability::Flushed => match sync_folder(folder) {
                // Deleted again meanwhile, folder and all.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                other => Ok(other?),
            },
            _ => Ok(()),
        }
    }

    fn open_object(&self, key: &BlobKey) -> Result<(File, Metadata), BlobError> {
        let read = || {
            let file = File::open(join_key(&self.objects, key))?;
            let about = file.metadata()?;
            Ok((file, about))
        };
        let (file, about) = read().map_err(|error: io::Error| {
            if gone(&error) { BlobError::not_found(key) } else { BlobError::from_io("get", key, error) }
        })?;
        if about.is_file() { Ok((file, about)) } else { Err(BlobError::not_found(key)) }
    }

    pub(super) fn read(&self, key: &BlobKey, cap: u64) -> Result<Bytes, BlobError> {
        let (file, about) = self.open_object(key)?;
        if about.len() > cap {
            return Err(BlobError::TooLarge { key: key.as_str().to_owned(), cap });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or_default());
        file.take(cap).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }

    pub(super) fn read_range(
        &self,
        key: &BlobKey,
        range: &Range<u64>,
        pinned: Option<&str>,
    ) -> Result<Bytes, BlobError> {
        let (file, about) = self.open_object(key)?;
        if pinned.is_some_and(|pinned| pinned != etag(&about)) {
            return Err(BlobError::Changed { key: key.as_str().to_owned() });
        }
        let Some(range) = clip(key, range, about.len())? else { return Ok(Bytes::new()) };
        let length = usize::try_from(range.end - range.start)
            .map_err(|_| BlobError::Invalid(format!("a range of {key} is beyond this machine's memory")))?;
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes.into())
    }

    /// The file at the start of the range, and how much of it to read.
    pub(super) fn open_at(&self, key: &BlobKey, range: Option<&Range<u64>>) -> Result<(File, u64), BlobError> {
        let (mut file, about) = self.open_object(key)?;
        let range = match range {
            Some(range) => clip(key, range, about.len())?.unwrap_or_default(),
            None => 0..about.len(),
        };
        if range.start > 0 {
            io::Seek::seek(&mut file, io::SeekFrom::Start(range.start))?;
        }
        Ok((file, range.end - range.start))
    }

    pub(super) fn head(&self, key: &BlobKey) -> Result<Option<BlobMeta>, BlobError> {
        let about = match join_key(&self.objects, key).symlink_metadata() {
            Ok(about) if about.is_file() => about,
            Ok(_) => return Ok(None),
            Err(error) if gone(&error) => return Ok(None),
            Err(error) => return Err(BlobError::from_io("head", key, error)),
        };
        let content_type = match fs::read_to_string(join_key(&self.types, key)) {
            Ok(content_type) => content_type,
            Err(error) if gone(&error) => key.content_type().to_owned(),
            Err(error) => return Err(BlobError::from_io("head", key, error)),
        };
        Ok(Some(BlobMeta { size: about.len(), etag: etag(&about), content_type, modified: modified(&about) }))
    }

    pub(super) fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        // The object first: an object without its type would be one with the wrong type.
        for base in [&self.objects, &self.types] {
            let path = join_key(base, key);
            match fs::remove_file(&path) {
                Ok(()) => prune(base, &path),
                Err(error) if gone(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
                Err(error) => return Err(BlobError::from_io("delete", key, error)),
            }
        }
        Ok(())
    }
}

/// Renames unless the target exists, in one step where the file system can, else by a hard link.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        other => Ok(other?),
    }
}

/// Removes the folders a delete left empty; stops at the first that is not.
fn prune(base: &Path, removed: &Path) {
    for folder in removed.ancestors().skip(1).take_while(|folder| *folder != base) {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

/// There is no such file, be it that a parent is missing or a file.
fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Every write is a new file, so inode, size and time tell any two contents of a key apart.
pub(super) fn etag(about: &Metadata) -> String {
    format!("{:x}-{:x}-{:x}.{:x}", about.ino(), about.size(), about.mtime(), about.mtime_nsec())
}

pub(super) fn modified(about: &Metadata) -> DateTime<Utc> {
    DateTime::from_timestamp(about.mtime(), u32::try_from(about.mtime_nsec()).unwrap_or_default()).unwrap_or_default()
}
