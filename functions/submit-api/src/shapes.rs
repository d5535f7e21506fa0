//! The JSON of the API. Field by field documented in /openapi.json; the names are a contract.

pub(crate) mod crawl;
pub(crate) mod names;
pub(crate) mod snapshot;
pub(crate) mod system;

use chrono::{DateTime, SecondsFormat, Utc};
use fonds_domain::ErrorCode;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// Newest first.
    pub(crate) items: Vec<T>,
    /// Give it as `cursor` for the next page; null on the last.
    pub(crate) next: Option<String>,
}

impl<T> Page<T> {
    /// From up to `limit + 1` rows: the last one only says that there are more.
    pub(crate) fn new<R>(mut rows: Vec<R>, limit: usize, id: impl Fn(&R) -> String, show: impl Fn(R) -> T) -> Page<T> {
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = if more { rows.last().map(id) } else { None };
        Page { items: rows.into_iter().map(show).collect(), next }
    }
}

/// What went wrong with a crawl, a page, an extractor or a task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Failure {
    /// Stable code.
    #[schema(example = "CONNECT_TIMEOUT")]
    pub(crate) code: String,
    /// What happened in this case.
    pub(crate) detail: Option<String>,
    /// What it means and what to do.
    #[schema(value_type = String)]
    pub(crate) advice: &'static str,
}

impl Failure {
    pub(crate) fn new(code: Option<String>, detail: Option<String>) -> Option<Failure> {
        code.map(|code| Failure { advice: ErrorCode::named(&code).advice(), code, detail })
    }
}

/// A time in the API: RFC 3339, UTC, milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time(pub(crate) DateTime<Utc>);

impl From<DateTime<Utc>> for Time {
    fn from(at: DateTime<Utc>) -> Time {
        Time(at)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl utoipa::PartialSchema for Time {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, SchemaType, Type};
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

impl ToSchema for Time {}

/// The row is marked; the sweep removes it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleting {
    /// What is deleted.
    pub(crate) id: uuid::Uuid,
    /// Always `deleting`.
    #[schema(value_type = String, example = "deleting")]
    pub(crate) status: &'static str,
}

impl Deleting {
    pub(crate) fn new(id: impl Into<uuid::Uuid>) -> Deleting {
        Deleting { id: id.into(), status: "deleting" }
    }
}
