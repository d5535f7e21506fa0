//! Our SURT keys are those of the field's index tools.

use fonds_warc::surt;
use proptest::prelude::*;

#[test]
fn keys_are_those_of_other_tools() {
    let unescape = |text: &str| text.replace("\\t", "\t").replace("\\x7f", "\x7f").replace("\\\\", "\\");
    let mut wrong = Vec::new();
    let table = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/surt.tsv")).unwrap();
    for line in table.lines().filter(|line| !line.starts_with("# ")) {
        let (url, key) = line.split_once('\t').unwrap();
        let (url, key) = (unescape(url), unescape(key));
        let ours = surt(&url);
        if ours != key {
            wrong.push(format!("{url}\n   ours {ours}\n  their {key}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each of these took seconds when look-ups were repeated for every possible beginning.
#[test]
fn hostile_urls_take_no_longer_than_others() {
    let start = std::time::Instant::now();
    for (piece, count) in
        [("/(", 300_000), ("?cfid=", 100_000), ("%25", 1), ("25", 300_000), ("a/../", 120_000), ("?&", 300_000)]
    {
        assert!(!surt(&format!("http://e.com/%{}", piece.repeat(count))).is_empty());
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

proptest! {
    #[test]
    fn any_text_has_a_key(text in any::<String>()) {
        prop_assert!(!surt(&text).is_empty());
    }

    #[test]
    fn keys_of_http_urls_fit_an_index_line(host in "[a-z0-9.-]{1,20}", rest in "[/?#%a-zA-Z0-9=&.;()\u{80}-\u{7ff}]{0,40}") {
        let key = surt(&format!("http://{host}/{rest}"));
        prop_assert!(key.bytes().all(|b| b.is_ascii_graphic()), "{key}");
    }
}
