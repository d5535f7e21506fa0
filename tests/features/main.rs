//! What a user would notice: submit, drain, look.

mod crawl;
mod limits;
mod pages;
mod recovery;
