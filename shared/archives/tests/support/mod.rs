//! Archives made by hand, byte by byte, so that every field can lie; and ways to read them as the import does.

mod rar;
mod read;
mod sevenz;
mod tar;
mod zip;

pub(crate) use rar::{rar4, rar5};
pub(crate) use read::{Outcome, by_chunks, codes, corpora, directory, read_all, read_range, texts};
pub(crate) use sevenz::{Coder, seven_z};
pub(crate) use tar::{Tar, gzip, wrapped};
pub(crate) use zip::{End, Zipped, zip, zip_with};

/// What the packed samples below unpack to.
pub(crate) fn sample() -> Vec<u8> {
    b"fonds keeps pages for good. ".repeat(400)
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// The sample as a zip's LZMA member: version, properties, a stream that ends with its marker.
pub(crate) fn sample_lzma() -> Vec<u8> {
    hex(concat!(
        "091405005d0000010000331bca185aceb1f8c7e8d497ce863330dcd45c50a3667e4cbe4a97c4ac0f07e7a968370ea239cfabf9e81ea6dbe0",
        "29351e943b33b2fe9a4c7cfcef2a39c653ed1dc32961226e86dc98ffffeed66800"
    ))
}

/// The sample as raw LZMA2 with a dictionary of 64 KiB.
pub(crate) fn sample_lzma2() -> Vec<u8> {
    hex(concat!(
        "e02bbf004a5d00331bca185aceb1f8c7e8d497ce863330dcd45c50a3667e4cbe4a97c4ac0f07e7a968370ea239cfabf9e81ea6dbe029351e",
        "943b33b2fe9a4c7cfcef2a39c653ed1dc32961226e4185cd0000"
    ))
}

/// The sample as xz; with a dictionary of 64 KiB, or of 256 MiB.
pub(crate) fn sample_xz(large_dictionary: bool) -> Vec<u8> {
    let header = if large_dictionary { "0200210120000000" } else { "0200210108000000" };
    let check = if large_dictionary { "0988a576" } else { "d80f2313" };
    let rest = "000097809b5fe7b5b714000166c0570000005ae737a2b1c467fb020000000004595a";
    [hex("fd377a585a000004e6d6b446"), hex(header), hex(check), sample_lzma2(), hex(rest)].concat()
}
