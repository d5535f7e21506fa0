//! Uploads in parts.

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use futures_util::{StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};

use super::{Checked, Subject, key, pattern};
use crate::{BlobError, BlobKey, MIN_PART_BYTES, MULTIPART_THRESHOLD, PutBody, PutOutcome, UploadId, UploadedPart};

const PART: usize = MIN_PART_BYTES as usize;

/// Uploads parts last to first, as concurrent senders might.
async fn upload(
    subject: &Subject,
    name: &BlobKey,
    parts: &[Bytes],
) -> Result<(UploadId, Vec<UploadedPart>), BlobError> {
    let id = subject.store.create_multipart(name, "application/x-parts").await?;
    let mut uploaded = Vec::new();
    for (at, part) in parts.iter().enumerate().rev() {
        uploaded.insert(0, subject.store.upload_part(name, &id, at as u32 + 1, part.clone()).await?);
    }
    // Through a row, as a resumed backup does.
    Ok((UploadId::from_raw(id.as_str()), uploaded))
}

/// Parts become one object; a part sent again counts as last sent; the upload is gone then.
pub async fn multipart_makes_one_object(subject: &Subject) -> Checked {
    let (store, name) = (&subject.store, key("backups/1/part.tar"));
    let whole = pattern(2 * PART + 100);
    let parts = [whole.slice(..PART), whole.slice(PART..2 * PART), whole.slice(2 * PART..)];
    let (id, mut uploaded) =
        upload(subject, &name, &[parts[0].clone(), pattern(PART).slice(1..), parts[2].clone()]).await?;
    assert_eq!(store.head(&name).await?, None, "not seen before it is complete");
    uploaded[1] = store.upload_part(&name, &id, 2, parts[1].clone()).await?;
    assert_eq!(store.complete_multipart(&name, &id, &uploaded).await?, PutOutcome::Created);
    // Its answer may have been lost.
    store.complete_multipart(&name, &id, &uploaded).await?;
    let head = store.head(&name).await?.expect("completed");
    assert_eq!((head.size, head.content_type.as_str()), (whole.len() as u64, "application/x-parts"));
    assert!(store.get(&name).await? == whole);
    let late = store.upload_part(&name, &id, 1, parts[2].clone()).await;
    assert!(matches!(late, Err(BlobError::UploadGone { .. })), "{late:?}");
    store.abort_multipart(&name, &id).await?;
    assert!(store.head(&name).await?.is_some(), "an abort after the end changes nothing");
    Ok(())
}

/// Completing never overwrites.
pub async fn multipart_respects_an_existing_object(subject: &Subject) -> Checked {
    let (store, name) = (&subject.store, key("backups/2/part.tar"));
    let (id, uploaded) = upload(subject, &name, &[Bytes::from_static(b"late")]).await?;
    store.put_if_absent(&name, b"early".to_vec().into(), "text/plain").await?;
    assert_eq!(store.complete_multipart(&name, &id, &uploaded).await?, PutOutcome::Existed);
    assert_eq!(&store.get(&name).await?[..], b"early");
    let open = store.stale_multiparts("backups/2/", Utc::now() + TimeDelta::minutes(5), 10).await?;
    assert_eq!(open, [], "the upload that lost is gone");
    Ok(())
}

/// Small parts, wrong tags, wrong order, no parts, unknown uploads.
pub async fn multipart_refuses_what_s3_refuses(subject: &Subject) -> Checked {
    let (store, name) = (&subject.store, key("backups/3/part.tar"));
    let (id, uploaded) = upload(subject, &name, &[pattern(100), pattern(100)]).await?;
    let wrong = |number: u32, etag: &str| vec![UploadedPart { number, etag: etag.to_owned() }];
    let mut lists = vec![
        ("wrong tag", wrong(1, "00000000000000000000000000000000")),
        ("hostile tag", wrong(1, "../about")),
        ("missing part", wrong(7, &uploaded[0].etag)),
        ("descending", vec![uploaded[1].clone(), uploaded[0].clone()]),
        ("doubled", vec![uploaded[0].clone(), uploaded[0].clone()]),
        ("number 0", wrong(0, &uploaded[0].etag)),
        ("no parts", Vec::new()),
    ];
    if subject.refuses_small_parts {
        lists.push(("small part", uploaded.clone()));
    }
    for (what, parts) in lists {
        let refused = store.complete_multipart(&name, &id, &parts).await;
        assert!(matches!(refused, Err(BlobError::Invalid(_))), "{what}: {refused:?}");
    }
    for number in [0, 10_001] {
        assert!(
            matches!(store.upload_part(&name, &id, number, pattern(1)).await, Err(BlobError::Invalid(_))),
            "part {number}"
        );
    }
    for unknown in ["nope", "../objects", "00000000-0000-0000-0000-000000000000"].map(UploadId::from_raw) {
        let refused = store.upload_part(&name, &unknown, 1, pattern(1)).await;
        assert!(matches!(refused, Err(BlobError::UploadGone { .. })), "{unknown:?}: {refused:?}");
        let refused = store.complete_multipart(&name, &unknown, &uploaded).await;
        assert!(matches!(refused, Err(BlobError::UploadGone { .. })), "{unknown:?}: {refused:?}");
        store.abort_multipart(&name, &unknown).await?;
    }
    assert_eq!(store.head(&name).await?, None);
    Ok(())
}

/// Open uploads are found by age and prefix, and an abort ends them.
pub async fn stale_uploads_are_found(subject: &Subject) -> Checked {
    let (store, name) = (&subject.store, key("backups/4/part.tar"));
    let (id, _) = upload(subject, &name, &[pattern(10)]).await?;
    let (later, earlier) = (Utc::now() + TimeDelta::minutes(5), Utc::now() - TimeDelta::minutes(5));
    let found = store.stale_multiparts("backups/", later, 10).await?;
    assert_eq!(found.iter().map(|upload| (&upload.key, &upload.id)).collect::<Vec<_>>(), [(&name, &id)]);
    assert_eq!(store.stale_multiparts("backups/", earlier, 10).await?, []);
    assert_eq!(store.stale_multiparts("other/", later, 10).await?, []);
    for _ in 0..2 {
        store.abort_multipart(&name, &id).await?;
    }
    assert_eq!(store.stale_multiparts("backups/", later, 10).await?, []);
    Ok(())
}

/// Above the threshold, from memory and from a file: same bytes, still put if absent, nothing left open.
pub async fn large_bodies_go_in_parts(subject: &Subject) -> Checked {
    let store = &subject.store;
    let body = pattern(usize::try_from(MULTIPART_THRESHOLD).unwrap_or(usize::MAX) + 12_345);
    let digest = Sha256::digest(&body);
    let path = std::env::temp_dir().join(format!("fonds-contract-{}", uuid::Uuid::new_v4()));
    tokio::fs::write(&path, &body).await?;
    let bodies =
        [("large/bytes.warc.gz", PutBody::Bytes(body.clone())), ("large/file.warc.gz", PutBody::File(path.clone()))];
    let mut outcomes = Vec::new();
    for (name, body) in &bodies {
        for _ in 0..2 {
            outcomes.push(store.put_if_absent(&key(name), body.clone(), "application/warc").await);
        }
    }
    tokio::fs::remove_file(&path).await?;
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_eq!(outcomes, [PutOutcome::Created, PutOutcome::Existed, PutOutcome::Created, PutOutcome::Existed]);
    for (name, _) in bodies {
        let head = store.head(&key(name)).await?.expect("put");
        assert_eq!((head.size, head.content_type.as_str()), (body.len() as u64, "application/warc"), "{name}");
        let hash = store
            .stream(&key(name), None)
            .await?
            .try_fold(Sha256::new(), |hash, piece| async move { Ok(hash.chain_update(&piece)) });
        assert_eq!(hash.await?.finalize(), digest, "{name}");
        let tail = store.get_range(&key(name), MULTIPART_THRESHOLD..u64::MAX).await?;
        assert!(tail == body.slice(MULTIPART_THRESHOLD as usize..), "{name}");
    }
    let capped = store.get(&key("large/file.warc.gz")).await;
    assert!(matches!(capped, Err(BlobError::TooLarge { .. })));
    let open = store.stale_multiparts("large/", Utc::now() + TimeDelta::minutes(5), 10).await?;
    let open: Vec<_> = stream::iter(open).map(|upload| upload.key).collect().await;
    assert_eq!(open, Vec::<BlobKey>::new(), "the put that lost left no parts");
    Ok(())
}
