//! What can be known of a page from its bytes.
//!
//! Everything here is a pure function: bytes and text go in, values come out. Nothing reads a file, opens a connection
//! or asks the time, and nothing panics, overflows the stack or grows without bound, whatever the input; limits are
//! arguments or documented constants, and what was left out for one is said in the result.
//!
//! - [`urls`]: identity of URLs, allow and deny lists, scope, traps.
//! - [`inputs`]: submitted lists, exports and feeds, as URLs with titles, tags and dates.
//! - [`html`]: title, metadata and links of a page in one pass; [`charset`]: its text.
//! - [`text`]: plain text, Markdown and the article.
//! - [`parse_urls`]: the links of any fetched document.
//! - [`singlefile`]: a page and what it shows as one file.
//! - [`sniff`], [`hashes`], [`search_text`]: media types, digests, text for an index.
//! - [`codes`]: the codes with which any of these refuse or limit something.
#![warn(missing_docs)]

pub mod charset;
pub mod codes;
pub mod hashes;
pub mod html;
pub mod inputs;
pub mod parse_urls;
pub mod search_text;
pub mod singlefile;
pub mod sniff;
pub mod text;
pub mod tokens;
pub mod urls;
