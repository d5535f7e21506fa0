/// How the blocks are packed.
#[derive(Clone, Copy)]
pub(crate) enum Coder {
    Copy,
    /// The block is the packed sample.
    Lzma2Sample,
    /// 7z's AES, with whatever inside.
    Aes,
    Unknown,
}

fn number(n: u64) -> Vec<u8> {
    if n < 0x80 { vec![n as u8] } else { [&[0xff][..], &n.to_le_bytes()].concat() }
}

fn coder(coder: Coder) -> Vec<u8> {
    match coder {
        Coder::Copy => vec![1, 1, 0],
        Coder::Lzma2Sample => vec![1, 0x21, 0x21, 1, 8],
        Coder::Aes => vec![1, 0x24, 6, 0xf1, 7, 1, 2, 0x13, 0],
        Coder::Unknown => vec![1, 3, 0x42, 0x42, 0x42],
    }
}

/// A 7z of these blocks of members; a member without a body has no stream. The header is plain.
pub(crate) fn seven_z(packing: Coder, blocks: &[&[(&str, &[u8])]]) -> Vec<u8> {
    let with_body = |block: &&[(&str, &[u8])]| -> Vec<Vec<u8>> {
        block.iter().map(|(_, body)| body.to_vec()).filter(|body| !body.is_empty()).collect()
    };
    let bodies: Vec<Vec<Vec<u8>>> = blocks.iter().map(with_body).collect();
    let packed: Vec<Vec<u8>> = bodies
        .iter()
        .map(|block| if matches!(packing, Coder::Lzma2Sample) { super::sample_lzma2() } else { block.concat() })
        .collect();
    let count = number(bodies.len() as u64);
    let mut header = vec![1, 4, 6, 0];
    header.extend(&count);
    header.push(9);
    packed.iter().for_each(|p| header.extend(number(p.len() as u64)));
    header.extend([0, 7, 0x0b]);
    header.extend(&count);
    header.push(0);
    bodies.iter().for_each(|_| header.extend(coder(packing)));
    header.push(0x0c);
    bodies.iter().for_each(|block| header.extend(number(block.iter().map(|b| b.len() as u64).sum())));
    header.extend([0, 8, 0x0d]);
    bodies.iter().for_each(|block| header.extend(number(block.len() as u64)));
    header.push(9);
    for block in &bodies {
        block.iter().take(block.len().saturating_sub(1)).for_each(|b| header.extend(number(b.len() as u64)));
    }
    header.extend([0x0a, 1]);
    bodies.iter().flatten().for_each(|b| header.extend(crc32fast::hash(b).to_le_bytes()));
    header.extend([0, 0, 5]);
    let files: Vec<&(&str, &[u8])> = blocks.iter().copied().flatten().collect();
    header.extend(number(files.len() as u64));
    if files.iter().any(|(_, body)| body.is_empty()) {
        let mut bits = vec![0_u8; files.len().div_ceil(8)];
        for (i, _) in files.iter().enumerate().filter(|(_, (_, body))| body.is_empty()) {
            bits[i / 8] |= 0x80 >> (i % 8);
        }
        header.push(0x0e);
        header.extend(number(bits.len() as u64));
        header.extend(bits);
    }
    let names: Vec<u8> =
        files.iter().flat_map(|(name, _)| name.encode_utf16().chain([0])).flat_map(u16::to_le_bytes).collect();
    header.push(0x11);
    header.extend(number(names.len() as u64 + 1));
    header.push(0);
    header.extend(names);
    header.extend([0, 0]);
    let start = [
        &(packed.iter().map(Vec::len).sum::<usize>() as u64).to_le_bytes()[..],
        &(header.len() as u64).to_le_bytes(),
        &crc32fast::hash(&header).to_le_bytes(),
    ]
    .concat();
    [b"7z\xbc\xaf\x27\x1c\0\x04", &crc32fast::hash(&start).to_le_bytes()[..], &start, &packed.concat(), &header]
        .concat()
}
