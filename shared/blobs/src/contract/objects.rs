//! Single objects: written once, read whole and in parts.

use chrono::Utc;
use futures_util::{TryStreamExt, future};
use sha2::{Digest, Sha256};

use super::{Checked, Subject, key, pattern};
use crate::{BlobError, BlobKey, PutBody, PutOutcome};

/// What was put is what is read, with its type.
pub async fn put_get_head(subject: &Subject) -> Checked {
    let store = &subject.store;
    let cases = [
        ("warcs/a/empty.warc.gz", 0, "application/warc"),
        ("snapshots/a/b/one.wacz", 1, "application/wacz+zip"),
        ("snapshots/a/b/typed.wacz", 6000, "application/x-other"),
        ("plain", 200_000, "text/html; charset=utf-8"),
    ];
    for (name, size, content_type) in cases {
        let body = pattern(size);
        assert_eq!(
            store.put_if_absent(&key(name), body.clone().into(), content_type).await?,
            PutOutcome::Created,
            "{name}"
        );
        assert!(store.get(&key(name)).await? == body, "{name} has other bytes");
        let head = store.head(&key(name)).await?.expect("an object that was put");
        assert_eq!((head.size, head.content_type.as_str()), (size as u64, content_type), "{name}");
        assert!(!head.etag.is_empty() && !head.etag.contains('"'), "{:?}", head.etag);
        assert!((Utc::now() - head.modified).num_seconds().abs() < 300, "{}", head.modified);
    }
    Ok(())
}

/// The first writer's bytes and type stay.
pub async fn second_put_changes_nothing(subject: &Subject) -> Checked {
    let (store, name) = (&subject.store, key("uploads/1/x.png"));
    assert_eq!(store.put_if_absent(&name, b"first".to_vec().into(), "image/png").await?, PutOutcome::Created);
    let before = store.head(&name).await?;
    for (body, content_type) in [(&b"second"[..], "image/png"), (b"", "text/plain"), (b"first", "image/png")] {
        assert_eq!(store.put_if_absent(&name, body.to_vec().into(), content_type).await?, PutOutcome::Existed);
    }
    assert_eq!(&store.get(&name).await?[..], b"first");
    assert_eq!(store.head(&name).await?, before);
    Ok(())
}

/// Exactly one of many concurrent writers makes the object, and its bytes are the object.
pub async fn first_of_many_writers_wins(subject: &Subject) -> Checked {
    for round in 0..8 {
        let name = key(&format!("race/{round}/deep/object.json"));
        let write = |writer: u8| {
            let (store, name) = (subject.store.clone(), name.clone());
            async move { store.put_if_absent(&name, vec![writer; 30_000].into(), "application/json").await }
        };
        let outcomes = future::try_join_all((0..12).map(write)).await?;
        let winners: Vec<u8> = (0..)
            .zip(&outcomes)
            .filter(|(_, outcome)| **outcome == PutOutcome::Created)
            .map(|(writer, _)| writer)
            .collect();
        assert_eq!(winners.len(), 1, "round {round}: {outcomes:?}");
        assert!(subject.store.get(&name).await? == vec![winners[0]; 30_000], "round {round}: not the winner's bytes");
    }
    Ok(())
}

/// A body given as a file is read and left alone; one that is not there is an error and makes nothing.
pub async fn files_are_copied_not_moved(subject: &Subject) -> Checked {
    let folder = std::env::temp_dir().join(format!("fonds-contract-{}", uuid::Uuid::new_v4()));
    tokio::fs::create_dir(&folder).await?;
    let path = folder.join("body");
    tokio::fs::write(&path, pattern(300_000)).await?;
    let put = subject.store.put_if_absent(&key("from/file"), PutBody::File(path.clone()), "text/plain").await;
    let left = tokio::fs::read(&path).await;
    let missing =
        subject.store.put_if_absent(&key("from/nothing"), PutBody::File(folder.join("missing")), "text/plain").await;
    tokio::fs::remove_dir_all(&folder).await?;
    assert_eq!(put?, PutOutcome::Created);
    assert!(left? == pattern(300_000) && subject.store.get(&key("from/file")).await? == pattern(300_000));
    assert!(missing.is_err() && subject.store.head(&key("from/nothing")).await?.is_none(), "{missing:?}");
    Ok(())
}

/// Replacing makes or exchanges bytes, type and tag.
pub async fn replace_replaces(subject: &Subject) -> Checked {
    let (store, name) = (&subject.store, key("crawls/1/index.json"));
    store.replace(&name, b"one".to_vec().into(), "application/json").await?;
    let first = store.head(&name).await?.expect("made");
    store.replace(&name, b"other".to_vec().into(), "text/plain").await?;
    let second = store.head(&name).await?.expect("replaced");
    assert_eq!((&store.get(&name).await?[..], second.content_type.as_str()), (&b"other"[..], "text/plain"));
    assert_ne!(first.etag, second.etag);
    store.replace(&name, b"three".to_vec().into(), "application/json").await?;
    assert_eq!(store.head(&name).await?.expect("replaced").content_type, "application/json");
    Ok(())
}

/// Half-open ranges, clipped at the end.
pub async fn ranges_are_clipped_or_refused(subject: &Subject) -> Checked {
    let (store, name, body) = (&subject.store, key("ranged"), pattern(1000));
    store.put_if_absent(&name, body.clone().into(), "text/plain").await?;
    store.put_if_absent(&key("empty"), Vec::new().into(), "text/plain").await?;
    for (start, end) in
        [(0, 1), (0, 1000), (999, 1000), (10, 20), (990, 5000), (0, u64::from(u32::MAX)), (500, 500), (5000, 5000)]
    {
        let expected = body.slice((start as usize).min(1000)..(end as usize).min(1000));
        assert!(store.get_range(&name, start..end).await? == expected, "{start}..{end}");
        let streamed: Vec<_> = store.stream(&name, Some(start..end)).await?.try_collect().await?;
        assert!(streamed.concat() == expected, "stream {start}..{end}");
    }
    for (name, start, end) in [("ranged", 1000, 1001), ("ranged", 5000, 6000), ("empty", 0, 1)] {
        let refused = store.get_range(&key(name), start..end).await;
        assert!(
            matches!(&refused, Err(BlobError::Range { start: at, .. }) if *at == start),
            "{name} {start}..{end}: {refused:?}"
        );
        assert!(
            matches!(store.stream(&key(name), Some(start..end)).await, Err(BlobError::Range { .. })),
            "stream {name} {start}..{end}"
        );
    }
    #[expect(clippy::reversed_empty_ranges, reason = "the case under test")]
    let backwards = store.get_range(&name, 9..3).await;
    assert!(matches!(backwards, Err(BlobError::Invalid(_))), "{backwards:?}");
    Ok(())
}

/// Nothing larger than asked for is held.
pub async fn gets_are_capped(subject: &Subject) -> Checked {
    let name = key("large");
    subject.store.put_if_absent(&name, pattern(1000).into(), "text/plain").await?;
    assert_eq!(subject.store.get_capped(&name, 1000).await?.len(), 1000);
    let refused = subject.store.get_capped(&name, 999).await;
    assert!(matches!(refused, Err(BlobError::TooLarge { cap: 999, .. })), "{refused:?}");
    Ok(())
}

/// Missing is a value for head, an error for reads, nothing for delete; a folder of objects is no object.
pub async fn missing_objects_are_not_found(subject: &Subject) -> Checked {
    let store = &subject.store;
    store.put_if_absent(&key("folder/child"), b"x".to_vec().into(), "text/plain").await?;
    for name in ["nothing", "folder", "folder/child2", "folder/child/below"].map(key) {
        assert_eq!(store.head(&name).await?, None, "{name}");
        let reads = [
            store.get(&name).await.map(drop),
            store.get_range(&name, 0..1).await.map(drop),
            store.get_range_pinned(&name, 0..1, Some("tag")).await.map(drop),
            store.stream(&name, None).await.map(drop),
            store.stream(&name, Some(3..9)).await.map(drop),
        ];
        for read in reads {
            let error = read.expect_err("nothing to read");
            assert!(matches!(error, BlobError::NotFound { .. }) && error.is_permanent(), "{name}: {error:?}");
        }
        store.delete(std::slice::from_ref(&name)).await?;
    }
    assert_eq!(&store.get(&key("folder/child")).await?[..], b"x");
    Ok(())
}

/// Ranges of one version never mix with those of the next.
pub async fn etags_pin_a_version(subject: &Subject) -> Checked {
    let (store, name) = (&subject.store, key("crawls/2/index.json"));
    store.replace(&name, b"version one".to_vec().into(), "application/json").await?;
    let etag = store.head(&name).await?.expect("made").etag;
    assert_eq!(&store.get_range_pinned(&name, 8..11, Some(&etag)).await?[..], b"one");
    store.replace(&name, b"version two".to_vec().into(), "application/json").await?;
    let stale = store.get_range_pinned(&name, 8..11, Some(&etag)).await;
    assert!(matches!(stale, Err(BlobError::Changed { .. })), "{stale:?}");
    assert_eq!(&store.get_range(&name, 8..11).await?[..], b"two");
    Ok(())
}

/// A stream is the object, in order, in pieces.
pub async fn streams_give_every_byte(subject: &Subject) -> Checked {
    let (store, name, body) = (&subject.store, key("stream/me"), pattern(3 * 1024 * 1024 + 17));
    store.put_if_absent(&name, body.clone().into(), "text/plain").await?;
    let pieces: Vec<_> = store.stream(&name, None).await?.try_collect().await?;
    assert!(pieces.len() > 1 && pieces.concat() == body);
    let middle: Vec<_> = store.stream(&name, Some(1_000_000..2_500_000)).await?.try_collect().await?;
    assert!(middle.concat() == body.slice(1_000_000..2_500_000));
    Ok(())
}

/// Keys are names, not patterns or markup, in any script.
pub async fn names_of_any_script_are_kept(subject: &Subject) -> Checked {
    let long = "x".repeat(255);
    let names = [
        "a b.txt",
        "a+b.txt",
        "a%20b.txt",
        "a%b",
        "Ünïcödé/日本語.png",
        "q?x=1&y=2#z",
        "<&>'\"",
        "~!@$^*()[]{};:,|`",
        "e\u{301}",
        &long,
    ];
    for (at, name) in names.iter().enumerate() {
        let upload = BlobKey::upload(uuid::Uuid::from_u128(1), name).expect("a key");
        assert_eq!(
            subject.store.put_if_absent(&upload, vec![at as u8].into(), "text/x-test").await?,
            PutOutcome::Created,
            "{name}"
        );
    }
    let page = subject.store.list("uploads/", None, 100).await?;
    let mut expected: Vec<_> =
        names.iter().map(|name| format!("uploads/{}/{name}", uuid::Uuid::from_u128(1))).collect();
    expected.sort_unstable();
    assert_eq!(page.entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), expected);
    for (at, name) in names.iter().enumerate() {
        let upload = BlobKey::upload(uuid::Uuid::from_u128(1), name).expect("a key");
        assert_eq!(subject.store.get(&upload).await?[..], [at as u8], "{name}");
        assert_eq!(subject.store.head(&upload).await?.expect("put").content_type, "text/x-test", "{name}");
    }
    Ok(())
}

/// The content-addressed path works with its digest check in place.
pub async fn content_addressed_bodies_are_stored(subject: &Subject) -> Checked {
    let body = pattern(6000);
    let name = BlobKey::cas(&Sha256::digest(&body).into());
    for expected in [PutOutcome::Created, PutOutcome::Existed] {
        assert_eq!(subject.store.put_if_absent(&name, body.clone().into(), "image/png").await?, expected);
    }
    assert!(subject.store.get(&name).await? == body);
    Ok(())
}
