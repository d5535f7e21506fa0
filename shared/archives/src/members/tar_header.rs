//! tar headers (POSIX.1-2017 pax and ustar, GNU tar's extensions).

use crate::error::{ArchiveError, Problem};

/// Everything in a tar comes in blocks of this.
pub(crate) const BLOCK: usize = 512;

/// What a header stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File,
    Dir,
    Link,
    Other,
    /// A file stored with holes, by GNU tar's own header.
    Sparse,
    /// The rest of a file that began in another volume.
    Continued,
    /// GNU: the name of the next header, longer than 100 bytes.
    LongName,
    /// pax records for the next header.
    Pax,
    /// What belongs to no member: global pax records, volume labels, long link names.
    Skipped,
}

#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) entry: Entry,
    pub(super) name: Vec<u8>,
    /// Bytes of body that follow.
    pub(super) size: u64,
    /// GNU sparse headers go on in the next block.
    pub(super) extended: bool,
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|b| *b == 0).next().unwrap_or_default()
}

/// A number in octal, or in GNU's base 256. `None` for anything else, and for negative ones.
fn number(field: &[u8]) -> Option<u64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        let start = u64::from(first & 0x7f);
        return rest.iter().try_fold(start, |n, b| n.checked_mul(256)?.checked_add(u64::from(*b)));
    }
    let digits = text(field).trim_ascii();
    digits.iter().try_fold(0_u64, |n, b| match b {
        b'0'..=b'7' => n.checked_mul(8)?.checked_add(u64::from(b - b'0')),
        _ => None,
    })
}

/// The checksum counts its own field as spaces. Some old writers summed signed bytes.
fn checksum_holds(block: &[u8]) -> bool {
    let Some(declared) = number(&block[148..156]) else {
        return false;
    };
    let bytes = || block.iter().enumerate().map(|(i, b)| if (148..156).contains(&i) { b' ' } else { *b });
    let unsigned: i64 = bytes().map(i64::from).sum();
    let signed: i64 = bytes().map(|b| i64::from(b.cast_signed())).sum();
    i64::try_from(declared).is_ok_and(|declared| declared == unsigned || declared == signed)
}

/// Whether a file that begins so is a tar.
pub(crate) fn is_first_header(head: &[u8]) -> bool {
    head.get(..BLOCK).is_some_and(|block| block[0] != 0 && checksum_holds(block))
}

impl Header {
    /// Reads a block; `None` for the zeros that end an archive.
    pub(super) fn read(block: &[u8; BLOCK]) -> Result<Option<Header>, ArchiveError> {
        if block.iter().all(|b| *b == 0) {
            return Ok(None);
        }
        if !checksum_holds(block) {
            return Err(ArchiveError::refused(Problem::CorruptDirectory, "a header's checksum does not hold"));
        }
        let Some(size) = number(&block[124..136]) else {
            return Err(ArchiveError::refused(Problem::CorruptDirectory, "a size that is no number"));
        };
        let name = name(block);
        let entry = match block[156] {
            b'1' | b'2' => Entry::Link,
            b'3' | b'4' | b'6' => Entry::Other,
            b'5' | b'D' => Entry::Dir,
            b'S' => Entry::Sparse,
            b'M' => Entry::Continued,
            b'L' => Entry::LongName,
            b'x' | b'X' => Entry::Pax,
            b'g' | b'K' | b'V' | b'A' | b'N' => Entry::Skipped,
            // POSIX: what is unknown is treated as a file.
            _ => Entry::File,
        };
        // Links, folders and devices have no body, whatever their size says (it may be the size of what is linked to);
        // GNU's folder dumps have one.
        let bodiless = matches!(block[156], b'1'..=b'6');
        let extended = entry == Entry::Sparse && block[482] != 0;
        Ok(Some(Header { entry, name, size: if bodiless { 0 } else { size }, extended }))
    }
}

fn name(block: &[u8; BLOCK]) -> Vec<u8> {
    let own = text(&block[..100]);
    let prefix = text(&block[345..500]);
    // GNU tar has other things where POSIX has the prefix.
    if &block[257..263] != b"ustar\0" || prefix.is_empty() {
        return own.to_vec();
    }
    [prefix, b"/", own].concat()
}

/// What pax records say about the next member.
#[derive(Clone, Debug, Default)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    /// The member is sparse (GNU's `GNU.sparse.*` keys).
    pub(super) sparse: bool,
    /// The records are not what they should be.
    pub(super) broken: bool,
}

impl Pax {
    /// Reads records: `LENGTH KEY=VALUE\n`, where the length counts all of it.
    pub(super) fn read(mut bytes: &[u8]) -> Pax {
        let mut pax = Pax::default();
        while bytes.first().is_some_and(|b| *b != 0) {
            let Some((key, value, rest)) = record(bytes) else {
                pax.broken = true;
                return pax;
            };
            match key {
                b"path" => pax.path = Some(value.to_vec()),
                b"size" => match std::str::from_utf8(value).ok().and_then(|v| v.parse().ok()) {
                    Some(size) => pax.size = Some(size),
                    None => pax.broken = true,
                },
                _ if key.starts_with(b"GNU.sparse.") => {
                    pax.sparse = true;
                    if key == b"GNU.sparse.name" {
                        pax.path = Some(value.to_vec());
                    }
                }
                _ => {}
            }
            bytes = rest;
        }
        pax
    }
}

fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(21).position(|b| *b == b' ')?;
    let len: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let body = bytes.get(space + 1..len)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|b| *b == b'=')?;
    Some((&body[..equals], &body[equals + 1..], &bytes[len..]))
}
