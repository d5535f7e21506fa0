//! Allow and deny lists.

use crate::codes;
use regex::{RegexBuilder, RegexSet, RegexSetBuilder};
use url::{Host, Url};

/// The most patterns a list may have.
pub const MAX_PATTERNS: usize = 1_000;
/// The longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4_096;
/// What all expressions of a list may take when compiled, in bytes.
const MAX_COMPILED: usize = 32 << 20;

/// Why a list was refused. Lists are compiled when a crawl is submitted, so that nobody finds out later that a deny rule
/// never worked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Neither a domain nor a regular expression.
    #[error("URL pattern `{pattern}` is not valid: {reason}")]
    Invalid {
        /// The pattern as it was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Too many patterns, or together too large.
    #[error("URL pattern list is too large: {0}")]
    TooLarge(String),
}

impl RuleError {
    /// A pattern does not get better by trying again.
    pub fn is_permanent(&self) -> bool {
        true
    }
}

/// Compiled allow and deny lists.
///
/// A pattern of only `[\w.*:-]` is a domain rule: that host (with `:port`, only on that port) or any of its subdomains;
/// `*.x` is the subdomains of `x` without `x`, and a `*` elsewhere stands for any run of characters. Every other pattern
/// is a regular expression, searched for in the whole URL without regard to case. Deny wins; if there is an allow list,
/// one of its patterns must match.
#[derive(Clone, Debug, Default)]
pub struct UrlRules {
    allow: Option<RuleList>,
    deny: Option<RuleList>,
}

impl UrlRules {
    /// Compiles both lists. Blank patterns are ignored.
    ///
    /// # Errors
    /// [`RuleError`], naming the first pattern that is not valid.
    pub fn compile<A: AsRef<str>, D: AsRef<str>>(allow: &[A], deny: &[D]) -> Result<UrlRules, RuleError> {
        Ok(UrlRules { allow: RuleList::compile(allow)?, deny: RuleList::compile(deny)? })
    }

    /// Whether a URL may be captured.
    ///
    /// # Errors
    /// `URL_DENIED` or `URL_NOT_ALLOWED`.
    pub fn check(&self, url: &Url) -> Result<(), &'static str> {
        if self.deny.as_ref().is_some_and(|list| list.matches(url)) {
            return Err(codes::URL_DENIED);
        }
        match &self.allow {
            Some(list) if !list.matches(url) => Err(codes::URL_NOT_ALLOWED),
            _ => Ok(()),
        }
    }

    /// Whether there is nothing to check.
    pub fn is_empty(&self) -> bool {
        self.allow.is_none() && self.deny.is_none()
    }
}

#[derive(Clone, Debug)]
struct RuleList {
    domains: Vec<DomainRule>,
    regexes: RegexSet,
}

impl RuleList {
    fn compile<S: AsRef<str>>(patterns: &[S]) -> Result<Option<RuleList>, RuleError> {
        let patterns: Vec<&str> = patterns.iter().map(|p| p.as_ref().trim()).filter(|p| !p.is_empty()).collect();
        if patterns.is_empty() {
            return Ok(None);
        }
        if patterns.len() > MAX_PATTERNS {
            return Err(RuleError::TooLarge(format!("{} patterns, at most {MAX_PATTERNS}", patterns.len())));
        }
        let mut domains = Vec::new();
        let mut regexes = Vec::new();
        for pattern in patterns {
            if pattern.len() > MAX_PATTERN_BYTES {
                return Err(invalid(pattern, format!("longer than {MAX_PATTERN_BYTES} bytes")));
            }
            if is_domain_pattern(pattern) {
                domains.push(DomainRule::parse(pattern)?);
            } else {
                RegexBuilder::new(pattern)
                    .case_insensitive(true)
                    .build()
                    .map_err(|e| invalid(pattern, e.to_string()))?;
                regexes.push(pattern);
            }
        }
        let regexes = RegexSetBuilder::new(&regexes)
            .case_insensitive(true)
            .size_limit(MAX_COMPILED)
            .build()
            .map_err(|e| RuleError::TooLarge(e.to_string()))?;
        Ok(Some(RuleList { domains, regexes }))
    }

    fn matches(&self, url: &Url) -> bool {
        self.domains.iter().any(|rule| rule.matches(url)) || self.regex_matches(url)
    }

    /// `\.css$` means `a.css#top` too, and `#/private` means the fragment: the URL is tried with and without it.
    fn regex_matches(&self, url: &Url) -> bool {
        if self.regexes.is_empty() {
            return false;
        }
        self.regexes.is_match(super::wire(url)) || (url.fragment().is_some() && self.regexes.is_match(url.as_str()))
    }
}

fn invalid(pattern: &str, reason: impl Into<String>) -> RuleError {
    RuleError::Invalid { pattern: pattern.to_owned(), reason: reason.into() }
}

fn is_domain_pattern(pattern: &str) -> bool {
    pattern.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '*' | ':' | '-'))
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostRule {
    /// `*`
    Any,
    /// `x.org`: the host or any subdomain.
    Tree(String),
    /// `*.x.org`: any subdomain.
    Below(String),
    /// An address: itself only.
    Exact(String),
    /// A `*` in the middle.
    Glob(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct DomainRule {
    host: HostRule,
    port: Option<u16>,
}

impl DomainRule {
    fn parse(pattern: &str) -> Result<DomainRule, RuleError> {
        if pattern.contains('*') && pattern.chars().all(|c| matches!(c, '*' | '.')) {
            return Ok(DomainRule { host: HostRule::Any, port: None });
        }
        if let Ok(address) = pattern.parse::<std::net::Ipv6Addr>() {
            return Ok(DomainRule { host: HostRule::Exact(format!("[{address}]")), port: None });
        }
        let (host, port) = match pattern.split_once(':') {
            None => (pattern, None),
            Some((host, "*")) => (host, None),
            Some((host, port)) => match port.parse::<u16>() {
                Ok(port) => (host, Some(port)),
                Err(_) => return Err(invalid(pattern, "the part behind `:` is not a port")),
            },
        };
        Ok(DomainRule { host: HostRule::parse(pattern, host)?, port })
    }

    fn matches(&self, url: &Url) -> bool {
        if self.port.is_some() && self.port != url.port_or_known_default() {
            return false;
        }
        url.host_str().is_some_and(|host| self.host.matches(host.trim_end_matches('.')))
    }
}

impl HostRule {
    fn parse(pattern: &str, host: &str) -> Result<HostRule, RuleError> {
        if host.is_empty() {
            return Err(invalid(pattern, "there is no host"));
        }
        if host == "*" {
            return Ok(HostRule::Any);
        }
        if let Some(parent) = host.strip_prefix("*.").filter(|rest| !rest.contains('*')) {
            return Ok(HostRule::Below(ascii_host(pattern, parent)?));
        }
        if host.contains('*') {
            // `.*x.org` is how people used to regular expressions write "anything that ends so".
            let glob = host.strip_prefix(".*").map_or_else(|| host.to_owned(), |rest| format!("*{rest}"));
            return Ok(HostRule::Glob(glob.to_lowercase()));
        }
        let host = ascii_host(pattern, host.trim_start_matches('.'))?;
        if host.parse::<std::net::Ipv4Addr>().is_ok() {
            return Ok(HostRule::Exact(host));
        }
        Ok(HostRule::Tree(host))
    }

    fn matches(&self, host: &str) -> bool {
        match self {
            HostRule::Any => true,
            HostRule::Exact(name) => host == name,
            HostRule::Tree(name) => host == name || is_below(host, name),
            HostRule::Below(name) => is_below(host, name),
            // The host, or any subdomain of what the pattern matches.
            HostRule::Glob(glob) => {
                glob_matches(glob, host)
                    || host.match_indices('.').any(|(at, _)| host.get(at + 1..).is_some_and(|h| glob_matches(glob, h)))
            }
        }
    }
}

/// Whether `host` is a subdomain of `parent`.
pub(super) fn is_below(host: &str, parent: &str) -> bool {
    host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

fn ascii_host(pattern: &str, host: &str) -> Result<String, RuleError> {
    let host = host.trim_end_matches('.');
    match Host::parse(host) {
        Ok(Host::Domain(name)) if !name.is_empty() => Ok(name),
        Ok(Host::Ipv4(address)) => Ok(address.to_string()),
        Ok(_) => Err(invalid(pattern, "not a host name")),
        Err(e) => Err(invalid(pattern, e.to_string())),
    }
}

/// `*` stands for any run of characters. Linear but for the last star, which is retried.
fn glob_matches(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if glob.get(g) == Some(&b'*') {
            star = Some((g, t));
            g += 1;
        } else if glob.get(g) == text.get(t) {
            g += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            g = at + 1;
            t = from + 1;
            star = Some((at, t));
        } else {
            return false;
        }
    }
    glob.get(g..).is_some_and(|rest| rest.iter().all(|b| *b == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(allow: &[&str], deny: &[&str], url: &str) -> Result<(), &'static str> {
        UrlRules::compile(allow, deny).unwrap().check(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_domain_rule_means_the_host_and_what_is_below() {
        for (pattern, url, expected) in [
            ("example.com", "https://example.com/", true),
            ("example.com", "https://www.example.com/x", true),
            ("example.com", "https://a.b.EXAMPLE.com:8443/x", true),
            ("example.com", "https://example.com./x", true),
            ("example.com", "https://notexample.com/", false),
            ("example.com", "https://example.com.evil.org/", false),
            ("example.com", "https://evil.org/example.com", false),
            ("example.com", "https://example.com@evil.org/", false),
            (".example.com", "https://example.com/", true),
            ("*.example.com", "https://www.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("example.com:8080", "http://example.com:8080/", true),
            ("example.com:8080", "http://example.com/", false),
            ("example.com:80", "http://example.com/", true),
            ("example.com:443", "https://www.example.com/", true),
            ("example.com:*", "https://example.com:99/", true),
            ("localhost", "http://localhost:3000/", true),
            ("127.0.0.1", "http://127.0.0.1:3000/", true),
            ("127.0.0.1:3001", "http://127.0.0.1:3000/", false),
            ("::1", "http://[::1]:3000/", true),
            ("bücher.example", "https://xn--bcher-kva.example/", true),
            ("Example.COM", "https://example.com/", true),
            ("*", "https://anything.org/", true),
            (".*", "https://anything.org/", true),
            ("www.*.org", "https://www.wiki.org/", true),
            ("www.*.org", "https://www.wiki.com/", false),
            (".*pedia.org", "https://de.wikipedia.org/", true),
            ("my_host", "http://my_host/", true),
        ] {
            assert_eq!(check(&[pattern], &[], url).is_ok(), expected, "{pattern} on {url}");
        }
    }

    #[test]
    fn anything_else_is_a_regular_expression_on_the_whole_url() {
        for (pattern, url, expected) in [
            (r"\.(css|js)(\?.*)?$", "https://x.org/a.CSS?v=1", true),
            (r"\.(css|js)(\?.*)?$", "https://x.org/a.css#top", true),
            (r"\.(css|js)(\?.*)?$", "https://x.org/a.css.html", false),
            (r"^https://x\.org/docs/", "https://x.org/docs/1", true),
            (r"^https://x\.org/docs/", "https://y.org/?u=https://x.org/docs/", false),
            (r"/private", "https://x.org/private/1", true),
            (r"#/private", "https://x.org/#/private", true),
            (r"(?-i)/Private", "https://x.org/private", false),
        ] {
            assert_eq!(check(&[], &[pattern], url).is_err(), expected, "{pattern} on {url}");
        }
    }

    #[test]
    fn deny_wins_and_an_allow_list_must_match() {
        let (allow, deny) = (["x.org"], ["/private/"]);
        assert_eq!(check(&allow, &deny, "https://x.org/a"), Ok(()));
        assert_eq!(check(&allow, &deny, "https://x.org/private/a"), Err(codes::URL_DENIED));
        assert_eq!(check(&allow, &deny, "https://y.org/a"), Err(codes::URL_NOT_ALLOWED));
        assert_eq!(check(&["", "  "], &[""], "https://y.org/a"), Ok(()));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        for pattern in ["(unclosed", "[a-", "a{2,1}/", "(?=look)/ahead", "example.com:http", ":80", "x/(a{1000}){1000}"]
        {
            let error = UrlRules::compile(&["ok.org", pattern], &[""; 0]).unwrap_err();
            assert!(error.to_string().contains(pattern), "{error}");
            assert!(error.is_permanent());
        }
        assert!(UrlRules::compile(&[""; 0], &vec!["x.org"; MAX_PATTERNS + 1]).is_err());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn never_panics(pattern in ".{0,40}", domain in "[\\w.*:-]{1,20}", path in ".{0,40}") {
            let url = Url::parse("https://x.org/").unwrap().join(&path).unwrap_or(Url::parse("data:x").unwrap());
            for p in [pattern, domain] {
                if let Ok(rules) = UrlRules::compile(&[p.as_str()], &[p.as_str()]) {
                    let _ = rules.check(&url);
                }
            }
        }
    }
}
