use super::*;

fn facts(html: &str) -> PageFacts {
    page_facts(html, &Url::parse("https://x.org/dir/page.html?q=1").unwrap(), &FactsOptions::default())
}

#[track_caller]
fn check(html: &str, kind: LinkKind, expected: &[&str]) {
    let facts = facts(html);
    assert_eq!(facts.links_of(kind).map(|l| l.url.as_str()).collect::<Vec<_>>(), expected, "{html}");
}

#[test]
fn links_to_pages_are_anchors_and_areas() {
    for (html, expected) in [
        ("<a href=a.html>x</a><AREA HREF='/b'>", &["https://x.org/dir/a.html", "https://x.org/b"][..]),
        (
            "<a href='?p=2'>x</a><a href='#top'>y</a>",
            &["https://x.org/dir/page.html?p=2", "https://x.org/dir/page.html?q=1#top"],
        ),
        ("<a href='//y.org/a'>x</a><a href=\" https://y.org/b\n \">", &["https://y.org/a", "https://y.org/b"]),
        ("<a href='a\tb\n.html'>", &["https://x.org/dir/ab.html"]),
        ("<a href='/?a=1&amp;b=2&copy=3&amp;lt'>", &["https://x.org/?a=1&b=2&copy=3&lt"]),
        (
            "<a href=javascript:x() ><a href=' JavaScript:y'><a href=data:,z><a href=mailto:a@b><a href=tel:1><a href=ftp://x/><a name=n><img src=''>",
            &[],
        ),
        ("<a href='http://'><a href='http://a b/'><a href='https://x.org:99999/'>", &[]),
        ("<a href=/%2F%252F%92?%zz>", &["https://x.org/%2F%252F%92?%zz"]),
        ("<a href=''>x</a><a href>y</a>", &["https://x.org/dir/page.html?q=1"]),
        ("<a href=/a>1</a><a href=/a>2</a>", &["https://x.org/a"]),
        (
            "<noscript><a href=n></a></noscript><template><a href=t></a></template>",
            &["https://x.org/dir/n", "https://x.org/dir/t"],
        ),
        (
            "<script>'<a href=no>'</script><!-- <a href=no> --><textarea><a href=no></textarea><title><a href=no></title>",
            &[],
        ),
        (
            "<svg><a xlink:href='/s'><title>t</title></a></svg><a href=/after>",
            &["https://x.org/s", "https://x.org/after"],
        ),
        ("<frameset><frame src=f><noframes><a href=n></noframes></frameset>", &["https://x.org/dir/n"]),
        ("<p title='<a href=no>'><a title=\">\" href=yes>", &["https://x.org/dir/yes"]),
        ("<a href=/ü?ö#ß>", &["https://x.org/%C3%BC?%C3%B6#%C3%9F"]),
        ("<a href=http://u:p@x.org/a>", &["http://x.org/a"]),
    ] {
        check(html, LinkKind::Navigate, expected);
    }
}

#[test]
fn the_base_holds_for_the_whole_page() {
    check(
        "<a href=a><base href='/other/'><base href=/no/><a href=b>",
        LinkKind::Navigate,
        &["https://x.org/other/a", "https://x.org/other/b"],
    );
    check("<base href='javascript:x'><a href=a>", LinkKind::Navigate, &["https://x.org/dir/a"]);
    check("<base target=_top><base href='//cdn.org/x/'><a href=a>", LinkKind::Navigate, &["https://cdn.org/x/a"]);
}

#[test]
fn what_a_page_is_shown_with_is_told_from_where_it_leads() {
    use LinkKind::{Embed, Related, Resource};
    for (html, kind, expected) in [
        ("<iframe src=f></iframe><object data=o></object><embed src=e>", Embed, &["f", "o", "e"][..]),
        ("<img src=a srcset='b 1x, c 2x' data-src=d>", Resource, &["a", "d", "b", "c"]),
        ("<picture><source srcset=a><img src=b></picture>", Resource, &["a", "b"]),
        (
            "<video src=a poster=b><source src=c><track src=d></video><audio src=e></audio>",
            Resource,
            &["a", "b", "c", "d", "e"],
        ),
        (
            "<script src=a></script><link rel=stylesheet href=b><link rel='shortcut icon' href=c><link rel=preload href=d>",
            Resource,
            &["a", "b", "c", "d"],
        ),
        (
            "<style>@import 'a'; p{background:url(b)}</style><p style='background:url(&quot;c&quot;)'>",
            Resource,
            &["a", "b", "c"],
        ),
        ("<svg><image xlink:href=a /><use href='s.svg#i'/><use href='#j'/></svg>", Resource, &["a", "s.svg#i"]),
        ("<input type=image src=a><body background=b>", Resource, &["a", "b"]),
        (
            "<link rel=next href=a><form action=b></form><meta http-equiv=refresh content='1;url=c'>",
            Related,
            &["a", "b", "c"],
        ),
        ("<link rel=preconnect href=//a><link rel=dns-prefetch href=//b>", Related, &[]),
        ("<meta property=og:site_name content='not a link'><script>var u='/no.html'</script>", Resource, &[]),
    ] {
        let expected: Vec<String> = expected.iter().map(|e| format!("https://x.org/dir/{e}")).collect();
        check(html, kind, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn links_know_their_text_and_relation() {
    let found = facts(
        "<a href=a rel='nofollow ugc'> One <b>two</b>\n</a><a href=b><img src=i alt='a picture'></a><a href=c title=t></a>\
         <a href=d></a><a href=d>later</a><a href=e rel=nofollow>x</a><a href=e>y</a>",
    );
    let links: Vec<_> = found.outlinks().map(|l| (l.text.as_deref(), l.rel.as_deref(), l.nofollow)).collect();
    assert_eq!(
        links,
        [
            (Some("One two"), Some("nofollow ugc"), true),
            (Some("a picture"), None, false),
            (Some("t"), None, false),
            (Some("later"), None, false),
            (Some("x"), Some("nofollow"), false),
        ]
    );
    assert!(facts("<meta name=robots content=none><a href=a>").outlinks().all(|l| l.nofollow));
}

#[test]
fn a_page_says_what_it_is() {
    let found = facts(
        "<!doctype html><html lang=en-GB><head><title> A &amp; B\n C </title><title>no</title>\
         <link rel=canonical href=/canon><meta name=Description content='About  it'><meta name=robots content='noindex, noarchive'>\
         <meta property='og:title' content='OG'><meta property=article:published_time content=2024><meta name='twitter:card' content=summary>\
         <meta name=author content=Me><meta name=empty content=''><script type='application/ld+json'>{\"@type\":\"Article\"}</script>\
         <script type=application/ld+json>{broken</script><link rel='icon' sizes=32x32 type=image/png href=i.png>\
         <link rel=alternate type='application/rss+xml' title=News href=/feed><link rel=alternate hreflang=de href=/de>\
         <meta http-equiv=refresh content='5; url=next'></head><body><svg><title>no</title></svg><p>Text</p></body></html>",
    );
    assert_eq!(found.title.as_deref(), Some("A & B C"));
    assert_eq!(found.lang.as_deref(), Some("en-GB"));
    assert_eq!(found.canonical.as_deref(), Some("https://x.org/canon"));
    assert_eq!(found.description.as_deref(), Some("About it"));
    assert_eq!(found.robots, RobotsMeta { noindex: true, nofollow: false, noarchive: true });
    assert_eq!(found.open_graph, [("og:title".into(), "OG".into()), ("article:published_time".into(), "2024".into())]);
    assert_eq!(found.twitter, [("twitter:card".into(), "summary".into())]);
    assert!(found.meta.contains(&("author".into(), "Me".into())));
    assert_eq!(found.json_ld, [serde_json::json!({"@type": "Article"})]);
    assert_eq!(
        found.icons[0],
        Icon {
            url: "https://x.org/dir/i.png".into(),
            rel: "icon".into(),
            sizes: Some("32x32".into()),
            mime: Some("image/png".into())
        }
    );
    assert_eq!(
        found.feeds,
        [FeedLink { url: "https://x.org/feed".into(), mime: "application/rss+xml".into(), title: Some("News".into()) }]
    );
    assert_eq!(found.refresh, Some(Refresh { after: 5, url: "https://x.org/dir/next".into() }));
    assert_eq!(found.text, "Text");
    assert_eq!(found.seo_json()["open_graph"][0]["content"], "OG");
    assert_eq!(facts("<meta property=og:title content=OG>").best_title(), Some("OG"));
}

#[test]
fn everything_is_capped_and_says_so() {
    let options = FactsOptions { max_text: 10, max_links: 3, resources: false };
    let html = (0..100).map(|i| format!("<a href={i}>link {i}</a><img src={i}>")).collect::<String>();
    let found = page_facts(&html, &Url::parse("https://x.org/").unwrap(), &options);
    assert_eq!((found.links.len(), found.links_truncated), (3, true));
    assert_eq!((found.text.as_str(), found.text_truncated), ("link 0link", true));
}

#[test]
fn size_and_nesting_cost_nothing_but_time() {
    for piece in
        ["<div>", "<a href=/x>", "<b><i>", "<svg>", "<table><tr><td>", "<", "<!--", "&", "<a b=", "</", "<x a a a a"]
    {
        let html = piece.repeat(2_000_000 / piece.len());
        let found = facts(&html);
        assert!(found.links.len() <= 1, "{piece}");
    }
}

proptest::proptest! {
    #[test]
    fn never_panics(html in "(<[a-z!/]{1,6}( (href|src|style|srcset|content|rel|http-equiv)=[^> ]{0,8})?>?|&[a-z#0-9;]{0,8}|\\PC){0,60}") {
        let found = facts(&html);
        for link in &found.links {
            proptest::prop_assert!(link.url.starts_with("http"));
        }
    }

    #[test]
    fn never_panics_on_bytes(bytes: Vec<u8>) {
        facts_of(&bytes, None, &Url::parse("https://x.org/").unwrap(), &FactsOptions::default());
    }
}
