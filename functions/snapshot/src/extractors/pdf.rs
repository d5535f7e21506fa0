//! output.pdf, from the browser's one load.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "pdf", applies: Page::to_render, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let bytes = page.taken(|capture| &capture.pdf)?;
    Ok(Made::Files(vec![File::new("output.pdf", "application/pdf", bytes.clone())], None))
}
