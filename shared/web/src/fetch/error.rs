//! Failures of a fetch, and which of them a client error stands for.

use std::error::Error;
use std::fmt;
use std::io;

use url::Url;

use super::tls::{TlsFailure, TlsProblem};
use crate::code::FetchCode;
use crate::dial::DialError;
use crate::guard::Refusal;

/// Why a fetch stopped short. Hops finished before stay in the result.
#[derive(Debug, Clone)]
pub struct FetchError {
    /// The stable code.
    pub code: FetchCode,
    /// The URL that was being fetched.
    pub url: Url,
    /// What happened, for people.
    pub detail: String,
    /// The address refused, for [`FetchCode::EgressRefused`].
    pub refusal: Option<Refusal>,
    /// What is wrong with the certificate, for [`FetchCode::TlsFailed`].
    pub tls_problem: Option<TlsProblem>,
}

impl FetchError {
    pub(super) fn new(code: FetchCode, url: &Url, detail: impl Into<String>) -> Self {
        Self { code, url: url.clone(), detail: detail.into(), refusal: None, tls_problem: None }
    }

    /// From the legacy client's error: the cause is somewhere along its sources.
    pub(super) fn of_client(url: &Url, error: &(dyn Error + 'static)) -> Self {
        let mut this = Self::new(code_of_client_error(error), url, chain_text(error));
        if let Some(dial) = find_source::<DialError>(error) {
            this.refusal = dial.refusal().cloned();
            this.detail = dial.to_string();
        }
        if let Some(tls) = find_source::<TlsFailure>(error) {
            this.tls_problem = tls.problem();
            this.detail = tls.to_string();
        }
        this
    }

    /// Whether asking again cannot help.
    pub const fn is_permanent(&self) -> bool {
        self.code.is_permanent()
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl Error for FetchError {}

/// The first error of type `T` among `error` and its sources.
pub(crate) fn find_source<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The code of an error of the HTTP client.
pub(crate) fn code_of_client_error(error: &(dyn Error + 'static)) -> FetchCode {
    if let Some(dial) = find_source::<DialError>(error) {
        return dial.code();
    }
    if let Some(tls) = find_source::<TlsFailure>(error) {
        return tls.code();
    }
    if let Some(http) = find_source::<hyper::Error>(error) {
        if http.is_parse_too_large() {
            return FetchCode::HeaderTooLarge;
        }
        if http.is_parse() {
            return FetchCode::HttpMalformed;
        }
        if http.is_incomplete_message() || http.is_closed() || http.is_canceled() {
            return FetchCode::ConnectionClosed;
        }
    }
    match find_source::<io::Error>(error).map(io::Error::kind) {
        // A chunk size that is no number, a trailer that is no header.
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => FetchCode::HttpMalformed,
        _ => FetchCode::ConnectionClosed,
    }
}

/// The error and its sources, joined by colons, without repeats.
pub(crate) fn chain_text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let part = error.to_string();
        if !text.ends_with(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = error.source();
    }
    text
}
