//! The certificates of the page's host, as PEM, and what was wrong with them.

use super::{Extract, Failure, Made, json_file};
use crate::page::{File, Page};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

pub(super) const EXTRACT: Extract =
    Extract { name: "sslcerts", applies: |page| page.answer().is_some_and(|hop| hop.tls.is_some()), run };

fn run(page: &Page) -> Result<Made, Failure> {
    let Some(tls) = page.answer().and_then(|hop| hop.tls.as_ref()) else { return Ok(Made::Nothing("no TLS")) };
    let mut pem = String::new();
    for der in &tls.chain_der {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let text = STANDARD.encode(der.as_ref());
        // PEM lines have 64 characters (RFC 7468, section 2); base64 is ASCII.
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    let facts = json!({
        "version": tls.version,
        "cipher": tls.cipher,
        "valid": tls.valid,
        "problem": tls.problem.map(|p| p.as_str()),
        "certificates": tls.chain_der.len(),
    });
    let line = format!("{}, {} certificates", tls.version, tls.chain_der.len());
    let files = vec![File::new("chain.pem", "application/x-pem-file", pem), json_file("sslcerts.json", &facts)];
    Ok(Made::Files(files, Some(line)))
}
