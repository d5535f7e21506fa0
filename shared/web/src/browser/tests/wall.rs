//! Nothing goes past the guard, and one capture knows nothing of another.

use super::*;
use crate::browser::capture::Cookie;
use crate::code::FetchCode;
use crate::testing::{Identity, Reply, TestCa};

#[tokio::test(flavor = "multi_thread")]
async fn refused_addresses_are_failures_not_answers() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>g</title><img src=http://10.0.0.1/secret><img src=https://192.168.0.1/x><img src=http://[::1]:8080/y>";
    let origin = serve(OriginConfig::new().route("/p", Reply::html(page))).await;
    let guard = GuardConfig { allow: vec!["127.0.0.0/8".parse().unwrap()], ..GuardConfig::default() };
    let mut request = request(origin.url("/p"), DOM).await;
    request.egress = Egress::Guard(guard_proxy(guard).await);
    let capture = browser.capture(request).await.unwrap();
    assert_eq!(capture.title.as_deref(), Some("g"));
    let secret = resource(&capture, "/secret");
    assert_eq!(secret.failed.as_deref(), Some("EGRESS_REFUSED"));
    assert_eq!((secret.status, secret.body.is_none()), (None, true));
    assert!(resource(&capture, "/x").failed.is_some());
    assert_eq!(capture.refusals.len(), 3, "{:?}", capture.refusals);
    assert!(capture.refusals.iter().all(|r| r.code == FetchCode::EgressRefused));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_proxy_the_browser_reaches_nothing() {
    let Some(browser) = browser().await else { return };
    let origin = serve(OriginConfig::new().route("/p", Reply::html("reached"))).await;
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    for url in [origin.url("/p").to_string(), format!("http://localhost:{}/p", origin.addr().port())] {
        let mut request = request(url, DOM).await;
        request.egress = Egress::Unguarded(closed);
        let capture = browser.capture(request).await.unwrap();
        assert_eq!(capture.navigation_error.as_deref(), Some("net::ERR_PROXY_CONNECTION_FAILED"));
    }
    assert_eq!(origin.served(), 0);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn added_fields_and_cookies_stay_with_their_origin() {
    let Some(browser) = browser().await else { return };
    let other = serve(
        OriginConfig { record: true, ..OriginConfig::new() }.route("/o.svg", Reply::ok("image/svg+xml", "<svg/>")),
    )
    .await;
    let page = format!(
        "<!doctype html><link rel=icon href=data:,><title>x</title><img src=/own.svg><img src={}>",
        other.url("/o.svg")
    );
    let origin = serve(
        OriginConfig { record: true, ..OriginConfig::new() }
            .route("/p", Reply::html(page))
            .route("/own.svg", Reply::ok("image/svg+xml", "<svg/>")),
    )
    .await;
    let mut request = request(origin.url("/p"), DOM).await;
    request.extra_headers = vec![("Authorization".to_owned(), "Bearer secret".to_owned())];
    request.user_agent = Some("fonds-test/1".to_owned());
    request.cookies = vec![Cookie {
        name: "session".to_owned(),
        value: "s3".to_owned(),
        domain: "127.0.0.1".to_owned(),
        path: "/".to_owned(),
        secure: false,
        http_only: true,
    }];
    request.block_urls = vec!["*blocked*".to_owned()];
    browser.capture(request).await.unwrap();
    let own = origin.requests();
    assert_eq!(own.len(), 2);
    for seen in own {
        assert_eq!(seen.header("authorization"), Some("Bearer secret"), "{}", seen.target);
        assert_eq!(seen.header("user-agent"), Some("fonds-test/1"));
        assert_eq!(seen.header("cookie"), Some("session=s3"));
    }
    let others = other.requests();
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].header("authorization"), None, "the secret went elsewhere");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_urls_are_not_asked_for() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>b</title><script src=/ads/x.js></script><img src=/ok.svg>";
    let origin = serve(
        OriginConfig::new().route("/p", Reply::html(page)).route("/ok.svg", Reply::ok("image/svg+xml", "<svg/>")),
    )
    .await;
    let mut request = request(origin.url("/p"), DOM).await;
    request.block_urls = vec!["*/ads/*".to_owned()];
    let capture = browser.capture(request).await.unwrap();
    assert_eq!(resource(&capture, "/ads/x.js").failed.as_deref(), Some("blocked: inspector"));
    assert_eq!(origin.hits("/ads/x.js"), 0);
    assert!(resource(&capture, "/ok.svg").body.is_some());
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_is_not_root_and_knows_no_secrets() {
    let Some(browser) = browser().await else { return };
    let pid = browser.info().pid;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let uid = status.lines().find(|l| l.starts_with("Uid:")).unwrap();
    assert!(!uid.split_ascii_whitespace().any(|id| id == "0"), "{uid}");
    if let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) {
        let names: Vec<String> = environ
            .split(|b| *b == 0)
            .map(|pair| String::from_utf8_lossy(pair.split(|b| *b == b'=').next().unwrap()).into_owned())
            .collect();
        assert!(
            !names.iter().any(|n| n.starts_with("CARGO") || n.starts_with("AWS") || n.starts_with("FONDS")),
            "{names:?}"
        );
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_datagram_leaves_the_browser() {
    let Some(browser) = browser().await else { return };
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let stun = socket.local_addr().unwrap();
    let page = format!(
        "<!doctype html><title>rtc</title><script>
        const c = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{stun}'}}]}});
        c.createDataChannel('x'); const seen = [];
        c.onicecandidate = (e) => {{ if (e.candidate) seen.push(e.candidate.candidate); document.title = 'rtc ' + seen.join() }};
        c.createOffer().then((o) => c.setLocalDescription(o));
        try {{ new WebTransport('https://{stun}/').ready.catch(() => {{}}) }} catch {{}}
        navigator.sendBeacon('/beacon', 'x')</script>"
    );
    let origin = serve(OriginConfig::new().route("/p", Reply::html(page))).await;
    let mut request = request(origin.url("/p"), DOM).await;
    request.idle = Duration::from_secs(2);
    let capture = browser.capture(request).await.unwrap();
    let title = capture.title.unwrap();
    let mut datagram = [0_u8; 64];
    assert!(socket.try_recv(&mut datagram).is_err(), "a datagram went past the proxy: {title}");
    assert_eq!(title.trim(), "rtc", "an address was gathered");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn https_through_the_guard_with_its_certificates() {
    let Some(browser) = browser().await else { return };
    let ca = TestCa::new().unwrap();
    let tls = ca.server(Identity::Good, &[b"h2", b"http/1.1"]).unwrap();
    let page = "<!doctype html><title>s</title><img src=/i.svg>";
    let config = OriginConfig { tls: Some(tls), ..OriginConfig::new() };
    let svg = Reply::ok("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>");
    let origin = serve(config.route("/p", Reply::html(page)).route("/i.svg", svg)).await;
    let outputs = Outputs { certificates: true, ..DOM };
    // The browser does not know this authority.
    let strict = browser.capture(request(origin.url("/p"), outputs).await).await.unwrap();
    assert_eq!(strict.navigation_error.as_deref(), Some("net::ERR_CERT_AUTHORITY_INVALID"));
    let mut lax = request(origin.url("/p"), outputs).await;
    lax.ignore_tls_errors = true;
    let capture = browser.capture(lax).await.unwrap();
    assert_eq!(capture.title.as_deref(), Some("s"));
    let document = resource(&capture, "/p");
    assert_eq!(document.protocol.as_deref(), Some("h2"));
    assert_eq!(document.body.as_deref(), Some(page.as_bytes()));
    assert!(document.request_headers.iter().any(|(n, _)| n == ":authority"), "{:?}", document.request_headers);
    let chains = capture.certificates.unwrap().unwrap();
    assert_eq!(chains.len(), 1);
    assert!(chains[0].origin.starts_with("https://") && !chains[0].certificates.is_empty());
    assert!(chains[0].protocol.as_deref().is_some_and(|p| p.starts_with("TLS")));
    browser.close().await;
}
