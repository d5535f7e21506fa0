//! Just enough DER to see whether a certificate names itself as its issuer.

/// Whether issuer and subject of an X.509 certificate (RFC 5280 section 4.1) are the same bytes.
/// `false` for anything that is no certificate.
pub(super) fn is_self_issued(certificate: &[u8]) -> bool {
    names(certificate).is_some_and(|(issuer, subject)| issuer == subject)
}

fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    // version is [0] EXPLICIT and absent in version 1.
    if rest.first() == Some(&0xa0) {
        rest = element(rest)?.2;
    }
    let (_, _, rest) = element(rest)?; // serialNumber
    let (_, _, rest) = element(rest)?; // signature
    let (_, issuer, rest) = element(rest)?;
    let (_, _, rest) = element(rest)?; // validity
    let (_, subject, _) = element(rest)?;
    Some((issuer, subject))
}

/// Splits off one element: its tag, its content, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut len = usize::from(first);
    if first & 0x80 != 0 {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 || rest.len() < count {
            return None;
        }
        let (digits, after) = rest.split_at(count);
        len = digits.iter().fold(0, |n, d| (n << 8) | usize::from(*d));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(len)?;
    Some((tag, content, after))
}
