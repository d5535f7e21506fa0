//! article.json, content.html and content.txt: the article of a page.

use super::{Extract, Failure, Made, json_file};
use crate::page::{File, Page};
use fonds_domain::ErrorCode;
use fonds_pages::{codes, text};
use serde_json::json;

pub(super) const EXTRACT: Extract = Extract { name: "readability", applies: |page| page.best_html().is_some(), run };

fn run(page: &Page) -> Result<Made, Failure> {
    let Some(html) = page.best_html() else { return Ok(Made::Nothing("not a page")) };
    let article = match text::readability(html, page.final_url()) {
        Ok(article) => article,
        Err(e) if e.code == codes::NO_ARTICLE => return Ok(Made::Nothing("the page holds no article")),
        Err(e) => return Err((ErrorCode::TOO_DEEP, e.to_string())),
    };
    let facts = json!({
        "title": article.title, "byline": article.byline, "excerpt": article.excerpt, "published": article.published,
        "site_name": article.site_name, "lang": article.lang, "dir": article.dir, "image": article.image,
        "length": article.length,
    });
    let line = format!("{} characters: {}", article.length, article.title);
    let files = vec![
        json_file("article.json", &facts),
        File::new("content.html", "text/html; charset=utf-8", article.content_html),
        File::new("content.txt", "text/plain; charset=utf-8", article.text),
    ];
    Ok(Made::Files(files, Some(line)))
}
