//! Doorbells: messages that say "there is work", never what the work is.
//!
//! The work is a row; a message names it. So a lost message costs time (the sweep rings again), a doubled one an empty
//! claim, and the order of messages means nothing. [`Bell`] is what rings: [`SqsBell`] across processes, [`LocalBell`]
//! within one, [`RecordingBell`] in tests. This is the only crate that names `aws-sdk-sqs`.
//!
//! Kinds are plain names here (`snapshot`, `crawl-seal`, ...): what they mean is the domain's.
#![warn(missing_docs)]

mod bell;
mod local;
mod message;
mod sqs;

pub use bell::{Bell, BellError, NoBell, RecordingBell, Ring};
pub use local::{Ear, LocalBell};
pub use message::{DecodeError, MAX_BODY_BYTES, MAX_KIND_BYTES, Message, VERSION, encode_message, parse_message};
pub use sqs::admin::{DeadLetters, Depth, QueueSpec, Received, SqsQueues};
pub use sqs::bell::{QueueNames, SqsBell};
pub use sqs::{Keys, MAX_DELAY, SqsConfig, SqsError};
