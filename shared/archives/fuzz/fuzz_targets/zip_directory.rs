//! The end records and the directory, by ranges. `cargo fuzz run zip_directory`
#![no_main]

use fonds_archives::Limits;
use fonds_archives::zip::{ChunkLimits, DirectoryReader, plan_chunks};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = DirectoryReader::new(bytes.len() as u64, &Limits::default());
    while let Some(range) = reader.wants() {
        if reader.feed(range.start, &bytes[range.start as usize..range.end as usize]).is_err() {
            return;
        }
    }
    if let Ok(directory) = reader.finish() {
        let chunks = plan_chunks(&directory.entries, ChunkLimits::default());
        assert!(chunks.windows(2).all(|pair| pair[0].bytes.end <= pair[1].bytes.start));
    }
});
