//! Profile folders: made for one browser, removed with it, and swept when a process was killed before
//! it could do so.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::chown;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

const PREFIX: &str = "fonds-browser-";
/// Held locked by the process the profile belongs to; the kernel lets go of it with the process.
const LOCK: &str = ".owner.lock";
/// Younger folders may be about to get their lock.
const SETTLED: Duration = Duration::from_secs(60);

/// A profile folder, removed when dropped.
#[derive(Debug)]
pub(super) struct Profile {
    folder: TempDir,
    _lock: File,
}

impl Profile {
    /// Makes a folder below `root` that belongs to `owner`, none being ourselves.
    pub(super) fn create(root: &Path, owner: Option<(u32, u32)>) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        sweep(root);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root)?;
        let lock = File::create(folder.path().join(LOCK))?;
        lock.lock()?;
        let temporary = folder.path().join("tmp");
        fs::create_dir(&temporary)?;
        if let Some((uid, gid)) = owner {
            chown(folder.path(), Some(uid), Some(gid))?;
            chown(&temporary, Some(uid), Some(gid))?;
        }
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the profiles of processes that were killed.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(entry: &fs::DirEntry) -> bool {
    let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
    let age = entry.metadata().and_then(|meta| meta.modified()).map(|at| at.elapsed().unwrap_or_default());
    if !is_dir || age.is_ok_and(|age| age < SETTLED) {
        return false;
    }
    match File::open(entry.path().join(LOCK)) {
        Ok(lock) => !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_abandoned_profiles_are_swept() {
        let root = tempfile::tempdir().unwrap();
        let held = Profile::create(root.path(), None).unwrap();
        let abandoned = root.path().join("fonds-browser-dead");
        let fresh = root.path().join("fonds-browser-fresh");
        let other = root.path().join("something-else");
        for folder in [&abandoned, &fresh, &other] {
            fs::create_dir(folder).unwrap();
            File::create(folder.join(LOCK)).unwrap();
        }
        for folder in [held.path(), &abandoned, &other] {
            let old = File::open(folder).unwrap();
            let past = fs::metadata(folder).unwrap().modified().unwrap() - Duration::from_secs(600);
            old.set_modified(past).unwrap();
        }
        let next = Profile::create(root.path(), None).unwrap();
        assert!(held.path().is_dir() && next.path().is_dir() && fresh.is_dir() && other.is_dir());
        assert!(!abandoned.exists());
        let gone = held.path().to_owned();
        drop(held);
        assert!(!gone.exists());
    }
}
