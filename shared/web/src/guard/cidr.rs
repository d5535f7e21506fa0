//! Networks as the operator writes them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network: an address and a prefix length. A bare address is a network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    ip: IpAddr,
    prefix: u8,
}

/// Text that is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a network such as 10.0.0.0/8 or fd00::/8")]
pub struct CidrError(String);

impl Cidr {
    /// `None` when the prefix is longer than the address.
    pub const fn new(ip: IpAddr, prefix: u8) -> Option<Self> {
        let width = match ip {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        if prefix > width {
            return None;
        }
        Some(Self { ip, prefix })
    }

    /// Whether `ip` lies in this network. Families never mix.
    pub fn contains(&self, ip: IpAddr) -> bool {
        match (self.ip, ip) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                u32::from(net) & mask == u32::from(ip) & mask
            }
            (IpAddr::V6(net), IpAddr::V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                u128::from(net) & mask == u128::from(ip) & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let parsed = match text.split_once('/') {
            None => text.parse().ok().map(|ip: IpAddr| match ip {
                IpAddr::V4(_) => Self { ip, prefix: 32 },
                IpAddr::V6(_) => Self { ip, prefix: 128 },
            }),
            Some((ip, prefix)) => {
                ip.parse().ok().zip(prefix.parse().ok()).and_then(|(ip, prefix)| Self::new(ip, prefix))
            }
        };
        parsed.ok_or_else(|| CidrError(text.to_owned()))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.prefix)
    }
}
