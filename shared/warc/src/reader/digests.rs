//! Checks the digests of a block while it goes by.

use data_encoding::{BASE32_NOPAD, BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::{Fault, MAX_HEADER, RecordHeader};
use crate::{digest::Sha256Digest, http_head::is_chunked, record::RecordType};

#[derive(Clone)]
enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
}

/// A digest stated by a header and the hasher to check it with.
#[derive(Clone)]
struct Claim {
    hasher: Hasher,
    expected: Vec<u8>,
}

impl Claim {
    /// `algorithm:value`; the value in hex, base32 or base64, as writers differ.
    fn parse(label: &str) -> Option<Self> {
        let (algorithm, value) = label.split_once(':')?;
        let (hasher, len) = match algorithm.trim().to_ascii_lowercase().as_str() {
            "sha1" | "sha-1" => (Hasher::Sha1(Sha1::new()), 20),
            "sha256" | "sha-256" => (Hasher::Sha256(Sha256::new()), 32),
            _ => return None,
        };
        let value = value.trim().trim_end_matches('=');
        let bytes = value.as_bytes();
        let expected = if bytes.len() == len * 2 {
            HEXLOWER_PERMISSIVE.decode(bytes).ok()?
        } else if bytes.len() == (len * 8).div_ceil(5) {
            BASE32_NOPAD.decode(value.to_ascii_uppercase().as_bytes()).ok()?
        } else {
            BASE64_NOPAD.decode(bytes).or_else(|_| BASE64URL_NOPAD.decode(bytes)).ok()?
        };
        (expected.len() == len).then_some(Self { hasher, expected })
    }

    fn update(&mut self, bytes: &[u8]) {
        match &mut self.hasher {
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
        }
    }

    fn holds(self) -> bool {
        match self.hasher {
            Hasher::Sha1(hasher) => hasher.finalize().as_slice() == self.expected,
            Hasher::Sha256(hasher) => hasher.finalize().as_slice() == self.expected,
        }
    }
}

/// Where in an HTTP block we are.
enum Part {
    /// In the head, whose bytes are kept.
    Head(Vec<u8>),
    /// After it.
    Payload { head: Option<Vec<u8>> },
    /// The head is too long or there is none: the payload is not known.
    Unknown,
}

/// Takes a record's block bit by bit.
pub(super) struct BlockDigester {
    block: Option<Claim>,
    payload: Option<Claim>,
    dechunked: Option<(Claim, Dechunker)>,
    sha256: Sha256,
    part: Part,
    unknown: Vec<Fault>,
}

impl BlockDigester {
    pub(super) fn new(header: &RecordHeader) -> Self {
        let mut unknown = Vec::new();
        let mut claim = |name: &str| {
            let label = header.get(name)?;
            let claim = Claim::parse(label);
            if claim.is_none() {
                unknown.push(Fault::UnknownDigest(label.chars().take(40).collect()));
            }
            claim
        };
        let block = claim("WARC-Block-Digest");
        let payload = claim("WARC-Payload-Digest");
        // A revisit states the digest of a payload it does not hold; a segment that of the whole.
        let elsewhere =
            header.record_type() == Some(RecordType::Revisit) || header.get("WARC-Segment-Number").is_some();
        Self {
            block,
            payload: payload.filter(|_| !elsewhere),
            dechunked: None,
            sha256: Sha256::new(),
            part: if header.is_http() { Part::Head(Vec::new()) } else { Part::Payload { head: None } },
            unknown,
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        if let Some(block) = &mut self.block {
            block.update(bytes);
        }
        match &mut self.part {
            Part::Head(head) => {
                // The end may lie across two updates, so the search starts a little before the new bytes.
                let from = head.len().saturating_sub(3);
                head.extend_from_slice(bytes);
                if let Some(end) = head_end(head, from) {
                    let payload = head.split_off(end);
                    let head = std::mem::take(head);
                    if let (true, Some(claim)) = (is_chunked(&head), &self.payload) {
                        self.dechunked = Some((claim.clone(), Dechunker::default()));
                    }
                    self.part = Part::Payload { head: Some(head) };
                    self.update_payload(&payload);
                } else if head.len() > MAX_HEADER {
                    self.part = Part::Unknown;
                }
            }
            Part::Payload { .. } => self.update_payload(bytes),
            Part::Unknown => {}
        }
    }

    fn update_payload(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(payload) = &mut self.payload {
            payload.update(bytes);
        }
        if let Some((claim, dechunker)) = &mut self.dechunked {
            dechunker.feed(bytes, |data| claim.update(data));
        }
    }

    /// The HTTP head, the payload's SHA-256 and what does not hold. `whole` is false when the block ended early.
    pub(super) fn finish(self, whole: bool) -> (Option<Vec<u8>>, Sha256Digest, Vec<Fault>) {
        let mut faults = self.unknown;
        // A head without an empty line, as a revisit or a request may have it, is all head.
        let (head, payload_known) = match self.part {
            Part::Head(head) if !head.is_empty() => (Some(head), true),
            Part::Head(_) => (None, true),
            Part::Payload { head } => (head, true),
            Part::Unknown => (None, false),
        };
        if whole {
            if self.block.is_some_and(|claim| !claim.holds()) {
                faults.push(Fault::BlockDigestMismatch);
            }
            let as_stored = self.payload.is_none_or(Claim::holds);
            let undone = self.dechunked.is_some_and(|(claim, _)| claim.holds());
            if payload_known && !as_stored && !undone {
                faults.push(Fault::PayloadDigestMismatch);
            }
        }
        (head, self.sha256.into(), faults)
    }
}

/// Offset after the empty line that ends an HTTP head.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(newline) = bytes[at..].iter().position(|&b| b == b'\n').map(|n| at + n) {
        match &bytes[newline + 1..] {
            [b'\n', ..] => return Some(newline + 2),
            [b'\r', b'\n', ..] => return Some(newline + 3),
            _ => at = newline + 1,
        }
    }
    None
}

/// Undoes chunked framing (RFC 9112, 7.1); wrong framing ends it.
#[derive(Clone, Default)]
struct Dechunker {
    state: Chunk,
}

#[derive(Clone, Copy, Default)]
enum Chunk {
    #[default]
    Start,
    Size(u64),
    Extension(u64),
    Data(u64),
    DataEnd,
    Done,
}

impl Dechunker {
    fn feed(&mut self, mut bytes: &[u8], mut data: impl FnMut(&[u8])) {
        while let Some(&byte) = bytes.first() {
            if let Chunk::Data(left) = self.state {
                let n = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                data(&bytes[..n]);
                bytes = &bytes[n..];
                self.state = if left == n as u64 { Chunk::DataEnd } else { Chunk::Data(left - n as u64) };
                continue;
            }
            bytes = &bytes[1..];
            self.state = self.state.step(byte);
        }
    }
}

impl Chunk {
    fn step(self, byte: u8) -> Self {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        let after_size = |size| if size == 0 { Self::Done } else { Self::Data(size) };
        match (self, byte, digit) {
            (Self::Start, _, Some(d)) => Self::Size(d),
            (Self::Size(size), _, Some(d)) => size.checked_mul(16).map_or(Self::Done, |s| Self::Size(s | d)),
            (Self::Size(size) | Self::Extension(size), b'\n', _) => after_size(size),
            (Self::Size(size) | Self::Extension(size), ..) => Self::Extension(size),
            (Self::DataEnd, b'\r', _) => Self::DataEnd,
            (Self::DataEnd, b'\n', _) => Self::Start,
            _ => Self::Done,
        }
    }
}
