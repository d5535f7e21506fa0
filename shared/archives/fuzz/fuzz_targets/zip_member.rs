//! One member: the first two bytes choose method and flags, the rest is what it is packed in. `cargo fuzz run zip_member`
#![no_main]

use fonds_archives::zip::{Entry, Method, read_member};
use fonds_archives::{Budget, Limits, Name};
use libfuzzer_sys::fuzz_target;
use std::io::sink;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[method, flags], packed)) = bytes.split_at_checked(2).map(|(a, b)| (<&[u8; 2]>::try_from(a).unwrap(), b)) else {
        return;
    };
    let method = [0_u16, 8, 9, 12, 14, 93, 95][usize::from(method) % 7];
    let flags = u16::from(flags & 2);
    let len = packed.len() as u64;
    let header = [
        b"PK\x03\x04\x14\0".as_slice(),
        &(flags | 8).to_le_bytes(),
        &method.to_le_bytes(),
        &[0; 16],
        &[1, 0, 0, 0],
        b"a",
        packed,
    ]
    .concat();
    let entry = Entry {
        ordinal: 0,
        name: Name::certain(b"a", false).unwrap(),
        header_offset: 0,
        end: header.len() as u64,
        compressed: len,
        size: 1 << 20,
        crc32: 0,
        method: Method(method),
        flags,
        is_dir: false,
        problem: None,
    };
    let limits = Limits { dictionary_bytes: 4 << 20, ratio_floor: 1 << 20, ..Limits::default() };
    let _ = read_member(&entry, &mut header.as_slice(), &Budget::new(limits), &mut sink());
});
