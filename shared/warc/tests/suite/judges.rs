//! What tools of others say about our files.

use std::{fs, path::PathBuf, process::Command};

use crate::common;

/// The tools' folder, as made by `tests/judges/install.sh`.
fn judges() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("FONDS_JUDGES") {
        return Some(path.into());
    }
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "FONDS_JUDGES must name the tools' folder under CI");
    eprintln!(
        "FONDS_JUDGES is not set: no other tool has looked at our files (tests/judges/install.sh DIR makes the folder)"
    );
    None
}

#[test]
fn every_judge_accepts_our_warc_and_wacz() {
    let sample = common::sample();
    let (wacz, _) = common::package(sample);
    let folder = tempfile::tempdir().unwrap();
    // The folder can be kept for a look by hand.
    let folder = std::env::var_os("FONDS_WARC_KEEP").map_or_else(|| folder.path().to_owned(), PathBuf::from);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("data.warc.gz"), &sample.warc).unwrap();
    fs::write(folder.join("data.wacz"), &wacz.out).unwrap();
    fs::write(folder.join("data.cdxj"), sample.index().into_text()).unwrap();
    let Some(judges) = judges() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/judges/judge.sh");
    let output = Command::new("bash")
        .arg(script)
        .arg(judges)
        .args(["data.warc.gz", "data.wacz", "data.cdxj"].map(|name| folder.join(name)))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}");
    assert!(output.status.success(), "a judge refuses our files");
}
