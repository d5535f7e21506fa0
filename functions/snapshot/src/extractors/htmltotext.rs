//! htmltotext.txt: the readable text.

use super::{Extract, Failure, Made};
use crate::page::{File, Page};

pub(super) const EXTRACT: Extract = Extract { name: "htmltotext", applies: |page| page.best_facts().is_some(), run };

fn run(page: &Page) -> Result<Made, Failure> {
    let Some(facts) = page.best_facts() else { return Ok(Made::Nothing("not a page")) };
    if facts.text.trim().is_empty() {
        return Ok(Made::Nothing("the page has no text"));
    }
    let cut = if facts.text_truncated { ", cut" } else { "" };
    let line = format!("{} characters{cut}", facts.text.chars().count());
    Ok(Made::Files(vec![File::new("htmltotext.txt", "text/plain; charset=utf-8", facts.text.clone())], Some(line)))
}
