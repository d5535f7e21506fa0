//! accessibility.json, from the browser's one load.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "accessibility", applies: Page::to_render, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let bytes = page.taken(|capture| &capture.accessibility)?;
    Ok(Made::Files(vec![File::new("accessibility.json", "application/json", bytes.clone())], None))
}
