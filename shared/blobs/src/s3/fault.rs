//! S3's errors as what they mean to a caller.

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};

use crate::{BlobError, BlobKey};

/// What an answer says, before it is known which operation on what was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    NotFound,
    UploadGone,
    Range,
    /// 412: the condition does not hold.
    Precondition,
    /// 409: someone else writes the key at this moment.
    Conflict,
    Denied,
    Unavailable,
    Invalid,
}

/// A failed call: its meaning and the text for people.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) meaning: Meaning,
    operation: &'static str,
    text: String,
}

impl Fault {
    pub(super) fn new<E>(operation: &'static str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let meaning = match error {
            SdkError::ServiceError(service) => {
                let status = service.raw().status().as_u16();
                meaning_of(service.err().code().unwrap_or_default(), status)
            }
            SdkError::ConstructionFailure(_) => Meaning::Invalid,
            _ => Meaning::Unavailable,
        };
        Self { meaning, operation, text: DisplayErrorContext(error).to_string() }
    }

    /// A body of ours that cannot be read: no repetition brings it back.
    pub(super) fn of_body(error: &BlobError) -> Self {
        Self { meaning: Meaning::Invalid, operation: "put", text: error.to_string() }
    }

    /// An error inside an answer that is itself a 200 (DeleteObjects).
    pub(super) fn inside(operation: &'static str, code: &str, text: String) -> Self {
        Self { meaning: meaning_of(code, 0), operation, text: format!("{code}: {text}") }
    }

    pub(super) fn into_error(self, key: &BlobKey) -> BlobError {
        match self.meaning {
            Meaning::NotFound => BlobError::not_found(key),
            Meaning::UploadGone => BlobError::upload_gone(key),
            Meaning::Precondition => BlobError::Changed { key: key.as_str().to_owned() },
            Meaning::Range => BlobError::Range { key: key.as_str().to_owned(), start: 0 },
            _ => self.without_key(),
        }
    }

    pub(super) fn without_key(self) -> BlobError {
        let Self { meaning, operation, text } = self;
        match meaning {
            Meaning::Denied => BlobError::AccessDenied { operation, reason: text },
            Meaning::Unavailable | Meaning::Conflict => BlobError::Unavailable { operation, reason: text },
            _ => BlobError::Invalid(format!("{operation}: {text}")),
        }
    }
}

/// By code first, since one status carries several; by status where HEAD leaves no code.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>
fn meaning_of(code: &str, status: u16) -> Meaning {
    match code {
        "NoSuchKey" | "NotFound" | "NoSuchVersion" => Meaning::NotFound,
        "NoSuchUpload" => Meaning::UploadGone,
        "InvalidRange" => Meaning::Range,
        "PreconditionFailed" => Meaning::Precondition,
        "ConditionalRequestConflict" | "OperationAborted" => Meaning::Conflict,
        // New credentials or a corrected clock heal these.
        "ExpiredToken" | "RequestTimeTooSkewed" | "TokenRefreshRequired" => Meaning::Unavailable,
        "SlowDown"
        | "InternalError"
        | "ServiceUnavailable"
        | "RequestTimeout"
        | "Throttling"
        | "ThrottlingException"
        | "RequestLimitExceeded"
        | "BandwidthLimitExceeded" => Meaning::Unavailable,
        "AccessDenied" | "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "AllAccessDisabled" | "AccountProblem" => {
            Meaning::Denied
        }
        "NoSuchBucket" => Meaning::Invalid,
        _ => match status {
            401 | 403 => Meaning::Denied,
            404 => Meaning::NotFound,
            409 => Meaning::Conflict,
            412 => Meaning::Precondition,
            416 => Meaning::Range,
            408 | 429 | 500.. => Meaning::Unavailable,
            _ => Meaning::Invalid,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_heal_is_transient() {
        let key = BlobKey::parse("a").unwrap();
        for (code, status, permanent) in [
            ("NoSuchKey", 404, true),
            ("NoSuchBucket", 404, true),
            ("NoSuchUpload", 404, true),
            ("", 403, true),
            ("ExpiredToken", 400, false),
            ("SlowDown", 503, false),
            ("InternalError", 200, false),
            ("ConditionalRequestConflict", 409, false),
            ("", 502, false),
            ("", 429, false),
            ("EntityTooSmall", 400, true),
            ("BadDigest", 400, true),
        ] {
            let fault = Fault { meaning: meaning_of(code, status), operation: "get", text: String::new() };
            assert_eq!(fault.into_error(&key).is_permanent(), permanent, "{code} {status}");
        }
    }
}
