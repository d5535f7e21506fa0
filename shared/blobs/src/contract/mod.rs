//! What every backend must do, as checks run over each of them: `blob_contract!(name, make)` in a test file makes one
//! test a check, with `make` an async function giving `Option<Subject>` (`None` where the backend cannot run here).

mod client;
mod listing;
mod multipart;
mod objects;
mod signed;

use std::sync::Arc;

use bytes::Bytes;

pub use client::{Answer, Client, LocalClient};
pub use listing::{
    deletes_are_batched_and_repeatable, listing_goes_on_after_a_deleted_key,
    listing_has_s3s_order_for_every_prefix_and_limit,
};
pub use multipart::{
    large_bodies_go_in_parts, multipart_makes_one_object, multipart_refuses_what_s3_refuses,
    multipart_respects_an_existing_object, stale_uploads_are_found,
};
pub use objects::{
    content_addressed_bodies_are_stored, etags_pin_a_version, files_are_copied_not_moved, first_of_many_writers_wins,
    gets_are_capped, missing_objects_are_not_found, names_of_any_script_are_kept, put_get_head,
    ranges_are_clipped_or_refused, replace_replaces, second_put_changes_nothing, streams_give_every_byte,
};
pub use signed::{signed_gets_answer_as_signed, signed_puts_take_what_was_signed, signing_refuses_nonsense};

use crate::{BlobError, BlobKey, BlobStore};

/// A store under test and something that makes its signed requests.
pub struct Subject {
    /// An empty store.
    pub store: Arc<dyn BlobStore>,
    /// Makes signed requests.
    pub client: Box<dyn Client>,
    /// Keeps what the store lives on (a temporary folder) until the check is over.
    pub keep: Box<dyn std::any::Any + Send>,
    /// Whether it refuses to complete an upload with a part that is too small, as S3 does and an emulator may not.
    pub refuses_small_parts: bool,
}

/// What a check gives: store errors that it did not expect end it.
pub type Checked = Result<(), BlobError>;

/// One test a check.
#[macro_export]
macro_rules! blob_contract {
    ($name:ident, $make:path) => {
        $crate::blob_contract!(@ $name, $make,
            put_get_head, second_put_changes_nothing, first_of_many_writers_wins, files_are_copied_not_moved, replace_replaces,
            ranges_are_clipped_or_refused, gets_are_capped, missing_objects_are_not_found, etags_pin_a_version, streams_give_every_byte,
            names_of_any_script_are_kept, content_addressed_bodies_are_stored, deletes_are_batched_and_repeatable,
            listing_has_s3s_order_for_every_prefix_and_limit, listing_goes_on_after_a_deleted_key, multipart_makes_one_object,
            multipart_respects_an_existing_object, multipart_refuses_what_s3_refuses, stale_uploads_are_found, large_bodies_go_in_parts,
            signed_gets_answer_as_signed, signed_puts_take_what_was_signed, signing_refuses_nonsense);
    };
    (@ $name:ident, $make:path, $($check:ident),+) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let Some(subject) = $make().await else { return };
                $crate::contract::$check(&subject).await.expect("the store works");
            })+
        }
    };
}

fn key(name: &str) -> BlobKey {
    BlobKey::parse(name).expect("a key of the checks")
}

/// Bytes that differ at every offset within any window that matters.
fn pattern(length: usize) -> Bytes {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
