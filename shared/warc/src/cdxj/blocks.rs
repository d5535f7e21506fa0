//! Compressed indexes: gzip blocks of lines and a small second index of the blocks (`index.cdx.gz` + `index.idx`).

use std::ops::Range;

use libdeflater::{CompressionLvl, Compressor};

use crate::digest::Sha256Digest;

/// A compressed index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressedIndex {
    /// `index.cdx.gz`: gzip members one after the other.
    pub data: Vec<u8>,
    /// `index.idx`: `!meta` and one line a member, with the key of its first line.
    pub idx: String,
}

/// Compresses a sorted index in members of `lines_per_block` lines. `data_name` is what the data will be called, without folder.
#[must_use]
pub fn compress(text: &str, lines_per_block: usize, data_name: &str) -> CompressedIndex {
    let mut compressor = Compressor::new(CompressionLvl::default());
    let mut data = Vec::new();
    let mut idx = format!("!meta 0 {{\"format\": \"cdxj-gzip-1.0\", \"filename\": \"{data_name}\"}}\n");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for block in lines.chunks(lines_per_block.max(1)) {
        let raw = block.concat();
        let mut member = vec![0; compressor.gzip_compress_bound(raw.len())];
        // The buffer has the size the library asks for, so this cannot fail.
        let length = compressor.gzip_compress(raw.as_bytes(), &mut member).unwrap_or(0);
        member.truncate(length);
        let key = block.first().and_then(|line| line.split('{').next()).unwrap_or_default().trim();
        let digest = Sha256Digest::of(&member);
        idx.push_str(&format!(
            "{key} {{\"offset\": {}, \"length\": {length}, \"digest\": \"{digest}\"}}\n",
            data.len()
        ));
        data.extend_from_slice(&member);
    }
    CompressedIndex { data, idx }
}

/// Byte ranges of the blocks that may hold lines of `urlkey`, by the second index. A key may begin in the block before the one that starts with it.
#[must_use]
pub fn block_ranges(idx: &str, urlkey: &str) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    let mut before = None;
    for line in idx.lines().filter(|line| !line.starts_with('!')) {
        let (Some((key, json)), true) = (line.split_once(" {"), line.ends_with('}')) else { continue };
        let Some(range) = block_range(json) else { continue };
        let first_key = key.split(' ').next().unwrap_or_default();
        if first_key < urlkey {
            before = Some(range);
        } else if first_key == urlkey {
            ranges.push(range);
        } else {
            break;
        }
    }
    before.into_iter().chain(ranges).collect()
}

fn block_range(json: &str) -> Option<Range<u64>> {
    let value: serde_json::Value = serde_json::from_str(&format!("{{{json}")).ok()?;
    let offset = value.get("offset")?.as_u64()?;
    Some(offset..offset.checked_add(value.get("length")?.as_u64()?)?)
}
