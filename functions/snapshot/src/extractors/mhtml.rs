//! snapshot.mhtml, from the browser's one load.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "mhtml", applies: Page::to_render, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let bytes = page.taken(|capture| &capture.mhtml)?;
    Ok(Made::Files(vec![File::new("snapshot.mhtml", "multipart/related", bytes.clone())], None))
}
