//! The program as scripts see it: exit codes, where answers and errors go, what JSON mode prints.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn fonds(data: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fonds"))
        .args(args)
        .env_remove("FONDS_URL")
        .env_remove("FONDS_TOKEN")
        .env("FONDS_HOME", data)
        .stdin(Stdio::null())
        .output()
        .expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn exit_codes_are_as_documented() {
    let dir = tempfile::tempdir().expect("temp dir");
    let data = dir.path().join("none");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--version"], 0, ""),
        (&["help"], 0, ""),
        (&[], 2, "Usage"),
        (&["add"], 2, "URL"),
        (&["add", "https://x.example/", "--depth", "99"], 2, "depth"),
        (&["show", "01234567"], 3, "NO_HOST"),
        (&["status"], 3, "fonds up"),
        (&["list"], 3, "NO_HOST"),
        (&["crawl", "pause", "01234567"], 3, "NO_HOST"),
        (&["migrate"], 2, "--database-url"),
        (&["migrate", "--database-url", "postgres://127.0.0.1:1/none"], 3, "DATABASE_UNAVAILABLE"),
        (&["add", "two words"], 2, "no URL"),
        (&["down"], 0, ""),
    ];
    for (args, code, said) in cases {
        let out = fonds(&data, args);
        let err = text(&out.stderr);
        assert_eq!(out.status.code(), Some(*code), "{args:?}: {err}");
        assert!(err.contains(said), "{args:?}: {err}");
    }
    assert!(!data.exists(), "looking leaves nothing behind");
}

#[test]
fn json_mode_prints_lines_that_parse() {
    let dir = tempfile::tempdir().expect("temp dir");
    let out = fonds(&dir.path().join("none"), &["status", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).expect("one line");
    assert_eq!(answer["running"], false);
    let error: serde_json::Value = serde_json::from_slice(&out.stderr).expect("one line");
    assert_eq!(error["error"]["code"], "NO_HOST");
}

#[test]
fn a_service_elsewhere_is_named_when_it_is_away() {
    let dir = tempfile::tempdir().expect("temp dir");
    let ask = |url: Option<&str>, token: Option<&str>| {
        let mut cmd = Command::new(env!("CARGO_BIN_EXE_fonds"));
        cmd.args(["list"])
            .env("FONDS_HOME", dir.path())
            .stdin(Stdio::null())
            .env_remove("FONDS_URL")
            .env_remove("FONDS_TOKEN");
        cmd.envs(url.map(|u| ("FONDS_URL", u))).envs(token.map(|t| ("FONDS_TOKEN", t)));
        let out = cmd.output().expect("runs");
        (out.status.code(), text(&out.stderr))
    };
    let (code, said) = ask(Some("http://127.0.0.1:1"), Some("t"));
    assert!(code == Some(3) && said.contains("127.0.0.1:1") && said.contains("refused"), "{said}");
    let (code, said) = ask(Some("http://127.0.0.1:1"), None);
    assert!(code == Some(2) && said.contains("FONDS_TOKEN"), "{said}");
    let (code, said) = ask(Some("gopher://x"), Some("t"));
    assert!(code == Some(2) && said.contains("FONDS_URL"), "{said}");
}

#[test]
fn doctor_names_what_is_missing() {
    let dir = tempfile::tempdir().expect("temp dir");
    let out = Command::new(env!("CARGO_BIN_EXE_fonds"))
        .args(["doctor", "--json"])
        .env("FONDS_HOME", dir.path())
        .env("FONDS_POSTGRES_BIN", dir.path())
        .env("FONDS_CHROMIUM", "/no/such/browser")
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    assert_eq!(out.status.code(), Some(1));
    let checks: Vec<serde_json::Value> =
        text(&out.stdout).lines().map(|l| serde_json::from_str(l).expect("a JSON line")).collect();
    let postgres = checks.iter().find(|c| c["check"] == "postgres").expect("checked");
    assert_eq!(postgres["status"], "missing");
    assert!(postgres["advice"].as_str().is_some_and(|a| a.contains("apt-get install postgresql")), "{postgres}");
    assert!(text(&out.stderr).contains("NOT_READY"));
}
