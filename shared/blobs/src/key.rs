//! Names of blobs. The layout of the bucket is written here and nowhere else.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Longest key in bytes (S3's limit for an object key).
pub const MAX_KEY_BYTES: usize = 1024;
/// Longest part between two slashes in bytes (what file systems allow a name).
pub const MAX_SEGMENT_BYTES: usize = 255;

/// A key that is safe on every backend: relative, `/`-separated, without empty, `.` or `..` parts, control
/// characters or backslashes, at most [`MAX_KEY_BYTES`] long with parts of at most [`MAX_SEGMENT_BYTES`].
///
/// | constructor | key | mutable |
/// | --- | --- | --- |
/// | [`cas`](Self::cas) | `cas/sha256/ab/cd/<hex>` | never |
/// | [`snapshot_wacz`](Self::snapshot_wacz) | `snapshots/<crawl>/<snapshot>/<lease>.wacz` | never |
/// | [`batch_wacz`](Self::batch_wacz) | `snapshots/<crawl>/batch/<lease>.wacz` | never |
/// | [`crawl_file`](Self::crawl_file) | `crawls/<crawl>/index.jsonl` and others | re-written by a re-seal |
/// | [`upload`](Self::upload) | `uploads/<id>/<name>` | never after its presigned PUT |
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey(String);

/// Why a string is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The empty string, or an empty part (`a//b`, a leading or trailing slash).
    #[error("blob key has an empty part (leading, trailing or doubled slash)")]
    EmptyPart,
    /// Longer than [`MAX_KEY_BYTES`], or a part longer than [`MAX_SEGMENT_BYTES`].
    #[error("blob key or one of its parts is too long")]
    TooLong,
    /// A part that walks the tree.
    #[error("blob key has a part that is `.` or `..`")]
    Traversal,
    /// NUL, another control character, or a backslash.
    #[error("blob key has a control character or a backslash")]
    Character,
    /// Not 64 hexadecimal digits.
    #[error("not a SHA-256 in hexadecimal")]
    Digest,
}

/// The files a sealed crawl has beside its captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrawlFile {
    /// `index.jsonl`: one line a snapshot.
    IndexJsonl,
    /// `index.json`: the crawl and its counts.
    IndexJson,
    /// `index.html`: the same for people.
    IndexHtml,
    /// `collection.json`: the multi-WACZ collection for replay.
    Collection,
}

impl CrawlFile {
    /// Every file a seal writes.
    pub const ALL: [Self; 4] = [Self::IndexJsonl, Self::IndexJson, Self::IndexHtml, Self::Collection];

    /// The file's name within `crawls/<crawl>/`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IndexJsonl => "index.jsonl",
            Self::IndexJson => "index.json",
            Self::IndexHtml => "index.html",
            Self::Collection => "collection.json",
        }
    }
}

impl BlobKey {
    /// Content-addressed: two writers of the same bytes write the same key.
    #[must_use]
    pub fn cas(sha256: &[u8; 32]) -> Self {
        let hex = hex::encode(sha256);
        Self(format!("cas/sha256/{}/{}/{hex}", &hex[..2], &hex[2..4]))
    }

    /// [`cas`](Self::cas) from a digest in hexadecimal, either case.
    ///
    /// # Errors
    /// [`KeyError::Digest`] when it is not 64 hexadecimal digits.
    pub fn cas_hex(sha256: &str) -> Result<Self, KeyError> {
        let mut digest = [0; 32];
        hex::decode_to_slice(sha256, &mut digest).map_err(|_| KeyError::Digest)?;
        Ok(Self::cas(&digest))
    }

    /// The capture one attempt (named by its lease token) made of a snapshot.
    #[must_use]
    pub fn snapshot_wacz(crawl: Uuid, snapshot: Uuid, lease: Uuid) -> Self {
        Self(format!("snapshots/{crawl}/{snapshot}/{lease}.wacz"))
    }

    /// The package shared by the plain captures of one batch of messages.
    #[must_use]
    pub fn batch_wacz(crawl: Uuid, lease: Uuid) -> Self {
        Self(format!("snapshots/{crawl}/batch/{lease}.wacz"))
    }

    /// A file written when the crawl is sealed.
    #[must_use]
    pub fn crawl_file(crawl: Uuid, file: CrawlFile) -> Self {
        Self(format!("crawls/{crawl}/{}", file.name()))
    }

    /// What a user uploads. `name` is a file name or a relative path; it is refused, not repaired.
    ///
    /// # Errors
    /// [`KeyError`] when the name cannot be part of a key.
    pub fn upload(id: Uuid, name: &str) -> Result<Self, KeyError> {
        Self::parse(format!("uploads/{id}/{name}"))
    }

    /// Any key, checked. For keys read back from rows, listings and requests.
    ///
    /// # Errors
    /// [`KeyError`] with the first rule it breaks.
    pub fn parse(key: impl Into<String>) -> Result<Self, KeyError> {
        let key = key.into();
        if key.len() > MAX_KEY_BYTES {
            return Err(KeyError::TooLong);
        }
        if key.chars().any(|c| c.is_control() || c == '\\') {
            return Err(KeyError::Character);
        }
        for part in key.split('/') {
            match part {
                "" => return Err(KeyError::EmptyPart),
                "." | ".." => return Err(KeyError::Traversal),
                _ if part.len() > MAX_SEGMENT_BYTES => return Err(KeyError::TooLong),
                _ => {}
            }
        }
        Ok(Self(key))
    }

    /// The key as stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What follows the last slash.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The SHA-256 the key promises, for content-addressed keys.
    #[must_use]
    pub fn sha256(&self) -> Option<[u8; 32]> {
        let rest = self.0.strip_prefix("cas/sha256/")?;
        let mut digest = [0; 32];
        hex::decode_to_slice(rest.rsplit('/').next()?, &mut digest).ok()?;
        (Self::cas(&digest).0 == self.0).then_some(digest)
    }

    /// The media type by the key's extension, `application/octet-stream` when it has none. What a writer passes
    /// to `put_if_absent` wins over it.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        content_type_of(self.file_name())
    }

    /// The `Cache-Control` value the object is stored with. Always private: an archive may hold what only its owner
    /// may see.
    #[must_use]
    pub fn cache_control(&self) -> &'static str {
        match self.0.split('/').next() {
            Some("cas" | "snapshots" | "warcs") => "private, max-age=31536000, immutable",
            Some("uploads") => "private, no-store",
            _ => "private, no-cache",
        }
    }
}

/// By extension only; the forms fonds itself writes plus what people upload most.
fn content_type_of(name: &str) -> &'static str {
    const TYPES: &[(&str, &str)] = &[
        (".wacz", "application/wacz+zip"),
        (".warc.gz", "application/warc"),
        (".warc", "application/warc"),
        (".jsonl", "application/jsonl"),
        (".json", "application/json"),
        (".html", "text/html; charset=utf-8"),
        (".htm", "text/html; charset=utf-8"),
        (".txt", "text/plain; charset=utf-8"),
        (".md", "text/markdown; charset=utf-8"),
        (".csv", "text/csv; charset=utf-8"),
        (".xml", "application/xml"),
        (".pdf", "application/pdf"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".png", "image/png"),
        (".gif", "image/gif"),
        (".webp", "image/webp"),
        (".avif", "image/avif"),
        (".jxl", "image/jxl"),
        (".heic", "image/heic"),
        (".svg", "image/svg+xml"),
        (".tif", "image/tiff"),
        (".tiff", "image/tiff"),
        (".mp4", "video/mp4"),
        (".webm", "video/webm"),
        (".mkv", "video/x-matroska"),
        (".mov", "video/quicktime"),
        (".mp3", "audio/mpeg"),
        (".zip", "application/zip"),
        (".cbz", "application/vnd.comicbook+zip"),
        (".cbr", "application/vnd.comicbook-rar"),
        (".7z", "application/x-7z-compressed"),
        (".rar", "application/vnd.rar"),
        (".tar", "application/x-tar"),
        (".gz", "application/gzip"),
        (".zst", "application/zstd"),
    ];
    let tail: String = name.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
    let tail = tail.to_ascii_lowercase();
    TYPES.iter().find(|(extension, _)| tail.ends_with(extension)).map_or("application/octet-stream", |(_, mime)| mime)
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobKey({})", self.0)
    }
}

impl AsRef<str> for BlobKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for BlobKey {
    type Err = KeyError;

    fn from_str(key: &str) -> Result<Self, KeyError> {
        Self::parse(key)
    }
}

impl TryFrom<String> for BlobKey {
    type Error = KeyError;

    fn try_from(key: String) -> Result<Self, KeyError> {
        Self::parse(key)
    }
}

impl From<BlobKey> for String {
    fn from(key: BlobKey) -> Self {
        key.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_layout_is_what_rows_already_name() {
        let (a, b, c) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let cases = [
            (BlobKey::cas_hex(hex).unwrap(), format!("cas/sha256/e3/b0/{hex}"), "application/octet-stream"),
            (BlobKey::snapshot_wacz(a, b, c), format!("snapshots/{a}/{b}/{c}.wacz"), "application/wacz+zip"),
            (BlobKey::batch_wacz(a, b), format!("snapshots/{a}/batch/{b}.wacz"), "application/wacz+zip"),
            (BlobKey::crawl_file(a, CrawlFile::IndexJsonl), format!("crawls/{a}/index.jsonl"), "application/jsonl"),
            (BlobKey::crawl_file(a, CrawlFile::Collection), format!("crawls/{a}/collection.json"), "application/json"),
            (
                BlobKey::upload(a, "Ünïcode name.CBZ").unwrap(),
                format!("uploads/{a}/Ünïcode name.CBZ"),
                "application/vnd.comicbook+zip",
            ),
        ];
        for (key, expected, mime) in cases {
            assert_eq!(key.as_str(), expected);
            assert_eq!(key.content_type(), mime, "{expected}");
            assert_eq!(BlobKey::parse(expected.clone()).unwrap(), key);
        }
        let upper = BlobKey::cas_hex(&hex.to_uppercase()).unwrap();
        assert_eq!(hex::encode(upper.sha256().unwrap()), hex);
        assert!(upper.cache_control().contains("immutable"));
        assert_eq!(BlobKey::parse(format!("cas/sha256/00/00/{hex}")).unwrap().sha256(), None);
    }

    #[test]
    fn hostile_keys_are_refused() {
        let long = "a/".repeat(511) + "abc";
        let cases = [
            ("", KeyError::EmptyPart),
            ("/etc/passwd", KeyError::EmptyPart),
            ("a//b", KeyError::EmptyPart),
            ("a/", KeyError::EmptyPart),
            ("..", KeyError::Traversal),
            ("a/../../b", KeyError::Traversal),
            ("a/./b", KeyError::Traversal),
            ("a\0b", KeyError::Character),
            ("a\nb", KeyError::Character),
            ("a\u{85}b", KeyError::Character),
            ("a\\..\\b", KeyError::Character),
            (long.as_str(), KeyError::TooLong),
        ];
        for (key, expected) in cases {
            assert_eq!(BlobKey::parse(key), Err(expected), "{key:?}");
        }
        assert_eq!(BlobKey::parse("x".repeat(256)), Err(KeyError::TooLong));
        assert!(BlobKey::parse("x".repeat(255)).is_ok());
        assert!(BlobKey::parse("a/..b/c.../d").is_ok());
        assert_eq!(BlobKey::upload(Uuid::nil(), "../../x"), Err(KeyError::Traversal));
        assert_eq!(BlobKey::upload(Uuid::nil(), ""), Err(KeyError::EmptyPart));
        assert_eq!(BlobKey::cas_hex("zz"), Err(KeyError::Digest));
    }

    proptest! {
        #[test]
        fn an_accepted_key_stays_below_its_root(key in "\\PC{0,40}(/(\\.{0,3}|\\PC{0,20})){0,6}") {
            if let Ok(parsed) = BlobKey::parse(key.clone()) {
                let path = std::path::Path::new("/root").join(parsed.as_str());
                prop_assert!(path.components().all(|part| !matches!(part, std::path::Component::ParentDir)));
                prop_assert_eq!(path.strip_prefix("/root").unwrap().to_str(), Some(key.as_str()));
            }
        }
    }
}
