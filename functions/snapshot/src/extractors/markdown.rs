//! content.md: the page as Markdown.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};
use fonds_domain::ErrorCode;
use fonds_pages::text;

pub(super) const EXTRACT: Extract = Extract { name: "markdown", applies: |page| page.best_html().is_some(), run };

fn run(page: &Page) -> Result<Made, Failure> {
    let Some(html) = page.best_html() else { return Ok(Made::Nothing("not a page")) };
    let markdown = text::markdown(html).map_err(|e| (ErrorCode::TOO_DEEP, e.to_string()))?;
    Ok(Made::Files(vec![File::new("content.md", "text/markdown; charset=utf-8", markdown)], None))
}
