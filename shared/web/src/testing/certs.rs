//! Certificates good and bad, made afresh for each test authority.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// What a server shows for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Signed by the test authority, for localhost, 127.0.0.1 and `*.test`.
    Good,
    /// The same, over since 2011.
    Expired,
    /// The same, not valid before 2999.
    NotYetValid,
    /// For `elsewhere.test` only.
    WrongHost,
    /// Signed by itself.
    SelfSigned,
    /// Signed by another authority.
    Untrusted,
}

/// A certificate authority nobody trusts but a test.
pub struct TestCa {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl TestCa {
    /// A fresh authority.
    pub fn new() -> Result<Self, rcgen::Error> {
        Self::named("fonds test authority")
    }

    fn named(name: &str) -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    /// The authority's certificate, for [`crate::FetcherConfig::extra_roots`].
    pub fn der(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// The same as PEM text.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A server side that shows `identity` and offers `alpn`.
    pub fn server(
        &self,
        identity: Identity,
        alpn: &[&[u8]],
    ) -> Result<Arc<ServerConfig>, Box<dyn std::error::Error + Send + Sync>> {
        let names = match identity {
            Identity::WrongHost => vec!["elsewhere.test".to_owned()],
            _ => ["localhost", "127.0.0.1", "*.test"].map(str::to_owned).to_vec(),
        };
        let mut params = CertificateParams::new(names)?;
        match identity {
            Identity::Expired => {
                params.not_before = date_time_ymd(2010, 1, 1);
                params.not_after = date_time_ymd(2011, 1, 1);
            }
            Identity::NotYetValid => params.not_before = date_time_ymd(2999, 1, 1),
            _ => {}
        }
        params.distinguished_name.push(DnType::CommonName, "fonds test origin");
        let key = KeyPair::generate()?;
        let cert = match identity {
            Identity::SelfSigned => params.self_signed(&key)?,
            Identity::Untrusted => params.signed_by(&key, &Self::named("another authority")?.issuer)?,
            _ => params.signed_by(&key, &self.issuer)?,
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)?;
        config.alpn_protocols = alpn.iter().map(|p| p.to_vec()).collect();
        Ok(Arc::new(config))
    }
}
