//! zip by byte ranges: the directory, the plan, the members.
//!
//! ```text
//! DirectoryReader::new(total_len, &limits)      loop { wants() -> range; fetch it; feed(offset, bytes) }
//!   -> finish() -> Directory { entries }        entries whose `problem` is set are refused, the others can be read
//! plan_chunks(entries, &limits) -> Vec<Chunk>   one ranged read each
//! ChunkReader::new(chunk.bytes.start, read)     .read_member(entry, budget, sink) in the order of chunk.ordinals
//! ```

mod central;
mod chunks;
mod directory;
mod end_record;
mod entry;
mod member;

pub use chunks::{Chunk, ChunkLimits, plan_chunks};
pub use directory::{Directory, DirectoryReader, read_directory};
pub use entry::{Entry, Method};
pub(crate) use member::open;
pub use member::{ChunkReader, read_member};
