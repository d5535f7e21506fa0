//! What these tests take from the machine, and what happens when it is not there.

use std::path::PathBuf;
use std::process::Output;

/// Says that a part of a test is passed over, or fails where nothing may be.
pub(crate) fn missing(what: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "missing: {what}");
    eprintln!("passed over, because this is missing: {what}");
}

/// The folder of the judges, if there is one.
pub(crate) fn judges() -> Option<PathBuf> {
    let folder = std::env::var_os("FONDS_JUDGES").map(PathBuf::from);
    match &folder {
        None => missing("the judges (bash tests/judges/install.sh FOLDER; FONDS_JUDGES=FOLDER)"),
        Some(folder) => {
            assert!(folder.join("venv/bin/python").is_file(), "FONDS_JUDGES={} holds no judges", folder.display());
        }
    }
    folder
}

/// Standard output of a command that must succeed.
pub(crate) fn said(what: &str, output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{out}{complaint}", output.status);
    out
}
