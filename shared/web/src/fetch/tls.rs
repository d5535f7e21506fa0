//! TLS: the certificate check, what was wrong with a certificate, and going on regardless if asked to.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error as RustlsError, HandshakeKind,
    RootCertStore, SignatureScheme,
};

use super::der;
use crate::code::FetchCode;

/// The TLS side of a connection.
#[derive(Debug, Clone)]
pub struct TlsInfo {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The suite's IANA name.
    pub cipher: String,
    /// The certificates as sent, leaf first, DER.
    pub chain_der: Vec<CertificateDer<'static>>,
    /// Whether the certificate passed the check.
    pub valid: bool,
    /// Why it did not; such a connection exists only under `accept_invalid_certs`.
    pub problem: Option<TlsProblem>,
}

/// What is wrong with a certificate or handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsProblem {
    /// Past its end date.
    Expired,
    /// Before its start date.
    NotYetValid,
    /// For other names.
    WrongHost,
    /// Signed by itself.
    SelfSigned,
    /// Signed by nobody we trust.
    Untrusted,
    /// Revoked.
    Revoked,
    /// A signature does not match.
    BadSignature,
    /// Not a certificate we can read, or not one for servers.
    Malformed,
    /// No common version or suite, an alert, or not TLS at all.
    Handshake,
}

impl TlsProblem {
    /// The stable text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::WrongHost => "wrong-host",
            Self::SelfSigned => "self-signed",
            Self::Untrusted => "untrusted",
            Self::Revoked => "revoked",
            Self::BadSignature => "bad-signature",
            Self::Malformed => "malformed-certificate",
            Self::Handshake => "handshake",
        }
    }

    fn of(error: &RustlsError, leaf: Option<&CertificateDer<'_>>) -> Self {
        use CertificateError as C;
        let RustlsError::InvalidCertificate(error) = error else {
            return Self::Handshake;
        };
        let self_signed = leaf.is_some_and(|cert| der::is_self_issued(cert));
        match error {
            C::Expired | C::ExpiredContext { .. } => Self::Expired,
            C::NotValidYet | C::NotValidYetContext { .. } => Self::NotYetValid,
            C::NotValidForName | C::NotValidForNameContext { .. } => Self::WrongHost,
            C::Revoked => Self::Revoked,
            C::BadSignature => Self::BadSignature,
            // The verifier says "CA used as end entity" of many self-signed certificates.
            _ if self_signed => Self::SelfSigned,
            C::UnknownIssuer => Self::Untrusted,
            _ => Self::Malformed,
        }
    }
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsFailure {
    #[error("TLS {}: {source}", .problem.as_str())]
    Handshake { problem: TlsProblem, source: io::Error },
    #[error("the TLS handshake did not finish in {0:?}")]
    Timeout(std::time::Duration),
    #[error("the connection ended during the TLS handshake: {0}")]
    Closed(io::Error),
}

impl TlsFailure {
    pub(crate) fn of(error: io::Error, verdict: Option<TlsProblem>) -> Self {
        let inner = error.get_ref().and_then(|e| e.downcast_ref::<RustlsError>());
        match (inner, verdict) {
            (Some(inner), verdict) => {
                Self::Handshake { problem: verdict.unwrap_or_else(|| TlsProblem::of(inner, None)), source: error }
            }
            (None, _) => Self::Closed(error),
        }
    }

    pub(crate) const fn problem(&self) -> Option<TlsProblem> {
        match self {
            Self::Handshake { problem, .. } => Some(*problem),
            Self::Closed(_) => Some(TlsProblem::Handshake),
            Self::Timeout(_) => None,
        }
    }

    pub(crate) const fn code(&self) -> FetchCode {
        match self {
            Self::Handshake { .. } | Self::Closed(_) => FetchCode::TlsFailed,
            Self::Timeout(_) => FetchCode::TlsTimeout,
        }
    }
}

/// What the verifier found, handed to the connector: it is called inside the poll of the handshake,
/// on the task that scopes this.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Verdict {
    asked: bool,
    pub(super) problem: Option<TlsProblem>,
}

tokio::task_local! {
    pub(super) static VERDICT: RefCell<Verdict>;
}

/// The client side of TLS: one configuration for all connections.
pub(super) struct TlsClient {
    pub(super) config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
}

impl TlsClient {
    pub(super) fn new(
        http2: bool,
        accept_invalid: bool,
        extra_roots: &[CertificateDer<'static>],
    ) -> Result<Self, RustlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for cert in extra_roots {
            roots.add(cert.clone())?;
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|e| RustlsError::General(e.to_string()))?;
        let verifier = Arc::new(Verifier { inner, provider: Arc::clone(&provider), accept_invalid });
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
            .with_no_client_auth();
        config.alpn_protocols = match http2 {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        Ok(Self { config: Arc::new(config), verifier })
    }

    /// What to record about a finished handshake. A resumed session skips the certificate check, so
    /// it is made up for here.
    pub(super) fn describe(
        &self,
        connection: &ClientConnection,
        name: &ServerName<'_>,
        mut verdict: Verdict,
    ) -> TlsInfo {
        let chain = connection.peer_certificates().unwrap_or_default();
        if !verdict.asked && connection.handshake_kind() == Some(HandshakeKind::Resumed) {
            verdict.problem = self.verifier.problem(chain, name);
        }
        TlsInfo {
            version: match connection.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
                _ => "TLSv1.2",
            },
            cipher: connection
                .negotiated_cipher_suite()
                .and_then(|suite| suite.suite().as_str())
                .unwrap_or("unknown")
                .to_owned(),
            chain_der: chain.iter().map(|c| c.clone().into_owned()).collect(),
            valid: verdict.problem.is_none(),
            problem: verdict.problem,
        }
    }
}

/// The web's usual check; notes what it found and, if told to, lets everything pass.
#[derive(Debug)]
struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    provider: Arc<CryptoProvider>,
    accept_invalid: bool,
}

impl Verifier {
    fn problem(&self, chain: &[CertificateDer<'_>], name: &ServerName<'_>) -> Option<TlsProblem> {
        let (leaf, rest) = chain.split_first()?;
        self.inner
            .verify_server_cert(leaf, rest, name, &[], UnixTime::now())
            .err()
            .map(|error| TlsProblem::of(&error, Some(leaf)))
    }

    fn note(problem: Option<TlsProblem>) {
        // Outside a scope there is nobody to tell.
        let _ = VERDICT.try_with(|cell| {
            let mut verdict = cell.borrow_mut();
            verdict.asked = true;
            verdict.problem = verdict.problem.or(problem);
        });
    }

    fn signature(
        &self,
        checked: Result<HandshakeSignatureValid, RustlsError>,
        cert: &CertificateDer<'_>,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        checked.or_else(|error| {
            Self::note(Some(TlsProblem::of(&error, Some(cert))));
            if self.accept_invalid { Ok(HandshakeSignatureValid::assertion()) } else { Err(error) }
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, RustlsError> {
        match self.inner.verify_server_cert(leaf, rest, name, ocsp, now) {
            Ok(verified) => {
                Self::note(None);
                Ok(verified)
            }
            Err(error) => {
                Self::note(Some(TlsProblem::of(&error, Some(leaf))));
                if self.accept_invalid { Ok(ServerCertVerified::assertion()) } else { Err(error) }
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        self.signature(self.inner.verify_tls12_signature(message, cert, dss), cert)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        self.signature(self.inner.verify_tls13_signature(message, cert, dss), cert)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
