use super::*;
use proptest::prelude::*;

fn new(json: serde_json::Value) -> NewCrawl {
    serde_json::from_value(json).unwrap()
}

/// The field and code of a refusal.
#[track_caller]
fn refused(json: serde_json::Value) -> (String, String) {
    let problem = submission(new(json), Utc::now()).err().expect("refused");
    let rendered: serde_json::Value = {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = problem.render("id", http::HeaderMap::new()).into_body();
        serde_json::from_slice(&runtime.block_on(axum::body::to_bytes(body, 1 << 20)).unwrap()).unwrap()
    };
    (rendered["field"].as_str().unwrap().to_owned(), rendered["code"].as_str().unwrap().to_owned())
}

#[test]
fn refusals_name_field_and_code() {
    use serde_json::json;
    let one = json!(["https://ex.org/"]);
    for (body, field, code) in [
        (json!({}), "urls", "NO_URLS"),
        (json!({"input": " \n "}), "urls", "NO_URLS"),
        (json!({"urls": ["https://a/", "ex.org"]}), "urls[1]", "INVALID_URL"),
        (json!({"urls": ["mailto:a@b"]}), "urls[0]", "INVALID_URL"),
        (json!({"urls": ["https://"]}), "urls[0]", "INVALID_URL"),
        (json!({"urls": [format!("https://a/{}", "x".repeat(70_000))]}), "urls[0]", "URL_TOO_LONG"),
        (json!({"urls": one, "depth": 65}), "depth", "INVALID_FIELD"),
        (json!({"urls": one, "depth": 1, "limits": {"max_depth": 2}}), "depth", "INVALID_FIELD"),
        (json!({"urls": one, "limits": {"max_urls": 0}}), "limits.max_urls", "INVALID_FIELD"),
        (json!({"urls": one, "limits": {"timeout_s": 0}}), "limits", "INVALID_FIELD"),
        (json!({"urls": one, "config": {"extractors": ["nope"]}}), "config.extractors", "INVALID_FIELD"),
        (json!({"urls": one, "config": {"input_format": "csv"}}), "config.input_format", "INVALID_FIELD"),
        (json!({"urls": one, "config": {"deny": ["ok.org", "("]}}), "config.deny[1]", "INVALID_PATTERN"),
        (json!({"urls": one, "config": {"block": ["["]}}), "config.block[0]", "INVALID_PATTERN"),
        (json!({"urls": one, "tags": ["a", " "]}), "tags[1]", "INVALID_FIELD"),
        (json!({"urls": one, "tags": (0..101).map(|i| i.to_string()).collect::<Vec<_>>()}), "tags", "INVALID_FIELD"),
        (json!({"urls": one, "label": "a\nb"}), "label", "INVALID_FIELD"),
        (json!({"urls": one, "label": "x".repeat(201)}), "label", "INVALID_FIELD"),
        (json!({"urls": one, "notes": "a\0"}), "notes", "INVALID_FIELD"),
        (json!({"urls": one, "delete_after": "59m"}), "delete_after", "INVALID_FIELD"),
        (json!({"urls": one, "input": "<rss/>"}), "urls", "INVALID_FIELD"),
        (json!({"urls": one, "input": "a,b", "config": {"input_format": "csv"}}), "urls", "INVALID_FIELD"),
    ] {
        assert_eq!(refused(body.clone()), (field.to_owned(), code.to_owned()), "{body}");
    }
}

#[test]
fn urls_are_stored_exactly() {
    use serde_json::json;
    for (body, input, format) in [
        (
            json!({"urls": ["https://ex.org/a,b(c)?q=\"x\"#f"]}),
            "{\"url\":\"https://ex.org/a,b(c)?q=%22x%22#f\"}\n",
            "jsonl",
        ),
        (json!({"urls": ["https://u:p@ex.org/"]}), "{\"url\":\"https://u:p@ex.org/\"}\n", "jsonl"),
        (json!({"input": "see https://a/"}), "see https://a/", "auto"),
        (json!({"urls": ["https://a/"], "input": "b https://b/"}), "https://a/\nb https://b/", "text"),
        (
            json!({"urls": ["https://a/"], "input": "{\"url\":\"https://b/\"}", "config": {"input_format": "jsonl"}}),
            "{\"url\":\"https://a/\"}\n{\"url\":\"https://b/\"}",
            "jsonl",
        ),
    ] {
        let Ok(checked) = submission(new(body), Utc::now()) else { panic!("not taken: {input}") };
        assert_eq!((checked.input.as_str(), checked.config.input_format.as_str()), (input, format));
    }
}

#[test]
fn ages_follow_the_calendar() {
    let now: DateTime<Utc> = "2024-01-31T12:00:00Z".parse().unwrap();
    for (age, at) in [
        ("1h", Some("2024-01-31T13:00:00Z")),
        ("30d", Some("2024-03-01T12:00:00Z")),
        ("2w", Some("2024-02-14T12:00:00Z")),
        ("1mo", Some("2024-02-29T12:00:00Z")),
        ("1y", Some("2025-01-31T12:00:00Z")),
        ("100y", Some("2124-01-31T12:00:00Z")),
        ("0h", None),
        ("59m", None),
        ("", None),
        ("d", None),
        ("-1d", None),
        ("1.5d", None),
        ("101y", None),
        ("4294967295y", None),
        ("99999999999d", None),
        ("1d1h", None),
    ] {
        let expected = at.map(|a| a.parse::<DateTime<Utc>>().unwrap());
        assert_eq!(after("delete_after", age, now).ok(), expected, "{age}");
    }
}

#[test]
fn deletion_is_ahead_of_us() {
    let now = Utc::now();
    let hour = now + TimeDelta::hours(1);
    assert_eq!(delete_at(None, None, now).ok(), Some(None));
    assert_eq!(delete_at(Some(None), None, now).ok(), Some(Some(None)));
    assert_eq!(delete_at(Some(Some(hour)), None, now).ok(), Some(Some(Some(hour))));
    assert!(delete_at(Some(Some(now)), None, now).is_err());
    assert!(delete_at(Some(Some(DateTime::<Utc>::MAX_UTC)), None, now).is_err());
    assert!(delete_at(Some(None), Some("1d".into()), now).is_err());
}

proptest! {
    #[test]
    fn nothing_panics(age in "\\PC{0,12}", url in "\\PC{0,60}", pattern in "\\PC{0,30}", tag in "\\PC{0,120}", input in "\\PC{0,80}") {
        let _ = after("f", &age, Utc::now());
        let body = serde_json::json!({"urls": [url], "input": input, "tags": [tag], "config": {"deny": [pattern]}});
        if let Ok(checked) = submission(new(body), Utc::now()) {
            prop_assert!(!checked.input.is_empty());
        }
    }
}
