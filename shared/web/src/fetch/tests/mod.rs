//! The fetcher against an origin that does everything wrong.

mod secure;
mod speed;

use std::time::Duration;

use http::HeaderValue;
use http::header::{AUTHORIZATION, COOKIE};

use super::*;
use crate::code::FetchCode;
use crate::guard::GuardConfig;
use crate::testing::{Act, Message, Origin, OriginConfig, Reply, ScriptedResolver, faults};

fn config() -> FetcherConfig {
    let guard = Guard::new(GuardConfig { allow_private: true, ..GuardConfig::default() });
    FetcherConfig {
        header_timeout: Duration::from_millis(1500),
        idle_timeout: Duration::from_millis(1500),
        total_timeout: Duration::from_secs(60),
        min_rate: MinRate { bytes_per_second: 1000, grace: Duration::from_millis(300) },
        body_cap: 1 << 20,
        memory_cap: 64 * 1024,
        max_header_bytes: 64 * 1024,
        ..FetcherConfig::new(guard)
    }
}

fn fetcher() -> Fetcher {
    Fetcher::new(config()).unwrap()
}

async fn origin() -> Origin {
    let config = OriginConfig { record: true, ..OriginConfig::new() };
    Origin::start(config).await.unwrap()
}

fn code(result: &FetchResult) -> Option<FetchCode> {
    result.error.as_ref().map(|error| error.code)
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    hex::encode(sha2::Sha256::digest(bytes))
}

/// Path, statuses of the hops, how the last body ends, the code.
type Fault = (&'static str, &'static [u16], Option<&'static str>, Option<&'static str>);

const FAULTS: &[Fault] = &[
    // Redirects.
    ("redirect/0", &[200], None, None),
    ("redirect/3", &[302, 302, 302, 200], None, None),
    ("redirect/20", &[302; 20], None, None),
    ("redirect/25", &[302; 21], None, Some("TOO_MANY_REDIRECTS")),
    ("loop", &[302], None, Some("REDIRECT_LOOP")),
    ("loop/a", &[301, 301], None, Some("REDIRECT_LOOP")),
    ("cookie-wall", &[302, 200], None, None),
    ("redirect-utf8", &[302, 200], None, None),
    ("redirect-nowhere", &[302], None, Some("REDIRECT_NO_LOCATION")),
    ("redirect-bad", &[302], None, Some("REDIRECT_BAD_LOCATION")),
    ("redirect-ftp", &[302], None, Some("REDIRECT_BAD_SCHEME")),
    ("redirect-endless", &[302, 200], None, None),
    ("redirect-to/301?http://169.254.169.254/latest/", &[301], None, Some("EGRESS_REFUSED")),
    ("redirect-to/302?http://127.0.0.1:22/", &[302], None, Some("EGRESS_REFUSED")),
    ("redirect-to/307?http://[::ffff:169.254.169.254]/", &[307], None, Some("EGRESS_REFUSED")),
    ("redirect-to/308?//0xa9fea9fe/", &[308], None, Some("EGRESS_REFUSED")),
    // Bodies.
    ("zero", &[200], None, None),
    ("big/1048576", &[200], None, None),
    ("big/1048577", &[200], Some("length"), Some("BODY_TOO_LARGE")),
    ("endless", &[200], Some("length"), Some("BODY_TOO_LARGE")),
    ("drip", &[200], Some("time"), Some("SLOW_BODY")),
    ("stall", &[200], Some("time"), Some("BODY_TIMEOUT")),
    ("short", &[200], Some("disconnect"), Some("CONNECTION_CLOSED")),
    ("reset", &[200], Some("disconnect"), Some("CONNECTION_CLOSED")),
    ("chunked", &[200], None, None),
    ("chunked-cut", &[200], Some("disconnect"), Some("CONNECTION_CLOSED")),
    ("chunked-bad", &[200], Some("disconnect"), Some("HTTP_MALFORMED")),
    ("until-close", &[200], None, None),
    ("gzip", &[200], None, None),
    ("gzip-broken", &[200], None, None),
    // Heads.
    ("silent", &[], None, Some("HEADER_TIMEOUT")),
    ("empty-reply", &[], None, Some("CONNECTION_CLOSED")),
    ("half-head", &[], None, Some("CONNECTION_CLOSED")),
    ("http09", &[], None, Some("HTTP_MALFORMED")),
    ("garbage", &[], None, Some("HTTP_MALFORMED")),
    ("two-lengths", &[], None, Some("HTTP_MALFORMED")),
    ("huge-head/1000", &[200], None, None),
    ("huge-head/60000", &[200], None, None),
    ("huge-head/1000000", &[], None, Some("HEADER_TOO_LARGE")),
    ("many-headers/500", &[200], None, None),
    ("many-headers/600", &[], None, Some("HEADER_TOO_LARGE")),
    ("endless-head", &[], None, Some("HEADER_TOO_LARGE")),
    ("odd-head", &[200], None, None),
    ("lf-only", &[200], None, None),
    ("http10", &[200], None, None),
    ("hints", &[200], None, None),
    // Statuses are answers.
    ("status/204", &[204], None, None),
    ("status/404", &[404], None, None),
    ("status/500", &[500], None, None),
    ("status/999", &[999], None, None),
    ("busy", &[429], None, None),
];

#[tokio::test]
async fn every_fault_has_its_code() {
    let (origin, fetcher) = (origin().await, fetcher());
    for (path, statuses, truncated, expected) in FAULTS {
        let url = origin.url(&format!("/faults/{path}"));
        let result = fetcher.fetch(FetchRequest::get(url)).await;
        let got: Vec<u16> = result.hops.iter().map(|hop| hop.status.as_u16()).collect();
        let expected_hops: &[u16] = match *path {
            // Twenty redirects and the answer.
            "redirect/20" => &[[302; 20].as_slice(), &[200]].concat(),
            _ => statuses,
        };
        assert_eq!(got, expected_hops, "{path}: {:?}", result.error);
        assert_eq!(code(&result).map(FetchCode::as_str), *expected, "{path}: {:?}", result.error);
        let cut = result.last().and_then(|hop| hop.truncated);
        assert_eq!(cut.map(Truncated::as_str), *truncated, "{path}");
        for hop in &result.hops {
            assert!(hop.request_head.starts_with(b"GET /faults/"), "{path}");
            assert!(hop.response_head.starts_with(b"HTTP/1."), "{path}");
            let body = hop.body.prefix(usize::MAX).await.unwrap();
            assert_eq!(hop.body_sha256_hex(), sha256(&body), "{path}");
            assert_eq!(hop.body.len(), body.len() as u64, "{path}");
        }
    }
}

#[tokio::test]
async fn cut_bodies_are_kept() {
    let (origin, fetcher) = (origin().await, fetcher());
    for (path, body) in [
        ("stall", "only this much"),
        ("short", "only this much"),
        ("reset", "only this much"),
        ("chunked-cut", &faults::TEXT[..20]),
        ("chunked", faults::TEXT),
        ("until-close", faults::TEXT),
        ("http10", "old"),
    ] {
        let result = fetcher.fetch(FetchRequest::get(origin.url(&format!("/faults/{path}")))).await;
        let answer = result.answer().expect(path);
        assert_eq!(answer.body.as_memory().unwrap(), body, "{path}");
    }
    let result = fetcher.fetch(FetchRequest::get(origin.url("/faults/endless"))).await;
    let body = &result.answer().unwrap().body;
    assert_eq!(body.len(), 1 << 20);
    let path = body.as_path().expect("spooled").to_owned();
    assert!(path.exists());
    drop(result);
    assert!(!path.exists(), "the temporary file goes with the body");
}

#[tokio::test]
async fn heads_are_kept_byte_for_byte() {
    let (origin, fetcher) = (origin().await, fetcher());
    // On one connection, so that heads do not run into each other.
    for _ in 0..3 {
        let result = fetcher.fetch(FetchRequest::get(origin.url("/faults/odd-head"))).await;
        let hop = result.answer().unwrap();
        let on_the_wire: Vec<u8> = faults::ODD_HEAD.chars().map(|c| c as u8).collect();
        assert_eq!(hop.response_head, on_the_wire);
        assert_eq!(hop.body.as_memory().unwrap(), "body");
    }
    assert_eq!(origin.connections(), 1);
    for (path, head) in [
        ("lf-only", "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 4\n\n"),
        ("hints", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("http10", "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
    ] {
        let result = fetcher.fetch(FetchRequest::get(origin.url(&format!("/faults/{path}")))).await;
        assert_eq!(result.answer().unwrap().response_head, head, "{path}");
    }
    let seen: Vec<_> = origin.requests();
    let result = fetcher.fetch(FetchRequest::get(origin.url("/faults/echo?a=%zz|b"))).await;
    let hop = result.answer().unwrap();
    assert_eq!(&hop.request_head, hop.body.as_memory().unwrap());
    let text = String::from_utf8(hop.request_head.to_vec()).unwrap();
    let host = format!("GET /faults/echo?a=%zz|b HTTP/1.1\r\nHost: {}\r\n", origin.addr());
    assert!(text.starts_with(&host), "{text}");
    assert!(text.contains("\r\nAccept-Encoding: gzip, br\r\n"), "{text}");
    assert!(!seen.is_empty());
}

/// Many exchanges at once over few connections: each hop has its own heads and body.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn heads_belong_to_their_exchange() {
    let config = OriginConfig::new().handle("/n", |seen| {
        let n = seen.target.split('=').next_back().unwrap_or("").to_owned();
        let message = Message::new(200, "text/plain", n.clone());
        Reply::Message(message.with("X-Number", &n))
    });
    let origin = Origin::start(config).await.unwrap();
    let fetcher = fetcher();
    let tasks: Vec<_> = (0..16)
        .map(|worker| {
            let (fetcher, base) = (fetcher.clone(), origin.url("/n"));
            tokio::spawn(async move {
                for i in 0..200 {
                    let n = worker * 1000 + i;
                    let mut url = base.clone();
                    url.set_query(Some(&format!("n={n}")));
                    let result = fetcher.fetch(FetchRequest::get(url)).await;
                    let hop = result.answer().expect("an answer");
                    let request = String::from_utf8_lossy(&hop.request_head).into_owned();
                    assert!(request.starts_with(&format!("GET /n?n={n} HTTP")), "{n}: {request}");
                    let response = String::from_utf8_lossy(&hop.response_head).into_owned();
                    assert!(response.contains(&format!("X-Number: {n}\r\n")), "{n}: {response}");
                    assert_eq!(hop.body.as_memory().unwrap(), &n.to_string());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(origin.served(), 3200);
    assert!(origin.connections() <= 32, "{}", origin.connections());
}

#[tokio::test]
async fn a_connection_closed_under_us_is_tried_again() {
    let origin = origin().await;
    let fetcher = fetcher();
    for _ in 0..30 {
        let result = fetcher.fetch(FetchRequest::get(origin.url("/faults/race"))).await;
        assert_eq!(code(&result), None, "{:?}", result.error);
    }
    // The first request keeps the connection; the second is read and dropped without an answer.
    let config = OriginConfig::new().route("/warm", Reply::ok("text/plain", "warm")).handle("/drop-once", {
        let count = std::sync::atomic::AtomicU64::new(0);
        move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Reply::Script(vec![]),
            _ => Reply::ok("text/plain", "second"),
        }
    });
    let origin = Origin::start(config).await.unwrap();
    fetcher.fetch(FetchRequest::get(origin.url("/warm"))).await;
    let result = fetcher.fetch(FetchRequest::get(origin.url("/drop-once"))).await;
    assert_eq!(result.answer().unwrap().body.as_memory().unwrap(), "second");
    assert_eq!(origin.hits("/drop-once"), 2);
}

#[tokio::test]
async fn the_deadline_ends_everything() {
    let (origin, fetcher) = (origin().await, fetcher());
    let slow = vec![
        Act::Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".into()),
        Act::Repeat("x".repeat(2000).into(), None, Duration::from_millis(50)),
    ];
    let other = Origin::start(OriginConfig::new().route("/slow", Reply::Script(slow))).await.unwrap();
    for (url, hops) in [(origin.url("/faults/silent"), 0), (other.url("/slow"), 1)] {
        let request =
            FetchRequest { deadline: Some(Instant::now() + Duration::from_millis(1000)), ..FetchRequest::get(url) };
        let began = Instant::now();
        let result = fetcher.fetch(request).await;
        assert_eq!(code(&result), Some(FetchCode::FetchTimeout));
        assert_eq!(result.hops.len(), hops);
        assert!(began.elapsed() < Duration::from_secs(20));
        if let Some(hop) = result.answer() {
            assert_eq!(hop.truncated, Some(Truncated::Time));
            assert!(hop.body.len() >= 2000);
        }
    }
}

#[tokio::test]
async fn secrets_stay_with_their_origin() {
    let (a, b) = (origin().await, origin().await);
    let fetcher = fetcher();
    let target = b.url("/faults/echo");
    let url = a.url(&format!("/faults/redirect-to/302?{target}"));
    let mut request = FetchRequest::get(url);
    request.headers.insert(COOKIE, HeaderValue::from_static("session=1"));
    request.headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer x"));
    request.headers.insert("x-persona", HeaderValue::from_static("kept"));
    let result = fetcher.fetch(request).await;
    assert_eq!(result.hops.len(), 2);
    let (first, second) = (&a.requests()[0], &b.requests()[0]);
    assert_eq!(first.header("cookie"), Some("session=1"));
    assert_eq!(first.header("authorization"), Some("Bearer x"));
    assert_eq!(second.header("cookie"), None);
    assert_eq!(second.header("authorization"), None);
    assert_eq!(second.header("x-persona"), Some("kept"));
}

#[tokio::test]
async fn user_names_in_urls_log_in_but_are_not_recorded() {
    let (origin, fetcher) = (origin().await, fetcher());
    let mut url = origin.url("/faults/basic#part");
    url.set_username("user").unwrap();
    url.set_password(Some("p@ss")).unwrap();
    let result = fetcher.fetch(FetchRequest::get(url)).await;
    let hop = result.answer().unwrap();
    assert_eq!(hop.status, 200);
    assert_eq!(hop.url, origin.url("/faults/basic"));
}

#[tokio::test]
async fn conditional_requests_and_methods() {
    let (origin, fetcher) = (origin().await, fetcher());
    let request =
        FetchRequest { if_none_match: Some("\"v1\"".to_owned()), ..FetchRequest::get(origin.url("/faults/etag")) };
    let result = fetcher.fetch(request).await;
    assert_eq!(result.answer().unwrap().status, 304);
    let request = FetchRequest { method: Method::HEAD, ..FetchRequest::get(origin.url("/faults/gzip")) };
    let result = fetcher.fetch(request).await;
    assert!(result.answer().unwrap().body.is_empty());
    // A POST that is redirected with 303 becomes a GET without a body.
    let target = origin.url("/faults/echo");
    let request = FetchRequest {
        method: Method::POST,
        body: "a=1".into(),
        ..FetchRequest::get(origin.url(&format!("/faults/redirect-to/303?{target}")))
    };
    let result = fetcher.fetch(request).await;
    let methods: Vec<_> = result.hops.iter().map(|hop| hop.method.as_str()).collect();
    assert_eq!(methods, ["POST", "GET"]);
    assert_eq!(result.hops[0].request_body, "a=1");
    assert!(result.hops[1].request_head.starts_with(b"GET "));
    let request = FetchRequest { follow_redirects: false, ..FetchRequest::get(origin.url("/faults/redirect/3")) };
    let result = fetcher.fetch(request).await;
    assert_eq!((result.hops.len(), code(&result)), (1, None));
}

#[tokio::test]
async fn names_are_judged_at_each_connection() {
    let origin = origin().await;
    let port = origin.addr().port();
    let script = ScriptedResolver::new().name("rebind.test", &[&["127.0.0.1"], &["169.254.169.254"]]);
    let fetcher = Fetcher::new(FetcherConfig {
        resolver: Arc::new(script),
        // No kept connections: each fetch looks the name up.
        pool_max_idle_per_host: 0,
        ..config()
    })
    .unwrap();
    let url: Url = format!("http://rebind.test:{port}/faults/zero").parse().unwrap();
    let first = fetcher.fetch(FetchRequest::get(url.clone())).await;
    assert_eq!(first.answer().unwrap().remote_addr, origin.addr());
    let second = fetcher.fetch(FetchRequest::get(url)).await;
    assert_eq!(code(&second), Some(FetchCode::EgressRefused));
    assert_eq!(second.error.unwrap().refusal.unwrap().reason, "metadata");
    let unknown = fetcher.fetch(FetchRequest::get("http://unknown.test/".parse().unwrap())).await;
    assert_eq!(code(&unknown), Some(FetchCode::DnsFailed));
}

#[tokio::test]
async fn redirects_do_not_reach_our_own_services() {
    let (lure, api) = (origin().await, origin().await);
    let config = config();
    let _own = config.guard.own(api.addr());
    let fetcher = Fetcher::new(config).unwrap();
    let port = api.addr().port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.1",
        "0",
        "localhost",
        "api.localhost",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "user@127.0.0.1",
    ] {
        let url = lure.url(&format!("/faults/redirect-to/307?http://{host}:{port}/secret"));
        let result = fetcher.fetch(FetchRequest::get(url)).await;
        assert_eq!(code(&result), Some(FetchCode::EgressRefused), "{host}");
        let refusal = result.error.unwrap().refusal.unwrap();
        assert_eq!(refusal.reason, "own-service", "{host}");
    }
    assert_eq!(api.served(), 0);
}

#[tokio::test]
async fn connection_failures_have_codes() {
    let fetcher = fetcher();
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let plain = origin().await;
    let not_tls = format!("https://{}/", plain.addr());
    for (url, expected) in [
        (format!("http://{closed}/"), FetchCode::ConnectFailed),
        ("mailto:a@b.example".to_owned(), FetchCode::UrlInvalid),
        (not_tls, FetchCode::TlsFailed),
    ] {
        let result = fetcher.fetch(FetchRequest::get(url.parse().unwrap())).await;
        assert_eq!(code(&result), Some(expected), "{url}: {:?}", result.error);
    }
}

#[tokio::test]
async fn large_bodies_are_spooled() {
    let (origin, fetcher) = (origin().await, fetcher());
    let request = FetchRequest { body_cap: Some(1 << 30), ..FetchRequest::get(origin.url("/faults/big/100000000")) };
    let result = fetcher.fetch(request).await;
    let hop = result.answer().unwrap();
    assert_eq!((hop.body.len(), hop.truncated), (100_000_000, None));
    assert!(hop.body.as_path().is_some());
    let mut hasher = <sha2::Sha256 as sha2::Digest>::new();
    std::io::copy(&mut hop.body.reader().unwrap(), &mut sha2_writer(&mut hasher)).unwrap();
    assert_eq!(hop.body_sha256_hex(), hex::encode(sha2::Digest::finalize(hasher)));
    let head = hop.body.prefix(10).await.unwrap();
    assert_eq!(head, "xxxxxxxxxx");
}

fn sha2_writer(hasher: &mut sha2::Sha256) -> impl std::io::Write + '_ {
    struct Sink<'a>(&'a mut sha2::Sha256);
    impl std::io::Write for Sink<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            sha2::Digest::update(self.0, bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    Sink(hasher)
}
