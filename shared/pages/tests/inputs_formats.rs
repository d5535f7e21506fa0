//! Formats people submit, by their shapes: what is read, what is named, what is bounded.

use fonds_pages::inputs::{Format, Hint, InputUrl, Limits, ParsedInput, collapse, parse};
use std::io::Write;

fn read(text: &str) -> ParsedInput {
    parse(text.as_bytes(), &Hint::default(), &Limits::default())
}

/// `url | title | tags | date | folder`, without what is not there.
fn line(u: &InputUrl) -> String {
    let mut parts = vec![u.url.clone()];
    parts.extend(u.title.clone());
    if !u.tags.is_empty() {
        parts.push(u.tags.join("+"));
    }
    parts.extend(u.added_at.map(|d| d.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)));
    if !u.folder.is_empty() {
        parts.push(u.folder.join(">"));
    }
    parts.join(" | ")
}

#[track_caller]
fn check(text: &str, format: Format, expected: &[&str]) {
    let parsed = read(text);
    assert_eq!(parsed.format, format, "{text}");
    assert_eq!(parsed.urls.iter().map(line).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn json_of_every_service() {
    for (text, expected) in [
        (r#"["https://x.org/a", "https://x.org/b", "not one"]"#, &["https://x.org/a", "https://x.org/b"][..]),
        (r#"{"urls": ["https://x.org/a"]}"#, &["https://x.org/a"]),
        (
            r#"[{"href":"https://x.org/","description":"T","extended":"E","time":"2016-10-26T06:43:03Z","tags":"a b"}]"#,
            &["https://x.org/ | T | a+b | 2016-10-26T06:43:03Z"],
        ),
        (
            r#"[{"url":"https://x.org/","title":"T","description":"D","tags":"a, b c"}]"#,
            &["https://x.org/ | T | a+b c"],
        ),
        (
            r#"[{"url":"https://x.org/","title":"T","tags":[{"name":"a"},{"label":"b"},7]}]"#,
            &["https://x.org/ | T | a+b+7"],
        ),
        (
            r#"{"status":1,"list":{"1":{"resolved_url":"https://x.org/","given_url":"https://y.org/","resolved_title":"T","time_added":"1466009412","tags":{"a":{"item_id":"1"},"b":{}}}}}"#,
            &["https://x.org/ | T | a+b | 2016-06-15T16:50:12Z"],
        ),
        (
            r#"{"type":"text/x-moz-place-container","title":"","children":[{"title":"Menu","children":[{"title":"T","dateAdded":1466009412123456,"uri":"https://x.org/","tags":"a,b"},{"uri":"place:sort=8","title":"no"}]}]}"#,
            &["https://x.org/ | T | a+b | 2016-06-15T16:50:12.123456Z | Menu"],
        ),
        (
            r#"{"checksum":"c","roots":{"bookmark_bar":{"children":[{"date_added":"13110483012000000","guid":"g","name":"T","type":"url","url":"https://x.org/"},{"children":[{"name":"U","url":"https://x.org/u"}],"name":"Sub"}],"name":"Bar"}}}"#,
            &["https://x.org/ | T | 2016-06-15T16:50:12Z | Bar", "https://x.org/u | U | Bar>Sub"],
        ),
        (
            r#"{"version":"https://jsonfeed.org/version/1.1","home_page_url":"https://x.org/","items":[{"id":"1","url":"https://x.org/1","title":"T","date_published":"2024-01-02T03:04:05Z","tags":["a"],"author":{"url":"https://no.org/"},"attachments":[{"url":"https://no.org/a.mp3"}],"image":"https://no.org/i.png"}]}"#,
            &["https://x.org/1 | T | a | 2024-01-02T03:04:05Z"],
        ),
        (
            r#"[{"url":"https://x.org/","savedAt":"2024-10-29T16:30:11.000Z","labels":["a"],"thumbnail":"https://no.org/","highlights":[{"url":"https://no.org/"}],"other":{"url":"https://no.org/"}}]"#,
            &["https://x.org/ | a | 2024-10-29T16:30:11Z"],
        ),
        (
            r#"{"url":"https://x.org/","title":"T","children":[{"url":"https://x.org/reply"}]}"#,
            &["https://x.org/reply", "https://x.org/ | T"],
        ),
        (
            r#"{"bookmarks":[{"article__title":"T","article__url":"https://x.org/","date_added":"2016-08-25T12:05:00","article__excerpt":"E"}],"recommendations":[]}"#,
            &["https://x.org/ | T | 2016-08-25T12:05:00Z"],
        ),
        ("[{\"url\":\"https://x.org/a\"},{\"url\":\"https://x.org/b\"", &["https://x.org/a"]),
        ("\u{FEFF} [ {\"url\":\"https://x.org/a\"} ] \n", &["https://x.org/a"]),
        (r#"[{"url":"https:\/\/x.org\/\u00fc","title":"\ud83d\ude00"}]"#, &["https://x.org/%C3%BC | 😀"]),
    ] {
        check(text, Format::Json, expected);
    }
    check(
        "{\"url\":\"https://x.org/a\"}\n{\"url\":\"https://x.org/b\",\"title\":\"B\"}\n\nhttps://x.org/c\n{broken\n",
        Format::JsonLines,
        &["https://x.org/a", "https://x.org/b | B", "https://x.org/c"],
    );
    check(
        "{\"url\":\"https://x.org/a\"} {\"url\":\"https://x.org/b\"}",
        Format::JsonLines,
        &["https://x.org/a", "https://x.org/b"],
    );
    check("[a link](https://x.org/a)", Format::Text, &["https://x.org/a | a link"]);
    check("[\"not json](https://x.org/a)", Format::Text, &["https://x.org/a | \"not json"]);
}

#[test]
fn json_faults_cost_what_is_faulty() {
    let parsed = read("[{\"url\":\"https://x.org/a\"},{\"url\":\"javascript:x\"},{\"url\":\"https://x.org/b\"}, oops");
    assert_eq!((parsed.urls.len(), parsed.incomplete.as_deref()), (2, Some("MALFORMED_JSON")));
    assert_eq!(parsed.rejected[0].code, "UNSUPPORTED_SCHEME");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read(&deep).urls.is_empty());
    let deep = format!("{}\"https://x.org/\"{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    read(&deep);
    let lines = read("{\"url\":\"https://x.org/a\"}\n{\"url\":\"https://x.org/b\"}\nnot json\n{\"url\":\n");
    assert_eq!(lines.urls.iter().map(|u| u.line).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert_eq!(
        lines.rejected.iter().map(|r| (r.code.as_str(), r.line)).collect::<Vec<_>>(),
        [("MALFORMED_JSON", Some(4))]
    );
}

#[test]
fn rows_of_every_service() {
    for (text, expected) in [
        (
            "title,url,time_added,tags,status\nT,https://x.org/,1466009412,a|b,unread\n",
            &["https://x.org/ | T | a+b | 2016-06-15T16:50:12Z"][..],
        ),
        (
            "URL,Title,Selection,Folder,Timestamp,Tags\nhttps://x.org/,\"T, \"\"t\"\"\",sel,Unread,1466009412,\"[\"\"a\"\",\"\"b\"\"]\"\n",
            &["https://x.org/ | T, \"t\" | a+b | 2016-06-15T16:50:12Z | Unread"],
        ),
        (
            "id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite\n1,T,,E,https://x.org/,A/B,\"a, b\",2024-10-29T16:30:11.000Z,https://no.org/c.png,,false\n",
            &["https://x.org/ | T | a+b | 2024-10-29T16:30:11Z | A>B"],
        ),
        ("title;url\nT;https://x.org/?a,b\n", &["https://x.org/?a,b | T"]),
        ("url\ttitle\nhttps://x.org/\tT\tmore\n", &["https://x.org/ | T"]),
        (
            "\u{FEFF}\"URL\",\"Date Added\"\r\n\"https://x.org/\",\"2024-10-29 16:30:11\"\r\n",
            &["https://x.org/ | 2024-10-29T16:30:11Z"],
        ),
        (
            "title,url,time_added,tags\nOne, two,https://x.org/,1466009412,a\n",
            &["https://x.org/ | One | a | 2016-06-15T16:50:12Z"],
        ),
        ("url,title\n\n,\nhttps://x.org/,\"two\nlines\"\n", &["https://x.org/ | two lines"]),
    ] {
        check(text, Format::Csv, expected);
    }
    let hint = Hint { file_name: Some("list.csv"), ..Hint::default() };
    let parsed = parse(b"T,https://x.org/,2024-01-01\nU,https://x.org/u,2024-01-01\n", &hint, &Limits::default());
    assert_eq!(parsed.urls.iter().map(line).collect::<Vec<_>>(), ["https://x.org/ | T", "https://x.org/u | U"]);
    let parsed = read("url,title\nhttps://x.org/,T\nnope,U\n");
    let rejected = &parsed.rejected[0];
    assert_eq!((rejected.text.as_str(), rejected.code.as_str(), rejected.line), ("nope", "RELATIVE_URL", Some(3)));
}

#[test]
fn feeds_of_every_kind() {
    for (text, expected) in [
        (
            "<rss version='2.0'><channel><title>No</title><link>https://no.org/</link><item><title>A &amp;amp; B</title><link> https://x.org/a </link><pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate><category>c</category><category>d</category></item></channel></rss>",
            &["https://x.org/a | A & B | c+d | 2002-09-07T00:00:01Z"][..],
        ),
        (
            "<rss><channel><item><title><![CDATA[<b>A</b> & B]]></title><link><![CDATA[https://x.org/a?b=1&c=2]]></link></item></channel></rss>",
            &["https://x.org/a?b=1&c=2 | A & B"],
        ),
        (
            "<rss><channel><item><guid>https://x.org/g</guid></item><item><guid isPermaLink='false'>https://no.org/</guid></item><item><guid>x</guid></item></channel></rss>",
            &["https://x.org/g"],
        ),
        (
            "<rss><channel><item><link>https://x.org/a</link><guid>https://x.org/g</guid><enclosure url='https://x.org/e.mp3'/><comments>https://no.org/</comments></item></channel></rss>",
            &["https://x.org/a", "https://x.org/e.mp3"],
        ),
        (
            "<rdf:RDF xmlns:rdf='r' xmlns='http://purl.org/rss/1.0/' xmlns:dc='d'><channel rdf:about='https://no.org/'><link>https://no.org/</link></channel><item rdf:about='https://x.org/a'><title>T</title><link>https://x.org/a</link><dc:date>2024-01-02T03:04:05Z</dc:date><dc:subject>s</dc:subject></item></rdf:RDF>",
            &["https://x.org/a | T | s | 2024-01-02T03:04:05Z"],
        ),
        (
            "<feed xml:base='https://x.org/blog/' xmlns='http://www.w3.org/2005/Atom'><entry xml:base='2024/'><title type='html'>&lt;i&gt;T&lt;/i&gt;</title><link href='a.html'/><link rel='enclosure' href='/e.mp3'/><updated>2024-01-02T03:04:05Z</updated><published>2024-01-01T00:00:00Z</published></entry><entry><link href='b'/></entry></feed>",
            &[
                "https://x.org/blog/2024/a.html | T | 2024-01-01T00:00:00Z",
                "https://x.org/e.mp3 | T | 2024-01-01T00:00:00Z",
                "https://x.org/blog/b",
            ],
        ),
        (
            "<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:entry><a:link a:rel='x' href='https://x.org/a'/><a:source><a:link href='https://no.org/'/><a:title>no</a:title></a:source><a:title>T</a:title></a:entry></a:feed>",
            &["https://x.org/a | T"],
        ),
        (
            "<rss><channel><item><title>A & B <br> C</title><description>un<p>closed & &nbsp; <img src=x></description><link>https://x.org/a</link></item><item><link>https://x.org/b</link>",
            &["https://x.org/a | A & B C", "https://x.org/b"],
        ),
        (
            "<rss><channel><item><link>https://x.org/a</link><item><link>https://x.org/b</link></channel></rss>",
            &["https://x.org/a", "https://x.org/b"],
        ),
        (
            "<?xml version='1.0'?>\n<!DOCTYPE rss [<!ENTITY x 'y'>]>\n<rss><channel><item><link>https://x.org/a</link><media:content url='https://no.org/i.png'/><media:title>no</media:title></item></channel></rss>",
            &["https://x.org/a"],
        ),
        (
            "<feed><link href='/blog/'/><link rel='self' href='https://x.org/blog/feed.xml'/><entry><link href='a'/></entry></feed>",
            &["https://x.org/blog/a"],
        ),
        (
            "<rss><channel><link>https://x.org/b/</link><item><link>a</link></item></channel></rss>",
            &["https://x.org/b/a"],
        ),
        (
            "<rss><channel><item><title>T</title><description>&lt;a href='https://x.org/in'&gt;t&lt;/a&gt;</description></item></channel></rss>",
            &["https://x.org/in | T"],
        ),
        ("<entry><link href='https://x.org/a'/></entry>", &["https://x.org/a"]),
        (
            "<feed><entry><content><div><a href='https://no.org/'>no</a><link href='https://no.org/2'/></div></content><id>https://x.org/id</id></entry></feed>",
            &["https://x.org/id"],
        ),
    ] {
        check(text, Format::Feed, expected);
    }
}

#[test]
fn sitemaps_of_every_kind() {
    for (text, expected) in [
        (
            "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>https://x.org/a</loc><lastmod>2024-01-01</lastmod></url><url><loc> \n https://x.org/b?c=1&amp;d=2 \n</loc></url></urlset>",
            &["https://x.org/a", "https://x.org/b?c=1&d=2"][..],
        ),
        (
            "\u{FEFF}<urlset xmlns='wrong'><url><loc><![CDATA[https://x.org/a?b=1&c=2]]></loc></url></urlset>",
            &["https://x.org/a?b=1&c=2"],
        ),
        (
            "<s:urlset xmlns:s='x'><s:url><s:loc>https://x.org/a</s:loc><image:image><image:loc>https://no.org/i.png</image:loc></image:image></s:url></s:urlset>",
            &["https://x.org/a"],
        ),
        (
            "<urlset><url><loc>https://x.org/a</loc><url><loc>https://x.org/b</loc></urlset>",
            &["https://x.org/a", "https://x.org/b"],
        ),
        (
            "<urlset><url><loc>https://x.org/a</loc></url><url><loc>https://x.org/b",
            &["https://x.org/a", "https://x.org/b"],
        ),
        (
            "<urlset><url>https://x.org/a</url><url>\n<loc>https://x.org/b</loc>\n</url></urlset>",
            &["https://x.org/a", "https://x.org/b"],
        ),
        ("<urlset><url><loc></loc></url><url/></urlset>", &[]),
    ] {
        check(text, Format::Sitemap, expected);
    }
    let index = read(
        "<sitemapindex><sitemap><loc>https://x.org/1.xml.gz</loc><lastmod>2024-01-02T03:04:05+01:00</lastmod></sitemap><sitemap><loc>/2.xml</loc></sitemap><sitemap>https://x.org/3.xml</sitemap></sitemapindex>",
    );
    assert_eq!(index.nested[1].url, "https://x.org/3.xml");
    assert!(index.urls.is_empty());
    assert_eq!((index.nested[0].url.as_str(), index.nested[0].format), ("https://x.org/1.xml.gz", Format::Sitemap));
    assert_eq!(index.nested[0].modified_at, Some("2024-01-02T02:04:05Z".parse().unwrap()));
    assert_eq!(index.rejected[0].code, "RELATIVE_URL");
}

#[test]
fn gzip_is_told_by_its_bytes() {
    let zip = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let map = "<urlset><url><loc>https://x.org/a</loc></url></urlset>";
    let hint = Hint { file_name: Some("sitemap.xml.gz"), content_type: Some("application/x-gzip"), ..Hint::default() };
    for (bytes, incomplete) in [
        (zip(map), None),
        (map.as_bytes().to_vec(), None),
        (zip("https://x.org/a\n"), None),
        ([zip(map), b"junk".to_vec()].concat(), Some("TRUNCATED_GZIP")),
    ] {
        let parsed = parse(&bytes, &hint, &Limits::default());
        assert_eq!(parsed.urls.iter().map(|u| u.url.as_str()).collect::<Vec<_>>(), ["https://x.org/a"]);
        assert_eq!(parsed.incomplete.as_deref(), incomplete);
    }
}

#[test]
fn other_xml() {
    check(
        "<opml><body><outline text='Tech'><outline type='rss' text='T' xmlUrl='https://x.org/f' htmlUrl='https://x.org/'/></outline><outline text='L' type='link' url='https://y.org/' category='a,b' created='2024-01-02'/></body></opml>",
        Format::Opml,
        &["https://x.org/ | T | Tech", "https://x.org/f | T | Tech", "https://y.org/ | L | a+b | 2024-01-02T00:00:00Z"],
    );
    check(
        "<?xml version='1.0'?><posts user='x'><post href='https://x.org/?a=1&amp;b=2' description='T' extended='E' tag='a b' time='2016-10-26T06:43:03Z'/></posts>",
        Format::Xml,
        &["https://x.org/?a=1&b=2 | T | a+b | 2016-10-26T06:43:03Z"],
    );
    check(
        "<xbel version='1.0'><folder><title>F</title><bookmark href='https://x.org/' added='2024-01-02T03:04:05Z'><title>T</title><desc>D</desc></bookmark></folder><bookmark href='https://y.org/'/></xbel>",
        Format::Xml,
        &["https://x.org/ | T | 2024-01-02T03:04:05Z | F", "https://y.org/"],
    );
}

#[test]
fn bookmark_files_as_they_come() {
    for (text, expected) in [
        (
            "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><p><DT><H3>F</H3><DL><p><DT><A HREF=https://x.org/ ADD_DATE=1466009412 TAGS=a,b>T &amp; t</A>\n<DD>note\n</DL><p><DT><A HREF='https://y.org/'>Y</A></DL>",
            &["https://x.org/ | T & t | a+b | 2016-06-15T16:50:12Z | F", "https://y.org/ | Y"][..],
        ),
        (
            "<!doctype netscape-bookmark-file-1><dl><dt><a href='https://x.org/' add_date='1466009412123456'>T</a><dt><a href='https://y.org/' add_date='487702212'>U</a><dt><a href='https://z.org/' add_date='0'>V</a></dl>",
            &[
                "https://x.org/ | T | 2016-06-15T16:50:12.123456Z",
                "https://y.org/ | U | 2016-06-15T16:50:12Z",
                "https://z.org/ | V",
            ],
        ),
        (
            "<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><DT><A HREF='https://x.org/' ADD_DATE='10/Oct/2000:13:55:36 +0300' TAGS='a b'>T</A></DL>",
            &["https://x.org/ | T | a+b | 2000-10-10T10:55:36Z"],
        ),
        (
            "<DL><p>\n<DT><A HREF=\"https://x.org/\">T</A>\n<DT><A HREF=\"https://x.org/2\">\nno end\n<DT><H3>F</H3><DL><DT><A HREF=\"https://x.org/3\">U",
            &["https://x.org/ | T", "https://x.org/2 | no end", "https://x.org/3 | U | F"],
        ),
        (
            "<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><DT><H3>A</H3><DL><DT><H3>B</H3><DL></DL><DT><A HREF='https://x.org/'>T</A></DL><DT><A HREF='https://y.org/'>U</A></DL></DL></DL>",
            &["https://x.org/ | T | A", "https://y.org/ | U"],
        ),
    ] {
        check(text, Format::Netscape, expected);
    }
    let parsed = read(
        "<!DOCTYPE NETSCAPE-Bookmark-file-1><DL>\n<DT><A HREF='javascript:void(0)'>bookmarklet</A>\n<DT><A HREF='place:type=6'>p</A></DL>",
    );
    assert_eq!(
        parsed.rejected.iter().map(|r| (r.code.as_str(), r.line)).collect::<Vec<_>>(),
        [("UNSUPPORTED_SCHEME", Some(2)), ("UNSUPPORTED_SCHEME", Some(3))]
    );
}

#[test]
fn pages_of_links() {
    check(
        "<html><body><a href='https://x.org/a'>A</a> <a href='/rel'>no base</a> <a href='#x'>x</a> <a href='mailto:a@b'>m</a><a href='https://x.org/b'><img alt='B'></a></body></html>",
        Format::Html,
        &["https://x.org/a | A", "https://x.org/b | B"],
    );
    check(
        "<html><base href='https://x.org/d/'><a href='a'>A</a><h1>No folder</h1><a href='b'>B</a>",
        Format::Html,
        &["https://x.org/d/a | A", "https://x.org/d/b | B"],
    );
    check(
        "<!DOCTYPE html><title>Instapaper: Export</title><h1>Unread</h1><ol><li><a href='https://x.org/a'>A</a></ol><h1>Archive</h1><ol><li><a href='https://x.org/b'>B</a></ol>",
        Format::Html,
        &["https://x.org/a | A | Unread", "https://x.org/b | B | Archive"],
    );
}

#[test]
fn encodings() {
    let utf16: Vec<u8> = "\u{FEFF}https://x.org/ü\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin = b"<!DOCTYPE NETSCAPE-Bookmark-file-1><META HTTP-EQUIV=Content-Type CONTENT='text/html; charset=iso-8859-1'><DL><DT><A HREF='https://x.org/'>Gr\xFC\xDFe</A></DL>";
    let gbk = b"<?xml version='1.0' encoding='gbk'?><rss><channel><item><title>\xC4\xE3\xBA\xC3</title><link>https://x.org/</link></item></channel></rss>";
    for (bytes, expected) in
        [(utf16.as_slice(), "https://x.org/%C3%BC"), (latin, "https://x.org/ | Grüße"), (gbk, "https://x.org/ | 你好")]
    {
        let parsed = parse(bytes, &Hint::default(), &Limits::default());
        assert_eq!(parsed.urls.iter().map(line).collect::<Vec<_>>(), [expected]);
    }
    let png = parse(b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR https://no.org/", &Hint::default(), &Limits::default());
    assert_eq!((png.urls.len(), png.rejected[0].code.as_str()), (0, "UNSUPPORTED_INPUT"));
}

#[test]
fn everything_is_bounded() {
    let limits = Limits { max_urls: 3, max_nested: 2, max_rejected: 2, ..Limits::default() };
    let many = |piece: &str| (0..50).map(|i| piece.replace('#', &i.to_string())).collect::<String>();
    for text in [
        many("https://x.org/#\n"),
        format!("<!DOCTYPE NETSCAPE-Bookmark-file-1><DL>{}", many("<DT><A HREF='https://x.org/#'>T</A>")),
        format!("<html>{}", many("<a href='https://x.org/#'>T</a>")),
        format!("url,title\n{}", many("https://x.org/#,T\n")),
        format!("[{}0]", many("{\"url\":\"https://x.org/#\"},")),
        many("{\"url\":\"https://x.org/#\"}\n"),
        format!("<rss>{}", many("<item><link>https://x.org/#</link></item>")),
        format!("<urlset>{}", many("<url><loc>https://x.org/#</loc></url>")),
        format!("<opml>{}", many("<outline htmlUrl='https://x.org/#'/>")),
        format!("<posts>{}", many("<post href='https://x.org/#'/>")),
    ] {
        let parsed = parse(text.as_bytes(), &Hint::default(), &limits);
        assert_eq!((parsed.urls.len(), parsed.incomplete.as_deref()), (3, Some("TOO_MANY_URLS")), "{}", &text[..40]);
    }
    let index = format!("<sitemapindex>{}", many("<sitemap><loc>https://x.org/#</loc></sitemap>"));
    let parsed = parse(index.as_bytes(), &Hint::default(), &limits);
    assert_eq!((parsed.nested.len(), parsed.incomplete.as_deref()), (2, Some("TOO_MANY_NESTED")));
    let parsed = parse(many("ftp://x.org/#\n").as_bytes(), &Hint::default(), &limits);
    assert_eq!((parsed.rejected.len(), parsed.rejected_total), (2, 50));
    let parsed = parse(&[b'x'; 100], &Hint::default(), &Limits { max_bytes: 10, ..limits });
    assert_eq!(parsed.incomplete.as_deref(), Some("INPUT_TOO_LARGE"));
    let exact = parse(b"https://x.org/1\nhttps://x.org/2\nhttps://x.org/3\n", &Hint::default(), &limits);
    assert_eq!((exact.urls.len(), exact.incomplete), (3, None));
}

#[test]
fn duplicates_become_one_with_all_that_is_known() {
    let parsed = read(
        "url,title,tags,time_added\nhttps://x.org/#a,,a,1466009412\nhttps://x.org/#b,T,\"b,a\",1466009000\nhttps://y.org/,Y,,\n",
    );
    let one = collapse(parsed.urls.clone(), false);
    assert_eq!(
        one.iter().map(line).collect::<Vec<_>>(),
        ["https://x.org/#a | T | a+b | 2016-06-15T16:43:20Z", "https://y.org/ | Y"]
    );
    assert_eq!(collapse(parsed.urls, true).len(), 3);
}

proptest::proptest! {
    #[test]
    fn never_panics(bytes: Vec<u8>, name in "(list|x)\\.(csv|json|html|gz|txt)") {
        parse(&bytes, &Hint { file_name: Some(&name), ..Hint::default() }, &Limits::default());
    }

    #[test]
    fn never_panics_on_anything_like_a_list(
        text in "(<(rss|feed|item|entry|link|title|urlset|url|loc|opml|outline|dl|dt|a|dd|h3|posts|post)( (href|xml:base|rel|url|xmlUrl|add_date|tags)='?(https://x.org/|\\PC{0,4})'?)?/?>|</(item|entry|loc|dl|a|h3|title|link)>|https?://\\PC{0,5}|[{}\\[\\]\",:]|\"url\"|,|\n|\\PC){0,40}",
        format in proptest::sample::select(vec![Format::Text, Format::Netscape, Format::Html, Format::Csv, Format::Json, Format::JsonLines, Format::Feed, Format::Opml, Format::Sitemap, Format::Xml]),
    ) {
        for hint in [Hint::default(), Hint { format: Some(format), ..Hint::default() }] {
            for url in parse(text.as_bytes(), &hint, &Limits::default()).urls {
                proptest::prop_assert!(url.url.starts_with("http"));
            }
        }
    }
}
