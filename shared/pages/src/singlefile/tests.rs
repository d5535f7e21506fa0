use super::*;
use std::collections::HashMap;

fn site() -> HashMap<&'static str, (&'static str, &'static [u8])> {
    HashMap::from([
        ("https://x.org/a.png", ("image/png", b"\x89PNG\r\n\x1A\n".as_slice())),
        (
            "https://x.org/css/s.css",
            ("text/css", b"@import 't.css' print; a{background:url(../a.png)} b{c:url(gone.png)}"),
        ),
        ("https://x.org/css/t.css", ("text/css", b"@import 's.css'; t{background:url(\"../a.png\")}")),
        ("https://x.org/bad.css", ("text/css", b"a::after{content:'</STYLE><script>1</script>'}")),
        (
            "https://x.org/f.html",
            ("text/html", b"<p title='\"&amp;'>frame</p><img src=a.png><iframe src=/f.html></iframe>"),
        ),
        ("https://x.org/big.png", ("image/png", &[7; 20_000])),
        ("https://x.org/s.js", ("text/javascript", b"alert(1)")),
        ("https://x.org/i.ico", ("image/x-icon", b"\0\0\x01\0")),
    ])
}

fn run(html: &str, options: &Options) -> SingleFile {
    let site = site();
    let lookup = |url: &Url| site.get(url.as_str()).map(|(mime, body)| ((*mime).to_owned(), Bytes::from_static(body)));
    inline(html, &Url::parse("https://x.org/dir/page.html").unwrap(), &lookup, options)
}

fn body(html: &str) -> String {
    run(html, &Options::default()).html.replace("<meta charset=\"utf-8\">", "")
}

const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";

#[test]
fn what_a_page_shows_is_in_it() {
    for (html, expected) in [
        ("<img src=/a.png alt='x &amp; \"y\"'>", format!("<img src=\"{PNG}\" alt=\"x &amp; &quot;y&quot;\">")),
        ("<img src=../a.png srcset='/a.png 1x, /no.png 2x'>", format!("<img srcset=\"{PNG} 1x\">")),
        ("<img src=/no.png srcset='/no2.png 2x'>", "<img src=\"https://x.org/no.png\">".to_owned()),
        ("<img src='data:image/gif;base64,AA'>", "<img src='data:image/gif;base64,AA'>".to_owned()),
        ("<p style='background:url(/a.png)'>x", format!("<p style=\"background:url(&quot;{PNG}&quot;)\">x")),
        ("<style>p{background:url(/a.png)}</style>", format!("<style>p{{background:url(\"{PNG}\")}}</style>")),
        (
            "<a href=b.html#c>x</a><a href=#d>y</a><a href='mailto:a@b'>z</a>",
            "<a href=\"https://x.org/dir/b.html#c\">x</a><a href=#d>y</a><a href='mailto:a@b'>z</a>".to_owned(),
        ),
        ("<base href=/other/><a href=b>x</a>", "<a href=\"https://x.org/other/b\">x</a>".to_owned()),
        (
            "<svg><image xlink:href=/a.png /><use href=#i /></svg>",
            format!("<svg><image xlink:href=\"{PNG}\" /><use href=#i /></svg>"),
        ),
        (
            "<body background=/a.png><input type=image src=/a.png>",
            format!("<body background=\"{PNG}\"><input type=\"image\" src=\"{PNG}\">"),
        ),
        (
            "<link rel=preload href=/a.png><link rel=next href=2>",
            "<link rel=\"next\" href=\"https://x.org/dir/2\">".to_owned(),
        ),
        (
            "<link rel='shortcut icon' href=/i.ico>",
            "<link rel=\"shortcut icon\" href=\"data:image/x-icon;base64,AAABAA==\">".to_owned(),
        ),
        ("plain & simple", "plain & simple".to_owned()),
    ] {
        assert_eq!(body(html), expected, "{html}");
    }
}

#[test]
fn style_sheets_are_inlined_to_the_last_import() {
    let out = run("<link rel=stylesheet media=screen href=/css/s.css integrity=x crossorigin>", &Options::default());
    assert!(out.html.contains("<style data-href=\"https://x.org/css/s.css\" media=\"screen\">@import url(\"data:text/css;charset=utf-8;base64,"), "{}", out.html);
    assert!(
        out.html.contains(PNG) && out.html.contains("https://x.org/css/gone.png") && !out.html.contains("integrity")
    );
    let codes: Vec<_> = out.left_out.iter().map(|l| (l.url.as_str(), l.code.as_str())).collect();
    assert_eq!(
        codes,
        [("https://x.org/css/s.css", "NESTED_TOO_DEEP"), ("https://x.org/css/gone.png", "RESOURCE_MISSING")]
    );
    let bad = body("<link rel=stylesheet href=/bad.css>");
    assert!(!bad.to_lowercase().contains("</style><script"), "{bad}");
}

#[test]
fn frames_become_documents_within() {
    let out = run("<iframe src=/f.html></iframe>", &Options::default());
    assert!(out.html.contains("<iframe srcdoc=\"<meta charset=&quot;utf-8&quot;>"), "{}", out.html);
    assert!(out.html.contains(&PNG.replace('&', "&amp;")));
    assert_eq!(out.left_out[0].code, "NESTED_TOO_DEEP", "a frame does not hold itself");
    let nested = body("<iframe srcdoc='&lt;img src=/a.png&gt;'></iframe>");
    assert!(nested.contains(PNG), "{nested}");
}

#[test]
fn scripts_go_unless_they_are_kept() {
    let html = "<script src=/s.js>x</script><script>y('</p>')</script><p onclick=z() id=i>t</p><a href=' java\nscript:w'>u</a>";
    assert_eq!(body(html), "<p id=\"i\">t</p><a>u</a>");
    let kept = run(html, &Options { keep_scripts: true, ..Options::default() }).html;
    assert!(
        kept.contains("src=\"data:text/javascript;base64,YWxlcnQoMSk=\"") && kept.contains("onclick=z()"),
        "{kept}"
    );
}

#[test]
fn the_file_is_utf8_and_says_so_first() {
    for (html, expected) in [
        (
            "<!doctype html><html><head><meta charset=gbk><title>ü</title>",
            "<!doctype html><html><head><meta charset=\"utf-8\"><title>ü</title>",
        ),
        ("<meta http-equiv=Content-Type content='text/html;charset=koi8-r'>x", "<meta charset=\"utf-8\">x"),
        ("<meta http-equiv=content-security-policy content=x><p>", "<meta charset=\"utf-8\"><p>"),
        ("<meta http-equiv=refresh content='0;url=x'>", "<meta charset=\"utf-8\">"),
        ("<!doctype html>\ntext", "<!doctype html><meta charset=\"utf-8\">\ntext"),
        ("", "<meta charset=\"utf-8\">"),
    ] {
        assert_eq!(run(html, &Options::default()).html, expected, "{html}");
    }
}

#[test]
fn nothing_is_repeated_or_grows_without_bound() {
    let many = "<img src=/big.png>".repeat(100);
    let out = run(&many, &Options { max_uses: 3, ..Options::default() });
    assert_eq!((out.inlined, out.left_out_total), (3, 1));
    assert_eq!(out.left_out[0].code, "RESOURCE_REPEATED");
    let out = run(&many, &Options { max_uses: 1_000, max_output: 60_000, ..Options::default() });
    assert!(out.html.len() < 70_000 && out.left_out[0].code == "OUTPUT_FULL");
    let out = run(&many, &Options { max_resource: 1_000, ..Options::default() });
    assert_eq!(out.left_out[0].code, "RESOURCE_TOO_LARGE");
    assert!(out.html.contains("src=\"https://x.org/big.png\""));
}

proptest::proptest! {
    #[test]
    fn never_panics(html in "(<(img|link|iframe|style|script|meta|base|a|svg|p)( (src|href|srcset|srcdoc|style|rel|data)=(/f.html|/css/s.css|stylesheet|'url\\(/a.png\\)'|\\PC{0,3}))?>|</(style|script|svg)>|\\PC){0,30}") {
        run(&html, &Options { max_output: 50_000, ..Options::default() });
    }
}
