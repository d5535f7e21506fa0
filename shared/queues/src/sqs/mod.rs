//! SQS: the client, its errors, and what both the bell and the admin need.

pub(crate) mod admin;
pub(crate) mod bell;

use std::fmt;
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::config::{Builder, Credentials};
use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};

/// Longest time SQS holds a message back.
pub const MAX_DELAY: Duration = Duration::from_secs(900);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Above the 20 s of a long poll.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const ATTEMPTS: u32 = 4;

/// How to reach SQS. Everything left out comes from the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SqsConfig {
    /// Region; `us-east-1` for an endpoint of one's own when the environment names none.
    pub region: Option<String>,
    /// Another service than AWS; `AWS_ENDPOINT_URL_SQS` and `AWS_ENDPOINT_URL` when `None`.
    pub endpoint: Option<String>,
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

impl SqsConfig {
    /// Builds the client. Nothing is sent.
    pub(crate) async fn client(&self) -> Client {
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .retry_config(
                RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(Duration::from_millis(100)),
            )
            .timeout_config(
                TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT).build(),
            );
        let unnamed = || std::env::var_os("AWS_REGION").is_none() && std::env::var_os("AWS_DEFAULT_REGION").is_none();
        let region =
            self.region.clone().or_else(|| (self.endpoint.is_some() && unnamed()).then(|| "us-east-1".to_owned()));
        if let Some(region) = region {
            loader = loader.region(Region::new(region));
        }
        if let Some(endpoint) = &self.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        if let Some(keys) = &self.keys {
            loader = loader.credentials_provider(Credentials::new(&keys.id, &keys.secret, None, None, "configuration"));
        }
        Client::from_conf(Builder::from(&loader.load().await).build())
    }
}

/// A failed call to SQS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqsError {
    /// There is no such queue.
    #[error("no queue {0}")]
    NoQueue(String),
    /// The message was deleted, or its receipt is too old.
    #[error("the receipt is not valid any more")]
    Receipt,
    /// The credentials do not allow it.
    #[error("not allowed: {0}")]
    AccessDenied(String),
    /// A request that no repetition makes right.
    #[error("invalid request to SQS: {0}")]
    Invalid(String),
    /// Throttled, timed out, unreachable.
    #[error("SQS unavailable: {0}")]
    Unavailable(String),
}

impl SqsError {
    /// Whether the same call would fail again for the same reason.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Unavailable(_))
    }

    pub(crate) fn new<E>(queue: &str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let text = || DisplayErrorContext(error).to_string();
        match error {
            SdkError::ServiceError(service) => {
                let status = service.raw().status().as_u16();
                Self::of_code(service.err().code().unwrap_or_default(), status, queue, text)
            }
            SdkError::ConstructionFailure(_) => Self::Invalid(text()),
            _ => Self::Unavailable(text()),
        }
    }

    /// The codes of the JSON protocol and, after the dot, of the older query protocol.
    fn of_code(code: &str, status: u16, queue: &str, text: impl FnOnce() -> String) -> Self {
        let code = code.rsplit(['.', '#']).next().unwrap_or_default();
        match code {
            "QueueDoesNotExist" | "NonExistentQueue" => Self::NoQueue(queue.to_owned()),
            "ReceiptHandleIsInvalid" | "MessageNotInflight" => Self::Receipt,
            "AccessDenied"
            | "AccessDeniedException"
            | "InvalidClientTokenId"
            | "SignatureDoesNotMatch"
            | "KmsAccessDenied" => Self::AccessDenied(text()),
            "ExpiredToken"
            | "ExpiredTokenException"
            | "RequestThrottled"
            | "ThrottlingException"
            | "KmsThrottled"
            | "QueueDeletedRecently" => Self::Unavailable(text()),
            _ if status == 429 || status >= 500 => Self::Unavailable(text()),
            _ if status == 403 => Self::AccessDenied(text()),
            _ => Self::Invalid(text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_heal_is_transient() {
        for (code, status, permanent) in [
            ("AWS.SimpleQueueService.NonExistentQueue", 400, true),
            ("com.amazonaws.sqs#QueueDoesNotExist", 400, true),
            ("ReceiptHandleIsInvalid", 400, true),
            ("AccessDenied", 403, true),
            ("ExpiredToken", 403, false),
            ("RequestThrottled", 403, false),
            ("InternalFailure", 500, false),
            ("InvalidParameterValue", 400, true),
        ] {
            assert_eq!(SqsError::of_code(code, status, "q", String::new).is_permanent(), permanent, "{code}");
        }
        let config = SqsConfig { keys: Some(Keys { id: "id".into(), secret: "hush".into() }), ..SqsConfig::default() };
        assert!(!format!("{config:?}").contains("hush"));
    }
}
