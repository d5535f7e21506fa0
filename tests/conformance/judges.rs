//! Every object before the outside judges.

use crate::archive::Archive;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Fails with every objection of every judge to any object.
pub(crate) async fn agree(folder: &Path, archive: &Archive) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/judges/judge.sh");
    let mut objections = Vec::new();
    for object in &archive.objects {
        let mut command = Command::new("bash");
        command.arg(script).arg(folder).arg(&object.warc).arg(&object.wacz).kill_on_drop(true);
        let output = command.output().await.expect("bash runs");
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            // The last line is the judges' own count; an empty answer is not an agreement.
            let last = text.lines().last().unwrap_or_default();
            assert!(last.ends_with("all judges agree"), "{}: {text}", object.key);
            eprintln!("{}: {last}", object.key);
        } else {
            let complaint = String::from_utf8_lossy(&output.stderr);
            objections.push(format!("{}: {}\n{text}{complaint}", object.key, output.status));
        }
    }
    assert!(objections.is_empty(), "{}", objections.join("\n"));
}

/// A program of the judges' folder.
pub(crate) fn program(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join("venv/bin").join(name);
    assert!(path.is_file(), "{} is missing: run judges/install.sh again", path.display());
    path
}
