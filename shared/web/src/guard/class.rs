//! Address classes, from the IANA special-purpose registries (RFC 6890 and its successors).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of place an address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// Global unicast: the web.
    Public,
    /// 0.0.0.0, `::`: connects to this machine.
    Unspecified,
    /// 127/8, `::1`.
    Loopback,
    /// RFC 1918.
    Private,
    /// 169.254/16, fe80::/10.
    LinkLocal,
    /// 100.64/10, RFC 6598.
    Cgnat,
    /// fc00::/7, RFC 4193.
    UniqueLocal,
    /// fec0::/10, deprecated by RFC 3879 but routed by some networks.
    SiteLocal,
    /// Cloud metadata, credential and time services.
    Metadata,
    /// 224/4, ff00::/8.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
    /// TEST-NETs, 2001:db8::/32, 3fff::/20.
    Documentation,
    /// 198.18/15, 2001:2::/48.
    Benchmark,
    /// Everything else that is not global unicast.
    Reserved,
    /// ::ffff:0:0/96: an IPv4 address in IPv6 clothes.
    Ipv4Mapped,
    /// ::/96, deprecated.
    Ipv4Compatible,
    /// 64:ff9b::/96 and 64:ff9b:1::/48, RFC 6052 and RFC 8215.
    Nat64,
    /// 2002::/16.
    SixToFour,
    /// 2001::/32.
    Teredo,
    /// ::0:5efe:a.b.c.d interface identifiers, RFC 5214.
    Isatap,
}

impl AddressClass {
    /// The class of `ip` as written; what it may wrap is looked at apart.
    pub fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => of_v4(ip),
            IpAddr::V6(ip) => of_v6(ip),
        }
    }

    /// The text used in refusals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Cgnat => "cgnat",
            Self::UniqueLocal => "unique-local",
            Self::SiteLocal => "site-local",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Documentation => "documentation",
            Self::Benchmark => "benchmark",
            Self::Reserved => "reserved",
            Self::Ipv4Mapped => "ipv4-mapped",
            Self::Ipv4Compatible => "ipv4-compatible",
            Self::Nat64 => "nat64",
            Self::SixToFour => "6to4",
            Self::Teredo => "teredo",
            Self::Isatap => "isatap",
        }
    }

    /// Whether an operator's "allow private" opens it.
    pub(crate) const fn is_private(self) -> bool {
        matches!(
            self,
            Self::Unspecified
                | Self::Loopback
                | Self::Private
                | Self::LinkLocal
                | Self::Cgnat
                | Self::UniqueLocal
                | Self::SiteLocal
                | Self::Documentation
                | Self::Benchmark
        )
    }

    /// Whether the address stands for an IPv4 address inside it.
    pub(crate) const fn is_wrapper(self) -> bool {
        matches!(
            self,
            Self::Ipv4Mapped | Self::Ipv4Compatible | Self::Nat64 | Self::SixToFour | Self::Teredo | Self::Isatap
        )
    }
}

fn of_v4(ip: Ipv4Addr) -> AddressClass {
    use AddressClass as C;
    match ip.octets() {
        // AWS: instance metadata, DNS, time (169.254.169.x), ECS and EKS credentials (.170.x),
        // Lambda's trace daemon and sandbox side (.79.x, .100.x). Azure: 168.63.129.16.
        // Alibaba: 100.100.100.200. Oracle: 192.0.0.192.
        [169, 254, 79 | 100 | 169 | 170, _] => C::Metadata,
        [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => C::Metadata,
        [0, 0, 0, 0] => C::Unspecified,
        [0, ..] => C::Reserved,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => C::Private,
        [100, 64..=127, ..] => C::Cgnat,
        [127, ..] => C::Loopback,
        [169, 254, ..] => C::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => C::Documentation,
        [192, 0, 0, _] | [192, 88, 99, _] => C::Reserved,
        [198, 18 | 19, ..] => C::Benchmark,
        [224..=239, ..] => C::Multicast,
        [255, 255, 255, 255] => C::Broadcast,
        [240..=255, ..] => C::Reserved,
        _ => C::Public,
    }
}

fn of_v6(ip: Ipv6Addr) -> AddressClass {
    use AddressClass as C;
    match ip.segments() {
        // AWS: metadata, DNS, time, credentials at fd00:ec2::/32. Google: fd20:ce::254.
        [0xfd00, 0x0ec2, ..] | [0xfd20, 0x00ce, ..] => C::Metadata,
        [0, 0, 0, 0, 0, 0, 0, 0] => C::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => C::Loopback,
        [0, 0, 0, 0, 0, 0xffff, ..] => C::Ipv4Mapped,
        // RFC 2765's translated form, ::ffff:0:a.b.c.d.
        [0, 0, 0, 0, 0xffff, 0, ..] => C::Ipv4Mapped,
        [0, 0, 0, 0, 0, 0, ..] => C::Ipv4Compatible,
        [0x0064, 0xff9b, 0, 0, 0, 0, ..] | [0x0064, 0xff9b, 1, ..] => C::Nat64,
        [0xfe80..=0xfebf, ..] => C::LinkLocal,
        [0xfec0..=0xfeff, ..] => C::SiteLocal,
        [0xfc00..=0xfdff, ..] => C::UniqueLocal,
        [0xff00..=0xffff, ..] => C::Multicast,
        [0x2002, ..] => C::SixToFour,
        [0x2001, 0, ..] => C::Teredo,
        [0x2001, 2, 0, ..] => C::Benchmark,
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => C::Documentation,
        [0x2001, 0..=0x01ff, ..] => C::Reserved,
        [_, _, _, _, 0 | 0x0200, 0x5efe, ..] => C::Isatap,
        [0x2000..=0x3fff, ..] => C::Public,
        _ => C::Reserved,
    }
}

/// An address and the IPv4 addresses a translator on the way could turn it into.
pub(super) struct Forms {
    as_written: IpAddr,
    wrapped: [Option<Ipv4Addr>; 2],
}

impl Forms {
    pub(super) fn of(ip: IpAddr) -> Self {
        let wrapped = match ip {
            IpAddr::V4(_) => [None, None],
            IpAddr::V6(v6) => wrapped(v6),
        };
        Self { as_written: ip, wrapped }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = IpAddr> {
        // The wrapped address names the real target, so it is the one to report first.
        let wrapped = self.wrapped.iter().flatten().map(|ip| IpAddr::V4(*ip));
        std::iter::once(self.as_written).chain(wrapped)
    }
}

fn wrapped(ip: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let s = ip.segments();
    let v4 = |hi: u16, lo: u16| Some(Ipv4Addr::from((u32::from(hi) << 16) | u32::from(lo)));
    match AddressClass::of(IpAddr::V6(ip)) {
        AddressClass::Ipv4Mapped | AddressClass::Ipv4Compatible | AddressClass::Isatap => [v4(s[6], s[7]), None],
        // RFC 6052 section 2.2 with the well-known /96; the local-use /48 may also place the
        // address in bits 48..88, around the reserved octet.
        AddressClass::Nat64 if s[2] == 1 => {
            let o = ip.octets();
            [v4(s[6], s[7]), Some(Ipv4Addr::new(o[6], o[7], o[9], o[10]))]
        }
        AddressClass::Nat64 => [v4(s[6], s[7]), None],
        AddressClass::SixToFour => [v4(s[1], s[2]), None],
        // RFC 4380 section 4: the server in clear, the client with its bits flipped.
        AddressClass::Teredo => [v4(s[2], s[3]), v4(!s[6], !s[7])],
        _ => [None, None],
    }
}
