//! The contract over memory, and the decorators over the contract's simplest store.

use std::sync::Arc;

use fonds_blobs::contract::{LocalClient, Subject};
use fonds_blobs::memory::MemoryBlobs;
use fonds_blobs::{BlobError, BlobKey, BlobStore, Counting, Op, PutOutcome, Unreliable};

async fn memory() -> Option<Subject> {
    let blobs = MemoryBlobs::new();
    let signer = blobs.signer().clone();
    let store: Arc<dyn BlobStore> = Arc::new(blobs);
    Some(Subject {
        client: Box::new(LocalClient { store: store.clone(), signer, disk: None }),
        store,
        keep: Box::new(()),
        refuses_small_parts: true,
    })
}

fonds_blobs::blob_contract!(contract, super::memory);

/// A decorator is a store like any other.
async fn counted() -> Option<Subject> {
    let subject = memory().await?;
    let store: Arc<dyn BlobStore> = Arc::new(Counting::new(Arc::new(Unreliable::new(subject.store, 0))));
    Some(Subject { store, ..subject })
}

fonds_blobs::blob_contract!(decorated, super::counted);

#[tokio::test]
async fn unreliable_fails_first_on_every_key_and_operation() {
    let inner = Arc::new(MemoryBlobs::new());
    let counting = Arc::new(Counting::new(inner.clone()));
    let store = Unreliable::new(counting.clone(), 2);
    for name in ["a", "b"] {
        let key = BlobKey::parse(name).unwrap();
        for _ in 0..2 {
            let error = store.put_if_absent(&key, b"x".to_vec().into(), "text/plain").await.unwrap_err();
            assert!(matches!(error, BlobError::Unavailable { .. }) && !error.is_permanent());
        }
        assert_eq!(store.put_if_absent(&key, b"x".to_vec().into(), "text/plain").await.unwrap(), PutOutcome::Created);
        assert!(store.get(&key).await.is_err() && store.get(&key).await.is_err());
        assert_eq!(&store.get(&key).await.unwrap()[..], b"x");
    }
    assert_eq!((counting.count(Op::Put), counting.count(Op::Get), counting.count(Op::Head)), (2, 2, 0));
    assert_eq!(inner.keys().len(), 2);
}
