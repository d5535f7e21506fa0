use fonds_archives::ArchiveKind;
use std::io::Write;

/// A tar in the making.
#[derive(Clone, Default)]
pub(crate) struct Tar(pub(crate) Vec<u8>);

impl Tar {
    /// A header with these fields, and its body.
    pub(crate) fn entry(mut self, kind: u8, name: &[u8], body: &[u8]) -> Self {
        self.header(kind, name, &format!("{:011o}\0", body.len()));
        self.body(body);
        self
    }

    /// A header alone, with a size as it stands in the field.
    pub(crate) fn header(&mut self, kind: u8, name: &[u8], size: &str) {
        let mut block = [0_u8; 512];
        block[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
        block[100..108].copy_from_slice(b"0000644\0");
        block[124..136].copy_from_slice(size.as_bytes());
        block[156] = kind;
        block[257..265].copy_from_slice(b"ustar\x0000");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend(block);
    }

    fn body(&mut self, body: &[u8]) {
        self.0.extend(body);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
    }

    pub(crate) fn file(self, name: &str, body: impl AsRef<[u8]>) -> Self {
        self.entry(b'0', name.as_bytes(), body.as_ref())
    }

    pub(crate) fn gnu_long(self, name: &[u8], body: &[u8]) -> Self {
        let long = [name, b"\0"].concat();
        self.entry(b'L', b"././@LongLink", &long).entry(b'0', name, body)
    }

    pub(crate) fn pax(self, records: &[(&str, &str)], name: &str, body: &[u8]) -> Self {
        let record = |(key, value): &(&str, &str)| {
            let rest = format!(" {key}={value}\n");
            // The length counts its own digits.
            let len = (1..).find(|len| format!("{len}{rest}").len() == *len).unwrap();
            format!("{len}{rest}")
        };
        let records: String = records.iter().map(record).collect();
        self.entry(b'x', b"PaxHeaders/x", records.as_bytes()).entry(b'0', name.as_bytes(), body)
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Bytes in what a tar of this kind is wrapped in.
pub(crate) fn wrapped(kind: ArchiveKind, bytes: &[u8]) -> Vec<u8> {
    match kind {
        ArchiveKind::TarGzip => gzip(bytes),
        ArchiveKind::TarBzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        ArchiveKind::TarZstd => zstd::encode_all(bytes, 3).unwrap(),
        ArchiveKind::TarXz => xz_stored(bytes),
        _ => bytes.to_vec(),
    }
}

/// xz whose LZMA2 chunks are not compressed (The .xz File Format 1.2.0).
fn xz_stored(bytes: &[u8]) -> Vec<u8> {
    let crc = |bytes: &[u8]| crc32fast::hash(bytes).to_le_bytes();
    let flags = [0, 1];
    let mut out = [b"\xfd7zXZ\0".as_slice(), &flags, &crc(&flags)].concat();
    let block_header = [2, 0, 0x21, 1, 8, 0, 0, 0];
    let mut block = [&block_header[..], &crc(&block_header)].concat();
    for (i, chunk) in bytes.chunks(1 << 16).enumerate() {
        block.push(if i == 0 { 1 } else { 2 });
        block.extend((chunk.len() as u16).wrapping_sub(1).to_be_bytes());
        block.extend(chunk);
    }
    block.push(0);
    let unpadded = block.len() + 4;
    block.resize(block.len().next_multiple_of(4), 0);
    block.extend(crc(bytes));
    out.extend(block);
    let mut index = vec![0, 1];
    for mut n in [unpadded, bytes.len()] {
        while n >= 0x80 {
            index.push(n as u8 | 0x80);
            n >>= 7;
        }
        index.push(n as u8);
    }
    index.resize(index.len().next_multiple_of(4), 0);
    index.extend(crc(&index));
    let backward = (index.len() as u32 / 4 - 1).to_le_bytes();
    let footer = [&backward[..], &flags].concat();
    out.extend(&index);
    out.extend(crc(&footer));
    out.extend(footer);
    out.extend(b"YZ");
    out
}
