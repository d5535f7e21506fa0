//! output.html: the document after scripts ran.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "dom", applies: Page::to_render, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let html = page.taken(|capture| &capture.dom)?;
    Ok(Made::Files(vec![File::new("output.html", "text/html; charset=utf-8", html.clone())], None))
}
