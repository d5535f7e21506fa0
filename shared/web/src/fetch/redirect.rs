//! Where a response sends us (RFC 9110 section 15.4, WHATWG Fetch "HTTP-redirect fetch").

use http::header::{HeaderMap, HeaderValue, LOCATION, REFRESH};
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use url::Url;

use crate::code::FetchCode;

/// What to do after a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is the answer.
    Stop,
    /// Ask there next.
    Follow(Url),
    /// It wanted to redirect and could not say where to.
    Fail(FetchCode, String),
}

/// The step after a response from `current`. A fragment is inherited when the target has none.
pub(super) fn step(status: StatusCode, headers: &HeaderMap, current: &Url) -> Step {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Step::Stop;
    }
    let Some(location) = headers.get(LOCATION).filter(|v| !v.is_empty()) else {
        return Step::Fail(FetchCode::RedirectNoLocation, format!("{status} without a Location"));
    };
    let text = header_text(location);
    let mut target = match current.join(&text) {
        Ok(target) => target,
        Err(error) => {
            return Step::Fail(FetchCode::RedirectBadLocation, format!("Location \"{text}\": {error}"));
        }
    };
    if !matches!(target.scheme(), "http" | "https") {
        return Step::Fail(FetchCode::RedirectBadScheme, format!("Location \"{text}\" is not http"));
    }
    if target.fragment().is_none() {
        target.set_fragment(current.fragment());
    }
    Step::Follow(target)
}

/// The method of the request after a redirect.
pub(super) fn next_method(status: StatusCode, method: &Method) -> Method {
    match status.as_u16() {
        301 | 302 if *method == Method::POST => Method::GET,
        303 if *method != Method::HEAD => Method::GET,
        _ => method.clone(),
    }
}

/// Target and delay in seconds of a `Refresh` header, which browsers obey and this crate only notes
/// (WHATWG HTML "shared declarative refresh steps").
pub fn refresh_target(headers: &HeaderMap, base: &Url) -> Option<(f64, Url)> {
    let text = header_text(headers.get(REFRESH)?);
    let (delay, rest) = match text.find([';', ',']) {
        Some(at) => (&text[..at], text[at + 1..].trim_start()),
        None => (&text[..], ""),
    };
    let delay = delay.trim().parse().ok().filter(|d: &f64| *d >= 0.0)?;
    let target = match rest.get(..3) {
        Some(url) if url.eq_ignore_ascii_case("url") => rest[3..].trim_start().strip_prefix('=').unwrap_or(rest),
        _ => rest,
    };
    let target = target.trim().trim_matches(['"', '\'']);
    Some((delay, base.join(target).ok()?))
}

/// A header's text. Servers put raw UTF-8 into Location, and raw Latin-1 too: the first is taken as
/// meant, of the second the bytes are kept by percent-encoding them.
fn header_text(value: &HeaderValue) -> String {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.trim().to_owned(),
        Err(_) => value
            .as_bytes()
            .iter()
            .map(|b| match b.is_ascii() {
                true => char::from(*b).to_string(),
                false => percent_encode(&[*b], NON_ALPHANUMERIC).to_string(),
            })
            .collect::<String>()
            .trim()
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(bytes: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, HeaderValue::from_bytes(bytes).unwrap());
        headers
    }

    #[test]
    fn locations() {
        let base = Url::parse("http://a.example/dir/page?q#frag").unwrap();
        let cases: &[(&[u8], Result<&str, FetchCode>)] = &[
            (b"/next", Ok("http://a.example/next#frag")),
            (b"next", Ok("http://a.example/dir/next#frag")),
            (b"?x=1", Ok("http://a.example/dir/page?x=1#frag")),
            (b"//b.example/", Ok("http://b.example/#frag")),
            (b"https://b.example/#own", Ok("https://b.example/#own")),
            (b"  /spaced  ", Ok("http://a.example/spaced#frag")),
            ("/caf\u{e9}".as_bytes(), Ok("http://a.example/caf%C3%A9#frag")),
            (b"/caf\xe9", Ok("http://a.example/caf%E9#frag")),
            (b"/a%2Fb%zz", Ok("http://a.example/a%2Fb%zz#frag")),
            ("http://\u{e9}t\u{e9}.example/".as_bytes(), Ok("http://xn--t-9fab.example/#frag")),
            (b"http:///nohost.example", Ok("http://nohost.example/#frag")),
            (b"http://", Err(FetchCode::RedirectBadLocation)),
            (b"http://a b/", Err(FetchCode::RedirectBadLocation)),
            (b"http://[::1", Err(FetchCode::RedirectBadLocation)),
            (b"ftp://a.example/", Err(FetchCode::RedirectBadScheme)),
            (b"javascript:alert(1)", Err(FetchCode::RedirectBadScheme)),
            (b"file:///etc/passwd", Err(FetchCode::RedirectBadScheme)),
            (b"data:text/html,x", Err(FetchCode::RedirectBadScheme)),
            (b"", Err(FetchCode::RedirectNoLocation)),
        ];
        for (bytes, expected) in cases {
            let got = match step(StatusCode::FOUND, &location(bytes), &base) {
                Step::Follow(url) => Ok(url.to_string()),
                Step::Fail(code, _) => Err(code),
                Step::Stop => panic!("{bytes:?} stopped"),
            };
            let expected = expected.map(str::to_owned);
            assert_eq!(got, expected, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn only_redirects_redirect() {
        let base = Url::parse("http://a.example/").unwrap();
        for status in [200, 201, 204, 300, 304, 305, 306, 400, 500] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(step(status, &location(b"/x"), &base), Step::Stop, "{status}");
        }
        for (status, method, expected) in [
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (302, "PUT", "PUT"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (307, "POST", "POST"),
            (308, "POST", "POST"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let method: Method = method.parse().unwrap();
            assert_eq!(next_method(status, &method).as_str(), expected);
        }
    }

    #[test]
    fn refresh_headers() {
        let base = Url::parse("http://a.example/dir/").unwrap();
        for (text, expected) in [
            ("5; url=/next", Some((5.0, "http://a.example/next"))),
            ("0;URL='x'", Some((0.0, "http://a.example/dir/x"))),
            ("0.5, http://b.example/", Some((0.5, "http://b.example/"))),
            ("3", Some((3.0, "http://a.example/dir/"))),
            ("x; url=/next", None),
            ("-1; url=/next", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(REFRESH, HeaderValue::from_static(text));
            let got = refresh_target(&headers, &base);
            let got = got.as_ref().map(|(delay, url)| (*delay, url.as_str()));
            assert_eq!(got, expected, "{text}");
        }
    }
}
