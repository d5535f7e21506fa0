//! Readers of bodies, queries and ids that answer problems naming the field.

use crate::problem::{BAD_JSON, Problem, UNSUPPORTED_MEDIA_TYPE};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::response::IntoResponse;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A JSON body with the digest of its bytes.
pub(crate) struct Body<T> {
    pub(crate) value: T,
    pub(crate) sha256: [u8; 32],
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json = request.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).is_some_and(|value| {
            let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
        });
        if !is_json {
            return Err(Problem::new(UNSUPPORTED_MEDIA_TYPE, "the body is not announced as application/json"));
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| Problem::from_status(rejection.into_response().status()))?;
        let sha256 = Sha256::digest(&bytes).into();
        Ok(Body { value: from_json(&bytes)?, sha256 })
    }
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // serde would fill a struct from an array by position; no caller means that.
    if bytes.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
        return Err(match serde_json::from_slice::<IgnoredAny>(bytes) {
            Ok(_) => Problem::field("body", "must be a JSON object"),
            Err(e) => Problem::new(BAD_JSON, format!("the body is not JSON: {e}")),
        });
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let inner = e.into_inner();
        match inner.classify() {
            serde_json::error::Category::Data => refused(&path, &inner.to_string()),
            _ => Problem::new(BAD_JSON, format!("the body is not JSON: {inner}")),
        }
    })?;
    reader.end().map_err(|e| Problem::new(BAD_JSON, format!("the body is not one JSON value: {e}")))?;
    Ok(value)
}

/// Names the member an error is about; `path` leads to where it was met, a dot being the whole.
fn refused(path: &str, message: &str) -> Problem {
    // Line and column say nothing to someone whose program wrote the JSON; the path does.
    let message = message.split(" at line ").next().unwrap_or(message);
    let parent = if path == "." { "" } else { path };
    // What is missing has no place yet. What is unknown has one in JSON, none in a query.
    let named = |what: &str| message.strip_prefix(what).and_then(|m| m.split('`').next());
    let field = match (named("missing field `"), named("unknown field `")) {
        (Some(missing), _) if parent.is_empty() => missing.to_owned(),
        (Some(missing), _) => format!("{parent}.{missing}"),
        (None, Some(unknown)) if parent.is_empty() => unknown.to_owned(),
        _ if parent.is_empty() => "body".to_owned(),
        _ => parent.to_owned(),
    };
    Problem::field(field, message.to_owned())
}

/// A query string.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        from_query(parts.uri.query().unwrap_or_default()).map(Params)
    }
}

fn from_query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let pairs = serde_urlencoded::Deserializer::new(url::form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(pairs).map_err(|e| {
        let path = e.path().to_string();
        refused(&path, &e.into_inner().to_string())
    })
}

/// The id in the path. What is no id names nothing: 404.
pub(crate) struct Id(pub(crate) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) =
            Path::<String>::from_request_parts(parts, state).await.map_err(|_| Problem::not_found("id"))?;
        id(&text).map(Id)
    }
}

/// Reads an id of the path.
pub(crate) fn id(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| Problem::not_found("id"))
}

/// Tells a member that is null from one that is not there.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        inner: Option<Inner>,
        #[serde(default, deserialize_with = "present")]
        at: Option<Option<u32>>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        n: Vec<u32>,
    }

    #[track_caller]
    fn refusal(body: &str) -> (u16, String) {
        let response = from_json::<Outer>(body.as_bytes()).expect_err("refused").into_response();
        let problem = response.extensions().get::<Problem>().expect("a problem").clone();
        let status = response.status().as_u16();
        let rendered = format!("{problem:?}");
        let field = rendered.split("field: Some(\"").nth(1).and_then(|r| r.split('"').next()).unwrap_or_default();
        (status, field.to_owned())
    }

    #[test]
    fn json_errors_name_the_field() {
        for (body, status, field) in [
            ("", 400, ""),
            ("{", 400, ""),
            ("{} {}", 400, ""),
            ("\u{feff}{}", 400, ""),
            ("[]", 422, "body"),
            (r#"{"inner":{"n":[1,"x"]}}"#, 422, "inner.n[1]"),
            (r#"{"inner":{"n":[-1]}}"#, 422, "inner.n[0]"),
            (r#"{"inner":{}}"#, 422, "inner.n"),
            ("[1,2]", 422, "body"),
            ("7", 422, "body"),
            ("[1,", 400, ""),
            (r#"{"inner":{"n":[],"m":1}}"#, 422, "inner.m"),
            (r#"{"other":1}"#, 422, "other"),
        ] {
            assert_eq!(refusal(body), (status, field.to_owned()), "{body}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(refusal(&deep).0 / 100, 4, "no stack is exhausted");
    }

    #[test]
    fn null_and_absent_differ() {
        let read = |body: &str| from_json::<Outer>(body.as_bytes()).map(|o| o.at).map_err(|_| StatusCode::BAD_REQUEST);
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"at":null}"#), Ok(Some(None)));
        assert_eq!(read(r#"{"at":7}"#), Ok(Some(Some(7))));
    }
}
