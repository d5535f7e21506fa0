//! Names: decoded, judged, cleaned. `cargo fuzz run names`
#![no_main]

use fonds_archives::names::{Guess, Name, member_path};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut guess = Guess::default();
    bytes.split(|b| *b == b'\n').for_each(|raw| guess.add(raw));
    for raw in bytes.split(|b| *b == b'\n') {
        let name = Name::new(raw, false, guess.encoding());
        assert_eq!(name.raw, raw);
        if let Ok(path) = member_path(&name) {
            assert!(path.split('/').all(|component| component != "..") && !path.starts_with('/'));
        }
    }
});
