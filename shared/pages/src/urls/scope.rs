//! How far from its seeds a crawl goes.

use super::rules::is_below;
use crate::codes;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// How far from its seeds a crawl goes. `http` and `https` of a host are one, and so are `x.org` and `www.x.org`: a seed
/// that redirects from one to the other would otherwise fall out of its own scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Anywhere.
    #[default]
    Any,
    /// The registrable domain of a seed (public suffix list) and everything below it, on any port.
    Domain,
    /// The host of a seed, on its port.
    Host,
    /// The host of a seed, and paths that begin with the seed's up to its last `/`.
    Prefix,
}

impl std::str::FromStr for Scope {
    type Err = &'static str;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "any" => Ok(Scope::Any),
            "domain" => Ok(Scope::Domain),
            "host" => Ok(Scope::Host),
            "prefix" => Ok(Scope::Prefix),
            _ => Err("scope is one of any, domain, host, prefix"),
        }
    }
}

/// A scope with its seeds.
#[derive(Clone, Debug)]
pub struct SeedScope {
    scope: Scope,
    seeds: Vec<Seed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seed {
    host: String,
    port: Option<u16>,
    domain: String,
    prefix: String,
}

impl Seed {
    fn of(url: &Url) -> Option<Seed> {
        let path = url.path();
        let prefix = path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or("/");
        Some(Seed { host: host_key(url)?, port: url.port(), domain: registrable(url)?, prefix: prefix.to_owned() })
    }
}

impl SeedScope {
    /// The scope around `seeds`. Where a seed redirected, give the place it led to as another seed.
    pub fn new<'u>(scope: Scope, seeds: impl IntoIterator<Item = &'u Url>) -> SeedScope {
        let mut unique: Vec<Seed> = Vec::new();
        if scope != Scope::Any {
            for seed in seeds.into_iter().filter_map(Seed::of) {
                if !unique.contains(&seed) {
                    unique.push(seed);
                }
            }
        }
        SeedScope { scope, seeds: unique }
    }

    /// Whether a URL is within the scope.
    ///
    /// # Errors
    /// `OUT_OF_SCOPE`.
    pub fn check(&self, url: &Url) -> Result<(), &'static str> {
        if self.scope == Scope::Any {
            return Ok(());
        }
        let Some(host) = host_key(url) else { return Err(codes::OUT_OF_SCOPE) };
        let inside = self.seeds.iter().any(|seed| {
            let same_host = || host == seed.host && url.port() == seed.port;
            match self.scope {
                Scope::Any => true,
                Scope::Domain => host == seed.domain || is_below(&host, &seed.domain),
                Scope::Host => same_host(),
                Scope::Prefix => same_host() && url.path().starts_with(&seed.prefix),
            }
        });
        if inside { Ok(()) } else { Err(codes::OUT_OF_SCOPE) }
    }
}

/// The host without a trailing dot and without `www.`.
fn host_key(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.');
    let bare = host.strip_prefix("www.").filter(|rest| rest.contains('.')).unwrap_or(host);
    Some(bare.to_owned())
}

/// The domain somebody registered; the host itself where there is none (addresses, `localhost`, a bare suffix).
fn registrable(url: &Url) -> Option<String> {
    match url.host()? {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.');
            Some(psl::domain_str(name).unwrap_or(name).to_owned())
        }
        _ => url.host_str().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_lets_in_what_its_name_says() {
        use Scope::{Any, Domain, Host, Prefix};
        let seed = "https://docs.example.co.uk/guide/intro.html?x=1";
        for (url, inside_of) in [
            ("https://docs.example.co.uk/guide/intro.html", &[Any, Domain, Host, Prefix][..]),
            ("http://docs.example.co.uk/guide/2/deep", &[Any, Domain, Host, Prefix]),
            ("https://www.docs.example.co.uk/guide/2", &[Any, Domain, Host, Prefix]),
            ("https://docs.example.co.uk/guidelines", &[Any, Domain, Host]),
            ("https://docs.example.co.uk:8443/guide/2", &[Any, Domain]),
            ("https://example.co.uk/", &[Any, Domain]),
            ("https://blog.example.co.uk/", &[Any, Domain]),
            ("https://other.co.uk/guide/", &[Any]),
            ("https://docs.example.co.uk.evil.org/guide/", &[Any]),
        ] {
            let url = Url::parse(url).unwrap();
            for scope in [Any, Domain, Host, Prefix] {
                let scoped = SeedScope::new(scope, [&Url::parse(seed).unwrap()]);
                assert_eq!(scoped.check(&url).is_ok(), inside_of.contains(&scope), "{url} in {scope:?}");
            }
        }
    }

    #[test]
    fn addresses_and_local_names_are_their_own_domain() {
        for (seed, url, inside) in [
            ("http://127.0.0.1:8000/a", "http://127.0.0.1:9000/b", true),
            ("http://127.0.0.1:8000/a", "http://10.0.0.1:8000/b", false),
            ("http://localhost:8000/", "http://localhost/", true),
            ("https://me.github.io/", "https://you.github.io/", false),
            ("http://[::1]/", "http://[::1]:1/", true),
        ] {
            let scoped = SeedScope::new(Scope::Domain, [&Url::parse(seed).unwrap()]);
            assert_eq!(scoped.check(&Url::parse(url).unwrap()).is_ok(), inside, "{seed} {url}");
        }
    }

    #[test]
    fn a_redirected_seed_is_a_second_seed() {
        let seeds = [Url::parse("http://old.org/").unwrap(), Url::parse("https://new.org/home/").unwrap()];
        let scoped = SeedScope::new(Scope::Prefix, &seeds);
        assert!(scoped.check(&Url::parse("https://new.org/home/1").unwrap()).is_ok());
        assert_eq!(scoped.check(&Url::parse("https://new.org/other").unwrap()), Err(codes::OUT_OF_SCOPE));
    }
}
