//! Lists: complete, stable, filtered, bounded.

use crate::harness::{Api, Page, bare_crawl};
use serde_json::{Value, json};
use sqlx::PgPool;
use std::collections::HashSet;

fn ids(items: &[Value]) -> Vec<String> {
    items.iter().map(|i| i["id"].as_str().unwrap().to_owned()).collect()
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn paging_is_complete_and_stable_while_rows_come_and_go(pool: PgPool) {
    let api = Api::new(pool).await;
    let crawl = bare_crawl(&api).await;
    let mut made = Vec::new();
    for i in 0..500 {
        made.push(Page::new(&format!("https://ex.org/{i}")).insert(&api, crawl).await.to_string());
    }
    made.reverse();
    for limit in [1, 7, 50, 200] {
        if limit > 1 {
            assert_eq!(ids(&api.all(&format!("/v1/snapshots?limit={limit}")).await), made, "limit {limit}");
        }
    }
    // Between two pages, one row is added and one that was not reached yet is deleted.
    let first = api.get("/v1/snapshots?limit=200").await.ok();
    Page::new("https://ex.org/late").insert(&api, crawl).await;
    let gone = made.remove(300);
    assert_eq!(api.delete(&format!("/v1/snapshots/{gone}")).await.status, 202);
    let mut seen = ids(first["items"].as_array().unwrap());
    let mut next = first["next"].as_str().map(str::to_owned);
    while let Some(cursor) = next {
        let page = api.get(&format!("/v1/snapshots?limit=200&cursor={cursor}")).await.ok();
        seen.extend(ids(page["items"].as_array().unwrap()));
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(seen, made);
    assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 499);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn crawls_are_filtered(pool: PgPool) {
    let api = Api::new(pool).await;
    let plain = api.crawl(json!({"urls": ["https://ex.org/"]})).await.to_string();
    let tagged = api.crawl(json!({"urls": ["https://ex.org/"], "tags": ["it's", "b"], "label": "L"})).await.to_string();
    let sealed = api.crawl(json!({"urls": ["https://ex.org/"], "tags": ["b"]})).await.to_string();
    api.seal(sealed.parse().unwrap()).await;
    let paused = api.crawl(json!({"urls": ["https://ex.org/"]})).await.to_string();
    api.patch(&format!("/v1/crawls/{paused}"), json!({"action": "pause"})).await.ok();
    for (query, expected) in [
        ("", vec![&paused, &sealed, &tagged, &plain]),
        ("?status=queued", vec![&tagged, &plain]),
        ("?status=sealed", vec![&sealed]),
        ("?status=paused", vec![&paused]),
        ("?status=", vec![&paused, &sealed, &tagged, &plain]),
        ("?tag=b", vec![&sealed, &tagged]),
        ("?tag=it%27s", vec![&tagged]),
        ("?tag=b&status=queued", vec![&tagged]),
        ("?label=L", vec![&tagged]),
        ("?label=l", vec![]),
        ("?since=2001-01-01&until=2001-01-02T00:00:00Z", vec![]),
        ("?since=2001-01-01", vec![&paused, &sealed, &tagged, &plain]),
    ] {
        let items = api.all(&format!("/v1/crawls{query}")).await;
        assert_eq!(ids(&items), expected.into_iter().cloned().collect::<Vec<_>>(), "{query}");
    }
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn snapshots_are_filtered(pool: PgPool) {
    let api = Api::new(pool).await;
    let (one, two) = (bare_crawl(&api).await, bare_crawl(&api).await);
    let add = |page: Page, crawl| {
        let api = &api;
        async move { page.insert(api, crawl).await.to_string() }
    };
    let root = add(Page { tags: vec!["t".into()], ..Page::new("https://ex.org/a") }, one).await;
    let sub = add(Page { depth: 1, ..Page::new("https://www.ex.org:8080/a_b%20c") }, one).await;
    let other = add(Page { error: Some("DNS_FAILED"), ..Page::new("https://notex.org/") }, one).await;
    let partly = add(Page { n_failed: 2, ..Page::new("https://ex.org/aXb") }, two).await;
    let open = add(Page { status: "started", ..Page::new("https://ex.org/a#frag") }, two).await;
    for (query, expected) in [
        (String::new(), vec![&open, &partly, &other, &sub, &root]),
        (format!("crawl={one}"), vec![&other, &sub, &root]),
        ("status=started".into(), vec![&open]),
        ("status=sealed&depth=0".into(), vec![&partly, &other, &root]),
        ("tag=t".into(), vec![&root]),
        ("host=ex.org".into(), vec![&open, &partly, &root]),
        ("host=WWW.ex.org:8080".into(), vec![&sub]),
        ("domain=ex.org".into(), vec![&open, &partly, &sub, &root]),
        ("domain=*.EX.org".into(), vec![&open, &partly, &sub, &root]),
        ("domain=org".into(), vec![&open, &partly, &other, &sub, &root]),
        ("domain=x.org".into(), vec![]),
        ("domain=%25".into(), vec![]),
        ("url=https://ex.org/a".into(), vec![&open, &root]),
        ("url=https://EX.org/a%23other".into(), vec![&open, &root]),
        ("url=https://ex.org/".into(), vec![]),
        ("url_prefix=https://ex.org/a".into(), vec![&open, &partly, &root]),
        ("url_prefix=https://www.ex.org:8080/a_".into(), vec![&sub]),
        ("url_prefix=https://ex.org/a_".into(), vec![]),
        ("depth=1".into(), vec![&sub]),
        ("failed=true".into(), vec![&other]),
        ("failed=false&depth=0".into(), vec![&open, &partly, &root]),
        (format!("crawl={two}&failed_results=true"), vec![&partly]),
        ("until=2001-01-01".into(), vec![]),
    ] {
        if query == "domain=%25" {
            api.get(&format!("/v1/snapshots?{query}")).await.problem(422, "INVALID_FIELD");
            continue;
        }
        let items = api.all(&format!("/v1/snapshots?{query}&limit=2")).await;
        assert_eq!(ids(&items), expected.into_iter().cloned().collect::<Vec<_>>(), "{query}");
    }
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn parameters_that_cannot_be_used_are_named(pool: PgPool) {
    let api = Api::new(pool).await;
    for (path, field) in [
        ("/v1/crawls?limit=0", "limit"),
        ("/v1/crawls?limit=201", "limit"),
        ("/v1/crawls?limit=x", "limit"),
        ("/v1/crawls?limit=-1", "limit"),
        ("/v1/crawls?cursor=x", "cursor"),
        ("/v1/crawls?status=done", "status"),
        ("/v1/crawls?since=yesterday", "since"),
        ("/v1/crawls?colour=red", "colour"),
        ("/v1/snapshots?crawl=x", "crawl"),
        ("/v1/snapshots?failed=maybe", "failed"),
        ("/v1/snapshots?failed_results=true", "failed_results"),
        ("/v1/snapshots?url=ex.org", "url"),
        ("/v1/snapshots?url_prefix=https://ex", "url_prefix"),
        ("/v1/snapshots?host=a&url_prefix=https://b/", "host"),
        ("/v1/snapshots?depth=-1", "depth"),
        ("/v1/tasks?status=busy", "status"),
        ("/v1/tasks?kind=nap", "kind"),
        ("/v1/tasks?status=failed&crawl=0195ad90-0000-7000-8000-000000000000", "crawl"),
        ("/v1/search", "q"),
        ("/v1/search?q=", "q"),
        ("/v1/search?q=a&limit=101", "limit"),
        ("/v1/search?q=a&offset=990", "offset"),
    ] {
        let problem = api.get(path).await.problem(422, "INVALID_FIELD");
        assert_eq!(problem["field"], field, "{path}: {problem}");
    }
}
