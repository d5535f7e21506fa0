//! Replay by pywb when the origin is gone.

use crate::archive::Archive;
use crate::client::{Answer, Asker};
use crate::judges::program;
use crate::records::Kept;
use crate::tools;
use chrono::{DateTime, Utc};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// What the origin sent for a URL, and when it was captured.
pub(crate) struct Memory {
    pub(crate) url: String,
    pub(crate) date: DateTime<Utc>,
    pub(crate) sent: Answer,
}

/// Asks the origin itself for URLs of the archive, while it is there.
pub(crate) async fn ask_origin<'k>(captures: impl IntoIterator<Item = &'k Kept>) -> Vec<Memory> {
    let asker = Asker::new();
    let mut memories = Vec::new();
    for capture in captures {
        let sent = asker.get(&capture.uri).await.expect("the origin answers");
        memories.push(Memory { url: capture.uri.clone(), date: capture.date, sent });
    }
    memories
}

/// Compares what the player gives back with what the origin sent. Called with the origin gone.
pub(crate) async fn agrees(folder: &Path, archive: &Archive, memories: &[Memory]) {
    let player = Player::start(folder, archive).await;
    let asker = Asker::new();
    let mut differences = Vec::new();
    for memory in memories {
        // `id_`: the bytes as they were stored, not rewritten for a browser.
        let url = player.url(&format!("{}id_/{}", memory.date.format("%Y%m%d%H%M%S"), memory.url));
        match asker.get(&url).await {
            Ok(answer) if answer == memory.sent => {}
            Ok(answer) => differences.push(format!("{url}: {answer:?} instead of {:?}", memory.sent)),
            Err(error) => differences.push(error),
        }
    }
    assert!(differences.is_empty(), "{}\n{}", differences.join("\n"), player.log());
}

/// A running player with one collection `c`; it ends when it is dropped.
struct Player {
    child: Child,
    port: u16,
    home: tempfile::TempDir,
}

impl Player {
    async fn start(folder: &Path, archive: &Archive) -> Player {
        let home = tempfile::tempdir().expect("a temporary folder");
        let manager = program(folder, "wb-manager");
        let run = |arguments: Vec<PathBuf>| {
            let mut command = Command::new(&manager);
            command.args(arguments).current_dir(home.path()).kill_on_drop(true);
            async move { command.output().await.expect("wb-manager runs") }
        };
        tools::said("wb-manager init", &run(vec!["init".into(), "c".into()]).await);
        let mut add: Vec<PathBuf> = ["add", "--unpack-wacz", "c"].map(PathBuf::from).into();
        add.extend(archive.objects.iter().map(|o| o.wacz.clone()));
        tools::said("wb-manager add", &run(add).await);

        let port = free_port();
        let log = std::fs::File::create(home.path().join("log")).expect("a log");
        let child = Command::new(program(folder, "wayback"))
            .args(["-b", "127.0.0.1", "-p", &port.to_string()])
            .current_dir(home.path())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("wayback runs");
        let mut player = Player { child, port, home };
        player.answers().await;
        player
    }

    /// Waits until it answers.
    async fn answers(&mut self) {
        let asker = Asker::new();
        let front = format!("http://127.0.0.1:{}/", self.port);
        let begun = Instant::now();
        while asker.get(&front).await.is_err() {
            let ended = self.child.try_wait().expect("asked");
            assert!(ended.is_none(), "wayback ended: {ended:?}\n{}", self.log());
            assert!(begun.elapsed() < Duration::from_secs(120), "wayback does not answer\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn url(&self, rest: &str) -> String {
        format!("http://127.0.0.1:{}/c/{rest}", self.port)
    }

    /// The end of what it said.
    fn log(&self) -> String {
        let text = std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(30).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its address").port()
}
