//! The article within a page.

use super::{TextError, guard, html_to_text};
use dom_smoothie::{Config, Readability, ReadabilityError};
use serde::{Deserialize, Serialize};
use url::Url;

/// An article, as readers' views show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Article {
    /// The headline.
    pub title: String,
    /// Who wrote it.
    pub byline: Option<String>,
    /// Its first paragraph, or what the page gives for it.
    pub excerpt: Option<String>,
    /// When it was published, as the page writes it.
    pub published: Option<String>,
    /// Where it was published.
    pub site_name: Option<String>,
    /// Its language.
    pub lang: Option<String>,
    /// `ltr` or `rtl`, if the page says so.
    pub dir: Option<String>,
    /// Its picture.
    pub image: Option<String>,
    /// The cleaned HTML, with absolute links.
    pub content_html: String,
    /// The same as plain text.
    pub text: String,
    /// Characters of text.
    pub length: usize,
}

/// Finds the article of a page that was found at `url`.
///
/// # Errors
/// `NO_ARTICLE` when there is none, `DOCUMENT_TOO_LARGE` and `TOO_MANY_ELEMENTS` when the page may not be built into a
/// tree.
pub fn readability(html: &str, url: &Url) -> Result<Article, TextError> {
    let html = guard::bounded(html)?;
    let config = Config { max_elements_to_parse: guard::MAX_TREE_ELEMENTS, ..Config::default() };
    let mut reader = Readability::new(html.as_ref(), Some(url.as_str()), Some(config)).map_err(|e| refused(&e))?;
    let found = reader.parse().map_err(|e| refused(&e))?;
    let content_html = found.content.to_string();
    let (text, _) = html_to_text(&content_html, guard::MAX_TREE_BYTES);
    if text.is_empty() {
        return Err(TextError::no_article("the page has no text of any length"));
    }
    Ok(Article {
        title: found.title,
        byline: found.byline,
        excerpt: found.excerpt,
        published: found.published_time,
        site_name: found.site_name,
        lang: found.lang,
        dir: found.dir,
        image: found.image,
        length: text.chars().count(),
        content_html,
        text,
    })
}

fn refused(error: &ReadabilityError) -> TextError {
    TextError::no_article(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> Url {
        Url::parse("https://x.org/a/b").unwrap()
    }

    fn page(body: &str) -> String {
        let paragraph = "The quick brown fox, who had never cared for dogs, jumped over one, and then, for good measure, \
                         over another. ";
        let article: String = (0..8).map(|_| format!("<p>{}</p>", paragraph.repeat(3))).collect();
        format!(
            "<html lang=en><head><title>Foxes - The Paper</title><meta name=author content='A. Writer'>\
             <meta property='article:published_time' content='2024-01-02T03:04:05Z'></head><body>\
             <nav><a href=/>Home</a> <a href=/x>Menu entry</a></nav><article><h1>Foxes</h1>{article}{body}</article>\
             <footer>Imprint</footer></body></html>"
        )
    }

    #[test]
    fn the_article_is_told_from_what_is_around_it() {
        let article =
            readability(&page("<p>See <a href='../c'>the other page</a>, which is as long as this one.</p>"), &url())
                .unwrap();
        assert!(article.title.contains("Foxes"));
        assert_eq!(article.byline.as_deref(), Some("A. Writer"));
        assert_eq!(article.published.as_deref(), Some("2024-01-02T03:04:05Z"));
        assert_eq!(article.lang.as_deref(), Some("en"));
        assert!(article.text.contains("quick brown fox") && !article.text.contains("Menu entry"));
        assert!(article.content_html.contains("https://x.org/c"), "links are absolute");
        assert_eq!(article.length, article.text.chars().count());
    }

    #[test]
    fn a_page_without_an_article_says_so() {
        for html in ["", "<p></p>", "<html><body></body></html>"] {
            assert_eq!(readability(html, &url()).unwrap_err().code, crate::codes::NO_ARTICLE, "{html}");
        }
    }

    #[test]
    fn no_page_overflows_the_stack() {
        let run = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
            for tag in ["div", "span", "b", "ul><li", "blockquote", "table><tr><td"] {
                let html = page(&format!("{}deep", format!("<{tag}>").repeat(30_000)));
                assert!(readability(&html, &url()).is_ok(), "{tag}");
            }
        });
        run.unwrap().join().unwrap();
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn never_panics(html in "(</?(p|b|a|li|ul|table|td|h1|pre|br|img|svg|div|meta|title)( (href|content)=\\PC{0,3})?>|\\PC){0,40}") {
            let _ = readability(&html, &url());
        }
    }
}
