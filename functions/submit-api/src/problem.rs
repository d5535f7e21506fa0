//! Errors as RFC 9457 problem details.
//!
//! A handler answers a [`Problem`]; the outermost layer ([`crate::edge`]) renders it, because only
//! there is the request's id known, and turns every error that came from elsewhere (a route that
//! does not exist, a body too large) into one as well.

use axum::response::{IntoResponse, Response};
use fonds_blobs::BlobError;
use fonds_domain::ErrorCode;
use fonds_domain::config::ConfigError;
use fonds_store::StoreError;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use std::borrow::Cow;
use utoipa::ToSchema;

/// Most single errors listed in one problem.
pub(crate) const ERRORS_MAX: usize = 100;

/// A kind of problem: its stable code, its status and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) name: &'static str,
    pub(crate) status: StatusCode,
    pub(crate) advice: &'static str,
}

macro_rules! codes {
    ($($name:ident, $status:ident, $advice:literal;)+) => {
        $(pub(crate) const $name: Code =
            Code { name: stringify!($name), status: StatusCode::$status, advice: $advice };)+
        #[cfg(test)]
        const ALL: &[Code] = &[$($name),+];
    };
}

codes! {
    BAD_JSON, BAD_REQUEST, "Send one JSON value in UTF-8.";
    BAD_REQUEST, BAD_REQUEST, "Compare the request with /openapi.json.";
    UNAUTHENTICATED, UNAUTHORIZED, "Send `Authorization: Bearer fonds_...`; `fonds token create` makes one.";
    FORBIDDEN, FORBIDDEN, "Use a token with the scope that is named.";
    LINK_EXPIRED, FORBIDDEN, "Ask for the file again under /v1; that gives a fresh link.";
    NOT_FOUND, NOT_FOUND, "Check the address; what was deleted does not come back.";
    NO_WACZ, NOT_FOUND, "The crawl did not ask for `wacz`, or it failed: see the snapshot's results.";
    METHOD_NOT_ALLOWED, METHOD_NOT_ALLOWED, "Use one of the methods in the Allow header.";
    CONFLICT, CONFLICT, "Look at the present status and ask for what it allows.";
    NOT_SEALED, CONFLICT, "Wait until the snapshot is sealed.";
    GONE, GONE, "Submit again under a new Idempotency-Key.";
    BODY_TOO_LARGE, PAYLOAD_TOO_LARGE, "Send less at once; a list of URLs can be split over several crawls.";
    URI_TOO_LONG, URI_TOO_LONG, "Shorten the query.";
    UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_MEDIA_TYPE, "Send `Content-Type: application/json`.";
    RANGE_NOT_SATISFIABLE, RANGE_NOT_SATISFIABLE, "Ask for a range within the length in Content-Range.";
    INVALID_FIELD, UNPROCESSABLE_ENTITY, "Correct the field that is named.";
    IDEMPOTENCY_MISMATCH, UNPROCESSABLE_ENTITY, "Use a new Idempotency-Key for another request.";
    TOO_MANY_REQUESTS, TOO_MANY_REQUESTS, "Wait as long as Retry-After says.";
    INTERNAL, INTERNAL_SERVER_ERROR, "This is a defect of fonds; the log has more under the request id.";
    DATABASE_UNAVAILABLE, SERVICE_UNAVAILABLE, "Try again shortly; nothing was changed.";
    BLOB_UNAVAILABLE, SERVICE_UNAVAILABLE, "Try again shortly.";
    TOO_SLOW, SERVICE_UNAVAILABLE, "Narrow the request: a crawl, a host, a tag, a time span or rarer words.";
}

/// One of several errors in a request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FieldError {
    /// The member, such as `urls[3]`.
    pub(crate) field: String,
    /// Stable code.
    #[schema(value_type = String, example = "INVALID_URL")]
    pub(crate) code: &'static str,
    /// What is wrong with it.
    pub(crate) detail: String,
}

/// Problem details, RFC 9457.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'a> {
    /// Always `about:blank`: `code` tells problems apart.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "about:blank")]
    kind: &'static str,
    /// The status in words.
    #[schema(value_type = String)]
    title: &'static str,
    /// The status.
    status: u16,
    /// What happened.
    #[schema(value_type = String)]
    detail: &'a str,
    /// Stable code.
    #[schema(value_type = String, example = "INVALID_FIELD")]
    code: &'static str,
    /// The member of the request it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    field: Option<&'a str>,
    /// What to do.
    #[schema(value_type = String)]
    advice: &'a str,
    /// Several errors at once, at most a hundred.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Option<Vec<FieldError>>, nullable = false)]
    errors: &'a [FieldError],
    /// For the log.
    #[schema(value_type = String)]
    request_id: &'a str,
}

/// An error on its way to the caller. Boxed: it is the rare end of nearly every function.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    code: &'static str,
    status: StatusCode,
    advice: &'static str,
    detail: Cow<'static, str>,
    field: Option<String>,
    errors: Vec<FieldError>,
    headers: HeaderMap,
    /// For the log only.
    cause: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Problem {
        let mut headers = HeaderMap::new();
        match code.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"fonds\""));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        Problem(Box::new(Parts {
            code: code.name,
            status: code.status,
            advice: code.advice,
            detail: detail.into(),
            field: None,
            errors: Vec::new(),
            headers,
            cause: None,
        }))
    }

    /// 422 about one field.
    pub(crate) fn field(field: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(INVALID_FIELD, detail).at(field)
    }

    /// 422 about one field, with a code of the domain.
    pub(crate) fn refused(code: ErrorCode, field: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::field(field, detail).of_domain(code)
    }

    /// Nothing is there.
    pub(crate) fn not_found(what: &'static str) -> Problem {
        Problem::new(NOT_FOUND, format!("there is no such {what}"))
    }

    /// 500; the text is for the log.
    pub(crate) fn internal(cause: impl ToString) -> Problem {
        Problem::new(INTERNAL, "something went wrong inside").because(cause)
    }

    /// Names the member of the request.
    pub(crate) fn at(mut self, field: impl Into<String>) -> Problem {
        self.0.field = Some(field.into());
        self
    }

    /// Lists single errors.
    pub(crate) fn with_errors(mut self, errors: Vec<FieldError>) -> Problem {
        self.0.errors = errors;
        self.0.errors.truncate(ERRORS_MAX);
        self
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Problem {
        if let Ok(value) = value.try_into() {
            self.0.headers.insert(name, value);
        }
        self
    }

    /// The domain's code and advice.
    fn of_domain(mut self, code: ErrorCode) -> Problem {
        self.0.code = code.as_str();
        self.0.advice = code.advice();
        self
    }

    /// What the log is told.
    fn because(mut self, cause: impl ToString) -> Problem {
        self.0.cause = Some(cause.to_string());
        self
    }

    /// What an error answer that did not come from our own code means.
    pub(crate) fn from_status(status: StatusCode) -> Problem {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => (NOT_FOUND, "there is no such route"),
            StatusCode::METHOD_NOT_ALLOWED => (METHOD_NOT_ALLOWED, "the route does not know this method"),
            StatusCode::PAYLOAD_TOO_LARGE => (BODY_TOO_LARGE, "the body is larger than is taken"),
            StatusCode::URI_TOO_LONG => (URI_TOO_LONG, "the address is longer than is taken"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => (UNSUPPORTED_MEDIA_TYPE, "the body is not JSON"),
            s if s.is_client_error() => (BAD_REQUEST, "the request cannot be read"),
            s => return Problem::internal(format!("an inner layer answered {s}")),
        };
        Problem::new(code, detail)
    }

    /// Renders the answer. `inner` is the response it replaces; its headers (`Allow`) are kept.
    pub(crate) fn render(self, request_id: &str, inner: HeaderMap) -> Response {
        let parts = *self.0;
        if let Some(cause) = &parts.cause {
            tracing::error!(request_id, code = parts.code, error = %cause, "request failed");
        }
        let body = ProblemBody {
            kind: "about:blank",
            title: parts.status.canonical_reason().unwrap_or("Error"),
            status: parts.status.as_u16(),
            detail: &parts.detail,
            code: parts.code,
            field: parts.field.as_deref(),
            advice: parts.advice,
            errors: &parts.errors,
            request_id,
        };
        let bytes = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = Response::new(bytes.into());
        *response.status_mut() = parts.status;
        *response.headers_mut() = inner;
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.extend(parts.headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(axum::body::Body::empty());
        *response.status_mut() = self.0.status;
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(e: StoreError) -> Problem {
        if fonds_store::query::timed_out(&e) {
            Problem::new(TOO_SLOW, "the database did not answer within its time").because(e)
        } else if e.is_permanent() {
            Problem::internal(e)
        } else {
            Problem::new(DATABASE_UNAVAILABLE, "the database cannot be reached").because(e)
        }
    }
}

impl From<BlobError> for Problem {
    fn from(e: BlobError) -> Problem {
        match e {
            BlobError::NotFound { .. } => Problem::not_found("file").of_domain(ErrorCode::BLOB_MISSING).because(e),
            e if e.is_permanent() => Problem::internal(e),
            e => Problem::new(BLOB_UNAVAILABLE, "the blob store could not be reached").because(e),
        }
    }
}

/// A field of `config` or `limits`; `prefix` says which.
pub(crate) fn config_problem(prefix: &str, e: ConfigError) -> Problem {
    let field = if e.field == prefix { e.field } else { format!("{prefix}.{}", e.field) };
    Problem::field(field, e.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        for (i, code) in ALL.iter().enumerate() {
            assert!(code.advice.ends_with('.'), "{}", code.name);
            assert!(ALL[i + 1..].iter().all(|c| c.name != code.name), "{} twice", code.name);
        }
    }
}
