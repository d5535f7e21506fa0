//! A plain HTTP client, so that what is compared did not pass through the code under test.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use sha2::{Digest, Sha256};

/// An answer, as far as it is compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) sha256: String,
    pub(crate) length: usize,
}

/// Asks for URLs of loopback.
pub(crate) struct Asker(Client<HttpConnector, Empty<Bytes>>);

impl Asker {
    pub(crate) fn new() -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http())
    }

    /// One request; redirects are not followed.
    pub(crate) async fn get(&self, url: &str) -> Result<Answer, String> {
        let uri = url.parse().map_err(|e| format!("{url}: {e}"))?;
        let answer = self.0.get(uri).await.map_err(|e| format!("{url}: {e:?}"))?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|e| format!("{url}: {e:?}"))?.to_bytes();
        Ok(Answer { status, sha256: hex::encode(Sha256::digest(&body)), length: body.len() })
    }
}
