//! Where the bucket is and how long to wait for it.

use std::fmt;
use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{Builder, Credentials, RequestChecksumCalculation, ResponseChecksumValidation};
use url::{Host, Url};

use crate::{BlobError, BlobKey};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// From the first byte of the request to the first of the answer, so it has to hold the upload of a 64 MiB body.
const BULK_TIMEOUT: Duration = Duration::from_secs(120);
/// One attempt of a call without a body.
const QUICK_TIMEOUT: Duration = Duration::from_secs(15);
const ATTEMPTS: u32 = 5;

/// Which bucket, and how to reach it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Config {
    /// The bucket's name.
    pub bucket: String,
    /// Folder of the bucket all keys go under; empty for none.
    pub prefix: String,
    /// Region; from the environment when `None`, `us-east-1` for an endpoint of one's own.
    pub region: Option<String>,
    /// Another service than AWS; `AWS_ENDPOINT_URL_S3` and `AWS_ENDPOINT_URL` when `None`.
    pub endpoint: Option<String>,
    /// Bucket in the path rather than in the host name; when `None`, as the endpoint's host needs it.
    pub path_style: Option<bool>,
    /// Fixed credentials; the default chain when `None`.
    pub keys: Option<Keys>,
}

/// Fixed credentials. The secret is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// Access key id.
    pub id: String,
    /// Secret access key.
    pub secret: String,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

impl S3Config {
    /// A bucket with everything else from the environment.
    #[must_use]
    pub fn bucket(name: impl Into<String>) -> Self {
        Self { bucket: name.into(), ..Self::default() }
    }

    /// Reads `s3://bucket[/prefix][?endpoint=URL&region=R&path_style=true]`.
    ///
    /// # Errors
    /// [`BlobError::Invalid`] naming what is wrong.
    pub fn from_url(location: &str) -> Result<Self, BlobError> {
        let wrong = |what: &str| BlobError::Invalid(format!("{location}: {what}"));
        let url = Url::parse(location).map_err(|error| wrong(&error.to_string()))?;
        if url.scheme() != "s3" {
            return Err(wrong("a bucket is written s3://bucket/prefix"));
        }
        let mut config =
            Self::bucket(url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("no bucket"))?);
        config.prefix =
            percent_encoding::percent_decode_str(url.path().trim_matches('/')).decode_utf8_lossy().into_owned();
        for (name, value) in url.query_pairs() {
            match &*name {
                "endpoint" => config.endpoint = Some(value.into_owned()),
                "region" => config.region = Some(value.into_owned()),
                "path_style" => {
                    config.path_style = Some(value.parse().map_err(|_| wrong("path_style is true or false"))?)
                }
                other => return Err(wrong(&format!("unknown option {other}"))),
            }
        }
        config.checked_prefix()?;
        Ok(config)
    }

    /// The prefix, empty or with one slash at its end.
    pub(super) fn checked_prefix(&self) -> Result<String, BlobError> {
        if self.bucket.is_empty() {
            return Err(BlobError::Invalid("the bucket has no name".to_owned()));
        }
        let prefix = self.prefix.trim_matches('/');
        if prefix.is_empty() {
            return Ok(String::new());
        }
        BlobKey::parse(prefix).map_err(|error| BlobError::Invalid(format!("prefix {prefix}: {error}")))?;
        Ok(format!("{prefix}/"))
    }

    /// Clients for calls with and without a body.
    pub(super) async fn clients(&self) -> (Client, Client) {
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .retry_config(
                RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(Duration::from_millis(100)),
            )
            .timeout_config(
                TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(BULK_TIMEOUT).build(),
            );
        if let Some(region) = self.region() {
            loader = loader.region(Region::new(region));
        }
        if let Some(endpoint) = &self.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        if let Some(keys) = &self.keys {
            loader = loader.credentials_provider(Credentials::new(&keys.id, &keys.secret, None, None, "configuration"));
        }
        let shared = loader.load().await;
        // Checksums only where S3 demands them: emulators answer a ranged read with the checksum of the whole object,
        // which the client would refuse.
        let base = Builder::from(&shared)
            .force_path_style(self.needs_path_style())
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired);
        let quick = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(QUICK_TIMEOUT)
            .operation_attempt_timeout(QUICK_TIMEOUT);
        let quick = Client::from_conf(base.clone().timeout_config(quick.build()).build());
        (Client::from_conf(base.build()), quick)
    }

    fn region(&self) -> Option<String> {
        let fallback = || {
            self.endpoint.is_some()
                && std::env::var_os("AWS_REGION").is_none()
                && std::env::var_os("AWS_DEFAULT_REGION").is_none()
        };
        self.region.clone().or_else(|| fallback().then(|| "us-east-1".to_owned()))
    }

    fn needs_path_style(&self) -> bool {
        if let Some(chosen) = self.path_style {
            return chosen;
        }
        let from_environment =
            || ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"].iter().find_map(|name| std::env::var(name).ok());
        let endpoint = self.endpoint.clone().or_else(from_environment);
        endpoint.is_some_and(|endpoint| !takes_bucket_hosts(&endpoint))
    }
}

/// Whether `bucket.<host>` can be expected to lead to the bucket: AWS's own names only.
fn takes_bucket_hosts(endpoint: &str) -> bool {
    let Ok(url) = Url::parse(endpoint) else { return false };
    matches!(url.host(), Some(Host::Domain(name)) if name.ends_with(".amazonaws.com") || name.ends_with(".amazonaws.com.cn"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_read_or_refused_by_name() {
        let full =
            S3Config::from_url("s3://my-bucket/a/b/?endpoint=http://127.0.0.1:9000&region=eu-west-1&path_style=true")
                .unwrap();
        assert_eq!(
            full,
            S3Config {
                bucket: "my-bucket".into(),
                prefix: "a/b".into(),
                region: Some("eu-west-1".into()),
                endpoint: Some("http://127.0.0.1:9000".into()),
                path_style: Some(true),
                keys: None,
            }
        );
        assert_eq!(full.checked_prefix().unwrap(), "a/b/");
        assert_eq!(S3Config::from_url("s3://b").unwrap(), S3Config::bucket("b"));
        for wrong in ["s3:///x", "http://b", "s3://b?x=1", "s3://b?path_style=maybe", "nonsense", "s3://b/a//b"] {
            assert!(matches!(S3Config::from_url(wrong), Err(BlobError::Invalid(_))), "{wrong}");
        }
    }

    #[test]
    fn path_style_follows_the_host() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:4566", true),
            ("http://localhost:4566", true),
            ("https://minio.example.org", true),
            ("https://s3.eu-west-1.amazonaws.com", false),
        ] {
            let config = S3Config { endpoint: Some(endpoint.into()), ..S3Config::bucket("b") };
            assert_eq!(config.needs_path_style(), expected, "{endpoint}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let config = S3Config { keys: Some(Keys { id: "id".into(), secret: "hush".into() }), ..S3Config::bucket("b") };
        assert!(!format!("{config:?}").contains("hush"));
    }
}
