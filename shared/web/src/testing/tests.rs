//! The test servers do what the tests believe they do.

use std::collections::BTreeSet;

use super::*;
use crate::fetch::{FetchRequest, Fetcher, FetcherConfig};
use crate::guard::{Guard, GuardConfig};

fn fetcher() -> Fetcher {
    let guard = Guard::new(GuardConfig { allow_private: true, ..GuardConfig::default() });
    Fetcher::new(FetcherConfig::new(guard)).unwrap()
}

/// Values of `src` and `href`.
fn references(html: &str) -> BTreeSet<String> {
    html.split(['"'])
        .collect::<Vec<_>>()
        .windows(2)
        .filter(|pair| pair[0].ends_with("src=") || pair[0].ends_with("href="))
        .map(|pair| pair[1].to_owned())
        .collect()
}

#[tokio::test]
async fn a_page_of_the_site_makes_thirteen_requests() {
    let config = OriginConfig { pages: 25, ..OriginConfig::new() };
    let origin = Origin::start(config).await.unwrap();
    let fetcher = fetcher();
    for (path, links) in [("/site/", 10), ("/site/1/", 10), ("/site/2/", 4), ("/site/24/", 0)] {
        let result = fetcher.fetch(FetchRequest::get(origin.url(path))).await;
        let page = result.answer().expect("a page").body.as_memory().cloned().expect("in memory");
        let references = references(std::str::from_utf8(&page).unwrap());
        let (parts, to_pages): (Vec<_>, Vec<_>) = references.into_iter().partition(|path| !path.ends_with('/'));
        assert_eq!(to_pages.len(), links, "{path}");
        // Besides: the page, the icon, and what its script fetches.
        assert_eq!(parts.len() + 3, site::REQUESTS_PER_PAGE, "{path}");
        for path in parts.iter().chain(&to_pages) {
            let result = fetcher.fetch(FetchRequest::get(origin.url(path))).await;
            assert_eq!(result.answer().expect("an answer").status, 200, "{path}");
        }
    }
    for path in ["/favicon.ico", "/site/24/data.json", "/site/sitemap.xml"] {
        let result = fetcher.fetch(FetchRequest::get(origin.url(path))).await;
        assert_eq!(result.answer().expect("an answer").status, 200, "{path}");
    }
    for path in ["/site/25/", "/site/x/", "/site/1/own-3.png", "/site/static/shared-3.png", "/nothing"] {
        let result = fetcher.fetch(FetchRequest::get(origin.url(path))).await;
        assert_eq!(result.answer().expect("an answer").status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_directory_is_served_with_types_and_tags() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(dir.path().join("secret.txt"), "no").unwrap();
    std::fs::write(root.join("index.html"), "<p>home").unwrap();
    std::fs::write(root.join("sub/index.html"), "<p>sub").unwrap();
    std::fs::write(root.join("a b.pdf"), "%PDF-").unwrap();
    let config = OriginConfig { files: Some(root), ..OriginConfig::new() };
    let origin = Origin::start(config).await.unwrap();
    let fetcher = fetcher();
    for (path, status, media) in [
        ("/", 200, "text/html"),
        ("/sub/", 200, "text/html"),
        ("/a%20b.pdf", 200, "application/pdf"),
        ("/missing", 404, "text/html"),
        ("/..%2fsecret.txt", 404, "text/html"),
        ("/sub/..%2f..%2fsecret.txt", 404, "text/html"),
    ] {
        let result = fetcher.fetch(FetchRequest::get(origin.url(path))).await;
        let answer = result.answer().expect("an answer");
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.media_type().as_deref(), Some(media), "{path}");
        if status == 200 {
            let etag = answer.headers["etag"].to_str().unwrap().to_owned();
            let request = FetchRequest { if_none_match: Some(etag), ..FetchRequest::get(origin.url(path)) };
            let again = fetcher.fetch(request).await;
            assert_eq!(again.answer().expect("an answer").status, 304, "{path}");
        }
    }
}
