//! The contract over a folder, and what only a folder has: leftovers, foreign files, more than one process.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fonds_blobs::contract::{LocalClient, Subject};
use fonds_blobs::disk::{DiskBlobs, Durability};
use fonds_blobs::sign::LocalSigner;
use fonds_blobs::{BlobError, BlobKey, BlobStore, PutBody, PutOutcome};
use futures_util::future;

fn signer() -> LocalSigner {
    LocalSigner::new("http://127.0.0.1:8000/blobs/".parse().unwrap(), b"a secret of the host").unwrap()
}

fn open(root: &Path, durability: Durability) -> DiskBlobs {
    DiskBlobs::open(root, durability, signer()).unwrap()
}

fn key(name: &str) -> BlobKey {
    BlobKey::parse(name).unwrap()
}

fn subject(durability: Durability) -> Option<Subject> {
    let folder = tempfile::tempdir().unwrap();
    let disk = open(folder.path(), durability);
    let store: Arc<dyn BlobStore> = Arc::new(disk.clone());
    let client = LocalClient { store: store.clone(), signer: signer(), disk: Some(disk) };
    Some(Subject { store, client: Box::new(client), keep: Box::new(folder), refuses_small_parts: true })
}

async fn cached() -> Option<Subject> {
    subject(Durability::Cached)
}

async fn flushed() -> Option<Subject> {
    subject(Durability::Flushed)
}

fonds_blobs::blob_contract!(contract_cached, super::cached);
fonds_blobs::blob_contract!(contract_flushed, super::flushed);

fn names_below(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        names.push(entry.path().to_str().unwrap().to_owned());
        if entry.file_type().unwrap().is_dir() {
            names.extend(names_below(&entry.path()));
        }
    }
    names
}

#[tokio::test]
async fn a_store_opened_again_is_the_same_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Durability::Flushed);
    store.put_if_absent(&key("a/b.json"), b"1".to_vec().into(), "application/json").await.unwrap();
    store.put_if_absent(&key("a/c.json"), b"2".to_vec().into(), "text/odd").await.unwrap();
    store.put_if_absent(&key("a/b.json"), b"3".to_vec().into(), "text/odd").await.unwrap();
    drop(store);
    let store = open(folder.path(), Durability::Cached);
    assert_eq!(store.head(&key("a/b.json")).await.unwrap().unwrap().content_type, "application/json");
    assert_eq!(store.head(&key("a/c.json")).await.unwrap().unwrap().content_type, "text/odd");
    assert_eq!(fs::read(folder.path().join("objects/a/b.json")).unwrap(), b"1", "readable with any tool");
    store.delete(&[key("a/b.json"), key("a/c.json")]).await.unwrap();
    let mut left = names_below(folder.path());
    left.sort();
    let expected: Vec<_> =
        ["objects", "tmp", "types", "uploads"].map(|name| folder.path().join(name).to_str().unwrap().to_owned()).into();
    assert_eq!(left, expected);
}

#[tokio::test]
async fn what_a_killed_writer_left_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path(), Durability::Cached);
    // Killed between type and object, and while writing, just now and days ago.
    fs::create_dir_all(folder.path().join("types/a")).unwrap();
    fs::write(folder.path().join("types/a/b.json"), "text/stale").unwrap();
    for (name, age) in [("new", 0), ("old", 2 * 24 * 3600)] {
        let file = fs::File::create(folder.path().join("tmp").join(name)).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - std::time::Duration::from_secs(age)).unwrap();
    }
    let store = open(folder.path(), Durability::Cached);
    assert!(folder.path().join("tmp/new").exists(), "another process may be writing it");
    assert!(!folder.path().join("tmp/old").exists());
    assert_eq!(store.head(&key("a/b.json")).await.unwrap(), None);
    assert_eq!(
        store.put_if_absent(&key("a/b.json"), b"1".to_vec().into(), "application/json").await.unwrap(),
        PutOutcome::Created
    );
    assert_eq!(store.head(&key("a/b.json")).await.unwrap().unwrap().content_type, "application/json");
}

#[tokio::test]
async fn foreign_files_are_reported_and_links_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Durability::Cached);
    store.put_if_absent(&key("a/good"), b"1".to_vec().into(), "text/plain").await.unwrap();
    let objects = folder.path().join("objects");
    fs::write(objects.join("a/bad\\name"), "x").unwrap();
    fs::write(objects.join("a/new\nline"), "x").unwrap();
    std::os::unix::fs::symlink("/etc", objects.join("etc")).unwrap();
    let page = store.list("", None, 100).await.unwrap();
    assert_eq!(page.entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a/good"]);
    assert_eq!(page.skipped.len(), 3, "{page:?}");
    let mut seen = 0;
    let mut after = None;
    loop {
        let page = store.list("", after.as_ref(), 1).await.unwrap();
        seen += page.entries.len() + page.skipped.len();
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    assert_eq!(seen, 4, "pages of one see each name once");
}

#[tokio::test]
async fn a_key_cannot_be_a_file_and_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Durability::Cached);
    store.put_if_absent(&key("a/b"), b"1".to_vec().into(), "text/plain").await.unwrap();
    for (name, what) in [("a/b/c", "below a file"), ("a", "instead of a folder")] {
        for outcome in [
            store.put_if_absent(&key(name), b"2".to_vec().into(), "text/plain").await.map(drop),
            store.replace(&key(name), b"2".to_vec().into(), "text/plain").await,
        ] {
            let error = outcome.expect_err(what);
            assert!(matches!(error, BlobError::Invalid(_)), "{what}: {error:?}");
        }
    }
    assert_eq!(&store.get(&key("a/b")).await.unwrap()[..], b"1");
    assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn puts_survive_deletes_that_empty_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    // Two stores, as two processes have.
    let stores = [open(folder.path(), Durability::Cached), open(folder.path(), Durability::Flushed)];
    let work = (0..8).map(|worker: usize| {
        let store = stores[worker % 2].clone();
        tokio::spawn(async move {
            let key = key(&format!("x/y/z/{worker}"));
            for _ in 0..100 {
                assert_eq!(
                    store.put_if_absent(&key, vec![1; 100].into(), "text/plain").await.unwrap(),
                    PutOutcome::Created
                );
                store.delete(std::slice::from_ref(&key)).await.unwrap();
            }
        })
    });
    for done in future::join_all(work).await {
        done.unwrap();
    }
}

#[tokio::test]
async fn a_full_or_closed_disk_is_an_error_not_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), Durability::Cached);
    let error = store.put_if_absent(&key("a"), PutBody::File("/dev/null/x".into()), "text/plain").await.unwrap_err();
    assert!(!matches!(error, BlobError::NotFound { .. }), "{error:?}");
    assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
    fs::remove_dir_all(folder.path().join("tmp")).unwrap();
    let error = store.put_if_absent(&key("a"), b"1".to_vec().into(), "text/plain").await.unwrap_err();
    assert!(matches!(error, BlobError::Io(_)) && !error.is_permanent(), "{error:?}");
    assert_eq!(store.head(&key("a")).await.unwrap(), None);
}

/// `FONDS_BENCH_DIR=/dev/shm cargo test -p fonds-blobs --test disk -- --ignored --nocapture`. The floor is the same writes
/// with nothing around them, on the same file system in the same run.
#[tokio::test]
#[ignore = "a measurement"]
async fn time_of_a_put() {
    let folder = std::env::var("FONDS_BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let body = bytes::Bytes::from(vec![7; 6 * 1024]);
    let key = |round: u32| BlobKey::cas_hex(&format!("{:08x}{:056}", round.wrapping_mul(0x9e37_79b9), round)).unwrap();
    for (durability, rounds) in [(Durability::Cached, 5000), (Durability::Flushed, 100)] {
        let store = open(&folder.path().join(format!("{durability:?}")), durability);
        let start = Instant::now();
        for round in 0..rounds {
            let key = key(round);
            store.put_if_absent(&key, body.clone().into(), key.content_type()).await.unwrap();
        }
        println!("{durability:?}: {:?} a put of 6 KiB into a new folder", start.elapsed() / rounds);
        let start = Instant::now();
        for round in 0..rounds {
            store.get_range(&key(round), 100..5000).await.unwrap();
        }
        println!("{durability:?}: {:?} a ranged get", start.elapsed() / rounds);
    }
    let start = Instant::now();
    for round in 0..5000 {
        let (from, to) = (folder.path().join("floor"), folder.path().join("floors").join(key(round).as_str()));
        fs::write(&from, &body).unwrap();
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(&from, &to).unwrap();
    }
    println!("floor: {:?}", start.elapsed() / 5000);
}
