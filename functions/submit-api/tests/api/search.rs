//! Search.

use crate::harness::{Api, Page, bare_crawl};
use serde_json::{Value, json};
use sqlx::PgPool;

fn found(answer: &Value) -> Vec<(String, String)> {
    let hit = |h: &Value| {
        (h["snapshot"]["title"].as_str().unwrap_or_default().to_owned(), h["match"].as_str().unwrap().to_owned())
    };
    answer["items"].as_array().unwrap().iter().map(hit).collect()
}

async fn library(api: &Api) -> uuid::Uuid {
    let crawl = bare_crawl(api).await;
    for (title, url, tags, text) in [
        ("Archivists of the world", "https://arch.org/world", vec!["people"], "A text about boxes and shelves."),
        (
            "Shelves",
            "https://wood.example/shelves",
            vec![],
            "How to build shelves. An archivist needs many shelves, says the carpenter <b>loudly</b>.",
        ),
        ("Kochbuch", "https://küche.de/suppe", vec!["essen"], "Die Suppe mit Klößen kocht zwei Stunden."),
        ("書庫", "https://jp.example/", vec![], "古い文書を守る。"),
        ("Кириллица", "https://ru.example/", vec![], "Архив хранит документы вечно."),
    ] {
        let page = Page {
            title: Some(title.to_owned()),
            tags: tags.into_iter().map(str::to_owned).collect(),
            text: Some(text.to_owned()),
            ..Page::new(url)
        };
        page.insert(api, crawl).await;
    }
    crawl
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn words_are_found_in_titles_urls_tags_and_texts(pool: PgPool) {
    let api = Api::new(pool).await;
    library(&api).await;
    let text = |title: &str| (title.to_owned(), "text".to_owned());
    for (q, expected) in [
        ("shelves", vec![text("Shelves"), text("Archivists of the world")]),
        ("shelves -carpenter", vec![text("Archivists of the world")]),
        ("\"build shelves\"", vec![text("Shelves")]),
        ("\"shelves build\"", vec![]),
        ("suppe", vec![text("Kochbuch")]),
        ("ESSEN", vec![text("Kochbuch")]),
        ("carpen*", vec![text("Shelves")]),
        ("wood.example", vec![text("Shelves")]),
        ("文書", vec![text("書庫")]),
        ("書文", vec![]),
        ("документы", vec![text("Кириллица")]),
        ("boxes or klößen", vec![text("Kochbuch"), text("Archivists of the world")]),
        ("nosuchwordatall", vec![]),
        ("'; DROP TABLE snapshot; --", vec![]),
        ("-", vec![]),
    ] {
        let answer = api.get(&format!("/v1/search?q={}", encode(q))).await.ok();
        let mut texts: Vec<_> = found(&answer).into_iter().filter(|(_, m)| m == "text").collect();
        let mut expected = expected;
        if q.contains(" or ") {
            texts.sort();
            expected.sort();
        }
        assert_eq!(texts, expected, "{q}: {answer}");
    }
}

fn encode(q: &str) -> String {
    url::form_urlencoded::byte_serialize(q.as_bytes()).collect()
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn snippets_are_data_with_the_hits_marked(pool: PgPool) {
    let api = Api::new(pool).await;
    library(&api).await;
    let answer = api.get("/v1/search?q=carpenter").await.ok();
    let pieces = answer["items"][0]["snippet"].as_array().unwrap();
    let hits: Vec<_> = pieces.iter().filter(|p| p["hit"] == true).map(|p| p["text"].as_str().unwrap()).collect();
    assert_eq!(hits, ["carpenter"]);
    let text: String = pieces.iter().map(|p| p["text"].as_str().unwrap()).collect();
    assert!(text.contains("says the carpenter"), "{text}");
    assert!(answer["items"][0]["rank"].as_f64().unwrap() > 0.0);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn typing_errors_and_parts_of_urls_are_forgiven(pool: PgPool) {
    let api = Api::new(pool).await;
    library(&api).await;
    for (q, title) in [
        ("archivsts", "Archivists of the world"),
        ("kochbuhc", "Kochbuch"),
        ("wood.exampel", "Shelves"),
        ("arch.org/wor", "Archivists of the world"),
    ] {
        let answer = api.get(&format!("/v1/search?q={q}")).await.ok();
        let hits = found(&answer);
        assert!(hits.iter().any(|(t, m)| t == title && m == "similar"), "{q}: {hits:?}");
    }
    // What the text search found is not found again.
    let answer = api.get("/v1/search?q=kochbuch").await.ok();
    assert_eq!(found(&answer), [("Kochbuch".to_owned(), "text".to_owned())]);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_search_is_filtered_and_paged(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = library(&api).await;
    let other = bare_crawl(&api).await;
    for i in 0..45 {
        let page = Page {
            title: Some(format!("p{i}")),
            text: Some("ubiquitous ".repeat(i + 1)),
            tags: vec![if i % 2 == 0 { "even" } else { "odd" }.into()],
            ..Page::new(&format!("https://n{}.example/{i}", i % 3))
        };
        page.insert(&api, other).await;
    }
    let mut seen = Vec::new();
    let mut next = Some(0);
    while let Some(offset) = next {
        let page = api.get(&format!("/v1/search?q=ubiquitous&limit=20&offset={offset}")).await.ok();
        seen.extend(found(&page).into_iter().map(|(t, _)| t));
        next = page["next_offset"].as_i64();
        assert_eq!(page["capped"], false);
    }
    assert_eq!(seen.len(), 45);
    assert_eq!(seen.iter().collect::<std::collections::HashSet<_>>().len(), 45);
    for (filter, n) in [
        (format!("crawl={crawl}"), 0),
        (format!("crawl={other}"), 45),
        ("tag=odd".to_owned(), 22),
        ("domain=n1.example".to_owned(), 15),
        ("domain=example".to_owned(), 45),
        ("status=queued".to_owned(), 0),
        ("until=2001-01-01".to_owned(), 0),
    ] {
        let page = api.get(&format!("/v1/search?q=ubiquitous&limit=100&{filter}")).await.ok();
        assert_eq!(page["items"].as_array().unwrap().len(), n, "{filter}");
    }
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn more_matches_than_are_ranked_is_said(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = bare_crawl(&api).await;
    sqlx::query(
        "WITH s AS (INSERT INTO snapshot (id, crawl_id, url, url_key, host, status, sealed_at)
             SELECT lpad(to_hex(i), 32, '0')::uuid, $1, 'https://h/' || i, decode(md5(i::text), 'hex'), 'h', 'sealed', now()
             FROM generate_series(1, 1200) i RETURNING id, url)
         INSERT INTO snapshot_text (snapshot_id, label, body, tsv)
         SELECT id, url, 'common', 'common:1'::tsvector FROM s",
    )
    .bind(crawl)
    .execute(&api.pool)
    .await
    .unwrap();
    let page = api.get("/v1/search?q=common&limit=100&offset=900").await.ok();
    assert_eq!(page["capped"], true);
    assert_eq!(page["items"].as_array().unwrap().len(), 100);
    assert_eq!(page["next_offset"], json!(null));
}
