//! Files by signed link, byte for byte.

use crate::harness::{Api, Page, bare_crawl, blob, result};
use http::{Method, StatusCode};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

const OBJECT: &str = "snapshots/c/s/lease.wacz";

fn object() -> Vec<u8> {
    (0..100_000u32).map(|i| (i * 31 % 251) as u8).collect()
}

/// A sealed snapshot with a WACZ, an HTML page and an empty file in one object.
async fn captured(api: &Api) -> Uuid {
    let id = Page::new("https://ex.org/").insert(api, bare_crawl(api).await).await;
    blob(api, OBJECT, object()).await;
    let file = |path: &str, mime: &str, offset: u64, length: u64| json!([{"path": path, "mime": mime, "size": length, "sha256": "00", "object": OBJECT, "offset": offset, "length": length}]);
    result(api, id, "wacz", "succeeded", file("wacz/snapshot.wacz", "application/wacz+zip", 0, 100_000)).await;
    result(api, id, "dom", "succeeded", file("dom/out put ü.html", "text/html; charset=utf-8", 1000, 5000)).await;
    result(api, id, "title", "succeeded", file("title/title.txt", "text/plain", 50, 0)).await;
    result(api, id, "pdf", "succeeded", file("pdf/output.pdf", "application/pdf", 6000, 10)).await;
    result(api, id, "staticfile", "succeeded", file("staticfile/x", "text/html\nx", 6000, 10)).await;
    id
}

async fn link(api: &Api, path: &str) -> String {
    let answer = api.get(path).await;
    assert_eq!(answer.status, StatusCode::FOUND, "{:?}", answer.bytes);
    answer.header("location").to_owned()
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_file_is_served_exactly_and_never_runs_here(pool: PgPool) {
    let api = Api::new(pool).await;
    let id = captured(&api).await;
    let shown = api.get(&format!("/v1/snapshots/{id}")).await.ok();
    let href =
        shown["results"].as_array().unwrap().iter().find(|r| r["extractor"] == "dom").unwrap()["files"][0]["href"]
            .clone();
    let href = href.as_str().unwrap().strip_prefix("http://fonds.test").unwrap().to_owned();
    assert!(href.ends_with("/files/dom/out%20put%20%C3%BC.html"), "{href}");
    let url = link(&api, &href).await;
    assert!(url.starts_with("http://fonds.test/blobs/snapshots/c/s/lease.wacz?"), "{url}");

    let file = api.fetch(Method::GET, &url, &[]).await;
    assert_eq!(file.status, StatusCode::OK);
    assert_eq!(&file.bytes[..], &object()[1000..6000]);
    assert_eq!(file.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(file.header("content-length"), "5000");
    assert_eq!(
        file.header("content-disposition"),
        "inline; filename=\"out put _.html\"; filename*=UTF-8''out%20put%20%C3%BC%2Ehtml"
    );
    let policy = file.header("content-security-policy");
    assert!(policy.starts_with("sandbox; default-src 'none'") && !policy.contains("allow-scripts"), "{policy}");
    assert_eq!(file.header("x-content-type-options"), "nosniff");
    assert_eq!(file.header("referrer-policy"), "no-referrer");
    assert_eq!(file.header("accept-ranges"), "bytes");
    assert_eq!(file.header("access-control-allow-origin"), "*");
    let etag = file.header("etag").to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"'));

    let head = api.fetch(Method::HEAD, &url, &[]).await;
    assert_eq!((head.status, head.header("content-length"), head.bytes.len()), (StatusCode::OK, "5000", 0));
    let unchanged = api.fetch(Method::GET, &url, &[("if-none-match", &etag)]).await;
    assert_eq!((unchanged.status, unchanged.bytes.len()), (StatusCode::NOT_MODIFIED, 0));
    // A link signed later names the same bytes by the same tag.
    assert_eq!(api.fetch(Method::HEAD, &link(&api, &href).await, &[]).await.header("etag"), etag);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn ranges_count_within_the_file(pool: PgPool) {
    let api = Api::new(pool).await;
    let id = captured(&api).await;
    let url = link(&api, &format!("/v1/snapshots/{id}/files/dom/out%20put%20%C3%BC.html")).await;
    let etag = api.fetch(Method::HEAD, &url, &[]).await.header("etag").to_owned();
    for (range, start, end) in [
        ("bytes=0-0", 0, 1),
        ("bytes=100-199", 100, 200),
        ("bytes=4990-", 4990, 5000),
        ("bytes=4990-90000", 4990, 5000),
        ("bytes=-10", 4990, 5000),
        ("bytes=0-4999", 0, 5000),
    ] {
        let part = api.fetch(Method::GET, &url, &[("range", range), ("if-range", &etag)]).await;
        assert_eq!(part.status, StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(&part.bytes[..], &object()[1000 + start..1000 + end], "{range}");
        assert_eq!(part.header("content-range"), format!("bytes {start}-{}/5000", end - 1));
        assert_eq!(part.header("content-length"), (end - start).to_string());
    }
    let outside = api.fetch(Method::GET, &url, &[("range", "bytes=5000-")]).await;
    outside.problem(416, "RANGE_NOT_SATISFIABLE");
    assert_eq!(outside.header("content-range"), "bytes */5000");
    for headers in [
        vec![("range", "bytes=0-1,5-6")],
        vec![("range", "bytes=9-3")],
        vec![("range", "bytes=0-1"), ("if-range", "\"other\"")],
    ] {
        let whole = api.fetch(Method::GET, &url, &headers).await;
        assert_eq!((whole.status, whole.bytes.len()), (StatusCode::OK, 5000), "{headers:?}");
    }
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn odd_files_are_served_safely(pool: PgPool) {
    let api = Api::new(pool).await;
    let id = captured(&api).await;
    let empty =
        api.fetch(Method::GET, &link(&api, &format!("/v1/snapshots/{id}/files/title/title.txt")).await, &[]).await;
    assert_eq!((empty.status, empty.header("content-length"), empty.bytes.len()), (StatusCode::OK, "0", 0));
    let odd = api.fetch(Method::GET, &link(&api, &format!("/v1/snapshots/{id}/files/staticfile/x")).await, &[]).await;
    assert_eq!(odd.header("content-type"), "application/octet-stream");
    assert!(
        odd.header("content-disposition").starts_with("inline")
            || odd.header("content-disposition").starts_with("attachment")
    );
    let pdf = api.fetch(Method::GET, &link(&api, &format!("/v1/snapshots/{id}/files/pdf/output.pdf")).await, &[]).await;
    assert_eq!(&pdf.bytes[..], &object()[6000..6010]);
    assert!(!pdf.header("content-security-policy").contains("sandbox"), "Chromium shows no PDF in a sandbox");
    assert!(pdf.header("content-security-policy").contains("default-src 'none'"));
    for path in ["nope", "dom", "dom/nope", "../dom", "%2e%2e/x", "dom/%00"] {
        api.get(&format!("/v1/snapshots/{id}/files/{path}")).await.problem(404, "NOT_FOUND");
    }
    api.get(&format!("/v1/snapshots/{}/files/dom/x", Uuid::now_v7())).await.problem(404, "NOT_FOUND");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn links_cannot_be_forged_or_kept(pool: PgPool) {
    let api = Api::with(pool, |c| c.link_ttl = std::time::Duration::from_secs(1)).await;
    let id = captured(&api).await;
    let answer = api.get(&format!("/v1/snapshots/{id}/wacz?link=true")).await.ok();
    assert_eq!(answer["size"], 100_000);
    assert_eq!(answer["mime"], "application/wacz+zip");
    let url = answer["url"].as_str().unwrap();
    for (from, to) in [
        ("range=0-", "range=1-"),
        ("lease", "other"),
        ("type=application", "type=text"),
        ("sig=", "sig=00"),
        ("expires=", "expires=9"),
    ] {
        let forged = url.replacen(from, to, 1);
        assert_ne!(forged, url, "{from}");
        api.fetch(Method::GET, &forged, &[]).await.problem(403, "LINK_EXPIRED");
    }
    for path in ["/blobs/snapshots/c/s/lease.wacz", "/blobs/x?expires=1", "/blobs/../x?sig=00&expires=9999999999"] {
        let answer = api.fetch(Method::GET, path, &[]).await;
        assert!(matches!(answer.status.as_u16(), 403 | 404), "{path}");
    }
    api.fetch(Method::PUT, url, &[]).await.problem(405, "METHOD_NOT_ALLOWED");
    // Signed links are said to be good until a time; after it they are not.
    let expires: chrono::DateTime<chrono::Utc> = answer["expires_at"].as_str().unwrap().parse().unwrap();
    assert!(expires <= chrono::Utc::now() + chrono::TimeDelta::seconds(2));
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_wacz_is_there_once_the_snapshot_is_over(pool: PgPool) {
    let api = Api::new(pool).await;
    let id = captured(&api).await;
    assert_eq!(
        api.get(&format!("/v1/snapshots/{id}")).await.ok()["wacz"],
        format!("http://fonds.test/v1/snapshots/{id}/wacz")
    );
    let file = api.fetch(Method::GET, &link(&api, &format!("/v1/snapshots/{id}/wacz")).await, &[]).await;
    assert_eq!(file.bytes, object());
    assert_eq!(file.header("content-disposition"), format!("attachment; filename=\"{id}.wacz\""));
    let crawl = bare_crawl(&api).await;
    let open = Page { status: "started", ..Page::new("https://ex.org/open") }.insert(&api, crawl).await;
    api.get(&format!("/v1/snapshots/{open}/wacz")).await.problem(409, "NOT_SEALED");
    let without = Page::new("https://ex.org/plain").insert(&api, crawl).await;
    api.get(&format!("/v1/snapshots/{without}/wacz")).await.problem(404, "NO_WACZ");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_missing_object_is_said_so(pool: PgPool) {
    let api = Api::new(pool).await;
    let id = Page::new("https://ex.org/").insert(&api, bare_crawl(&api).await).await;
    let file = json!([{"path": "dom/a", "mime": "text/html", "size": 5, "object": "snapshots/gone", "offset": 0, "length": 5}]);
    result(&api, id, "dom", "succeeded", file).await;
    let url = link(&api, &format!("/v1/snapshots/{id}/files/dom/a")).await;
    api.fetch(Method::GET, &url, &[]).await.problem(404, "BLOB_MISSING");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn where_answers_are_small_long_files_come_in_parts_or_by_redirect(pool: PgPool) {
    let api = Api::with(pool, |c| c.max_file_answer = Some(4096)).await;
    let id = captured(&api).await;
    let url = link(&api, &format!("/v1/snapshots/{id}/files/dom/out%20put%20%C3%BC.html")).await;
    let whole = api.fetch(Method::GET, &url, &[]).await;
    assert_eq!(whole.status, StatusCode::FOUND);
    assert!(whole.header("location").contains("snapshots/c/s/lease.wacz"));
    assert_eq!((whole.header("fonds-offset"), whole.header("fonds-length")), ("1000", "5000"));
    // By ranges, asking on where the last answer ended.
    let (mut got, mut at) = (Vec::new(), 0);
    while at < 5000 {
        let part = api.fetch(Method::GET, &url, &[("range", &format!("bytes={at}-"))]).await;
        assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
        assert!(part.bytes.len() <= 4096);
        let end: usize = part.header("content-range").split(['-', '/']).nth(1).unwrap().parse().unwrap();
        got.extend_from_slice(&part.bytes);
        at = end + 1;
    }
    assert_eq!(got, object()[1000..6000]);
    let small =
        api.fetch(Method::GET, &link(&api, &format!("/v1/snapshots/{id}/files/pdf/output.pdf")).await, &[]).await;
    assert_eq!((small.status, small.bytes.len()), (StatusCode::OK, 10));
}
