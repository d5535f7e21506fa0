//! System users. PostgreSQL refuses to run as root and a browser should not: started as root, the
//! host gives each an unprivileged user of its own.

use std::process::{Command, Stdio};

/// The user made for the browser.
pub const BROWSER_USER: &str = "fonds-browser";
/// The user of Debian's PostgreSQL packages.
pub const POSTGRES_USER: &str = "postgres";

/// A user that a child process is started as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAs {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
}

/// Whether this process is root.
#[must_use]
pub fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The system's user of this name, from any source the system knows.
#[must_use]
pub fn lookup(name: &str) -> Option<RunAs> {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    in_passwd(&passwd, name).or_else(|| {
        let id = |flag: &str| {
            let out = Command::new("id").args([flag, "--", name]).stderr(Stdio::null()).output().ok()?;
            String::from_utf8(out.stdout).ok()?.trim().parse::<u32>().ok()
        };
        Some(RunAs { name: name.to_owned(), uid: id("-u")?, gid: id("-g")? })
    })
}

fn in_passwd(passwd: &str, name: &str) -> Option<RunAs> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        Some(RunAs { name: name.to_owned(), uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? })
    })
}

/// The user that the browser runs as when we are root: its own, made now when it is missing, else
/// `nobody`. None when we are not root.
#[must_use]
pub fn for_browser() -> Option<RunAs> {
    if !am_root() {
        return None;
    }
    if let Some(user) = lookup(BROWSER_USER) {
        return Some(user);
    }
    let made = Command::new("useradd")
        .args([
            "--system",
            "--no-create-home",
            "--home-dir",
            "/nonexistent",
            "--shell",
            "/usr/sbin/nologin",
            BROWSER_USER,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match made {
        Ok(status) if status.success() => tracing::info!(user = BROWSER_USER, "made a user for the browser"),
        _ => tracing::debug!("no user of its own could be made for the browser"),
    }
    lookup(BROWSER_USER).or_else(|| lookup("nobody"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_passwd_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nbroken\npostgres2:x:7:8::/:\npostgres:x:109:114:,,,:/var/lib/postgresql:/bin/bash\n";
        let user = in_passwd(passwd, "postgres").expect("is there");
        assert_eq!((user.uid, user.gid), (109, 114));
        assert_eq!(in_passwd(passwd, "broken"), None);
        assert_eq!(in_passwd(passwd, "nobody"), None);
        assert_eq!(lookup("root").map(|u| u.uid), Some(0));
        assert_eq!(lookup("no-such-user-here"), None);
    }
}
