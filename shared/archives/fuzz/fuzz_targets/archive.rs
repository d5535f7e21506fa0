//! Whatever it is, read in one pass. `cargo fuzz run archive -- -rss_limit_mb=512`
#![no_main]

use fonds_archives::{ArchiveReader, Budget, Flow, Limits, SNIFF_BYTES, sniff};
use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, sink};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        entries: 1_000,
        member_bytes: 4 << 20,
        total_bytes: 8 << 20,
        ratio_floor: 1 << 20,
        dictionary_bytes: 4 << 20,
        directory_bytes: 1 << 20,
        ..Limits::default()
    };
    let Some(kind) = sniff(&bytes[..bytes.len().min(SNIFF_BYTES)]) else { return };
    let Ok(mut reader) = ArchiveReader::open(Cursor::new(bytes.to_vec()), kind, &limits) else { return };
    let budget = Budget::new(limits);
    let _ = reader.visit(.., &budget, &mut |_, body| {
        let _ = body.copy_to(&mut sink());
        Flow::Continue
    });
});
