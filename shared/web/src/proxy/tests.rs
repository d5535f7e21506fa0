//! The proxy as a browser would use it: raw bytes in, raw bytes out.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::guard::GuardConfig;
use crate::testing::{Act, Origin, OriginConfig, Reply, ScriptedResolver, faults};

fn guard(allow_private: bool) -> Guard {
    Guard::new(GuardConfig { allow_private, ..GuardConfig::default() })
}

async fn proxy(allow_private: bool, config: ProxyConfig) -> GuardProxy {
    GuardProxy::start(guard(allow_private), config).await.unwrap()
}

/// Sends bytes and reads until the pattern shows up ("failure": one of the proxy's own answers is
/// whole) or the proxy closes.
async fn ask(proxy: &GuardProxy, request: &str, until: &str) -> String {
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    read_until(&mut stream, until).await
}

async fn read_until(stream: &mut TcpStream, until: &str) -> String {
    let mut got = Vec::new();
    let mut chunk = [0; 4096];
    let reading = async {
        loop {
            let n = stream.read(&mut chunk).await.unwrap_or(0);
            got.extend_from_slice(&chunk[..n]);
            let text = String::from_utf8_lossy(&got);
            let is_there = match until {
                "" => false,
                "failure" => text.split_once("\r\n\r\n").is_some_and(|(_, b)| b.ends_with('\n')),
                _ => text.contains(until),
            };
            if n == 0 || is_there {
                break;
            }
        }
    };
    let timely = tokio::time::timeout(Duration::from_secs(20), reading).await;
    let text = String::from_utf8_lossy(&got).into_owned();
    assert!(timely.is_ok(), "waiting for {until:?}, got {text:?}");
    text
}

#[tokio::test]
async fn refusals_are_answered_and_recorded() {
    let proxy = proxy(false, ProxyConfig::default()).await;
    let cases = [
        ("GET http://127.0.0.1:8080/x HTTP/1.1\r\nHost: h\r\n\r\n", "http://127.0.0.1:8080/x", "loopback"),
        ("GET http://0x7f.1/ HTTP/1.1\r\nHost: h\r\n\r\n", "http://0x7f.1/", "loopback"),
        ("GET http://[::ffff:10.0.0.1]/ HTTP/1.1\r\nHost: h\r\n\r\n", "http://[::ffff:10.0.0.1]/", "ipv4-mapped"),
        (
            "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: h\r\n\r\n",
            "http://169.254.169.254/latest/meta-data/",
            "metadata",
        ),
        ("CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: h\r\n\r\n", "127.0.0.1:443", "loopback"),
        ("CONNECT localhost:443 HTTP/1.1\r\nHost: h\r\n\r\n", "localhost:443", "loopback"),
        ("CONNECT 2130706433:443 HTTP/1.1\r\nHost: h\r\n\r\n", "2130706433:443", "loopback"),
        ("CONNECT [::1]:443 HTTP/1.1\r\nHost: h\r\n\r\n", "[::1]:443", "loopback"),
        ("CONNECT 8.8.8.8:25 HTTP/1.1\r\nHost: h\r\n\r\n", "8.8.8.8:25", "bad-port"),
    ];
    for (request, _, reason) in cases {
        let answer = ask(&proxy, request, "failure").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{request}: {answer}");
        assert!(answer.contains("x-fonds-egress: EGRESS_REFUSED"), "{answer}");
        assert!(answer.ends_with(&format!("EGRESS_REFUSED: {reason}\n")), "{answer}");
    }
    let refusals = proxy.refusals();
    let got: Vec<_> = refusals.iter().map(|r| (r.target.as_str(), r.reason.as_str())).collect();
    let expected: Vec<_> = cases.iter().map(|(_, target, reason)| (*target, *reason)).collect();
    assert_eq!(got, expected);
    assert!(refusals.iter().all(|r| r.addr.is_some()));
}

#[tokio::test]
async fn other_failures_have_codes_too() {
    let config = ProxyConfig {
        resolver: Arc::new(ScriptedResolver::new()),
        header_timeout: Duration::from_millis(1000),
        ..ProxyConfig::default()
    };
    let proxy = proxy(true, config).await;
    let origin = Origin::start(OriginConfig::new()).await.unwrap();
    let at = origin.addr();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (request, status, code) in [
        ("GET http://nowhere.test/ HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 502, "DNS_FAILED"),
        ("CONNECT nowhere.test:443 HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 502, "DNS_FAILED"),
        (format!("CONNECT {closed} HTTP/1.1\r\nHost: h\r\n\r\n"), 502, "CONNECT_FAILED"),
        (format!("GET http://{closed}/ HTTP/1.1\r\nHost: h\r\n\r\n"), 502, "CONNECT_FAILED"),
        (format!("GET http://{at}/faults/silent HTTP/1.1\r\nHost: h\r\n\r\n"), 504, "HEADER_TIMEOUT"),
        (format!("GET http://{at}/faults/http09 HTTP/1.1\r\nHost: h\r\n\r\n"), 502, "HTTP_MALFORMED"),
        (format!("GET http://{at}/faults/empty-reply HTTP/1.1\r\nHost: h\r\n\r\n"), 502, "CONNECTION_CLOSED"),
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 400, "URL_INVALID"),
        ("GET https://x.test/ HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 400, "URL_INVALID"),
        ("GET ftp://x.test/ HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 400, "URL_INVALID"),
    ] {
        let answer = ask(&proxy, &request, "failure").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(answer.contains(&format!("x-fonds-egress: {code}\r\n")), "{request}: {answer}");
    }
    assert!(proxy.refusals().is_empty());
    assert_eq!(proxy.failures().len(), 10);
}

#[tokio::test]
async fn a_proxy_is_no_way_into_the_service() {
    let guard = guard(true);
    let proxy = GuardProxy::start(guard.clone(), ProxyConfig::default()).await.unwrap();
    let other = GuardProxy::start(guard, ProxyConfig::default()).await.unwrap();
    for port in [proxy.addr().port(), other.addr().port()] {
        for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.9.9.9"] {
            let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: h\r\n\r\n");
            let answer = ask(&proxy, &request, "failure").await;
            assert!(answer.ends_with("EGRESS_REFUSED: own-service\n"), "{host}: {answer}");
        }
    }
}

#[tokio::test]
async fn http_passes_as_it_is() {
    let origin = Origin::start(OriginConfig { record: true, ..OriginConfig::new() }).await.unwrap();
    let proxy = proxy(true, ProxyConfig::default()).await;
    let request = format!(
        "GET http://{0}/faults/odd-head?a=%zz|b HTTP/1.1\r\nHost: {0}\r\nX-CamelCase: 1\r\n\
         Proxy-Connection: keep-alive\r\nConnection: X-Drop\r\nX-Drop: 1\r\n\r\n",
        origin.addr()
    );
    let answer = ask(&proxy, &request, "body").await;
    // Case and values are kept, no Date or other header is added.
    assert!(answer.starts_with("HTTP/1.1 200 Everything is Awesome\r\n"), "{answer}");
    assert!(answer.contains("Server: odd\r\n"), "{answer}");
    assert!(answer.contains("content-TYPE: text/plain\r\n"), "{answer}");
    assert!(!answer.to_lowercase().contains("date:"), "{answer}");
    let seen = String::from_utf8(origin.requests()[0].head.to_vec()).unwrap();
    assert!(seen.starts_with("GET /faults/odd-head?a=%zz|b HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("X-CamelCase: 1\r\n"), "{seen}");
    assert!(!seen.contains("Proxy-Connection") && !seen.contains("X-Drop"), "{seen}");
    assert!(proxy.bytes().down >= 4);
}

#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let origin = Origin::start(OriginConfig::new()).await.unwrap();
    let proxy = proxy(true, ProxyConfig::default()).await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    for _ in 0..3 {
        let request = format!("GET http://{0}/faults/chunked HTTP/1.1\r\nHost: {0}\r\n\r\n", origin.addr());
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_until(&mut stream, "0\r\n\r\n").await;
        assert!(answer.contains(&faults::TEXT[20..]), "{answer}");
    }
    assert_eq!(origin.connections(), 1);
    assert_eq!(origin.served(), 3);
}

#[tokio::test]
async fn tunnels_carry_bytes_both_ways() {
    let origin = Origin::start(OriginConfig::new()).await.unwrap();
    let proxy = proxy(true, ProxyConfig::default()).await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    let connect = format!("CONNECT {} HTTP/1.1\r\nHost: h\r\n\r\n", origin.addr());
    stream.write_all(connect.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    stream.write_all(b"GET /faults/big/300000 HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    let mut total = 0;
    let mut chunk = vec![0; 65536];
    while total < 300_000 {
        total += stream.read(&mut chunk).await.unwrap();
    }
    let bytes = proxy.bytes();
    assert!(bytes.down >= 300_000 && bytes.up >= 40, "{bytes:?}");
}

#[tokio::test]
async fn protocols_can_be_switched() {
    // "Hears" nothing, but greets after the switch.
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello";
    let script = vec![Act::Send(switch.into()), Act::Hang];
    let config = OriginConfig { record: true, ..OriginConfig::new() };
    let origin = Origin::start(config.route("/ws", Reply::Script(script))).await.unwrap();
    let proxy = proxy(true, ProxyConfig::default()).await;
    let request = format!(
        "GET http://{0}/ws HTTP/1.1\r\nHost: {0}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
        origin.addr()
    );
    let answer = ask(&proxy, &request, "hello").await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert_eq!(origin.requests()[0].header("upgrade"), Some("websocket"));
}

#[tokio::test]
async fn the_byte_cap_cuts_and_then_refuses() {
    let config = ProxyConfig { byte_cap: Some(100_000), ..ProxyConfig::default() };
    let proxy = proxy(true, config).await;
    let origin = Origin::start(OriginConfig::new()).await.unwrap();
    let at = origin.addr();
    let endless = format!("GET http://{at}/faults/endless HTTP/1.1\r\nHost: h\r\n\r\n");
    let cut = ask(&proxy, &endless, "").await;
    assert!(cut.len() < 1_000_000, "{}", cut.len());
    assert!(proxy.is_capped());
    let connect = format!("CONNECT {at} HTTP/1.1\r\nHost: h\r\n\r\n");
    let answer = ask(&proxy, &connect, "failure").await;
    assert!(answer.contains("x-fonds-egress: BODY_TOO_LARGE"), "{answer}");
}

#[tokio::test]
async fn what_stands_still_is_ended() {
    let config = ProxyConfig { idle_timeout: Duration::from_millis(500), ..ProxyConfig::default() };
    let proxy = proxy(true, config).await;
    let origin = Origin::start(OriginConfig::new()).await.unwrap();
    let at = origin.addr();
    let stall = format!("GET http://{at}/faults/stall HTTP/1.1\r\nHost: h\r\n\r\n");
    let cut = ask(&proxy, &stall, "").await;
    assert!(cut.ends_with("only this much"), "{cut}");
    let connect = format!("CONNECT {at} HTTP/1.1\r\nHost: h\r\n\r\n");
    let answer = ask(&proxy, &connect, "").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let failures = proxy.failures();
    assert_eq!(failures.last().map(|f| f.code), Some(FetchCode::BodyTimeout));
}

#[tokio::test]
async fn dropping_the_proxy_ends_its_tunnels() {
    let origin = Origin::start(OriginConfig::new()).await.unwrap();
    let proxy = proxy(true, ProxyConfig::default()).await;
    let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
    let connect = format!("CONNECT {} HTTP/1.1\r\nHost: h\r\n\r\n", origin.addr());
    stream.write_all(connect.as_bytes()).await.unwrap();
    read_until(&mut stream, "\r\n\r\n").await;
    drop(proxy);
    assert_eq!(read_until(&mut stream, "").await, "");
}
