//! `postmaster.pid`: what a running server says about itself (PostgreSQL's `miscadmin.h`, lock file lines).

use std::path::Path;

/// The lines of `postmaster.pid` that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PidFile {
    /// The postmaster.
    pub(super) pid: u32,
    /// Line 8: `starting`, `ready`, `stopping`, `standby`; none in the file's first moments.
    pub(super) status: Option<String>,
}

impl PidFile {
    /// Reads the file of a cluster; none when there is none or it is not whole yet.
    #[must_use]
    pub(super) fn read(cluster: &Path) -> Option<PidFile> {
        PidFile::parse(&std::fs::read_to_string(cluster.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<PidFile> {
        let mut lines = text.lines();
        // A standalone backend writes its pid as a negative number; it is no postmaster.
        let pid = lines.next()?.trim().parse().ok()?;
        Some(PidFile { pid, status: lines.nth(6).map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()) })
    }

    /// Whether the server of this pid takes connections.
    #[must_use]
    pub(super) fn is_ready(&self, pid: u32) -> bool {
        self.pid == pid && self.status.as_deref() == Some("ready")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_and_the_status_are_read() {
        let whole = "4711\n/data/pg\n1733000000\n5432\n/data/run\n\n   123456         7\nready   \n";
        let file = PidFile::parse(whole).expect("parses");
        assert!(file.is_ready(4711) && !file.is_ready(4712));
        let young = PidFile::parse("4711\n/data/pg\n1733000000\n").expect("parses");
        assert_eq!(young, PidFile { pid: 4711, status: None });
        for broken in ["", "\n", "-12\n", "no\n"] {
            assert_eq!(PidFile::parse(broken), None, "{broken:?}");
        }
    }
}
