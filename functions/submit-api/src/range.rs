//! The `Range` header, RFC 9110 section 14. Pure.

use std::ops::Range;

/// What a request wants of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it: no range, one we do not know, or several (a server may ignore them, section 14.2).
    All,
    /// These bytes.
    Part(Range<u64>),
    /// Bytes that are not there: 416.
    Outside,
}

/// Reads the header against a body of `len` bytes.
pub(crate) fn wanted(header: Option<&[u8]>, len: u64) -> Wanted {
    let Some(spec) = header.and_then(|h| std::str::from_utf8(h).ok()).and_then(|h| single(h.trim())) else {
        return Wanted::All;
    };
    let range = match spec {
        (Some(first), last) => first..last.map_or(len, |last| last.saturating_add(1)).min(len),
        // The last n bytes.
        (None, Some(n)) => len.saturating_sub(n)..len,
        (None, None) => return Wanted::All,
    };
    if range.is_empty() { Wanted::Outside } else { Wanted::Part(range) }
}

/// `bytes=a-b`, `bytes=a-`, `bytes=-n`; none for anything else, an inverted range too (section 14.1.1: invalid).
fn single(header: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, set) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    let spec = (position(first)?, position(last)?);
    match spec {
        (None, None) => None,
        (Some(first), Some(last)) if last < first => None,
        spec => Some(spec),
    }
}

/// A position; the outer none stands for what is no number. More digits than fit mean "beyond any end".
fn position(text: &str) -> Option<Option<u64>> {
    match text.trim() {
        "" => Some(None),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => Some(Some(digits.parse().unwrap_or(u64::MAX))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_read_as_rfc_9110_says() {
        for (header, len, expected) in [
            ("bytes=0-0", 10, Wanted::Part(0..1)),
            ("bytes=2-5", 10, Wanted::Part(2..6)),
            ("bytes=2-", 10, Wanted::Part(2..10)),
            ("bytes=-3", 10, Wanted::Part(7..10)),
            ("bytes=-30", 10, Wanted::Part(0..10)),
            ("BYTES = 2-99999999999999999999999", 10, Wanted::Part(2..10)),
            ("bytes=10-", 10, Wanted::Outside),
            ("bytes=99999999999999999999999-", 10, Wanted::Outside),
            ("bytes=-0", 10, Wanted::Outside),
            ("bytes=0-", 0, Wanted::Outside),
            ("bytes=5-2", 10, Wanted::All),
            ("bytes=0-1,4-5", 10, Wanted::All),
            ("bytes=-", 10, Wanted::All),
            ("bytes=a-b", 10, Wanted::All),
            ("bytes=+1-2", 10, Wanted::All),
            ("lines=0-1", 10, Wanted::All),
            ("", 10, Wanted::All),
        ] {
            assert_eq!(wanted(Some(header.as_bytes()), len), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::All);
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_body(header in "(bytes=)?[-0-9,a ]{0,30}", len in 0u64..1000) {
            if let Wanted::Part(part) = wanted(Some(header.as_bytes()), len) {
                prop_assert!(part.start < part.end && part.end <= len);
            }
        }
    }
}
