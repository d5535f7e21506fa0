//! Cookies within one fetch. Many sites set one and redirect back to see whether it sticks; without it
//! they redirect for ever. Nothing outlives the fetch.

use chrono::Utc;
use http::HeaderMap;
use http::header::SET_COOKIE;
use url::{Host, Url};

use crate::politeness::parse_http_date;

/// Cookies set on the way (RFC 6265 without what only matters across fetches).
#[derive(Debug, Default)]
pub(super) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    domain: String,
    host_only: bool,
    path: String,
    secure: bool,
}

impl Jar {
    const MAX: usize = 100;

    /// Takes the cookies a response from `url` sets.
    pub(super) fn take(&mut self, headers: &HeaderMap, url: &Url) {
        for value in headers.get_all(SET_COOKIE) {
            let text = String::from_utf8_lossy(value.as_bytes());
            let Some((cookie, alive)) = parse(&text, url) else {
                continue;
            };
            self.cookies
                .retain(|old| (&old.name, &old.domain, &old.path) != (&cookie.name, &cookie.domain, &cookie.path));
            if alive && self.cookies.len() < Self::MAX {
                self.cookies.push(cookie);
            }
        }
    }

    /// The `Cookie` value for a request to `url`.
    pub(super) fn header_for(&self, url: &Url) -> Option<String> {
        if self.cookies.is_empty() {
            return None;
        }
        let host = url.host_str()?;
        let mut fits: Vec<&Cookie> = self.cookies.iter().filter(|c| c.fits(url, host)).collect();
        // RFC 6265 section 5.4: longer paths first.
        fits.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> = fits
            .iter()
            .map(|c| match c.name.is_empty() {
                true => c.value.clone(),
                false => format!("{}={}", c.name, c.value),
            })
            .collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

impl Cookie {
    fn fits(&self, url: &Url, host: &str) -> bool {
        let domain = match self.host_only {
            true => host == self.domain,
            false => in_domain(host, &self.domain),
        };
        let path = url.path().strip_prefix(self.path.as_str());
        let path = path.is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/'));
        domain && path && (!self.secure || url.scheme() == "https")
    }
}

fn in_domain(host: &str, domain: &str) -> bool {
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// RFC 6265 section 5.2 and 5.3. The flag is `false` for a cookie that is already over.
fn parse(text: &str, url: &Url) -> Option<(Cookie, bool)> {
    let host = url.host_str()?;
    let mut parts = text.split(';');
    let pair = parts.next()?.trim();
    let (name, value) = pair.split_once('=').unwrap_or(("", pair));
    let mut cookie = Cookie {
        name: name.trim().to_owned(),
        value: value.trim().to_owned(),
        domain: host.to_owned(),
        host_only: true,
        path: default_path(url),
        secure: false,
    };
    if pair.is_empty() || pair.contains(|c: char| c.is_control()) {
        return None;
    }
    let (mut max_age, mut expires) = (None, None);
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "domain" => {
                let domain = value.trim_start_matches('.').to_ascii_lowercase();
                if domain.is_empty() {
                    continue;
                }
                if !may_set_for(url, host, &domain) {
                    return None;
                }
                cookie.host_only = !matches!(url.host(), Some(Host::Domain(_)));
                cookie.domain = domain;
            }
            "path" if value.starts_with('/') => cookie.path = value.to_owned(),
            "secure" => cookie.secure = true,
            "max-age" => max_age = value.parse::<i64>().ok(),
            "expires" => expires = parse_http_date(value),
            _ => {}
        }
    }
    let alive = match (max_age, expires) {
        (Some(seconds), _) => seconds > 0,
        (None, Some(end)) => end > Utc::now(),
        (None, None) => true,
    };
    Some((cookie, alive))
}

/// A host may set cookies for itself and its parents, but not for a public suffix.
fn may_set_for(url: &Url, host: &str, domain: &str) -> bool {
    if host == domain {
        return true;
    }
    let is_suffix = psl::suffix_str(domain).is_some_and(|suffix| suffix == domain);
    matches!(url.host(), Some(Host::Domain(_))) && in_domain(host, domain) && !is_suffix
}

fn default_path(url: &Url) -> String {
    match url.path().rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(end) => url.path()[..end].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn check(from: &str, set: &[&str], to: &str, expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for value in set {
            headers.append(SET_COOKIE, HeaderValue::from_str(value).unwrap());
        }
        let mut jar = Jar::default();
        jar.take(&headers, &Url::parse(from).unwrap());
        let got = jar.header_for(&Url::parse(to).unwrap());
        assert_eq!(got.as_deref(), expected, "{from} {set:?} -> {to}");
    }

    #[test]
    fn cookies_go_where_they_belong() {
        let a = "https://www.shop.example/cart/view";
        check(a, &["a=1"], a, Some("a=1"));
        check(a, &["a=1"], "https://www.shop.example/", None);
        check(a, &["a=1; Path=/"], "https://www.shop.example/", Some("a=1"));
        check(a, &["a=1; Path=/"], "https://shop.example/", None);
        check(a, &["a=1; Path=/; Domain=.shop.example"], "https://shop.example/", Some("a=1"));
        check(a, &["a=1; Path=/; Domain=shop.example"], "https://x.shop.example/", Some("a=1"));
        check(a, &["a=1; Path=/; Domain=other.example"], "https://other.example/", None);
        check(a, &["a=1; Path=/; Domain=example"], "https://evil.example/", None);
        check("https://x.co.uk/", &["a=1; Domain=co.uk"], "https://y.co.uk/", None);
        check(a, &["a=1; Path=/; Secure"], "http://www.shop.example/", None);
        check(a, &["a=1; Path=/ca"], a, None);
        check(a, &["a=1; Path=/", "a=2; Path=/"], a, Some("a=2"));
        check(a, &["a=1; Path=/", "b=2; Path=/cart"], a, Some("b=2; a=1"));
        check(a, &["a=1", "a=; Max-Age=0"], a, None);
        check(a, &["a=1", "a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], a, None);
        check(a, &["novalue", ";x"], a, Some("novalue"));
        check("http://127.0.0.1:1/", &["a=1; Domain=127.0.0.1"], "http://127.0.0.1:2/", Some("a=1"));
    }
}
