//! The service's own listeners, under every name they have.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, PoisonError, RwLock};

use super::class::AddressClass;

/// Own listeners, shared by the clones of a guard.
pub(super) struct OwnPorts(Arc<RwLock<Vec<SocketAddr>>>);

impl OwnPorts {
    pub(super) fn new(addrs: &[SocketAddr]) -> Self {
        Self(Arc::new(RwLock::new(addrs.to_vec())))
    }

    pub(super) fn add(&self, addr: SocketAddr) -> OwnPort {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        list.push(addr);
        OwnPort { list: Arc::clone(&self.0), addr }
    }

    /// Whether connecting to `ip`:`port` would reach one of the listeners. A listener on a local
    /// address is taken to be reachable through every local address: a wildcard bind is, and a
    /// redirect rule of the host may make it so.
    pub(super) fn covers(&self, ip: IpAddr, port: u16, locals: &LocalAddresses) -> bool {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        list.iter()
            .filter(|own| own.port() == port)
            .any(|own| own.ip() == ip || (is_here(own.ip(), locals) && is_here(ip, locals)))
    }
}

fn is_here(ip: IpAddr, locals: &LocalAddresses) -> bool {
    matches!(AddressClass::of(ip), AddressClass::Loopback | AddressClass::Unspecified) || locals.holds(ip)
}

/// One of the service's own listeners; refused while this value lives.
#[derive(Debug)]
pub struct OwnPort {
    list: Arc<RwLock<Vec<SocketAddr>>>,
    addr: SocketAddr,
}

impl OwnPort {
    /// The listener's address.
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for OwnPort {
    fn drop(&mut self) {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = list.iter().position(|addr| *addr == self.addr) {
            list.swap_remove(at);
        }
    }
}

/// Answers "is this address one of this machine's interfaces?" by trying to bind to it.
///
/// Interfaces come and go (containers, VPNs), so a list read at start would lie; the bind is two
/// system calls and only made for new connections.
pub(super) struct LocalAddresses {
    usable: bool,
}

impl LocalAddresses {
    /// Where the kernel lets anyone bind to any address (`ip_nonlocal_bind`) the question has no
    /// answer, and no address counts as local but loopback.
    pub(super) fn probe() -> Self {
        // Two TEST-NET addresses: one of them could be an interface of a test network.
        let foreign = [Ipv4Addr::new(198, 51, 100, 37), Ipv4Addr::new(203, 0, 113, 91)];
        Self { usable: !foreign.iter().all(|ip| can_bind(IpAddr::V4(*ip))) }
    }

    pub(super) fn holds(&self, ip: IpAddr) -> bool {
        // Binding to a multicast or broadcast address succeeds anywhere.
        let unicast = !matches!(
            AddressClass::of(ip),
            AddressClass::Multicast | AddressClass::Broadcast | AddressClass::Unspecified
        );
        self.usable && unicast && can_bind(ip)
    }
}

fn can_bind(ip: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(ip, 0)).is_ok()
}
