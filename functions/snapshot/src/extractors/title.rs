//! title.txt.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "title", applies: |page| page.content.is_html, run };

fn run(page: &Page) -> Result<Made, Failure> {
    match page.title() {
        Some(title) => {
            let file = File::new("title.txt", "text/plain; charset=utf-8", title.clone());
            Ok(Made::Files(vec![file], Some(title)))
        }
        None => Ok(Made::Nothing("the page has no title")),
    }
}
