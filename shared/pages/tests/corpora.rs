//! The exports of real services: every link, with all that the export knows of it.

use chrono::{DateTime, Utc};
use fonds_pages::inputs::{Format, Hint, InputUrl, Limits, ParsedInput, parse};
use std::path::PathBuf;

fn corpus(name: &str) -> Option<Vec<u8>> {
    let root = std::env::var_os("FONDS_CORPORA")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora")), PathBuf::from);
    let path = root.join("inputs").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("not tested: {} ({error}); set FONDS_CORPORA", path.display());
            None
        }
    }
}

fn read(name: &str) -> Option<ParsedInput> {
    // Neither the name nor a type may be needed.
    corpus(name).map(|bytes| parse(&bytes, &Hint::default(), &Limits::default()))
}

fn date(text: &str) -> Option<DateTime<Utc>> {
    Some(text.parse().expect("a date in RFC 3339"))
}

/// URL, title, tags, date, folder.
type Row<'a> = (&'a str, &'a str, &'a [&'a str], Option<DateTime<Utc>>, &'a [&'a str]);

fn row(url: &InputUrl) -> (&str, &str, Vec<&str>, Option<DateTime<Utc>>, Vec<&str>) {
    (
        &url.url,
        url.title.as_deref().unwrap_or(""),
        url.tags.iter().map(String::as_str).collect(),
        url.added_at,
        url.folder.iter().map(String::as_str).collect(),
    )
}

#[track_caller]
fn has(parsed: &ParsedInput, expected: Row<'_>) {
    let expected = (expected.0, expected.1, expected.2.to_vec(), expected.3, expected.4.to_vec());
    let found = parsed.urls.iter().find(|u| u.url == expected.0).unwrap_or_else(|| panic!("{} is missing", expected.0));
    assert_eq!(row(found), expected);
}

#[track_caller]
fn sound(parsed: &ParsedInput, format: Format, urls: usize) {
    assert_eq!(parsed.format, format);
    assert_eq!(parsed.urls.len(), urls, "{:#?}", parsed.urls.iter().map(|u| &u.url).collect::<Vec<_>>());
    assert_eq!(parsed.incomplete, None);
}

#[test]
fn chromium_bookmarks_keep_their_folders() {
    let Some(parsed) = read("netscape-bookmark-parser--chromium_nested.htm") else { return };
    sound(&parsed, Format::Netscape, 18);
    assert!(parsed.rejected.is_empty() && parsed.urls.iter().all(|u| u.title.is_some() && u.added_at.is_some()));
    has(
        &parsed,
        (
            "http://www.jabber.org/",
            "jabber.org - the original XMPP instant messaging service",
            &[],
            date("2016-06-15T17:04:26Z"),
            &["Personal toolbar"],
        ),
    );
    has(&parsed, ("https://checkio.org/", "Welcome :: CheckiO", &[], date("2016-06-15T17:30:20Z"), &["Dev", "Python"]));
    has(
        &parsed,
        (
            "https://www.kernel.org/",
            "The Linux Kernel Archives",
            &[],
            date("2016-06-15T17:28:59Z"),
            &["Linux, Unix OS,Other stuff"],
        ),
    );
}

#[test]
fn internet_explorer_bookmarks_keep_their_folders() {
    let Some(parsed) = read("netscape-bookmark-parser--internet_explorer_11_nested.htm") else { return };
    sound(&parsed, Format::Netscape, 27);
    assert!(parsed.rejected.is_empty() && parsed.urls.iter().all(|u| u.title.is_some() && u.added_at.is_some()));
    has(
        &parsed,
        (
            "http://hginit.com/",
            "Hg Init a Mercurial tutorial by Joel Spolsky",
            &[],
            date("2016-06-18T17:39:44Z"),
            &["Dev", "SCM"],
        ),
    );
    has(
        &parsed,
        (
            "https://www.clicktorelease.com/code/css3dclouds/#",
            "CSS 3D Clouds",
            &[],
            date("2016-06-18T17:17:24Z"),
            &["Dev"],
        ),
    );
}

#[test]
fn delicious_bookmarks_keep_tags_and_notes() {
    let Some(parsed) = read("netscape-bookmark-parser--delicious.htm") else { return };
    sound(&parsed, Format::Netscape, 5);
    has(
        &parsed,
        (
            "http://fontfamily.io/",
            "fontfamily.io",
            &["@font-face", "os", "typography"],
            date("2014-09-30T13:59:19Z"),
            &[],
        ),
    );
    has(
        &parsed,
        (
            "http://storml.deviantart.com/art/Mine-Turtle-Instructions-302477240?q=in%3Ascraps%20sort%3Atime%20gallery%3Astorml&qo=1",
            "Paper craft Mine Turtle",
            &["mine", "turtle", "paper", "craft", "asdf"],
            date("2015-04-12T22:00:00Z"),
            &[],
        ),
    );
    let notes: Vec<_> = parsed.urls.iter().map(|u| u.description.as_deref()).collect();
    assert_eq!(notes[1], Some("Windows Internet Explorer Favorites file format"));
    assert_eq!((notes[2], notes[3]), (None, Some("\"Hello!\"")));
}

#[test]
fn a_link_in_a_note_is_no_bookmark() {
    let Some(parsed) = read("netscape-bookmark-parser--netscape_extended.htm") else { return };
    sound(&parsed, Format::Netscape, 1);
    has(
        &parsed,
        (
            "https://www.bbc.com/future/article/20190213-the-dramatic-hunt-for-the-fish-pirates-exploiting-our-seas",
            "The hunt for the fish pirates who exploit the sea - BBC Future",
            &["story", "oceans"],
            date("2020-06-06T13:50:45Z"),
            &[],
        ),
    );
    assert!(
        parsed.urls[0].description.as_deref().is_some_and(|d| d.starts_with("For 10 years") && d.contains("world’s"))
    );
}

#[test]
fn safari_bookmarks_have_no_dates() {
    let Some(parsed) = read("netscape-bookmark-parser--safari_folded.htm") else { return };
    sound(&parsed, Format::Netscape, 3);
    has(&parsed, ("https://github.com/", "GitHub", &[], None, &["Favoris"]));
    has(
        &parsed,
        (
            "https://en.wikipedia.org/wiki/Main_Page",
            "Wikipedia, the free encyclopedia",
            &[],
            None,
            &["Autre Divers", "doc"],
        ),
    );
}

#[test]
fn shaarli_notes_are_whole_and_its_own_page_is_named() {
    let Some(parsed) = read("netscape-bookmark-parser--shaarli.htm") else { return };
    sound(&parsed, Format::Netscape, 5);
    assert_eq!(
        (parsed.rejected[0].text.as_str(), parsed.rejected[0].code.as_str(), parsed.rejected[0].line),
        ("?lY47tw", "RELATIVE_URL", Some(9))
    );
    has(
        &parsed,
        (
            "http://sebsauvage.net/paste/?8434b27936c09649#bR7XsXhoTiLcqCpQbmOpBi3rq2zzQUC5hBI7ZT1O3x8=",
            "My secret stuff... - Pastebin.com",
            &["secretstuff"],
            date("2016-03-30T20:48:33Z"),
            &[],
        ),
    );
    let wiki = parsed.urls.iter().find(|u| u.url == "https://github.com/shaarli/Shaarli/wiki").unwrap();
    assert_eq!(
        wiki.title.as_deref(),
        Some("Shaarli: the personal, minimalist, super-fast, no-database delicious clone")
    );
    let note = wiki.description.as_deref().unwrap();
    assert!(note.contains("link \"Help/documentation\"") && note.ends_with("Sebastien Sauvage."), "{note}");
    // With its address, the export's own page is a link like any other.
    let base = "https://links.example/".parse().unwrap();
    let bytes = corpus("netscape-bookmark-parser--shaarli.htm").unwrap();
    let parsed = parse(&bytes, &Hint { base: Some(&base), ..Hint::default() }, &Limits::default());
    has(
        &parsed,
        (
            "https://links.example/?lY47tw",
            "Kouign'amann recipes",
            &["breton", "recipe", "kouign", "amann", "traditional", "caramel", "butter"],
            date("2016-03-30T20:56:37Z"),
            &[],
        ),
    );
}

#[test]
fn pocket_rows() {
    let Some(parsed) = read("wallabag--pocket.csv") else { return };
    sound(&parsed, Format::Csv, 7);
    has(
        &parsed,
        ("http://youmightnotneedjquery.com/", "You Might Not Need jQuery", &[], date("2020-09-17T06:06:28Z"), &[]),
    );
    has(
        &parsed,
        (
            "https://reporterre.net/Des-abeilles-pour-resoudre-les-conflits-entre-les-humains-et-les-elephants",
            "Des abeilles pour résoudre les « conflits » entre les humains et les élépha",
            &[],
            date("2020-09-12T06:04:33Z"),
            &[],
        ),
    );
    assert!(parsed.rejected.is_empty() && parsed.urls.iter().all(|u| u.added_at.is_some()));
    let lines: Vec<_> = parsed.urls.iter().filter_map(|u| u.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8]);
    let Some(parsed) = read("shiori--pocket-new.csv") else { return };
    sound(&parsed, Format::Csv, 1);
    has(&parsed, ("https://github.com/go-shiori/shiori", "Shiori", &["shiori"], date("2018-11-04T15:05:37Z"), &[]));
}

#[test]
fn pocket_page() {
    let Some(parsed) = read("wallabag--ril_export.html") else { return };
    sound(&parsed, Format::Html, 2);
    has(
        &parsed,
        (
            "https://www.20minutes.fr/paris/4100740-20240715-jo-paris-2024-courir-capitale-maintenant-quais-fermes",
            "JO Paris 2024 : Où courir dans la capitale maintenant que les quais sont fermés ?",
            &["ifttt", "new_entry_simple"],
            date("2023-07-06T07:10:12Z"),
            &["Unread"],
        ),
    );
}

#[test]
fn pinboard() {
    let Some(parsed) = read("wallabag--pinboard_export") else { return };
    sound(&parsed, Format::Json, 3);
    has(
        &parsed,
        (
            "https://ma.ttias.be/varnish-explained/",
            "Varnish (explained) for PHP developers",
            &["varnish", "PHP"],
            date("2016-10-26T06:43:03Z"),
            &[],
        ),
    );
    assert!(parsed.urls[0].description.as_deref().is_some_and(|d| d.starts_with("TL;DR: Re-use")));
    assert_eq!(parsed.urls[2].description, None);
}

#[test]
fn omnivore() {
    let Some(parsed) = read("wallabag--omnivore.json") else { return };
    sound(&parsed, Format::Json, 20);
    has(
        &parsed,
        (
            "https://www.lemonde.fr/societe/article/2024/10/29/montpellier-enquete-ouverte-apres-la-mort-d-une-jeune-femme-des-suites-d-une-meningite-malgre-des-appels-au-samu-et-aux-pompiers_6365359_3224.html",
            "Montpellier : enquête ouverte après la mort d’une jeune femme des suites d’une méningite, malgré des appels au SAMU et aux pompiers",
            &["RSS", "TEST"],
            date("2024-10-29T16:09:19Z"),
            &[],
        ),
    );
    assert!(parsed.urls.iter().all(|u| u.title.is_some() && u.added_at.is_some() && u.description.is_some()));
}

#[test]
fn wallabag() {
    let Some(parsed) = read("wallabag--wallabag-v2.json") else { return };
    sound(&parsed, Format::Json, 6);
    has(
        &parsed,
        (
            "https://www.mediapart.fr/",
            "Site d'information français d'actualités indépendant et participatif en ligne | Mediapart",
            &["mediapart", "blog"],
            date("2016-09-08T09:55:58Z"),
            &[],
        ),
    );
    has(&parsed, ("https://fr.wikipedia.org/wiki/%C3%89checs", "Échecs", &[], date("2016-09-08T09:55:58Z"), &[]));
}

#[test]
fn feeds_give_every_link_of_every_entry() {
    let links = |parsed: &ParsedInput| parsed.urls.iter().map(|u| u.url.clone()).collect::<Vec<_>>();
    let Some(parsed) = read("crawler-commons--atom.xml") else { return };
    sound(&parsed, Format::Feed, 3);
    assert_eq!(
        links(&parsed),
        [
            "http://example.org/2003/12/13/atom03",
            "http://example.org/2003/12/13/atom03.html",
            "http://example.org/2003/12/13/atom03/edit"
        ]
    );
    assert_eq!(
        row(&parsed.urls[0]),
        (
            "http://example.org/2003/12/13/atom03",
            "Atom-Powered Robots Run Amok",
            vec![],
            date("2003-12-13T18:30:02Z"),
            vec![]
        )
    );
    assert_eq!(parsed.urls[2].rel.as_deref(), Some("edit"));
    let Some(parsed) = read("feed-rs--atom_example_reddit.xml") else { return };
    sound(&parsed, Format::Feed, 1);
    has(
        &parsed,
        (
            "https://www.reddit.com/r/rust/comments/glvkc5/hey_rustaceans_got_an_easy_question_ask_here/",
            "Hey Rustaceans! Got an easy question? Ask here (21/2020)!",
            &["rust"],
            date("2020-05-18T05:44:47Z"),
            &[],
        ),
    );
    // An entry without a link is known by its identifier.
    let Some(parsed) = read("feed-rs--atom_xml_base.xml") else { return };
    sound(&parsed, Format::Feed, 1);
    has(
        &parsed,
        ("https://numi.st/post/2022/travel-uke", "my cool entry title", &[], date("2022-04-21T00:00:00Z"), &[]),
    );
}
