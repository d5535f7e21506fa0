//! The file itself when the URL is not a page: a PDF, an image, an archive, a feed.

use super::{Extract, Failure, Made};
use crate::page::{File, FileBody, Page};
use bytes::Bytes;
use fonds_domain::ErrorCode;
use fonds_web::fetch::Hop;

pub(super) const EXTRACT: Extract = Extract {
    name: "staticfile",
    applies: |page| page.answer().is_some_and(|hop| !page.content.is_html && hop.status.is_success()),
    run,
};

fn run(page: &Page) -> Result<Made, Failure> {
    let Some(hop) = page.answer() else { return Ok(Made::Nothing("no answer")) };
    if hop.body.is_empty() {
        return Ok(Made::Nothing("the server sent an empty body"));
    }
    let mime = page.content.mime.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
    let body = match (&page.content.decoded, hop.body.as_path()) {
        (Some(decoded), _) => FileBody::Bytes(decoded.clone()),
        (None, Some(path)) => FileBody::Path(path.to_owned(), hop.body.len()),
        (None, None) => FileBody::Bytes(hop.body.as_memory().cloned().unwrap_or_else(Bytes::new)),
    };
    let name = file_name(hop);
    let line = format!("{name}, {mime}, {} bytes", hop.body.len());
    if let Some(cut) = hop.truncated {
        return Err((ErrorCode::BODY_TOO_LARGE, format!("{line}; cut: {}", cut.as_str())));
    }
    Ok(Made::Files(vec![File { name, mime, body }], Some(line)))
}

/// The last part of the path, made safe; the rest of the world's names are not ours to keep.
fn file_name(hop: &Hop) -> String {
    let last = hop.url.path_segments().and_then(|mut s| s.next_back()).unwrap_or_default();
    let safe: String = last
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        .skip_while(|c| *c == '.')
        .take(100)
        .collect();
    if safe.is_empty() { "file".to_owned() } else { safe }
}
