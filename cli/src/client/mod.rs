//! The HTTP client of the commands: JSON over the API, to this machine's host or to the service
//! that `FONDS_URL` names.

pub mod find;
pub mod view;

use crate::failure::{Exit, Failure};
use crate::home::{Home, HostFile};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// A JSON answer longer than this is not one of ours.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(90);

/// Talks to one service.
#[derive(Clone)]
pub struct Client {
    base: Url,
    token: String,
    http: hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Query parameters.
pub type Query<'a> = &'a [(&'a str, String)];

impl Client {
    /// The service that `FONDS_URL` and `FONDS_TOKEN` name; none when they are not set.
    ///
    /// # Errors
    /// When only one is set or the URL is none.
    pub fn from_env() -> Result<Option<Client>, Failure> {
        let var = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        match (var("FONDS_URL"), var("FONDS_TOKEN")) {
            (None, _) => Ok(None),
            (Some(url), Some(token)) => Client::new(&url, &token).map(Some),
            (Some(_), None) => Err(Failure::usage("FONDS_URL is set, but FONDS_TOKEN is not")
                .advise("Make a token there with `fonds token create NAME` and set FONDS_TOKEN to its secret.")),
        }
    }

    /// The service of `FONDS_URL`, else the host that runs for the data folder.
    ///
    /// # Errors
    /// `NO_HOST` when there is none.
    pub fn find(home: &Home) -> Result<Client, Failure> {
        if let Some(client) = Client::from_env()? {
            return Ok(client);
        }
        Client::of(&home.host().ok_or_else(|| no_host(home))?)
    }

    /// The host that wrote this file.
    ///
    /// # Errors
    /// When its URL is none.
    pub fn of(host: &HostFile) -> Result<Client, Failure> {
        Client::new(&host.url, &host.token)
    }

    fn new(url: &str, token: &str) -> Result<Client, Failure> {
        let not_one = || Failure::usage(format!("FONDS_URL is no http or https address: {url}"));
        let mut base = Url::parse(url).map_err(|_| not_one())?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(not_one());
        }
        // So that a stage of API Gateway in the path is kept when paths are joined to it.
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::aws_lc_rs::default_provider())
            .map_err(|e| Failure::io("the certificates of this machine", &e))?
            .https_or_http()
            .enable_http1()
            .build();
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Client { base, token: token.to_owned(), http })
    }

    /// The address of the service, without a slash at its end.
    #[must_use]
    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// GET.
    ///
    /// # Errors
    /// The service's refusal, or that it cannot be reached.
    pub async fn get(&self, path: &str, query: Query<'_>) -> Result<Value, Failure> {
        self.call(Method::GET, path, query, None, &[]).await
    }

    /// POST with further headers.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn post(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Result<Value, Failure> {
        self.call(Method::POST, path, &[], Some(body), headers).await
    }

    /// PATCH.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn patch(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call(Method::PATCH, path, &[], Some(body), &[]).await
    }

    /// DELETE.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::DELETE, path, &[], None, &[]).await
    }

    /// At most `limit` rows of a list, page by page.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn list(&self, path: &str, filters: Query<'_>, limit: usize) -> Result<Vec<Value>, Failure> {
        let mut rows: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        while rows.len() < limit {
            let mut query = filters.to_vec();
            query.push(("limit", (limit - rows.len()).min(200).to_string()));
            query.extend(cursor.take().map(|c| ("cursor", c)));
            let mut page = self.get(path, &query).await?;
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                rows.extend(items);
            }
            match page.get("next").and_then(Value::as_str) {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        Ok(rows)
    }

    /// The bytes behind a signed link, as they come.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn open(&self, link: &str) -> Result<Response<Incoming>, Failure> {
        let url = self.join(link)?;
        let request = Request::get(url.as_str()).body(Full::default()).map_err(|e| bug(&e))?;
        let answer = self.send(request).await?;
        if answer.status() == StatusCode::OK { Ok(answer) } else { Err(refusal(answer).await) }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        query: Query<'_>,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Result<Value, Failure> {
        let mut url = self.join(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("fonds/", env!("CARGO_PKG_VERSION")));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body {
            Some(value) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Bytes::from(value.to_string())
            }
            None => Bytes::new(),
        };
        let answer = self.send(request.body(Full::new(body)).map_err(|e| bug(&e))?).await?;
        if !answer.status().is_success() {
            return Err(refusal(answer).await);
        }
        let bytes = read(answer).await?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| {
            Failure::unreachable("NOT_FONDS", format!("{} does not answer as fonds does", self.address()))
                .advise("Check FONDS_URL.")
        })
    }

    fn join(&self, path: &str) -> Result<Url, Failure> {
        self.base.join(path.trim_start_matches('/')).map_err(|e| bug(&e))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        let unreachable = |why: String| {
            Failure::unreachable("UNREACHABLE", format!("{} cannot be reached: {why}", self.address()))
                .advise("Is it running? See `fonds status`, and FONDS_URL if it is set.")
        };
        match timeout(PATIENCE, self.http.request(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(unreachable(chain(&error))),
            Err(_) => Err(unreachable(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }
}

/// That nothing runs for the data folder.
#[must_use]
pub fn no_host(home: &Home) -> Failure {
    Failure::unreachable("NO_HOST", format!("no fonds runs for {}", home.dir().display()))
        .advise("Start it with `fonds up --detach`, or set FONDS_URL and FONDS_TOKEN to use another.")
}

fn bug(error: &dyn std::error::Error) -> Failure {
    Failure::new("INTERNAL", format!("the request could not be made: {error}"))
}

/// The deepest reason says most (`Connection refused`).
fn chain(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

async fn read(answer: Response<Incoming>) -> Result<Bytes, Failure> {
    let body = Limited::new(answer.into_body(), MAX_ANSWER).collect();
    match timeout(PATIENCE, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(Failure::unreachable("UNREACHABLE", format!("the answer broke off: {error}"))),
        Err(_) => Err(Failure::unreachable("UNREACHABLE", "the answer did not end in time")),
    }
}

async fn refusal(answer: Response<Incoming>) -> Failure {
    let status = answer.status();
    let body = read(answer).await.unwrap_or_default();
    problem(status, &serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// A problem+json answer as the command's own failure; every field that was refused is named.
fn problem(status: StatusCode, problem: &Value) -> Failure {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut detail = text(problem, "detail");
    if detail.is_empty() {
        detail = format!("the service answered {status}");
    }
    let errors = problem.get("errors").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for error in errors {
        let line = format!("{}: {}: {}", text(error, "field"), text(error, "code"), text(error, "detail"));
        detail = format!("{detail}\n       {line}");
    }
    let field = text(problem, "field");
    if errors.is_empty() && !field.is_empty() && !detail.contains(&field) {
        detail = format!("{field}: {detail}");
    }
    let code = text(problem, "code");
    let exit = match status {
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => Exit::Unreachable,
        _ => Exit::Failed,
    };
    let code = if code.is_empty() { format!("HTTP_{}", status.as_u16()) } else { code };
    Failure::new(&code, detail).advise(text(problem, "advice")).exit(exit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_is_told_with_every_field() {
        let body = json!({"code": "INVALID_URL", "detail": "2 URLs cannot be archived", "advice": "Mend them.",
            "errors": [{"field": "urls[0]", "code": "INVALID_URL", "detail": "no host"}]});
        let failure = problem(StatusCode::UNPROCESSABLE_ENTITY, &body);
        assert_eq!(failure.exit, Exit::Failed);
        assert_eq!(
            failure.to_string(),
            "fonds: INVALID_URL: 2 URLs cannot be archived\n       urls[0]: INVALID_URL: no host\n       Mend them."
        );
        let field =
            problem(StatusCode::UNPROCESSABLE_ENTITY, &json!({"code": "C", "detail": "too big", "field": "limits.x"}));
        assert_eq!(field.detail, "limits.x: too big");
    }

    #[test]
    fn an_outage_is_not_a_refusal() {
        assert_eq!(problem(StatusCode::SERVICE_UNAVAILABLE, &Value::Null).exit, Exit::Unreachable);
        let odd = problem(StatusCode::IM_A_TEAPOT, &Value::Null);
        assert_eq!((odd.code.as_str(), odd.exit), ("HTTP_418", Exit::Failed));
    }

    #[test]
    fn a_stage_in_the_address_is_kept() {
        let client = Client::new("https://x.example/prod", "t").expect("fine");
        assert_eq!(client.join("/v1/crawls").expect("joins").as_str(), "https://x.example/prod/v1/crawls");
        assert_eq!(client.join("https://y.example/blobs/z").expect("joins").as_str(), "https://y.example/blobs/z");
        assert_eq!(client.address(), "https://x.example/prod");
        assert!(Client::new("ftp://x", "t").is_err() && Client::new("x", "t").is_err());
    }

    #[tokio::test]
    async fn nobody_listening_is_unreachable() {
        let port = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("any port");
            listener.local_addr().expect("bound").port()
        };
        let client = Client::new(&format!("http://127.0.0.1:{port}"), "t").expect("fine");
        let failure = client.get("/v1/health", &[]).await.expect_err("nobody there");
        assert_eq!((failure.exit, failure.code.as_str()), (Exit::Unreachable, "UNREACHABLE"));
        assert!(failure.detail.contains("refused"), "{failure}");
    }
}
