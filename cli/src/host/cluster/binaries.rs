//! Finding PostgreSQL's programs. The root script looks in the same places.

use super::ClusterError;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Oldest version that fonds is tested with.
pub const OLDEST: u32 = 15;

/// One installation of PostgreSQL's server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The folder with `postgres` and `initdb`.
    pub dir: PathBuf,
    /// Major version.
    pub major: u32,
}

impl Binaries {
    /// Path of one program.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Every installation on this machine, the newest first.
#[must_use]
pub fn installed() -> Vec<Binaries> {
    let mut found: Vec<Binaries> = Vec::new();
    for dir in candidates() {
        let Ok(dir) = dir.join("postgres").canonicalize().map(|p| p.parent().map_or(dir, Path::to_owned)) else {
            continue;
        };
        if found.iter().all(|b| b.dir != dir)
            && dir.join("initdb").exists()
            && let Some(major) = version_of(&dir.join("postgres"))
        {
            found.push(Binaries { dir, major });
        }
    }
    found.sort_by_key(|b| std::cmp::Reverse(b.major));
    found
}

fn candidates() -> Vec<PathBuf> {
    if let Some(dir) = std::env::var_os("FONDS_POSTGRES_BIN").filter(|v| !v.is_empty()) {
        return vec![dir.into()];
    }
    let mut dirs: Vec<PathBuf> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    dirs.extend(["/usr/local/pgsql/bin".into(), "/usr/lib/postgresql/bin".into()]);
    for (parent, prefix) in [("/usr/lib/postgresql", ""), ("/usr", "pgsql-"), ("/opt/homebrew/opt", "postgresql@")] {
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        dirs.extend(
            entries.filter(|e| e.file_name().to_string_lossy().starts_with(prefix)).map(|e| e.path().join("bin")),
        );
    }
    dirs
}

fn version_of(postgres: &Path) -> Option<u32> {
    let out = Command::new(postgres).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    parse_version(&String::from_utf8_lossy(&out.stdout))
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` is 15.
fn parse_version(text: &str) -> Option<u32> {
    let digits: String = text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The installation for a new cluster (`major` none), or the one that can open a cluster of `major`.
///
/// # Errors
/// When there is none; the error says what to install.
pub fn choose(installed: &[Binaries], major: Option<u32>) -> Result<Binaries, ClusterError> {
    let fits = |b: &&Binaries| major.map_or(b.major >= OLDEST, |m| b.major == m);
    installed.iter().find(fits).cloned().ok_or_else(|| ClusterError::NoBinaries {
        wanted: major
            .map_or_else(|| format!("{OLDEST} or newer"), |m| format!("{m}, which this archive was made with,")),
        found: match installed {
            [] => "none is installed".to_owned(),
            some => format!("found {}", some.iter().map(|b| b.major.to_string()).collect::<Vec<_>>().join(", ")),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_they_are_printed() {
        for (text, expected) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some(15)),
            ("postgres (PostgreSQL) 18beta1\n", Some(18)),
            ("postgres (PostgreSQL) 9.6.24\n", Some(9)),
            ("", None),
        ] {
            assert_eq!(parse_version(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_new_cluster_takes_the_newest_and_an_old_one_its_own() {
        let b = |major| Binaries { dir: format!("/pg/{major}").into(), major };
        let both = [b(17), b(15)];
        assert_eq!(choose(&both, None).expect("fits").major, 17);
        assert_eq!(choose(&both, Some(15)).expect("fits").major, 15);
        let error = choose(&both, Some(16)).expect_err("not there").to_string();
        assert!(error.contains("16") && error.contains("found 17, 15"), "{error}");
        assert!(choose(&[b(14)], None).expect_err("too old").to_string().contains("15 or newer"));
        assert!(choose(&[], None).is_err());
    }
}
