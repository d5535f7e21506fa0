//! Schemas of the enumerations, taken from the domain's own tables so that the two cannot differ.

use fonds_domain as domain;
use fonds_store::tokens::Scope;
use std::borrow::Cow;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $all:expr;)+) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let names: Vec<&'static str> = $all.iter().map(|v| v.as_str()).collect();
                ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).enum_values(Some(names)).into()
            }
        }
        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    )+};
}

names! {
    /// Of a crawl.
    CrawlStatus = domain::CrawlStatus::ALL;
    /// Why a crawl ended.
    StopReason = domain::StopReason::ALL;
    /// Of a snapshot.
    SnapshotStatus = domain::SnapshotStatus::ALL;
    /// Of a result.
    ResultStatus = domain::ResultStatus::ALL;
    /// Of a task run.
    RunStatus = domain::RunStatus::ALL;
    /// Of a task run.
    TaskKind = domain::Kind::ALL;
    /// Of a token.
    TokenScope = [Scope::Read, Scope::Write, Scope::Admin];
}
