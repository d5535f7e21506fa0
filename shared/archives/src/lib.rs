//! Archives read safely for the media import: zip and cbz, tar (plain, gzip, bzip2, xz, zstd), 7z, rar and cbr.
//!
//! Pure: bytes in, values out. Nothing here opens a file, and no name found in an archive ever reaches a file system.
//!
//! * [`sniff()`] says what a file is, by its first bytes,
//! * [`zip`] is for archives that lie in an object store: [`zip::DirectoryReader`] asks for byte ranges and ends in a
//!   [`zip::Directory`], [`zip::plan_chunks`] cuts it into ranged reads, [`zip::read_member`] reads one member,
//! * [`members`] is for archives that are read in one pass over a local file: [`members::ArchiveReader`] visits the
//!   members in physical order, resumes at an ordinal, and tells which blocks may be read in parallel,
//! * [`names`] decodes names and judges them,
//! * [`limits`] says how much an archive may cost; a [`Budget`] counts what was really produced, across nested archives,
//! * [`error`] has every reason for which an archive or a member is refused, with its stable code.
//!
//! Memory is bounded whatever the input claims: nothing is allocated from a declared size, directories and dictionaries
//! have caps, members stream.
#![warn(missing_docs)]

mod codec;
pub mod error;
pub mod limits;
pub mod members;
pub mod names;
pub mod sniff;
mod stream;
pub mod zip;

pub use error::{ArchiveError, Problem};
pub use limits::{Budget, Limits};
pub use members::{ArchiveReader, Block, Body, Extracted, Flow, Kind, Member, Pass};
pub use names::{Name, NameEncoding};
pub use sniff::{ArchiveKind, SNIFF_BYTES, sniff, sniff_named};
