//! The data folder: where it is, what lies in it, and who holds it.

use crate::failure::Failure;
use crate::user::am_root;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A data folder. Everything one installation keeps is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    dir: PathBuf,
}

/// What a running host tells those who want to talk to it. Readable by its owner only: it holds a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostFile {
    /// Address of the API.
    pub url: String,
    /// Process id of the host.
    pub pid: u32,
    /// An admin token.
    pub token: String,
    /// How to reach the database, for commands that go there directly.
    pub database_url: String,
    /// Where blobs are kept.
    pub blobs: String,
    /// Version of the host.
    pub version: String,
    /// Whether private addresses may be archived.
    pub allow_private: bool,
    /// RFC 3339.
    pub started_at: String,
}

/// Holds the data folder for this process; released when dropped or when the process ends, however it does.
#[derive(Debug)]
pub struct HomeLock {
    _file: File,
}

impl Home {
    /// The folder to use: the one given, else `FONDS_HOME`, else the user's data folder; root's is
    /// `/var/lib/fonds`, because PostgreSQL's user must be able to enter it.
    ///
    /// # Errors
    /// When no folder can be told.
    pub fn resolve(given: Option<&Path>) -> Result<Home, Failure> {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let dir = choose(given, var("FONDS_HOME"), var("XDG_DATA_HOME"), var("HOME"), am_root())
            .ok_or_else(|| Failure::usage("no data folder: give --data DIR or set FONDS_HOME"))?;
        let dir = std::path::absolute(&dir).map_err(|e| Failure::io(dir.display(), &e))?;
        Ok(Home { dir })
    }

    /// The folder itself.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The private PostgreSQL cluster.
    #[must_use]
    pub fn cluster(&self) -> PathBuf {
        self.dir.join("pg")
    }

    /// Blobs, unless they are elsewhere.
    #[must_use]
    pub fn blobs(&self) -> PathBuf {
        self.dir.join("blobs")
    }

    /// Working space of captures; nothing in it outlives its use.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.dir.join("scratch")
    }

    /// Logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// The host's own log when it runs detached.
    #[must_use]
    pub fn host_log(&self) -> PathBuf {
        self.logs().join("host.log")
    }

    /// The secret of the local admin token.
    #[must_use]
    pub fn token(&self) -> PathBuf {
        self.dir.join("token")
    }

    fn host_file(&self) -> PathBuf {
        self.dir.join("host.json")
    }

    fn lock_file(&self) -> PathBuf {
        self.dir.join("host.lock")
    }

    /// Makes the folder and those in it that are ours alone. Others may pass through it (the
    /// database's and the browser's user must) but not look into it.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn prepare(&self) -> Result<(), Failure> {
        let outer = if am_root() { 0o711 } else { 0o700 };
        make_dir(&self.dir, outer)?;
        make_dir(&self.logs(), 0o700)?;
        // The browser's user makes its profiles below.
        make_dir(&self.scratch(), outer)
    }

    /// Takes the folder for this process.
    ///
    /// # Errors
    /// `ALREADY_RUNNING` when another process has it.
    pub fn lock(&self) -> Result<HomeLock, Failure> {
        let path = self.lock_file();
        let file = open_private(&path).map_err(|e| Failure::io(path.display(), &e))?;
        match file.try_lock() {
            Ok(()) => Ok(HomeLock { _file: file }),
            Err(TryLockError::WouldBlock) => {
                let at = self.host().map_or_else(|| "starting or ending".to_owned(), |h| format!("at {}", h.url));
                Err(Failure::new("ALREADY_RUNNING", format!("fonds already runs for {} ({at})", self.dir.display()))
                    .advise("See `fonds status`; `fonds down` ends it. Another archive needs another --data folder."))
            }
            Err(TryLockError::Error(e)) => Err(Failure::io(path.display(), &e)),
        }
    }

    /// Whether a process holds the folder.
    #[must_use]
    pub fn is_held(&self) -> bool {
        // Opened without making it: asking must leave no trace.
        File::open(self.lock_file()).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// What the running host wrote; none when no host holds the folder.
    #[must_use]
    pub fn host(&self) -> Option<HostFile> {
        let file: HostFile = serde_json::from_slice(&std::fs::read(self.host_file()).ok()?).ok()?;
        self.is_held().then_some(file)
    }

    /// Tells where the host is; whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn publish(&self, host: &HostFile) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(host).map_err(|e| Failure::new("INTERNAL", e.to_string()))?;
        write_private(&self.host_file(), &(text + "\n"))
    }

    /// Takes back what [`Home::publish`] told.
    pub fn unpublish(&self) {
        if let Err(error) = std::fs::remove_file(self.host_file())
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "host.json could not be removed");
        }
    }
}

fn choose(
    given: Option<&Path>,
    fonds_home: Option<PathBuf>,
    xdg: Option<PathBuf>,
    home: Option<PathBuf>,
    root: bool,
) -> Option<PathBuf> {
    given
        .map(Path::to_owned)
        .or(fonds_home)
        // The specification asks for relative values to be ignored.
        .or_else(|| xdg.filter(|x| x.is_absolute()).map(|x| x.join("fonds")))
        .or_else(|| root.then(|| PathBuf::from("/var/lib/fonds")))
        .or_else(|| home.map(|h| h.join(".local/share/fonds")))
}

/// Makes a folder with its parents; its mode is set only when it is new, so that an owner's choice stays.
pub(crate) fn make_dir(path: &Path, mode: u32) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    let made = std::fs::create_dir_all(path)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)));
    made.map_err(|e| {
        Failure::io(format_args!("cannot make the folder {}", path.display()), &e)
            .advise("Choose another folder with --data DIR or FONDS_HOME.")
    })
}

fn open_private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Writes a file only its owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let new = path.with_extension("new");
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&new, path));
    written.map_err(|e| Failure::io(path.display(), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_chosen_in_the_documented_order() {
        let p = |s: &str| Some(PathBuf::from(s));
        let cases = [
            ((Some("/given"), p("/env"), p("/xdg"), p("/home/u"), false), p("/given")),
            ((None, p("/env"), p("/xdg"), p("/home/u"), true), p("/env")),
            ((None, None, p("/xdg"), p("/home/u"), true), p("/xdg/fonds")),
            ((None, None, p("relative"), p("/home/u"), false), p("/home/u/.local/share/fonds")),
            ((None, None, None, p("/root"), true), p("/var/lib/fonds")),
            ((None, None, None, None, false), None),
        ];
        for ((given, env, xdg, home, root), expected) in cases {
            assert_eq!(choose(given.map(Path::new), env, xdg, home, root), expected);
        }
    }

    #[test]
    fn one_process_holds_the_folder_and_tells_where_it_is() {
        let dir = tempfile::tempdir().expect("temp dir");
        let home = Home { dir: dir.path().join("data") };
        assert!(!home.is_held(), "asking must not make anything");
        assert!(!home.dir().exists());
        home.prepare().expect("made");
        let host = HostFile {
            url: "http://127.0.0.1:1".into(),
            pid: 1,
            token: "secret".into(),
            database_url: String::new(),
            blobs: String::new(),
            version: String::new(),
            allow_private: false,
            started_at: String::new(),
        };
        home.publish(&host).expect("written");
        assert!(home.host().is_none(), "a file left by a killed host names nobody");

        let lock = home.lock().expect("free");
        assert_eq!(home.host().map(|h| h.url).as_deref(), Some("http://127.0.0.1:1"));
        let refused = home.lock().expect_err("held");
        assert_eq!(refused.code, "ALREADY_RUNNING");
        assert!(refused.detail.contains("http://127.0.0.1:1"), "{refused}");
        let mode = std::fs::metadata(home.host_file()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        drop(lock);
        assert!(home.lock().is_ok());
        home.unpublish();
        home.unpublish();
        assert!(!home.host_file().exists());
    }
}
