//! The routes, one module a resource.
#![expect(unused_qualifications, reason = "utoipa's path macro qualifies the names it is given")]

pub(crate) mod blobs;
pub(crate) mod crawls;
pub(crate) mod files;
pub(crate) mod search;
pub(crate) mod snapshots;
pub(crate) mod submit;
pub(crate) mod system;
pub(crate) mod tasks;
pub(crate) mod tokens;

use crate::config::ApiState;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer};
use std::str::FromStr;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Every documented route.
pub(crate) fn documented() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(crate::openapi::base())
        .routes(routes!(submit::submit, crawls::list))
        .routes(routes!(crawls::one, crawls::patch, crawls::delete))
        .routes(routes!(files::of_crawl))
        .routes(routes!(snapshots::list))
        .routes(routes!(snapshots::one, snapshots::patch, snapshots::delete))
        .routes(routes!(files::of_snapshot))
        .routes(routes!(files::wacz))
        .routes(routes!(search::search))
        .routes(routes!(tasks::list))
        .routes(routes!(system::stats))
        .routes(routes!(system::health))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(blobs::get))
}

/// Reads a query parameter through its type's own reader; what a form sends empty is not there.
fn named<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let text = Option::<std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    text.filter(|t| !t.is_empty()).map(|t| t.parse().map_err(serde::de::Error::custom)).transpose()
}

/// Reads a time in a query: RFC 3339, or a date alone.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    struct Given(DateTime<Utc>);
    impl FromStr for Given {
        type Err = &'static str;
        fn from_str(text: &str) -> Result<Self, Self::Err> {
            // A plus sign that was not encoded arrives as a blank.
            let full = DateTime::parse_from_rfc3339(&text.replace(' ', "+")).map(|t| t.with_timezone(&Utc));
            let day = || text.parse::<chrono::NaiveDate>().ok()?.and_hms_opt(0, 0, 0).map(|t| t.and_utc());
            full.ok().or_else(day).map(Given).ok_or("must be a time such as 2025-01-31T12:00:00Z, or a date")
        }
    }
    Ok(named::<D, Given>(deserializer)?.map(|g| g.0))
}
