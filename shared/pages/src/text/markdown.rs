//! Markdown.

use super::{TextError, guard};

/// The page as Markdown, without scripts, styles and forms' controls.
///
/// # Errors
/// `DOCUMENT_TOO_LARGE`, `TOO_MANY_ELEMENTS`.
pub fn markdown(html: &str) -> Result<String, TextError> {
    // They say nothing in Markdown, and joining long runs of them takes time with the square of their number.
    let html = guard::bounded_without(html, &["span", "font"])?;
    let converter = htmd::HtmlToMarkdown::builder()
        .skip_tags(vec![
            "script", "style", "noscript", "template", "title", "head", "svg", "iframe", "select", "textarea",
            "button", "canvas", "audio", "video", "object",
        ])
        .build();
    converter.convert(&html).map_err(|e| TextError { code: crate::codes::UNSUPPORTED_INPUT, message: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_survives() {
        let html = "<head><title>no</title></head><h1>Title</h1><p>A <b>bold</b> <a href='https://x.org/'>link</a>.</p>\
                    <ul><li>one</li><li>two</li></ul><pre><code>x = 1</code></pre><script>no()</script>";
        let out = markdown(html).unwrap();
        for part in ["# Title", "A **bold** [link](https://x.org/).", "one", "two", "x = 1"] {
            assert!(out.contains(part), "{part} in {out}");
        }
        assert!(!out.contains("no"), "{out}");
    }

    #[test]
    fn no_page_overflows_the_stack() {
        // A worker thread has 2 MiB.
        let run = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
            for tag in ["div", "span", "b", "ul><li", "blockquote", "table><tr><td"] {
                let out = markdown(&format!("{}deep", format!("<{tag}>").repeat(30_000))).unwrap();
                assert!(out.contains("deep"), "{tag}");
            }
        });
        run.unwrap().join().unwrap();
    }

    proptest::proptest! {
        #[test]
        fn never_panics(html in "(</?(p|b|a|li|ul|table|td|h1|pre|code|img|svg|select)( href=\\PC{0,3})?>|\\PC){0,40}") {
            let _ = markdown(&html);
        }
    }
}
