//! seo.json: meta, OpenGraph, Twitter and JSON-LD.

use super::{Extract, Failure, Made, json_file};
use crate::page::Page;

pub(super) const EXTRACT: Extract = Extract { name: "seo", applies: |page| page.best_facts().is_some(), run };

fn run(page: &Page) -> Result<Made, Failure> {
    let Some(facts) = page.best_facts() else { return Ok(Made::Nothing("not a page")) };
    Ok(Made::Files(vec![json_file("seo.json", &facts.seo_json())], facts.description.clone()))
}
