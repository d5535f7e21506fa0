use super::*;
use crate::browser::MainDocument;
use crate::testing::Reply;

#[tokio::test(flavor = "multi_thread")]
async fn one_load_gives_every_output() {
    let Some(browser) = browser().await else { return };
    let origin = serve(OriginConfig { pages: 20, ..OriginConfig::new() }).await;
    let capture = browser.capture(request(origin.url("/site/1/"), Outputs::ALL).await).await.unwrap();

    assert_eq!(capture.aborted, None);
    assert_eq!(capture.navigation_error, None);
    assert!(capture.loaded && capture.idle_reached);
    assert_eq!(capture.final_url, origin.url("/site/1/").as_str());
    assert!(capture.title.as_deref().is_some_and(|t| !t.is_empty()));
    let page = fetch_plain(&origin, "/site/1/").await;
    assert_eq!(resource(&capture, "/site/1/").body.as_deref(), Some(page.as_slice()));
    assert!(capture.resources.len() >= 12, "{:?}", urls(&capture));
    for r in &capture.resources {
        assert_eq!(r.status, Some(200), "{}", r.url);
        assert!(r.body.as_ref().is_some_and(|b| !b.is_empty()), "{} {:?}", r.url, r.body_error);
        assert!(r.finished && r.failed.is_none());
        assert!(r.response_head.as_ref().unwrap().starts_with("HTTP/1.1 200"), "{:?}", r.response_head);
        assert!(r.request_headers_raw);
        assert!(r.request_headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("host")));
        assert!(!r.request_headers.iter().any(|(n, _)| n.to_lowercase().starts_with("proxy")));
        assert_eq!(r.remote_ip, None, "only the proxy's address is known");
        assert!((chrono::Utc::now() - r.started_at).num_minutes().abs() < 5);
    }
    let shot = capture.screenshot.unwrap().unwrap();
    assert_eq!(&shot.png[1..4], b"PNG");
    let side = |at: usize| u32::from_be_bytes(shot.png[at..at + 4].try_into().unwrap());
    assert_eq!(side(16), 1440);
    assert!(side(20) >= 900 && !shot.truncated);
    assert_eq!(&capture.pdf.unwrap().unwrap()[..5], b"%PDF-");
    assert!(capture.dom.unwrap().unwrap().starts_with("<!DOCTYPE html>"));
    assert!(String::from_utf8_lossy(&capture.mhtml.unwrap().unwrap()).contains("multipart/related"));
    let nodes: Vec<serde_json::Value> = serde_json::from_slice(&capture.accessibility.unwrap().unwrap()).unwrap();
    assert!(nodes.len() > 10);
    assert!(!capture.outlinks.unwrap().unwrap().is_empty());
    assert_eq!(capture.seo.unwrap().unwrap()["charset"], "UTF-8");
    assert_eq!(capture.certificates.unwrap().unwrap(), []);
    assert!(capture.refusals.is_empty());
    browser.close().await;
}

async fn fetch_plain(origin: &Origin, path: &str) -> Vec<u8> {
    let guard = Guard::new(GuardConfig { allow_private: true, ..GuardConfig::default() });
    let fetcher = crate::Fetcher::new(crate::FetcherConfig::new(guard)).unwrap();
    let fetched = fetcher.fetch(crate::FetchRequest::get(origin.url(path))).await;
    fetched.last().unwrap().body.as_memory().unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_fetched_before_is_not_asked_for_again() {
    let Some(browser) = browser().await else { return };
    let origin = serve(
        OriginConfig::new()
            .route("/doc?a=*&b=%20x", Reply::html("the origin was asked"))
            .route("/pic.svg", Reply::ok("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>")),
    )
    .await;
    let url = origin.url("/doc?a=*&b=%20x");
    let body =
        "<!doctype html><title>given</title><img src=/pic.svg><script>document.title += document.cookie</script>";
    let mut request = request(url.clone(), DOM).await;
    request.main_document = Some(MainDocument {
        final_url: format!("{url}#part"),
        status: 200,
        headers: [
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Encoding", "gzip"),
            ("Content-Length", "17"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
        ]
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .to_vec(),
        body: body.into(),
    });
    let capture = browser.capture(request).await.unwrap();
    assert_eq!(capture.title.as_deref(), Some("givena=1; b=2"));
    assert_eq!(capture.final_url, format!("{url}#part"));
    let document = resource(&capture, "%20x");
    assert!(document.fulfilled && document.main_frame);
    assert_eq!(document.body.as_deref(), Some(body.as_bytes()));
    assert!(origin.requests().iter().all(|seen| !seen.target.contains("/doc")), "the origin was asked again");
    assert!(resource(&capture, "/pic.svg").body.is_some());
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_live_document_is_read_not_the_served_one() {
    let Some(browser) = browser().await else { return };
    let page = r##"<!doctype html><html lang=de><head><title>t</title>
        <meta name=description content="what it is"><meta property="og:title" content="shared">
        <link rel=canonical href="/canonical"><script type="application/ld+json">{"@type":"Thing"}</script></head>
        <body><a href="/plain">plain &amp; simple</a><map><area href="/area" alt="an area"></map>
        <a href="mailto:x@y">m</a><div id=host></div><svg><a href="/svg"><text>s</text></a></svg>
        <script>
          // A page that replaces what a naive reader would use.
          document.querySelectorAll = () => []; JSON.stringify = () => 'no'; Element.prototype.getAttribute = () => 'no';
          const shadow = document.getElementById('host').attachShadow({mode: 'open'});
          shadow.innerHTML = '<p>inside</p><a href="/shadow">s</a>';
          const a = document.createElement('a'); a.href = '/made'; document.body.append(a);
        </script></body></html>"##;
    let origin = serve(OriginConfig::new().route("/p", Reply::html(page))).await;
    let outputs = Outputs { dom: true, outlinks: true, seo: true, ..Outputs::NONE };
    let capture = browser.capture(request(origin.url("/p"), outputs).await).await.unwrap();
    let links = capture.outlinks.as_ref().unwrap().as_ref().unwrap();
    let found: Vec<&str> = links.iter().map(|l| l.url.as_str()).collect();
    for path in ["/plain", "/area", "/svg", "/shadow", "/made"] {
        assert!(found.contains(&origin.url(path).as_str()), "{path} is not in {found:?}");
    }
    assert!(found.contains(&"mailto:x@y"));
    assert_eq!(links.iter().find(|l| l.url.ends_with("/plain")).unwrap().text, "plain & simple");
    assert!(dom(&capture).contains("<template shadowrootmode=\"open\""), "{}", dom(&capture));
    assert!(dom(&capture).contains("<p>inside</p>"));
    let seo = capture.seo.as_ref().unwrap().as_ref().unwrap();
    assert_eq!(seo["lang"], "de");
    assert_eq!(seo["json_ld"][0], r#"{"@type":"Thing"}"#);
    assert_eq!(seo["links"][0]["href"], origin.url("/canonical").as_str());
    let metas = seo["meta"].as_array().unwrap();
    assert!(metas.iter().any(|m| m["property"] == "og:title" && m["content"] == "shared"), "{metas:?}");
    // Not asked for, not there.
    assert!(capture.pdf.is_none() && capture.screenshot.is_none() && capture.mhtml.is_none());
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_pictures_load_and_banners_go_without_touching_the_dom() {
    let Some(browser) = browser().await else { return };
    let page = r#"<!doctype html><title>long</title>
        <div id=onetrust-consent-sdk style="position:fixed;inset:0;background:red">cookies?</div>
        <div class="my-cookie-bar" style="position:fixed;bottom:0">more cookies?</div>
        <div style="height:9000px"></div><img id=late loading=lazy src=/late.svg width=10 height=10>
        <script>window.addEventListener('load', () => {
            setTimeout(() => document.title = getComputedStyle(document.getElementById('onetrust-consent-sdk')).display
                + getComputedStyle(document.querySelector('.my-cookie-bar')).display + scrollY, 0) });
          new IntersectionObserver((e) => { if (e[0].isIntersecting) { document.title = 'seen ' +
              getComputedStyle(document.getElementById('onetrust-consent-sdk')).display +
              getComputedStyle(document.querySelector('.my-cookie-bar')).display } }).observe(document.getElementById('late'));
        </script>"#;
    let svg = Reply::ok("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>");
    let origin = serve(OriginConfig::new().route("/p", Reply::html(page)).route("/late.svg", svg)).await;
    let capture = browser.capture(request(origin.url("/p"), DOM).await).await.unwrap();
    assert_eq!(capture.title.as_deref(), Some("seen nonenone"));
    assert!(resource(&capture, "/late.svg").body.is_some());
    assert_eq!(capture.incidents.banners, 2);
    assert!(!dom(&capture).contains("display:none"), "the saved document was changed");
    let mut plain = request(origin.url("/p"), DOM).await;
    plain.scroll = false;
    plain.close_banners = false;
    let capture = browser.capture(plain).await.unwrap();
    assert_eq!(capture.title.as_deref(), Some("blockblock0"));
    assert!(!urls(&capture).iter().any(|u| u.ends_with("/late.svg")));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn console_messages_errors_and_frames() {
    let Some(browser) = browser().await else { return };
    let other =
        serve(OriginConfig::new().route("/foreign", Reply::html("<script>console.info('from afar')</script>"))).await;
    let foreign = format!("http://localhost:{}/foreign", other.addr().port());
    let page = format!("<iframe src={foreign}></iframe>")
        + r#"<!doctype html><title>c</title><iframe src="/frame"></iframe>
        <script>console.warn('careful', 7, {a: 1}); throw new Error('broken');</script>"#;
    let origin = serve(
        OriginConfig::new()
            .route("/p", Reply::html(page))
            .route("/frame", Reply::html("<img src=/inner.svg>"))
            .route("/inner.svg", Reply::ok("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>")),
    )
    .await;
    let outputs = Outputs { console: true, bodies: true, ..Outputs::NONE };
    let capture = browser.capture(request(origin.url("/p"), outputs).await).await.unwrap();
    let console = &capture.console;
    assert!(console.iter().any(|e| e.level == "warning" && e.text.starts_with("careful 7")), "{console:?}");
    let thrown = console.iter().find(|e| e.source == "exception").unwrap();
    assert!(thrown.text.contains("broken") && thrown.line == Some(2), "{thrown:?}");
    assert!(console.iter().any(|e| e.text == "from afar"), "{console:?}");
    assert!(resource(&capture, "/foreign").body.is_some());
    assert!(!resource(&capture, "/frame").main_frame);
    assert!(resource(&capture, "/inner.svg").body.is_some());
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_the_browser_does_not_take_is_asked_for() {
    let Some(browser) = browser().await else { return };
    let origin = serve(OriginConfig::new().route("/p", Reply::html("<title>from the origin</title>"))).await;
    let mut request = request(origin.url("/p"), DOM).await;
    request.main_document = Some(MainDocument {
        final_url: origin.url("/p").into(),
        status: 200,
        headers: vec![("Bad Name".to_owned(), "x\r\ny".to_owned())],
        body: "<title>given</title>".into(),
    });
    let capture = browser.capture(request).await.unwrap();
    assert_eq!(capture.title.as_deref(), Some("from the origin"));
    let document = resource(&capture, "/p");
    assert!(!document.fulfilled && document.response_head.is_some());
    browser.close().await;
}
