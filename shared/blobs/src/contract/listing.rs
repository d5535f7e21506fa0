//! Listing and deleting.

use std::collections::BTreeSet;

use super::{Checked, Subject, key};
use crate::{BlobKey, PageToken};

const NAMES: [&str; 14] =
    ["a", "a-b", "a.b", "aa/x", "ab/c/d", "ab/c-d", "ab/c.d", "ab/cc", "ab-/x", "ab0", "z/1", "z/10", "z/2", "é/ü"];

async fn fill(subject: &Subject) -> Checked {
    for name in NAMES {
        subject.store.put_if_absent(&key(name), name.as_bytes().to_vec().into(), "text/plain").await?;
    }
    Ok(())
}

async fn all(subject: &Subject, prefix: &str, limit: usize) -> Result<Vec<String>, crate::BlobError> {
    let (mut found, mut after) = (Vec::new(), None::<PageToken>);
    loop {
        let page = subject.store.list(prefix, after.as_ref(), limit).await?;
        assert!(page.entries.len() <= limit && page.skipped.is_empty(), "{prefix:?} by {limit}: {page:?}");
        assert!(
            page.entries.iter().all(|entry| entry.size == entry.key.as_str().len() as u64 && !entry.etag.is_empty()),
            "{page:?}"
        );
        found.extend(page.entries.into_iter().map(|entry| String::from(entry.key)));
        let Some(next) = page.next else { return Ok(found) };
        // Through a row, as a cursor goes.
        after = Some(PageToken::from_raw(next.as_str()));
    }
}

/// Byte order of whole keys, any prefix, any page size.
pub async fn listing_has_s3s_order_for_every_prefix_and_limit(subject: &Subject) -> Checked {
    assert_eq!(all(subject, "", 10).await?, Vec::<String>::new());
    fill(subject).await?;
    let sorted: BTreeSet<&str> = NAMES.into();
    for prefix in ["", "a", "ab", "ab/", "ab/c", "ab/c/", "z/1", "z/", "é", "nothing", "ab/c/d", "ab/c/d/"] {
        let expected: Vec<_> = sorted.iter().filter(|name| name.starts_with(prefix)).copied().collect();
        for limit in [1, 3, 1000] {
            assert_eq!(all(subject, prefix, limit).await?, expected, "{prefix:?} by {limit}");
        }
    }
    let listed = subject.store.list("ab0", None, 1).await?.entries.remove(0);
    let head = subject.store.head(&listed.key).await?.expect("listed");
    assert_eq!(
        (listed.size, listed.etag, listed.modified.timestamp()),
        (head.size, head.etag, head.modified.timestamp())
    );
    Ok(())
}

/// A listing survives that the key it stopped at is deleted, and what is put behind it meanwhile is seen.
pub async fn listing_goes_on_after_a_deleted_key(subject: &Subject) -> Checked {
    fill(subject).await?;
    let page = subject.store.list("ab", None, 3).await?;
    let last = page.entries.last().expect("three").key.clone();
    assert_eq!(page.next.as_ref().map(PageToken::as_str), Some(last.as_str()));
    subject.store.delete(&[last, key("ab/cc")]).await?;
    subject.store.put_if_absent(&key("ab1"), b"ab1".to_vec().into(), "text/plain").await?;
    let rest = subject.store.list("ab", page.next.as_ref(), 10).await?;
    assert_eq!(rest.entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["ab/c/d", "ab0", "ab1"]);
    assert_eq!(rest.next, None);
    Ok(())
}

/// More keys than one request takes, doubled and missing ones among them.
pub async fn deletes_are_batched_and_repeatable(subject: &Subject) -> Checked {
    fill(subject).await?;
    let mut keys: Vec<BlobKey> = (0..1200).map(|at| key(&format!("missing/{at}"))).collect();
    keys.extend(NAMES.iter().chain(&NAMES).filter(|name| !name.starts_with('z')).map(|name| key(name)));
    for _ in 0..2 {
        subject.store.delete(&keys).await?;
        assert_eq!(all(subject, "", 10).await?, ["z/1", "z/10", "z/2"]);
    }
    subject.store.delete(&[]).await?;
    // A key that was deleted is free again.
    let again = subject.store.put_if_absent(&key("ab/c/d"), b"new".to_vec().into(), "text/x-new").await?;
    assert_eq!(again, crate::PutOutcome::Created);
    assert_eq!(subject.store.head(&key("ab/c/d")).await?.expect("new").content_type, "text/x-new");
    Ok(())
}
