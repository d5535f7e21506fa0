//! WACZ 1.1.1 (<https://specs.webrecorder.net/wacz/1.1.1/>): a zip with the WARC, its index, the page list and every artifact.

mod check;
mod package;
mod reader;
mod writer;

pub use check::WaczFault;
pub use package::{CollectionItem, Package, PackageMeta, Page, Resource, collection_json};
pub use reader::{EntryInfo, WaczReader};
pub use writer::{Content, EntryPlace, FinishedWacz, WaczWriter, artifact_path};

/// The version written.
pub const WACZ_VERSION: &str = "1.1.1";
/// What the WARC inside is called, and how index lines name it.
pub const WARC_NAME: &str = "data.warc.gz";

/// Why a package could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaczError {
    /// Input or output failed.
    #[error("WACZ input or output failed")]
    Io(#[from] std::io::Error),
    /// A path that is absolute, has `..`, empty or odd parts, or is used twice.
    #[error("the path {0:?} cannot be used in a package")]
    BadPath(String),
    /// A part the format requires was not added.
    #[error("the package has no {0}")]
    Incomplete(&'static str),
    /// An earlier entry failed midway.
    #[error("an earlier entry failed to be written")]
    Poisoned,
    /// The file is no zip.
    #[error("not a zip file: {0}")]
    NotZip(String),
    /// The package is not sound.
    #[error("the package is refused: {0}")]
    Refused(WaczFault),
    /// There is no such entry.
    #[error("no entry {0:?}")]
    NoEntry(String),
    /// The entry is larger than the caller allows.
    #[error("the entry {path:?} has more than {limit} bytes")]
    TooLarge {
        /// Its path.
        path: String,
        /// The caller's limit, bytes.
        limit: u64,
    },
}

impl WaczError {
    /// Whether the same input is bound to fail again.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Io(e) => matches!(e.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof),
            _ => true,
        }
    }
}
