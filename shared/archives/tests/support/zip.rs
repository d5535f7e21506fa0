use std::io::Write;

/// A member, with what its two headers say of it.
#[derive(Clone)]
pub(crate) struct Zipped {
    pub(crate) name: Vec<u8>,
    pub(crate) local_name: Option<Vec<u8>>,
    pub(crate) method: u16,
    pub(crate) local_method: Option<u16>,
    pub(crate) flags: u16,
    pub(crate) packed: Vec<u8>,
    pub(crate) size: u64,
    pub(crate) compressed: Option<u64>,
    pub(crate) crc32: u32,
    /// Sizes and checksum in the local header, where they differ.
    pub(crate) local: Option<(u32, u32, u32)>,
    pub(crate) made_by: u8,
    pub(crate) mode: u32,
    pub(crate) disk: u16,
    pub(crate) extra: Vec<u8>,
    pub(crate) local_extra: Vec<u8>,
    pub(crate) zip64: bool,
    /// Another place for the header than where it is.
    pub(crate) offset: Option<u64>,
}

impl Zipped {
    pub(crate) fn packed(name: impl AsRef<[u8]>, method: u16, data: &[u8], packed: Vec<u8>) -> Self {
        Self {
            name: name.as_ref().to_vec(),
            local_name: None,
            method,
            local_method: None,
            flags: 0,
            packed,
            size: data.len() as u64,
            compressed: None,
            crc32: crc32fast::hash(data),
            local: None,
            made_by: 3,
            mode: 0o100_644,
            disk: 0,
            extra: Vec::new(),
            local_extra: Vec::new(),
            zip64: false,
            offset: None,
        }
    }

    pub(crate) fn stored(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Self {
        Self::packed(name, 0, data.as_ref(), data.as_ref().to_vec())
    }

    pub(crate) fn deflated(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Self {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(data.as_ref()).unwrap();
        Self::packed(name, 8, data.as_ref(), encoder.finish().unwrap())
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn local_header(&self) -> Vec<u8> {
        let name = self.local_name.as_ref().unwrap_or(&self.name);
        let described = self.flags & 8 != 0;
        let compressed = self.compressed.unwrap_or(self.packed.len() as u64);
        let (crc, packed, size) = match self.local {
            Some(local) => local,
            None if described => (0, 0, 0),
            None if self.zip64 => (self.crc32, u32::MAX, u32::MAX),
            None => (self.crc32, compressed as u32, self.size as u32),
        };
        let mut extra = self.local_extra.clone();
        if self.zip64 && !described {
            extra = [&[1, 0, 16, 0][..], &self.size.to_le_bytes(), &compressed.to_le_bytes(), &extra].concat();
        }
        [
            b"PK\x03\x04\x14\0".as_slice(),
            &self.flags.to_le_bytes(),
            &self.local_method.unwrap_or(self.method).to_le_bytes(),
            &[0; 4],
            &crc.to_le_bytes(),
            &packed.to_le_bytes(),
            &size.to_le_bytes(),
            &(name.len() as u16).to_le_bytes(),
            &(extra.len() as u16).to_le_bytes(),
            name,
            &extra,
        ]
        .concat()
    }

    fn record(&self, offset: u64) -> Vec<u8> {
        let compressed = self.compressed.unwrap_or(self.packed.len() as u64);
        let offset = self.offset.unwrap_or(offset);
        let mut extra = self.extra.clone();
        let short = |value: u64| if self.zip64 { u32::MAX } else { value as u32 };
        if self.zip64 {
            let wide = [self.size, compressed, offset].map(u64::to_le_bytes).concat();
            extra = [&[1, 0, 24, 0][..], &wide, &extra].concat();
        }
        [
            b"PK\x01\x02\x14".as_slice(),
            &[self.made_by, 20, 0],
            &self.flags.to_le_bytes(),
            &self.method.to_le_bytes(),
            &[0; 4],
            &self.crc32.to_le_bytes(),
            &short(compressed).to_le_bytes(),
            &short(self.size).to_le_bytes(),
            &(self.name.len() as u16).to_le_bytes(),
            &(extra.len() as u16).to_le_bytes(),
            &[0, 0],
            &self.disk.to_le_bytes(),
            &[0, 0],
            &(self.mode << 16).to_le_bytes(),
            &short(offset).to_le_bytes(),
            &self.name,
            &extra,
        ]
        .concat()
    }
}

/// What the end records say.
#[derive(Clone, Default)]
pub(crate) struct End {
    pub(crate) comment: Vec<u8>,
    pub(crate) zip64: bool,
    pub(crate) count: Option<u64>,
    pub(crate) disk: u16,
    /// Bytes before the archive, and whether offsets count them.
    pub(crate) prepended: Vec<u8>,
    pub(crate) absolute: bool,
    pub(crate) size_off_by: i64,
}

pub(crate) fn zip(members: &[Zipped]) -> Vec<u8> {
    zip_with(members, &End::default())
}

pub(crate) fn zip_with(members: &[Zipped], end: &End) -> Vec<u8> {
    let mut bytes = end.prepended.clone();
    let base = if end.absolute { 0 } else { end.prepended.len() as u64 };
    let mut directory = Vec::new();
    for member in members {
        directory.extend(member.record(bytes.len() as u64 - base));
        bytes.extend(member.local_header());
        bytes.extend(&member.packed);
        if member.flags & 8 != 0 {
            bytes.extend(b"PK\x07\x08");
            bytes.extend(member.crc32.to_le_bytes());
            bytes.extend((member.packed.len() as u32).to_le_bytes());
            bytes.extend((member.size as u32).to_le_bytes());
        }
    }
    let offset = bytes.len() as u64 - base;
    let size = (directory.len() as i64 + end.size_off_by) as u64;
    let count = end.count.unwrap_or(members.len() as u64);
    bytes.extend(&directory);
    if end.zip64 {
        let at = bytes.len() as u64 - base;
        bytes.extend([b"PK\x06\x06".as_slice(), &44_u64.to_le_bytes(), &[45, 0, 45, 0], &[0; 8]].concat());
        bytes.extend([count, count, size, offset].map(u64::to_le_bytes).concat());
        bytes.extend([b"PK\x06\x07".as_slice(), &[0; 4], &at.to_le_bytes(), &1_u32.to_le_bytes()].concat());
    }
    let (short_count, short_size, short_offset) =
        if end.zip64 { (u16::MAX, u32::MAX, u32::MAX) } else { (count as u16, size as u32, offset as u32) };
    bytes.extend(b"PK\x05\x06");
    bytes.extend(end.disk.to_le_bytes());
    bytes.extend(end.disk.to_le_bytes());
    bytes.extend(short_count.to_le_bytes());
    bytes.extend(short_count.to_le_bytes());
    bytes.extend(short_size.to_le_bytes());
    bytes.extend(short_offset.to_le_bytes());
    bytes.extend((end.comment.len() as u16).to_le_bytes());
    bytes.extend(&end.comment);
    bytes
}
