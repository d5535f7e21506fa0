//! singlefile.html: the document after scripts ran, with everything it shows inlined from the same
//! load.

use super::{Extract, Failure, Made, done};
use crate::page::{File, Page};
use bytes::Bytes;
use fonds_pages::singlefile::{Options, inline};
use std::collections::HashMap;
use url::Url;

pub(super) const EXTRACT: Extract = Extract { name: "singlefile", applies: Page::to_render, run };

fn run(page: &Page) -> Result<Made, Failure> {
    let dom = page.taken(|capture| &capture.dom)?;
    let rendered = done(page)?;
    let mut held: HashMap<&str, (&str, &Bytes)> = HashMap::new();
    for r in &rendered.capture.resources {
        if let (Some(body), Some(200..=299)) = (&r.body, r.status) {
            held.insert(&r.url, (r.mime.as_str(), body));
        }
    }
    let lookup = |url: &Url| held.get(url.as_str()).map(|(mime, body)| ((*mime).to_owned(), (*body).clone()));
    let base = Url::parse(&rendered.capture.final_url).unwrap_or_else(|_| page.final_url().clone());
    let single = inline(dom, &base, &lookup, &Options::default());
    let mut line = format!("{} resources inlined", single.inlined);
    if single.left_out_total > 0 {
        line.push_str(&format!(", {} left out", single.left_out_total));
    }
    Ok(Made::Files(vec![File::new("singlefile.html", "text/html; charset=utf-8", single.html)], Some(line)))
}
