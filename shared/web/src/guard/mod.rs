//! The egress guard: which addresses and ports this service may connect to.
//!
//! A page's URL, its redirects and its subresources are chosen by strangers. Whatever they name, only
//! public addresses are reached: the check is made on the address a socket is about to be opened to
//! (see [`crate::dial`]), so neither spelling (`0x7f.1`), nor DNS answers that change between two
//! look-ups, nor a redirect gets around it.
//!
//! What the operator may open: single networks ([`GuardConfig::allow`]) or all private space
//! ([`GuardConfig::allow_private`]). What nobody can open: the service's own ports, the ports browsers
//! block, and (but by naming the network) cloud metadata services.

mod cidr;
mod class;
mod own;
mod ports;

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

pub use cidr::{Cidr, CidrError};
pub use class::AddressClass;
pub use own::OwnPort;
pub use ports::is_bad_port;

use crate::code::FetchCode;

/// What the operator decided. Never part of a request.
#[derive(Debug, Clone, Default)]
pub struct GuardConfig {
    /// Opens private space: loopback, RFC 1918, link-local, CGNAT, ULA and addresses that embed
    /// those. Multicast, reserved space, cloud metadata and the service's own ports stay refused.
    pub allow_private: bool,
    /// Networks opened one by one, whatever their class. Own ports and bad ports stay refused.
    pub allow: Vec<Cidr>,
    /// The service's own listeners (API, replay, proxy, debugger). Refused always, also through
    /// every other name of this machine when the address is a local one.
    pub own: Vec<SocketAddr>,
}

/// A [`GuardConfig`] text that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GuardConfigError {
    /// A bad entry of `FONDS_EGRESS_ALLOW`.
    #[error("FONDS_EGRESS_ALLOW: {0}")]
    Allow(#[from] CidrError),
    /// A bad entry of `FONDS_EGRESS_OWN`.
    #[error("FONDS_EGRESS_OWN: \"{0}\" is not address:port")]
    Own(String),
}

impl GuardConfig {
    /// Reads `FONDS_EGRESS_ALLOW` (`cidr,...`), `FONDS_EGRESS_ALLOW_PRIVATE` (`1` or `true`) and
    /// `FONDS_EGRESS_OWN` (`address:port,...`). On Lambda the runtime's own endpoint and the trace
    /// daemon count as own ports.
    pub fn from_env() -> Result<Self, GuardConfigError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    fn from_lookup(var: impl Fn(&str) -> Option<String>) -> Result<Self, GuardConfigError> {
        let mut config = Self {
            allow_private: var("FONDS_EGRESS_ALLOW_PRIVATE").is_some_and(|v| matches!(v.trim(), "1" | "true" | "yes")),
            ..Self::default()
        };
        for entry in entries(&var("FONDS_EGRESS_ALLOW").unwrap_or_default()) {
            config.allow.push(entry.parse()?);
        }
        for entry in entries(&var("FONDS_EGRESS_OWN").unwrap_or_default()) {
            let addr = entry.parse();
            config.own.push(addr.map_err(|_| GuardConfigError::Own(entry.to_owned()))?);
        }
        for name in ["AWS_LAMBDA_RUNTIME_API", "AWS_XRAY_DAEMON_ADDRESS"] {
            // Best effort: the value may be a host name, and Lambda's is a link-local literal today.
            if let Some(addr) = var(name).and_then(|v| v.parse().ok()) {
                config.own.push(addr);
            }
        }
        Ok(config)
    }
}

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|s| !s.is_empty())
}

/// Why an address may not be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The address that was about to be connected to.
    pub addr: SocketAddr,
    /// The class of the refusal, such as `loopback`, `metadata`, `own-service` or `bad-port`.
    pub reason: &'static str,
}

impl Refusal {
    /// Always [`FetchCode::EgressRefused`].
    pub const fn code(&self) -> FetchCode {
        FetchCode::EgressRefused
    }

    /// A refusal is the operator's decision: asking again cannot help.
    pub const fn is_permanent(&self) -> bool {
        true
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused ({})", self.addr, self.reason)
    }
}

impl std::error::Error for Refusal {}

/// The guard. Cheap to clone; clones share the list of own ports.
#[derive(Clone)]
pub struct Guard {
    inner: Arc<Inner>,
}

struct Inner {
    allow_private: bool,
    allow: Vec<Cidr>,
    own: own::OwnPorts,
    locals: own::LocalAddresses,
}

impl Guard {
    /// A guard under `config`.
    pub fn new(config: GuardConfig) -> Self {
        Self {
            inner: Arc::new(Inner {
                allow_private: config.allow_private,
                allow: config.allow,
                own: own::OwnPorts::new(&config.own),
                locals: own::LocalAddresses::probe(),
            }),
        }
    }

    /// A guard under [`GuardConfig::from_env`].
    pub fn from_env() -> Result<Self, GuardConfigError> {
        Ok(Self::new(GuardConfig::from_env()?))
    }

    /// Adds one of the service's own listeners; it is refused until the returned value is dropped.
    #[must_use = "the port is only refused while this value lives"]
    pub fn own(&self, addr: SocketAddr) -> OwnPort {
        self.inner.own.add(addr)
    }

    /// Whether a socket may be opened to `ip`:`port`.
    pub fn check(&self, ip: IpAddr, port: u16) -> Result<(), Refusal> {
        let refuse = |reason| Err(Refusal { addr: SocketAddr::new(ip, port), reason });
        let forms = class::Forms::of(ip);
        if forms.iter().any(|form| self.inner.own.covers(form, port, &self.inner.locals)) {
            return refuse("own-service");
        }
        if is_bad_port(port) {
            return refuse("bad-port");
        }
        // A wrapped address (mapped, NAT64, 6to4) passes only if both the wrapper and what it
        // wraps pass; naming the wrapped network opens its wrappers too.
        let named = forms.iter().any(|form| self.is_allowed(form));
        for form in forms.iter() {
            let class = AddressClass::of(form);
            let open = match class {
                AddressClass::Public if self.inner.locals.holds(form) => {
                    if named || self.inner.allow_private {
                        continue;
                    }
                    return refuse("this-host");
                }
                AddressClass::Public => true,
                _ if class.is_wrapper() => named || self.inner.allow_private,
                _ if class.is_private() => self.is_allowed(form) || self.inner.allow_private,
                _ => self.is_allowed(form),
            };
            if !open {
                return refuse(class.as_str());
            }
        }
        Ok(())
    }

    fn is_allowed(&self, ip: IpAddr) -> bool {
        self.inner.allow.iter().any(|cidr| cidr.contains(ip))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("allow_private", &self.inner.allow_private)
            .field("allow", &self.inner.allow)
            .finish_non_exhaustive()
    }
}
