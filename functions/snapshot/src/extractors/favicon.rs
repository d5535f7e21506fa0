//! The site's icon.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "favicon", applies: |page| page.content.is_html, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let Some(icon) = &page.icon else { return Ok(Made::Nothing("the site has no icon")) };
    let ending = match icon.mime.as_str() {
        "image/png" => "png",
        "image/svg+xml" => "svg",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "ico",
    };
    Ok(Made::Files(vec![File::new(format!("favicon.{ending}"), &icon.mime, icon.bytes.clone())], None))
}
