//! A page as text: plain, as Markdown, and as the article within it.
//!
//! Plain text is read off the tokens and can be made of anything. Markdown and the article need a tree, so what goes
//! into one is bounded first: see [`guard`].

pub(crate) mod flow;
pub mod guard;
mod markdown;
mod readability;

pub use markdown::markdown;
pub use readability::{Article, readability};

use crate::codes;
use crate::tokens::{Token, Tokenizer};
use flow::Flow;

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct TextError {
    /// One of [`crate::codes`].
    pub code: &'static str,
    /// For people.
    pub message: String,
}

impl TextError {
    fn no_article(message: impl Into<String>) -> TextError {
        TextError { code: codes::NO_ARTICLE, message: message.into() }
    }

    /// The same page gives the same answer.
    pub fn is_permanent(&self) -> bool {
        true
    }
}

/// The readable text of a page, at most `max_bytes` of it: entities decoded, scripts, styles, `noscript` and templates
/// left out, a line for each block and a blank line between paragraphs. Says whether it was cut.
pub fn html_to_text(html: &str, max_bytes: usize) -> (String, bool) {
    let mut flow = Flow::new(max_bytes);
    for token in Tokenizer::html(html) {
        match token {
            Token::Start(tag) => flow.start(&tag),
            Token::End(tag) => flow.end(tag.name),
            Token::Text(text, kind) => {
                flow.text(text, kind);
            }
            Token::Comment(_) | Token::Doctype(_) | Token::Instruction(_) => {}
        }
        if flow.is_full() {
            break;
        }
    }
    flow.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_a_reader_sees() {
        for (html, expected) in [
            ("<p>One  <b>two</b>\n three</p><p>four</p>", "One two three\n\nfour"),
            ("a<br>b<br><br>c", "a\nb\n\nc"),
            ("<ul><li>a<li>b</ul>c", "a\nb\n\nc"),
            ("<div>a</div><div>b<div>c</div></div>", "a\nb\nc"),
            ("x<script>no()</script><style>no{}</style><noscript>no</noscript><template>no</template>y", "xy"),
            ("<title>No</title><h1>Yes &amp; &lt;so&gt;&nbsp;&#8364;</h1>", "Yes & <so> €"),
            ("<pre>a\n  b\n\n\n c</pre>d", "a\n  b\n\n\n c\n\nd"),
            ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a\tb\n1\t2"),
            ("<p>a</p>\n\n<p></p><p> </p><p>b</p>", "a\n\nb"),
            ("a<svg><title>no</title><text>no</text></svg>b<svg/>c", "abc"),
            ("<script>if (a < b) { '</div>' }</script>after", "after"),
            ("<!-- <p>no</p> -->yes", "yes"),
            ("a &notit; b &unknown; c &amp d", "a ¬it; b &unknown; c & d"),
            ("<p>un<i>clo<b>sed", "unclosed"),
            ("<select><option>no</select>yes", "yes"),
            ("1 < 2 and 3 <4", "1 < 2 and 3 <4"),
            ("", ""),
        ] {
            assert_eq!(html_to_text(html, 10_000).0, expected, "{html}");
        }
    }

    #[test]
    fn text_is_cut_at_the_limit_on_a_character() {
        assert_eq!(html_to_text("<p>grün</p><p>blau</p>", 4), ("grü".to_owned(), true));
        assert_eq!(html_to_text("<p>grün</p>", 5), ("grün".to_owned(), false));
        assert_eq!(html_to_text("<p>grün</p>", 0), (String::new(), false));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(html in "(<[a-z!/]{1,6}[^>]{0,5}>?|&[a-z#0-9;]{0,8}|\\PC){0,60}", max in 0usize..50) {
            let (text, _) = html_to_text(&html, max);
            assert!(text.len() <= max);
        }
    }
}
