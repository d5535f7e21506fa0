//! The contract is frozen.

use crate::harness::Api;
use http::Method;
use serde_json::Value;
use sqlx::PgPool;

#[test]
fn the_document_is_frozen() {
    insta::assert_json_snapshot!("openapi", fonds_submit_api::openapi());
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, refs: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                refs.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|v| walk(v, refs));
            }
            Value::Array(all) => all.iter().for_each(|v| walk(v, refs)),
            _ => {}
        }
    }
    let document = serde_json::to_value(fonds_submit_api::openapi()).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut refs = Vec::new();
    walk(&document, &mut refs);
    assert!(refs.len() > 30);
    for reference in refs {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let mut ids: Vec<_> = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .filter_map(|operation| operation["operationId"].as_str())
        .collect();
    let n = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), n, "operation ids are unique");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn the_document_is_served(pool: PgPool) {
    let api = Api::new(pool).await;
    let answer = api.fetch(Method::GET, "/openapi.json", &[]).await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.ok(), serde_json::to_value(fonds_submit_api::openapi()).unwrap());
}
