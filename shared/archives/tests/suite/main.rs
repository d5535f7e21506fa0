//! Archives read as the import reads them.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../support/mod.rs"]
mod support;

mod codes;
mod corpora;
mod limits;
mod names;
mod solid;
mod tar;
mod zip_directory;
mod zip_members;
