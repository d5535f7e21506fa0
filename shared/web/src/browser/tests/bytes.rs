//! What is recorded is what was served.

use super::*;
use crate::testing::{Message, Reply};

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_the_served_bytes_whatever_the_charset() {
    let Some(browser) = browser().await else { return };
    let bodies: [(&str, &str, &[u8]); 5] = [
        ("/latin1", "text/html; charset=iso-8859-1", b"<!doctype html><title>caf\xe9</title>\xff"),
        ("/bom", "text/html", b"\xef\xbb\xbf<!doctype html><title>bom</title>"),
        ("/broken", "text/html; charset=utf-8", b"<!doctype html><title>x</title>\xff\xfe\xc3("),
        ("/utf16", "text/html; charset=utf-16le", b"\xff\xfe<\0p\0>\0h\0i\0"),
        ("/nul", "text/html", b"<!doctype html>a\0b"),
    ];
    let mut config = OriginConfig::new();
    for (path, kind, body) in bodies {
        config = config.route(path, Reply::ok(kind, body));
    }
    let origin = serve(config).await;
    for (path, _, body) in bodies {
        let capture = browser.capture(request(origin.url(path), DOM).await).await.unwrap();
        let got = resource(&capture, path);
        // The bytes as served. Where the renderer answered with a text in which bytes were undecodable,
        // the word that they are not to be had; never others.
        if path != "/broken" || got.body_error.as_deref() != Some("BODY_REENCODED") {
            assert_eq!(got.body.as_deref(), Some(body), "{path} {:?}", got.body_error);
        }
        assert_eq!(got.decoded_length, body.len() as u64);
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn header_fields_keep_their_duplicates() {
    let Some(browser) = browser().await else { return };
    let message = Message::new(203, "text/html", "<title>h</title>")
        .with("Set-Cookie", "a=1")
        .with("Set-Cookie", "b=2")
        .with("X-Odd", "one")
        .with("X-Odd", "two");
    let origin = serve(OriginConfig::new().route("/h", message)).await;
    let capture = browser.capture(request(origin.url("/h"), DOM).await).await.unwrap();
    let got = resource(&capture, "/h");
    assert_eq!(got.status, Some(203));
    let odd: Vec<&str> = got.response_headers.iter().map(|(_, v)| v.as_str()).filter(|v| v.len() == 3).collect();
    assert_eq!(odd, ["a=1", "b=2", "one", "two"]);
    assert_eq!(got.protocol.as_deref(), Some("http/1.1"));
    // The next capture starts with no cookies.
    let again = browser.capture(request(origin.url("/h"), DOM).await).await.unwrap();
    let sent = &resource(&again, "/h").request_headers;
    assert!(!sent.iter().any(|(n, _)| n.eq_ignore_ascii_case("cookie")), "{sent:?}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hop_of_a_redirect_is_an_exchange_of_its_own() {
    let Some(browser) = browser().await else { return };
    let first = Message::new(302, "text/plain", "").with("Location", "/two").with("Set-Cookie", "hop=1");
    let origin = serve(
        OriginConfig::new()
            .route("/one", first)
            .route("/two", Reply::redirect(301, "/three"))
            .route(
                "/three",
                Reply::html("<link rel=icon href=data:,><title>3</title><script>location = '/four'</script>"),
            )
            .route("/four", Reply::html("<link rel=icon href=data:,><title>four</title>")),
    )
    .await;
    let capture = browser.capture(request(origin.url("/one"), DOM).await).await.unwrap();
    assert_eq!(capture.title.as_deref(), Some("four"));
    assert_eq!(capture.final_url, origin.url("/four").as_str());
    let steps: Vec<_> = capture
        .redirects
        .iter()
        .map(|r| (r.from.rsplit('/').next().unwrap(), r.to.rsplit('/').next().unwrap(), r.status))
        .collect();
    assert_eq!(steps, [("one", "two", Some(302)), ("two", "three", Some(301)), ("three", "four", None)]);
    let hops: Vec<_> = capture.resources.iter().map(|r| (r.status, r.redirected_from, r.body.is_some())).collect();
    assert_eq!(
        hops,
        [(Some(302), None, false), (Some(301), Some(0), false), (Some(200), Some(1), true), (Some(200), None, true)]
    );
    assert!(capture.resources[0].response_head.as_ref().unwrap().contains("Set-Cookie: hop=1"));
    assert!(!capture.resources[1].response_head.as_ref().unwrap().contains("hop=1"));
    let cookie = |i: usize| capture.resources[i].request_headers.iter().any(|(n, v)| n == "Cookie" && v == "hop=1");
    assert_eq!([cookie(0), cookie(1), cookie(2), cookie(3)], [false, true, true, true]);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_scripts_and_workers_are_recorded() {
    let Some(browser) = browser().await else { return };
    let page = r#"<!doctype html><title>w</title><script>
        fetch('/post', {method: 'POST', body: new Uint8Array([0, 255, 10])});
        new Worker('/w.js').onmessage = (e) => document.title = e.data</script>"#;
    let worker = "fetch('/data').then((r) => r.text()).then((t) => postMessage(t))";
    let origin = serve(
        OriginConfig::new()
            .route("/p", Reply::html(page))
            .route("/w.js", Reply::ok("text/javascript", worker))
            .route("/data", Reply::ok("text/plain", "from the worker"))
            .route("/post", Reply::ok("text/plain", "ok"))
            .route("/gone", Message::new(404, "text/plain", "none")),
    )
    .await;
    let capture = browser.capture(request(origin.url("/p"), DOM).await).await.unwrap();
    assert_eq!(capture.title.as_deref(), Some("from the worker"));
    assert_eq!(resource(&capture, "/data").body.as_deref(), Some(b"from the worker".as_slice()));
    let script: Vec<_> = capture.resources.iter().filter(|r| r.url.ends_with("/w.js")).collect();
    assert_eq!(script.len(), 1, "recorded once");
    assert_eq!(script[0].body.as_deref(), Some(worker.as_bytes()), "{:?}", script[0].body_error);
    let post = resource(&capture, "/post");
    assert_eq!((post.method.as_str(), post.post_data.as_deref()), ("POST", Some([0, 255, 10].as_slice())));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_are_left_out_with_the_reason() {
    let Some(browser) = browser().await else { return };
    let page = "<!doctype html><title>b</title><script>fetch('/big').then((r) => r.text())</script>";
    let origin = serve(
        OriginConfig::new().route("/p", Reply::html(page)).route("/big", Reply::ok("text/plain", vec![b'x'; 600_000])),
    )
    .await;
    let mut request = request(origin.url("/p"), DOM).await;
    request.max_body_bytes = 500_000;
    let capture = browser.capture(request).await.unwrap();
    let big = resource(&capture, "/big");
    assert_eq!((big.body.as_ref(), big.body_error.as_deref()), (None, Some("BODY_TOO_LARGE")));
    assert!(resource(&capture, "/p").body.is_some());
    browser.close().await;
}
