//! Signed requests.

use std::time::Duration;

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use sha2::{Digest, Sha256};

use super::{Checked, Subject, key, pattern};
use crate::{Disposition, PresignGet, PresignPut};

const MINUTE: Duration = Duration::from_secs(60);

/// Type, disposition and range are the signer's to choose.
pub async fn signed_gets_answer_as_signed(subject: &Subject) -> Checked {
    let (store, name, body) = (&subject.store, key("snapshots/1/2/Ü & 100%.wacz"), pattern(1000));
    store.put_if_absent(&name, body.clone().into(), "application/wacz+zip").await?;

    let plain = store.presign_get(&name, MINUTE, PresignGet::default()).await?;
    assert!(plain.expires > Utc::now() + TimeDelta::seconds(50) && plain.expires < Utc::now() + TimeDelta::seconds(70));
    let answer = subject.client.send(&plain, Bytes::new()).await;
    assert_eq!((answer.status, answer.headers["content-type"].as_str()), (200, "application/wacz+zip"));
    assert!(answer.body == body);

    let shaped = PresignGet {
        content_type: Some("text/html; charset=utf-8".to_owned()),
        disposition: Some(Disposition::Attachment("ü.html".to_owned())),
        range: Some(100..200),
    };
    let shaped = store.presign_get(&name, MINUTE, shaped).await?;
    let answer = subject.client.send(&shaped, Bytes::new()).await;
    assert_eq!(answer.status, 206, "{:?}", answer.body);
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    assert_eq!(
        answer.headers["content-disposition"],
        "attachment; filename=\"_.html\"; filename*=UTF-8''%C3%BC%2Ehtml"
    );
    assert!(answer.body == body.slice(100..200));

    let missing = store.presign_get(&key("nothing"), MINUTE, PresignGet::default()).await?;
    assert_eq!(subject.client.send(&missing, Bytes::new()).await.status, 404);
    let mut moved = plain.clone();
    moved.url.set_path(&moved.url.path().replace("snapshots/1", "snapshots/2"));
    assert_eq!(subject.client.send(&moved, Bytes::new()).await.status, 403, "another key under the same signature");
    Ok(())
}

/// Once, and only the body that was announced.
pub async fn signed_puts_take_what_was_signed(subject: &Subject) -> Checked {
    let (store, body) = (&subject.store, pattern(5000));
    let sha256: [u8; 32] = Sha256::digest(&body).into();
    let options = |sha256| PresignPut { content_length: 5000, content_type: "image/png".to_owned(), sha256 };
    for (name, sha256) in [("uploads/1/a.bin", None), ("uploads/1/b.png", Some(sha256))] {
        let put = store.presign_put(&key(name), MINUTE, options(sha256)).await?;
        let answer = subject.client.send(&put, body.clone()).await;
        assert_eq!(answer.status, 200, "{name}: {:?}", answer.body);
        assert!(store.get(&key(name)).await? == body);
        assert_eq!(store.head(&key(name)).await?.expect("uploaded").content_type, "image/png");
        assert_eq!(subject.client.send(&put, body.clone()).await.status, 412, "{name} again");
    }
    let wrong = [
        ("uploads/2/short", body.slice(1..), None),
        ("uploads/2/other", body.slice(..).iter().rev().copied().collect(), Some(sha256)),
    ];
    for (name, body, sha256) in wrong {
        let put = store.presign_put(&key(name), MINUTE, options(sha256)).await?;
        let status = subject.client.send(&put, body).await.status;
        assert!((400..500).contains(&status), "{name}: {status}");
        assert_eq!(store.head(&key(name)).await?, None, "{name}");
    }
    Ok(())
}

/// Lives and ranges that no backend signs.
pub async fn signing_refuses_nonsense(subject: &Subject) -> Checked {
    let name = key("x");
    for ttl in [Duration::ZERO, Duration::from_millis(10), Duration::from_secs(8 * 24 * 3600)] {
        let refused = subject.store.presign_get(&name, ttl, PresignGet::default()).await;
        assert!(refused.is_err_and(|error| error.is_permanent()), "{ttl:?}");
    }
    let empty = PresignGet { range: Some(5..5), ..PresignGet::default() };
    assert!(subject.store.presign_get(&name, MINUTE, empty).await.is_err_and(|error| error.is_permanent()));
    Ok(())
}
