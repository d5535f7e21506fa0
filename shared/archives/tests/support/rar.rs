fn vint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn block5(body: Vec<u8>) -> Vec<u8> {
    let sized = [vint(body.len() as u64), body].concat();
    [&crc32fast::hash(&sized).to_le_bytes()[..], &sized].concat()
}

/// A rar 5 of stored members. Archive flags: 1 volume, 4 solid.
pub(crate) fn rar5(archive_flags: u64, members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"Rar!\x1a\x07\x01\0".to_vec();
    out.extend(block5([vint(1), vint(0), vint(archive_flags)].concat()));
    for (name, body) in members {
        let header = [
            vint(2),
            vint(2),
            vint(body.len() as u64),
            vint(4),
            vint(body.len() as u64),
            vint(0o100_644),
            crc32fast::hash(body).to_le_bytes().to_vec(),
            vint(0),
            vint(1),
            vint(name.len() as u64),
            name.as_bytes().to_vec(),
        ];
        out.extend(block5(header.concat()));
        out.extend(*body);
    }
    out.extend(block5([vint(5), vint(0), vint(0)].concat()));
    out
}

fn block4(kind: u8, flags: u16, rest: &[u8]) -> Vec<u8> {
    let size = (7 + rest.len()) as u16;
    let body = [&[kind][..], &flags.to_le_bytes(), &size.to_le_bytes(), rest].concat();
    [&(crc32fast::hash(&body) as u16).to_le_bytes()[..], &body].concat()
}

/// A rar 4 of stored members, with names as raw bytes. Main flags: 1 volume, 8 solid, 0x80 encrypted headers.
pub(crate) fn rar4(main_flags: u16, members: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = b"Rar!\x1a\x07\0".to_vec();
    out.extend(block4(0x73, main_flags, &[0; 6]));
    for (name, body) in members {
        let len = (body.len() as u32).to_le_bytes();
        let rest = [
            &len[..],
            &len,
            &[3],
            &crc32fast::hash(body).to_le_bytes(),
            &[0; 4],
            &[20, 0x30],
            &(name.len() as u16).to_le_bytes(),
            &0o100_644_u32.to_le_bytes(),
            name,
        ];
        out.extend(block4(0x74, 0x8000, &rest.concat()));
        out.extend(*body);
    }
    out.extend(block4(0x7b, 0x4000, &[]));
    out
}
