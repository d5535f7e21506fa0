//! Signed URLs for the backends that have no server of their own: the API server of the one-process host answers them
//! after [`LocalSigner::verify`].
//!
//! The signature is HMAC-SHA256 over method, key, expiry and everything that shapes the answer (media type,
//! disposition, range, size, digest), each length-prefixed, so that no field can run into the next.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::Sha256;
use url::Url;

use crate::{BlobError, BlobKey, Disposition, PresignGet, PresignPut, Presigned};

/// Longest life of a signed URL (SigV4's limit, kept by every backend).
pub const MAX_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// Shortest secret accepted, in bytes.
pub const MIN_SECRET_BYTES: usize = 16;

/// What a path part may hold unencoded (RFC 3986 unreserved).
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Signs and verifies URLs below one base address.
#[derive(Clone)]
pub struct LocalSigner {
    base: Url,
    mac: Hmac<Sha256>,
}

impl fmt::Debug for LocalSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSigner").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// Why a URL is not honoured. All of them are a 403.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Not a URL this signer makes.
    #[error("not a signed blob URL")]
    Malformed,
    /// Its time is over.
    #[error("the signed blob URL has expired")]
    Expired,
    /// Signed with another secret, or something in it was changed.
    #[error("the signature of the blob URL does not match")]
    Mismatch,
}

/// A verified GET (or HEAD): answer these bytes with these headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedGet {
    /// Which object.
    pub key: BlobKey,
    /// Media type to answer with, the stored one if `None`.
    pub content_type: Option<String>,
    /// `Content-Disposition` value to answer with.
    pub disposition: Option<String>,
    /// The only bytes of the object this URL gives; a client's own `Range` counts within them.
    pub range: Option<Range<u64>>,
}

/// A verified PUT: take exactly this body (see [`crate::disk::DiskBlobs::receive`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedPut {
    /// Which object.
    pub key: BlobKey,
    /// Exact size, media type and digest.
    pub options: PresignPut,
}

/// What a URL that verified allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedRequest {
    /// Read.
    Get(SignedGet),
    /// Write once.
    Put(SignedPut),
}

/// The signed fields, in the order they are signed and written into the query.
#[derive(Default)]
struct Fields {
    expires: i64,
    content_type: Option<String>,
    disposition: Option<String>,
    range: Option<Range<u64>>,
    length: Option<u64>,
    sha256: Option<[u8; 32]>,
}

impl LocalSigner {
    /// `base` is the address the host serves blobs under (`http://127.0.0.1:8000/blobs/`); the secret is the host's.
    ///
    /// # Errors
    /// [`BlobError::Invalid`] for a secret below [`MIN_SECRET_BYTES`] or a base no path can be joined to.
    pub fn new(mut base: Url, secret: &[u8]) -> Result<Self, BlobError> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(BlobError::Invalid(format!(
                "the secret for blob URLs is shorter than {MIN_SECRET_BYTES} bytes"
            )));
        }
        if base.cannot_be_a_base() {
            return Err(BlobError::Invalid(format!("{base} cannot be the base of blob URLs")));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        base.set_query(None);
        base.set_fragment(None);
        let mac = Hmac::new_from_slice(secret).map_err(|error| BlobError::Invalid(error.to_string()))?;
        Ok(Self { base, mac })
    }

    /// A URL for reading `key` until `now + ttl`.
    ///
    /// # Errors
    /// [`BlobError::Invalid`] for a time to live of zero or above [`MAX_TTL`].
    pub fn get(
        &self,
        key: &BlobKey,
        ttl: Duration,
        now: DateTime<Utc>,
        options: PresignGet,
    ) -> Result<Presigned, BlobError> {
        if let Some(range) = &options.range {
            crate::store::check_signed_range(range)?;
        }
        let fields = Fields {
            expires: expiry(ttl, now)?,
            content_type: options.content_type,
            disposition: options.disposition.as_ref().map(Disposition::header_value),
            range: options.range,
            ..Fields::default()
        };
        self.presigned("GET", key, &fields, Vec::new())
    }

    /// A URL for writing `key` once until `now + ttl`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn put(
        &self,
        key: &BlobKey,
        ttl: Duration,
        now: DateTime<Utc>,
        options: PresignPut,
    ) -> Result<Presigned, BlobError> {
        let headers = vec![
            ("content-length".to_owned(), options.content_length.to_string()),
            ("content-type".to_owned(), options.content_type.clone()),
        ];
        let fields = Fields {
            expires: expiry(ttl, now)?,
            content_type: Some(options.content_type),
            length: Some(options.content_length),
            sha256: options.sha256,
            ..Fields::default()
        };
        self.presigned("PUT", key, &fields, headers)
    }

    /// Checks a request. `path_and_query` is as received (`/blobs/cas/...?...`), still percent-encoded. HEAD is allowed
    /// where GET is.
    ///
    /// # Errors
    /// [`SignatureError`]; nothing of the request may be used then.
    pub fn verify(
        &self,
        method: &str,
        path_and_query: &str,
        now: DateTime<Utc>,
    ) -> Result<SignedRequest, SignatureError> {
        let (path, query) = path_and_query.split_once('?').ok_or(SignatureError::Malformed)?;
        let encoded = path.strip_prefix(self.base.path()).ok_or(SignatureError::Malformed)?;
        let key = percent_decode_str(encoded).decode_utf8().map_err(|_| SignatureError::Malformed)?;
        let key = BlobKey::parse(key).map_err(|_| SignatureError::Malformed)?;
        let method = if method == "HEAD" { "GET" } else { method };
        let (fields, signature) = Fields::parse(query).ok_or(SignatureError::Malformed)?;
        self.authenticator(method, &key, &fields).verify_slice(&signature).map_err(|_| SignatureError::Mismatch)?;
        if now.timestamp() > fields.expires {
            return Err(SignatureError::Expired);
        }
        match (method, fields) {
            ("GET", Fields { content_type, disposition, range, length: None, sha256: None, .. }) => {
                Ok(SignedRequest::Get(SignedGet { key, content_type, disposition, range }))
            }
            (
                "PUT",
                Fields {
                    content_type: Some(content_type),
                    length: Some(content_length),
                    sha256,
                    disposition: None,
                    range: None,
                    ..
                },
            ) => {
                Ok(SignedRequest::Put(SignedPut { key, options: PresignPut { content_length, content_type, sha256 } }))
            }
            _ => Err(SignatureError::Malformed),
        }
    }

    fn presigned(
        &self,
        method: &'static str,
        key: &BlobKey,
        fields: &Fields,
        headers: Vec<(String, String)>,
    ) -> Result<Presigned, BlobError> {
        let signature = hex::encode(self.authenticator(method, key, fields).finalize().into_bytes());
        let mut url = self.base.clone();
        url.set_path(&format!("{}{}", self.base.path(), utf8_percent_encode(key.as_str(), PATH)));
        {
            let mut query = url.query_pairs_mut();
            for (name, value) in fields.pairs() {
                query.append_pair(name, &value);
            }
            query.append_pair("sig", &signature);
        }
        let expires = DateTime::from_timestamp(fields.expires, 0)
            .ok_or_else(|| BlobError::Invalid("expiry is out of range".to_owned()))?;
        Ok(Presigned { method, url, headers, expires })
    }

    fn authenticator(&self, method: &str, key: &BlobKey, fields: &Fields) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        let mut feed = |name: &str, value: &str| mac.update(format!("{name}:{}:{value}\n", value.len()).as_bytes());
        feed("fonds-blob", "1");
        feed("method", method);
        feed("key", key.as_str());
        for (name, value) in fields.pairs() {
            feed(name, &value);
        }
        mac
    }
}

impl Fields {
    fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> {
        [
            ("expires", Some(self.expires.to_string())),
            ("type", self.content_type.clone()),
            ("disposition", self.disposition.clone()),
            ("range", self.range.as_ref().map(|range| format!("{}-{}", range.start, range.end))),
            ("length", self.length.map(|length| length.to_string())),
            ("sha256", self.sha256.map(hex::encode)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// `None` when a field is missing, doubled or unreadable. Names we never sign are ignored: they change nothing.
    fn parse(query: &str) -> Option<(Self, Vec<u8>)> {
        let (mut fields, mut expires, mut signature) = (Self::default(), None, None);
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let fresh = match &*name {
                "expires" => expires.replace(value.parse().ok()?).is_none(),
                "type" => fields.content_type.replace(value.into_owned()).is_none(),
                "disposition" => fields.disposition.replace(value.into_owned()).is_none(),
                "range" => {
                    let (start, end) = value.split_once('-')?;
                    fields.range.replace(start.parse().ok()?..end.parse().ok()?).is_none()
                }
                "length" => fields.length.replace(value.parse().ok()?).is_none(),
                "sha256" => {
                    let mut digest = [0; 32];
                    hex::decode_to_slice(&*value, &mut digest).ok()?;
                    fields.sha256.replace(digest).is_none()
                }
                "sig" => signature.replace(hex::decode(&*value).ok()?).is_none(),
                _ => true,
            };
            if !fresh {
                return None;
            }
        }
        fields.expires = expires?;
        Some((fields, signature?))
    }
}

pub(crate) fn check_ttl(ttl: Duration) -> Result<(), BlobError> {
    if ttl.as_secs() == 0 || ttl > MAX_TTL {
        return Err(BlobError::Invalid("a signed URL lives between one second and seven days".to_owned()));
    }
    Ok(())
}

fn expiry(ttl: Duration, now: DateTime<Utc>) -> Result<i64, BlobError> {
    check_ttl(ttl)?;
    let ttl = TimeDelta::from_std(ttl).map_err(|error| BlobError::Invalid(error.to_string()))?;
    Ok((now + ttl).timestamp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn signer() -> LocalSigner {
        LocalSigner::new(Url::parse("http://127.0.0.1:8000/blobs").unwrap(), b"0123456789abcdef").unwrap()
    }

    fn target(presigned: &Presigned) -> String {
        format!("{}?{}", presigned.url.path(), presigned.url.query().unwrap())
    }

    fn key() -> BlobKey {
        BlobKey::parse("uploads/1/Ü & 100%?.png").unwrap()
    }

    fn everything() -> PresignGet {
        PresignGet {
            content_type: Some("text/html; charset=utf-8".into()),
            disposition: Some(Disposition::Inline("ü.html".into())),
            range: Some(10..20),
        }
    }

    #[test]
    fn a_signed_get_verifies_to_what_was_signed() {
        let now = Utc::now();
        let presigned = signer().get(&key(), Duration::from_secs(60), now, everything()).unwrap();
        let expected = SignedRequest::Get(SignedGet {
            key: key(),
            content_type: everything().content_type,
            disposition: everything().disposition.map(|disposition| disposition.header_value()),
            range: Some(10..20),
        });
        for method in ["GET", "HEAD"] {
            assert_eq!(signer().verify(method, &target(&presigned), now), Ok(expected.clone()));
        }
        assert_eq!(signer().verify("PUT", &target(&presigned), now), Err(SignatureError::Mismatch));
        assert_eq!(
            signer().verify("GET", &target(&presigned), now + TimeDelta::seconds(61)),
            Err(SignatureError::Expired)
        );
        let other =
            LocalSigner::new(Url::parse("http://127.0.0.1:8000/blobs/").unwrap(), b"another secret of mine").unwrap();
        assert_eq!(other.verify("GET", &target(&presigned), now), Err(SignatureError::Mismatch));
        assert!(!format!("{presigned:?}").contains("sig="));
    }

    #[test]
    fn a_signed_put_carries_length_type_and_digest() {
        let now = Utc::now();
        let options = PresignPut { content_length: 7, content_type: "image/png".into(), sha256: Some([9; 32]) };
        let presigned = signer().put(&key(), Duration::from_secs(60), now, options.clone()).unwrap();
        assert_eq!(
            signer().verify("PUT", &target(&presigned), now),
            Ok(SignedRequest::Put(SignedPut { key: key(), options }))
        );
        assert_eq!(signer().verify("GET", &target(&presigned), now), Err(SignatureError::Mismatch));
    }

    #[test]
    fn any_change_is_noticed() {
        let now = Utc::now();
        let url = target(&signer().get(&key(), Duration::from_secs(60), now, everything()).unwrap());
        let changes = [
            ("range=10-20", "range=10-21"),
            ("range=10-20", "range=0-20"),
            ("range=10-20", ""),
            ("text%2Fhtml", "text%2Fplain"),
            ("inline", "attachment"),
            ("uploads/1/", "uploads/2/"),
            ("uploads/1/", "uploads/../1/"),
            ("expires=", "expires=1"),
            ("/blobs/", "/other/"),
            ("sig=", "sig=0"),
            ("sig=", "range=0-1&sig="),
            ("sig=", "length=5&sig="),
        ];
        for (from, to) in changes {
            let changed = url.replacen(from, to, 1);
            assert_ne!(changed, url, "{from} is in the URL");
            assert!(signer().verify("GET", &changed, now).is_err(), "{changed}");
        }
    }

    #[test]
    fn limits_on_secret_and_life() {
        assert!(LocalSigner::new(Url::parse("http://a/").unwrap(), b"short").is_err());
        assert!(LocalSigner::new(Url::parse("mailto:a@b").unwrap(), b"0123456789abcdef").is_err());
        for seconds in [0, 7 * 24 * 3600 + 1] {
            assert!(signer().get(&key(), Duration::from_secs(seconds), Utc::now(), PresignGet::default()).is_err());
        }
    }

    proptest! {
        #[test]
        fn hostile_targets_are_refused_without_panic(target in "\\PC{0,200}", query in "[a-z0-9=&%+-]{0,80}") {
            prop_assert!(signer().verify("GET", &target, Utc::now()).is_err());
            let mixed = format!("/blobs/{target}?expires=9999999999&{query}");
            prop_assert!(signer().verify("GET", &mixed, Utc::now()).is_err());
        }
    }
}
