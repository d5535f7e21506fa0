//! The frame of /openapi.json; paths and schemas come from the handlers.

use utoipa::Modify;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "fonds",
        description = "Archives web pages for good: crawls become snapshots, snapshots become archive results.\n\n\
            Lists are paged by `limit` and `cursor`, newest first: follow `next` until it is null. Errors are \
            `application/problem+json` (RFC 9457) with a stable `code`, the `field` it is about, and `advice`. \
            Unknown members and parameters are refused. Times are RFC 3339 in UTC, sizes bytes, durations seconds.",
    ),
    components(schemas(crate::problem::ProblemBody<'static>, crate::problem::FieldError)),
    modifiers(&Bearer),
    security(("bearer" = [])),
    tags(
        (name = "crawls", description = "What is submitted."),
        (name = "snapshots", description = "One URL captured once."),
        (name = "search", description = "Full text."),
        (name = "system", description = "What works, and how."),
        (name = "tokens", description = "Who may do what."),
    )
)]
struct Frame;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("fonds_...")
            .description(Some("Scopes: read, write, admin; the wider includes the narrower."))
            .build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// The document without paths.
pub(crate) fn base() -> utoipa::openapi::OpenApi {
    Frame::openapi()
}

/// What the handlers do not say: every operation can answer a problem, and a path that goes on
/// over slashes has its own notation in the router only.
pub(crate) fn finished(mut openapi: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let problem = ResponseBuilder::new()
        .description("A problem: `code` says which, `advice` what to do.")
        .content(
            "application/problem+json",
            ContentBuilder::new().schema(Some(RefOr::Ref(Ref::from_schema_name("Problem")))).build(),
        )
        .build();
    let paths = std::mem::take(&mut openapi.paths.paths);
    for (path, mut item) in paths {
        let operations =
            [&mut item.get, &mut item.post, &mut item.patch, &mut item.delete, &mut item.put, &mut item.head];
        for operation in operations.into_iter().flatten() {
            operation.responses.responses.insert("default".to_owned(), RefOr::T(problem.clone()));
        }
        openapi.paths.paths.insert(path.replace("{*", "{"), item);
    }
    openapi
}
