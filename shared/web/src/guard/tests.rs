//! The egress table: what is asked for, under which configuration, and the answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::dial::{DialError, Dialer, DialerConfig};
use crate::testing::{Origin, OriginConfig, ScriptedResolver};

const OWN_PORT: u16 = 18_443;

fn guard(allow_private: bool, allow: &[&str]) -> Guard {
    Guard::new(GuardConfig {
        allow_private,
        allow: allow.iter().map(|c| c.parse().unwrap()).collect(),
        own: vec![SocketAddr::from(([127, 0, 0, 1], OWN_PORT))],
    })
}

fn answer(guard: &Guard, ip: &str, port: u16) -> &'static str {
    match guard.check(ip.parse().unwrap(), port) {
        Ok(()) => "ok",
        Err(refusal) => {
            assert_eq!(refusal.code().as_str(), "EGRESS_REFUSED");
            assert_eq!(refusal.addr.port(), port);
            refusal.reason
        }
    }
}

/// Address, answer by default, answer under "allow private".
const ADDRESSES: &[(&str, &str, &str)] = &[
    // The web.
    ("8.8.8.8", "ok", "ok"),
    ("93.184.216.34", "ok", "ok"),
    ("172.15.255.255", "ok", "ok"),
    ("172.32.0.1", "ok", "ok"),
    ("100.63.255.255", "ok", "ok"),
    ("100.128.0.1", "ok", "ok"),
    ("223.255.255.255", "ok", "ok"),
    ("2606:4700::6810:84e5", "ok", "ok"),
    ("2a00:1450:4001:800::200e", "ok", "ok"),
    // This machine and its neighbours.
    ("127.0.0.1", "loopback", "ok"),
    ("127.255.255.254", "loopback", "ok"),
    ("::1", "loopback", "ok"),
    ("0.0.0.0", "unspecified", "ok"),
    ("::", "unspecified", "ok"),
    ("10.1.2.3", "private", "ok"),
    ("172.16.0.1", "private", "ok"),
    ("172.31.255.255", "private", "ok"),
    ("192.168.1.1", "private", "ok"),
    ("169.254.1.1", "link-local", "ok"),
    ("fe80::1", "link-local", "ok"),
    ("febf::1", "link-local", "ok"),
    ("100.64.0.1", "cgnat", "ok"),
    ("100.127.255.255", "cgnat", "ok"),
    ("fc00::1", "unique-local", "ok"),
    ("fdff::1", "unique-local", "ok"),
    ("fec0::1", "site-local", "ok"),
    // Nobody's.
    ("0.1.2.3", "reserved", "reserved"),
    ("192.0.0.8", "reserved", "reserved"),
    ("192.88.99.1", "reserved", "reserved"),
    ("240.0.0.1", "reserved", "reserved"),
    ("255.255.255.255", "broadcast", "broadcast"),
    ("224.0.0.1", "multicast", "multicast"),
    ("239.255.255.255", "multicast", "multicast"),
    ("ff02::1", "multicast", "multicast"),
    ("192.0.2.200", "documentation", "ok"),
    ("198.51.100.1", "documentation", "ok"),
    ("203.0.113.1", "documentation", "ok"),
    ("2001:db8::1", "documentation", "ok"),
    ("3fff::1", "documentation", "ok"),
    ("198.18.0.1", "benchmark", "ok"),
    ("198.19.255.255", "benchmark", "ok"),
    ("2001:2::1", "benchmark", "ok"),
    ("2001:10::1", "reserved", "reserved"),
    ("4000::1", "reserved", "reserved"),
    ("100::1", "reserved", "reserved"),
    // Cloud metadata and credentials.
    ("169.254.169.254", "metadata", "metadata"),
    ("169.254.169.253", "metadata", "metadata"),
    ("169.254.170.2", "metadata", "metadata"),
    ("169.254.170.23", "metadata", "metadata"),
    ("169.254.100.1", "metadata", "metadata"),
    ("168.63.129.16", "metadata", "metadata"),
    ("100.100.100.200", "metadata", "metadata"),
    ("192.0.0.192", "metadata", "metadata"),
    ("fd00:ec2::254", "metadata", "metadata"),
    ("fd20:ce::254", "metadata", "metadata"),
    // IPv4 in IPv6 clothes: private inside, public inside, metadata inside.
    ("::ffff:127.0.0.1", "ipv4-mapped", "ok"),
    ("::ffff:8.8.8.8", "ipv4-mapped", "ok"),
    ("::ffff:169.254.169.254", "ipv4-mapped", "metadata"),
    ("::ffff:0:10.0.0.1", "ipv4-mapped", "ok"),
    ("::127.0.0.1", "ipv4-compatible", "ok"),
    ("::169.254.169.254", "ipv4-compatible", "metadata"),
    ("64:ff9b::10.0.0.1", "nat64", "ok"),
    ("64:ff9b::8.8.8.8", "nat64", "ok"),
    ("64:ff9b::169.254.169.254", "nat64", "metadata"),
    ("64:ff9b:1::10.0.0.1", "nat64", "ok"),
    ("64:ff9b:1:a9fe:a9:fe00::", "nat64", "metadata"),
    ("2002:7f00:1::", "6to4", "ok"),
    ("2002:a9fe:a9fe::1", "6to4", "metadata"),
    ("2001:0:808:808:0:0:80ff:fffe", "teredo", "ok"),
    ("2001:0:a9fe:a9fe:0:0:f7f7:f7f7", "teredo", "metadata"),
    ("2606:4700::5efe:10.0.0.1", "isatap", "ok"),
];

#[test]
fn every_address_class_is_judged() {
    let (closed, private) = (guard(false, &[]), guard(true, &[]));
    for (ip, by_default, if_private) in ADDRESSES {
        assert_eq!(answer(&closed, ip, 80), *by_default, "{ip}");
        assert_eq!(answer(&private, ip, 80), *if_private, "{ip}, private allowed");
    }
}

#[test]
fn the_operator_opens_networks_one_by_one() {
    for (allow, ip, expected) in [
        ("10.0.0.0/8", "10.9.8.7", "ok"),
        ("10.0.0.0/8", "11.0.0.1", "ok"),
        ("10.0.0.0/8", "192.168.0.1", "private"),
        ("10.0.0.0/8", "::ffff:10.0.0.1", "ok"),
        ("10.0.0.0/8", "::ffff:127.0.0.1", "ipv4-mapped"),
        ("10.0.0.0/8", "64:ff9b::10.0.0.1", "ok"),
        ("64:ff9b::/96", "64:ff9b::8.8.8.8", "ok"),
        ("64:ff9b::/96", "64:ff9b::10.0.0.1", "private"),
        ("64:ff9b::/96", "64:ff9b::169.254.169.254", "metadata"),
        ("169.254.0.0/16", "169.254.169.254", "ok"),
        ("127.0.0.1", "127.0.0.1", "ok"),
        ("127.0.0.1", "127.0.0.2", "loopback"),
        ("fd12::/16", "fd12:3456::1", "ok"),
        ("0.0.0.0/0", "169.254.169.254", "ok"),
        ("::/0", "::1", "ok"),
    ] {
        assert_eq!(answer(&guard(false, &[allow]), ip, 80), expected, "{allow}: {ip}");
    }
}

#[test]
fn own_ports_are_refused_under_every_alias() {
    for guard in [guard(false, &[]), guard(true, &[]), guard(true, &["0.0.0.0/0", "::/0"])] {
        for ip in [
            "127.0.0.1",
            "127.0.0.2",
            "127.1.2.3",
            "0.0.0.0",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:0.0.0.0",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "2002:7f00:1::",
        ] {
            assert_eq!(answer(&guard, ip, OWN_PORT), "own-service", "{ip}");
        }
        assert_eq!(answer(&guard, "8.8.8.8", OWN_PORT), "ok");
    }
    assert_eq!(answer(&guard(true, &[]), "127.0.0.1", OWN_PORT + 1), "ok");
}

#[test]
fn own_ports_are_refused_through_this_machines_interfaces() {
    // A UDP "connection" sends nothing but makes the kernel choose the outward address.
    let Some(ip) = std::net::UdpSocket::bind("0.0.0.0:0")
        .and_then(|socket| {
            socket.connect("198.51.100.1:9")?;
            socket.local_addr()
        })
        .ok()
        .map(|addr| addr.ip())
        .filter(|ip| !ip.is_unspecified())
    else {
        eprintln!("no network interface: the alias cannot be tested here");
        return;
    };
    let guard = guard(true, &[]);
    assert_eq!(answer(&guard, &ip.to_string(), OWN_PORT), "own-service");
    assert_eq!(answer(&guard, &ip.to_string(), OWN_PORT + 1), "ok");
}

#[test]
fn a_listener_is_own_while_its_token_lives() {
    let guard = guard(true, &[]);
    let addr = SocketAddr::from(([0, 0, 0, 0], 12_345));
    let token = guard.clone().own(addr);
    assert_eq!(answer(&guard, "127.0.0.1", 12_345), "own-service");
    drop(token);
    assert_eq!(answer(&guard, "127.0.0.1", 12_345), "ok");
}

#[test]
fn ports_of_other_protocols_are_refused() {
    for port in [0, 22, 25, 53, 110, 143, 6000, 6667, 10_080] {
        assert_eq!(answer(&guard(false, &[]), "8.8.8.8", port), "bad-port");
        assert_eq!(answer(&guard(true, &["0.0.0.0/0"]), "127.0.0.1", port), "bad-port");
    }
}

#[test]
fn the_environment_configures_the_guard() {
    let read = |vars: &[(&str, &str)]| {
        GuardConfig::from_lookup(|name| {
            let found = vars.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    };
    let config = read(&[
        ("FONDS_EGRESS_ALLOW", "10.0.0.0/8, fd00::/8,,127.0.0.1"),
        ("FONDS_EGRESS_ALLOW_PRIVATE", "true"),
        ("FONDS_EGRESS_OWN", "127.0.0.1:8080,[::]:8081"),
        ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001"),
    ])
    .unwrap();
    assert!(config.allow_private);
    assert_eq!(config.allow.len(), 3);
    assert_eq!(config.own.len(), 3);
    let nothing = read(&[]).unwrap();
    assert!(!nothing.allow_private && nothing.allow.is_empty() && nothing.own.is_empty());
    for (name, value) in
        [("FONDS_EGRESS_ALLOW", "10.0.0.0/33"), ("FONDS_EGRESS_ALLOW", "intranet"), ("FONDS_EGRESS_OWN", "8080")]
    {
        let error = read(&[(name, value)]).err().map(|e| e.to_string());
        assert!(error.is_some_and(|text| text.contains(name)), "{value}");
    }
}

#[test]
fn networks_contain_what_they_should() {
    for (net, ip, expected) in [
        ("10.0.0.0/8", "10.255.0.1", true),
        ("10.1.2.3/8", "10.255.0.1", true),
        ("10.0.0.0/8", "11.0.0.1", false),
        ("0.0.0.0/0", "1.2.3.4", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "::1", true),
        ("fd00::/8", "fdab::1", true),
        ("fd00::/8", "fc00::1", false),
        ("1.2.3.4", "1.2.3.4", true),
        ("1.2.3.4", "1.2.3.5", false),
    ] {
        let net: Cidr = net.parse().unwrap();
        assert_eq!(net.contains(ip.parse().unwrap()), expected, "{net} {ip}");
    }
    for text in ["", "/", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0/8", "a/8", "1.2.3.4/-1"] {
        assert!(text.parse::<Cidr>().is_err(), "{text}");
    }
}

proptest! {
    /// Whatever wraps an address, the wrapper is never more open than what it wraps.
    #[test]
    fn wrapping_opens_nothing(v4: [u8; 4], port in 1024..60000u16, private: bool) {
        let guard = guard(private, &[]);
        let v4 = std::net::Ipv4Addr::from(v4);
        let o = v4.octets();
        let (hi, lo) = (u16::from_be_bytes([o[0], o[1]]), u16::from_be_bytes([o[2], o[3]]));
        let bare = guard.check(IpAddr::V4(v4), port).is_ok();
        for wrapped in [
            IpAddr::from([0, 0, 0, 0, 0, 0xffff, hi, lo]),
            IpAddr::from([0x64, 0xff9b, 0, 0, 0, 0, hi, lo]),
            IpAddr::from([0x2002, hi, lo, 0, 0, 0, 0, 1]),
        ] {
            let open = guard.check(wrapped, port).is_ok();
            prop_assert!(bare || !open, "{} is open, {} is not", wrapped, v4);
        }
    }
}

fn dialer(guard: Guard, resolver: ScriptedResolver) -> Dialer {
    Dialer::new(guard, Arc::new(resolver), DialerConfig::default())
}

/// The spellings of an address that get as far as the connector (a raw CONNECT, say).
#[tokio::test]
async fn spellings_of_loopback_are_seen_through() {
    let dialer = dialer(guard(false, &[]), ScriptedResolver::new());
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0x7F.0x0.0x0.0x1",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "api.localhost",
        "%31%32%37.0.0.1",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "\u{2460}\u{2461}\u{2466}.0.0.1",
    ] {
        let error = dialer.connect(host, 80).await.expect_err(host);
        assert_eq!(error.code(), FetchCode::EgressRefused, "{host}: {error}");
        let reason = error.refusal().map(|refusal| refusal.reason);
        let expected = ["loopback", "unspecified", "ipv4-mapped"];
        assert!(reason.is_some_and(|r| expected.contains(&r)), "{host}: {reason:?}");
    }
    for host in ["", "a b", "[::1", "1.2.3.256", "[fe80::1%25eth0]", "ho/st", "a:b"] {
        let error = dialer.connect(host, 80).await.expect_err(host);
        assert_eq!(error.code(), FetchCode::UrlInvalid, "{host}: {error}");
    }
}

#[tokio::test]
async fn answers_that_change_between_look_ups_gain_nothing() {
    let origin = Origin::start(OriginConfig::new()).await.unwrap();
    let port = origin.addr().port();
    let script = ScriptedResolver::new()
        .name("rebind.test", &[&["127.0.0.2"], &["127.0.0.1"]])
        .name("mixed.test", &[&["10.0.0.1", "127.0.0.1", "::1"]])
        .name("meta.test", &[&["169.254.169.254"]])
        .name("empty.test", &[&[]]);
    // Only 127.0.0.1 is open: the first answer is refused, the second connected to, and each was
    // judged at its own connection.
    let dialer = dialer(guard(false, &["127.0.0.1"]), script);
    let first = dialer.connect("rebind.test", port).await;
    assert_eq!(first.err().map(|e| e.code()), Some(FetchCode::EgressRefused));
    let second = dialer.connect("rebind.test", port).await.unwrap();
    assert_eq!(second.peer_addr().unwrap(), origin.addr());
    // Of a mixed answer only the permitted addresses are tried.
    let mixed = dialer.connect("mixed.test", port).await.unwrap();
    assert_eq!(mixed.peer_addr().unwrap(), origin.addr());
    let meta = dialer.connect("meta.test", 80).await.expect_err("metadata");
    assert_eq!(meta.refusal().map(|r| r.reason), Some("metadata"));
    for name in ["empty.test", "unknown.test"] {
        let error = dialer.connect(name, 80).await.expect_err(name);
        assert!(matches!(error, DialError::Dns { .. }), "{name}: {error}");
        assert!(!error.is_permanent());
    }
}

#[tokio::test]
async fn a_dead_address_gives_way_to_a_live_one() {
    let origin = Origin::start(OriginConfig::new()).await.unwrap();
    // Nothing listens on that port of 127.0.0.9 and ::1.
    let script = ScriptedResolver::new().name("two.test", &[&["127.0.0.9", "::1", "127.0.0.1"]]);
    let dialer = dialer(guard(true, &[]), script);
    let stream = dialer.connect("two.test", origin.addr().port()).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), origin.addr());
}
