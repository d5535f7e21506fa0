//! screenshot.png: the full page, from the browser's one load.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "screenshot", applies: Page::to_render, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let shot = page.taken(|capture| &capture.screenshot)?;
    let line = shot.truncated.then(|| "the page is higher than the limit; cut there".to_owned());
    Ok(Made::Files(vec![File::new("screenshot.png", "image/png", shot.png.clone())], line))
}
