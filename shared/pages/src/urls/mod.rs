//! What a URL is, which ones are the same, and which ones a crawl lets in.
//!
//! A URL is what the WHATWG URL standard makes of the text, and nothing more: percent-encoding is left as it was linked,
//! because servers tell `%2F` from `/` and `%252F` from `%2F`, and a crawler that tidies them up asks for another page.

mod rules;
mod scope;
mod trap;

pub use rules::{MAX_PATTERN_BYTES, MAX_PATTERNS, RuleError, UrlRules};
pub use scope::{Scope, SeedScope};
pub use trap::PathTrap;
pub use url::Url;

use crate::codes;
use sha2::{Digest, Sha256};

/// The longest URL that is kept, in bytes of its serialisation.
pub const MAX_URL_BYTES: usize = 65_535;

/// Why a text is not a URL we archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}")]
pub struct UrlError {
    /// One of [`crate::codes`].
    pub code: &'static str,
}

impl UrlError {
    /// A URL does not get better by trying again.
    pub fn is_permanent(&self) -> bool {
        true
    }
}

/// User name and password that were written into a URL. They are for the request's `Authorization` header; they are
/// kept out of rows, records and logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Percent-decoding is left to whoever builds the header.
    pub username: String,
    /// Empty when there was none.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// An `http` or `https` URL with a host, fit to be archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageUrl {
    url: Url,
    credentials: Option<Credentials>,
}

impl PageUrl {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// [`UrlError`] with `NOT_A_URL`, `RELATIVE_URL`, `UNSUPPORTED_SCHEME`, `NO_HOST` or `URL_TOO_LONG`.
    pub fn parse(text: &str) -> Result<PageUrl, UrlError> {
        check_length(text)?;
        Url::parse(text).map_err(|e| refusal(text, e)).and_then(PageUrl::from_url)
    }

    /// Reads a reference as a page at `base` means it.
    ///
    /// # Errors
    /// As [`PageUrl::parse`].
    pub fn join(base: &Url, reference: &str) -> Result<PageUrl, UrlError> {
        check_length(reference)?;
        base.join(reference).map_err(|e| refusal(reference, e)).and_then(PageUrl::from_url)
    }

    /// Admits a URL that is already parsed.
    ///
    /// # Errors
    /// As [`PageUrl::parse`].
    pub fn from_url(mut url: Url) -> Result<PageUrl, UrlError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError { code: codes::UNSUPPORTED_SCHEME });
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(UrlError { code: codes::NO_HOST });
        }
        let credentials = take_credentials(&mut url);
        check_length(url.as_str())?;
        Ok(PageUrl { url, credentials })
    }

    /// The URL with its fragment and without credentials: what a row holds.
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// The same, as text.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The URL by value.
    pub fn into_url(self) -> Url {
        self.url
    }

    /// What goes over the wire and into `WARC-Target-URI`: no fragment.
    pub fn wire(&self) -> &str {
        wire(&self.url)
    }

    /// What makes two URLs the same page. The fragment is part of it only where the crawl says `keep_fragments`.
    pub fn identity(&self, keep_fragments: bool) -> &str {
        identity(&self.url, keep_fragments)
    }

    /// The key of the identity: the first 16 bytes of its SHA-256, short enough for an index however long the URL is.
    pub fn key(&self, keep_fragments: bool) -> [u8; 16] {
        let digest = Sha256::digest(self.identity(keep_fragments).as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        key
    }

    /// `host[:port]` as in the URL, the port only where it is not the scheme's own.
    pub fn host_port(&self) -> &str {
        &self.url[url::Position::BeforeHost..url::Position::AfterPort]
    }

    /// The part behind `#`, if any.
    pub fn fragment(&self) -> Option<&str> {
        self.url.fragment().filter(|f| !f.is_empty())
    }

    /// User name and password, if the URL carried them.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

impl std::fmt::Display for PageUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// See [`PageUrl::identity`]. An empty fragment (`page#`) never counts.
pub fn identity(url: &Url, keep_fragments: bool) -> &str {
    if keep_fragments && url.fragment().is_some_and(|f| !f.is_empty()) { url.as_str() } else { wire(url) }
}

fn wire(url: &Url) -> &str {
    // A serialised URL holds no `#` but the one before its fragment.
    url.as_str().split('#').next().unwrap_or_default()
}

fn check_length(text: &str) -> Result<(), UrlError> {
    if text.len() > MAX_URL_BYTES { Err(UrlError { code: codes::URL_TOO_LONG }) } else { Ok(()) }
}

fn take_credentials(url: &mut Url) -> Option<Credentials> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let taken =
        Credentials { username: url.username().to_owned(), password: url.password().unwrap_or_default().to_owned() };
    // These fail only for URLs without a host, which were refused before.
    url.set_password(None).and_then(|()| url.set_username("")).ok().map(|()| taken)
}

fn refusal(text: &str, error: url::ParseError) -> UrlError {
    let code = match error {
        url::ParseError::RelativeUrlWithoutBase | url::ParseError::RelativeUrlWithCannotBeABaseBase => {
            codes::RELATIVE_URL
        }
        url::ParseError::EmptyHost => codes::NO_HOST,
        url::ParseError::Overflow => codes::URL_TOO_LONG,
        _ => codes::NOT_A_URL,
    };
    if text.trim().is_empty() { UrlError { code: codes::NOT_A_URL } } else { UrlError { code } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_what_the_standard_makes_of_it() {
        for (text, expected) in [
            ("https://X.org", "https://x.org/"),
            (" https://x.org/a\tb\n ", "https://x.org/ab"),
            ("HTTP://x.org:80/a/../b", "http://x.org/b"),
            (
                "https://x.org/%7Ea%2f%2F%252F%92?%7E=%zz&a=b c'\"",
                "https://x.org/%7Ea%2f%2F%252F%92?%7E=%zz&a=b%20c%27%22",
            ),
            ("https://bücher.example/ü?ü#ü", "https://xn--bcher-kva.example/%C3%BC?%C3%BC#%C3%BC"),
            ("http:\\\\x.org\\a", "http://x.org/a"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://[::FFFF:1.2.3.4]/", "http://[::ffff:102:304]/"),
            ("https://x.org?a", "https://x.org/?a"),
            ("https://user:pw@x.org/a", "https://x.org/a"),
            ("https://x.org./a", "https://x.org./a"),
        ] {
            assert_eq!(PageUrl::parse(text).map(|u| u.to_string()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused_with_its_reason() {
        for (text, code) in [
            ("", codes::NOT_A_URL),
            ("  ", codes::NOT_A_URL),
            ("x.org/a", codes::RELATIVE_URL),
            ("/a", codes::RELATIVE_URL),
            ("//x.org", codes::RELATIVE_URL),
            ("ftp://x.org/", codes::UNSUPPORTED_SCHEME),
            ("javascript:alert(1)", codes::UNSUPPORTED_SCHEME),
            ("data:text/html,x", codes::UNSUPPORTED_SCHEME),
            ("file:///etc/passwd", codes::UNSUPPORTED_SCHEME),
            ("http://", codes::NO_HOST),
            ("https://?a", codes::NO_HOST),
            ("https://x.org:99999/", codes::NOT_A_URL),
            ("https://a b/", codes::NOT_A_URL),
            ("https://[::1/", codes::NOT_A_URL),
            ("https://1.2.3.256/", codes::NOT_A_URL),
        ] {
            assert_eq!(PageUrl::parse(text).map(|u| u.to_string()), Err(UrlError { code }), "{text}");
        }
        let long = |len: usize| format!("https://x.org/{}", "a".repeat(len - 14));
        assert!(PageUrl::parse(&long(MAX_URL_BYTES)).is_ok());
        assert_eq!(PageUrl::parse(&long(MAX_URL_BYTES + 1)).unwrap_err().code, codes::URL_TOO_LONG);
        // It is the serialisation that must fit.
        assert_eq!(
            PageUrl::parse(&format!("https://x.org/{}", "ü".repeat(30_000))).unwrap_err().code,
            codes::URL_TOO_LONG
        );
    }

    #[test]
    fn the_fragment_is_kept_and_counts_only_when_asked() {
        for (text, wire, with, fragment) in [
            ("https://x.org/a#b", "https://x.org/a", "https://x.org/a#b", Some("b")),
            ("https://x.org/a#", "https://x.org/a", "https://x.org/a", None),
            ("https://x.org/a", "https://x.org/a", "https://x.org/a", None),
            ("https://x.org/?q=%23#!/p#q", "https://x.org/?q=%23", "https://x.org/?q=%23#!/p#q", Some("!/p#q")),
        ] {
            let url = PageUrl::parse(text).unwrap();
            assert_eq!(
                (url.wire(), url.identity(false), url.identity(true), url.fragment()),
                (wire, wire, with, fragment)
            );
            assert_eq!(url.as_str(), text);
        }
    }

    #[test]
    fn credentials_go_with_the_request_and_nowhere_else() {
        let url = PageUrl::parse("https://me:s%40cret@x.org/a").unwrap();
        assert_eq!(url.as_str(), "https://x.org/a");
        let credentials = url.credentials().unwrap();
        assert_eq!((credentials.username.as_str(), credentials.password.as_str()), ("me", "s%40cret"));
        assert!(!format!("{url:?}").contains("cret"));
        assert_eq!(PageUrl::parse("https://x.org/").unwrap().credentials(), None);
    }

    proptest::proptest! {
        #[test]
        fn an_admitted_url_is_itself_again(text in "(https?:)?[/\\\\]{0,3}\\PC{0,30}", base in "https://x.org/\\PC{0,10}") {
            let base = Url::parse(&base).unwrap_or_else(|_| Url::parse("https://x.org/").unwrap());
            for url in [PageUrl::parse(&text), PageUrl::join(&base, &text)].into_iter().flatten() {
                let again = PageUrl::parse(url.as_str());
                proptest::prop_assert_eq!(again.as_ref().map(PageUrl::as_str), Ok(url.as_str()));
                proptest::prop_assert!(!url.wire().contains('#') && url.as_str().starts_with(url.wire()));
            }
        }
    }
}
