//! What the API is told when it starts, and what its handlers share.

use crate::limit::{Limiter, Rate};
use crate::problem::Problem;
use fonds_blobs::sign::LocalSigner;
use fonds_blobs::{BlobError, BlobStore};
use fonds_queues::{Bell, Ring};
use fonds_store::Db;
use fonds_store::runs::RunRef;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Settings of the API.
#[derive(Debug, Clone)]
pub struct ApiConfig {
    /// The address links begin with (`https://archive.example.org`, with the stage on API Gateway).
    /// Without it they begin with what the request was sent to.
    pub public_base_url: Option<Url>,
    /// Secret behind the links to files, at least 16 bytes; the same in every process, see
    /// [`fonds_store::tokens::signing_key`].
    pub signing_key: Vec<u8>,
    /// How long such a link works.
    pub link_ttl: Duration,
    /// Largest request body in bytes.
    pub max_body: usize,
    /// Longest request target in bytes.
    pub max_uri: usize,
    /// Most bytes of a file in one answer; none where answers stream without end. On Lambda 4 MiB:
    /// an answer has at most 6 MB there, in base64.
    pub max_file_answer: Option<u64>,
    /// Longest time for one request, its body included; the streaming of a file is not.
    pub request_timeout: Duration,
    /// Statement timeout of lists, in milliseconds.
    pub list_timeout_ms: u32,
    /// Statement timeout of a search, in milliseconds.
    pub search_timeout_ms: u32,
    /// Requests by one token.
    pub token_rate: Rate,
    /// Requests without a valid token, together.
    pub anonymous_rate: Rate,
    /// Shown by health and stats.
    pub version: &'static str,
}

impl ApiConfig {
    /// The defaults of the one-process host.
    #[must_use]
    pub fn new(signing_key: Vec<u8>) -> ApiConfig {
        ApiConfig {
            public_base_url: None,
            signing_key,
            link_ttl: Duration::from_secs(15 * 60),
            max_body: 12 * 1024 * 1024,
            max_uri: 16 * 1024,
            max_file_answer: None,
            request_timeout: Duration::from_secs(60),
            list_timeout_ms: 5_000,
            search_timeout_ms: 5_000,
            token_rate: Rate { per_second: 100.0, burst: 400.0 },
            anonymous_rate: Rate { per_second: 20.0, burst: 100.0 },
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// What handlers share. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    pub(crate) db: Db,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) bell: Arc<dyn Bell>,
    pub(crate) config: Arc<ApiConfig>,
    pub(crate) signer: LocalSigner,
    pub(crate) limiter: Arc<Limiter>,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("API setting: {0}")]
pub struct ConfigRefused(#[from] BlobError);

impl ConfigRefused {
    /// A setting does not get better by trying again.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        true
    }
}

impl ApiState {
    /// Puts the parts together.
    ///
    /// # Errors
    /// When the signing key is too short.
    pub fn new(
        db: Db,
        blobs: Arc<dyn BlobStore>,
        bell: Arc<dyn Bell>,
        config: ApiConfig,
    ) -> Result<ApiState, ConfigRefused> {
        let base = Url::parse(crate::links::SIGNER_BASE).map_err(|e| BlobError::Invalid(e.to_string()))?;
        let signer = LocalSigner::new(base, &config.signing_key)?;
        let limiter = Arc::new(Limiter::new(config.token_rate, config.anonymous_rate));
        Ok(ApiState { db, blobs, bell, config: Arc::new(config), signer, limiter })
    }

    /// Rings for runs that are committed. A bell that fails is no error of the request: the rows
    /// are there and the sweep rings them within a minute.
    pub(crate) async fn ring(&self, runs: &[RunRef]) {
        if runs.is_empty() {
            return;
        }
        let rings: Vec<Ring> = runs.iter().map(|r| Ring::new(r.id.0, r.kind.as_str())).collect();
        if let Err(error) = self.bell.ring(&rings).await {
            tracing::warn!(%error, runs = runs.len(), "the bell failed; the sweep will ring");
        }
    }

    /// A transaction whose statements are bounded, for lists.
    pub(crate) async fn list_tx(&self) -> Result<fonds_store::Tx, Problem> {
        self.bounded(self.config.list_timeout_ms).await
    }

    /// A transaction whose statements are bounded.
    pub(crate) async fn bounded(&self, ms: u32) -> Result<fonds_store::Tx, Problem> {
        let mut tx = self.db.begin().await?;
        fonds_store::query::bound(&mut tx, ms).await?;
        Ok(tx)
    }
}
