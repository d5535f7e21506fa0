//! A page and what it takes to show it, in one HTML file.
//!
//! Images, styles, fonts, icons and media become `data:` URIs, style sheets become `style` elements, frames become
//! `srcdoc`; links become absolute. What was not captured keeps its absolute address and is named in the result. The
//! whole is bounded: one resource used a hundred times is not written a hundred times, and the file has a cap.

mod page;
mod resources;
mod style;
mod tag;

use bytes::Bytes;
use resources::Resources;
use serde::{Deserialize, Serialize};
use url::Url;

/// How a page is inlined.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keep `script` elements and event handlers. A rendered page shows the same without them, and safely.
    pub keep_scripts: bool,
    /// The largest file, in bytes. Once it is reached, resources keep their addresses.
    pub max_output: usize,
    /// The largest resource inlined, in bytes.
    pub max_resource: usize,
    /// How often one resource of more than a few kilobytes is written out.
    pub max_uses: usize,
    /// How deep frames within frames are inlined.
    pub max_frame_depth: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { keep_scripts: false, max_output: 64 << 20, max_resource: 16 << 20, max_uses: 8, max_frame_depth: 3 }
    }
}

/// A resource that is not in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Absolute.
    pub url: String,
    /// One of [`crate::codes`].
    pub code: String,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleFile {
    /// The page, to be stored as UTF-8: it says so of itself.
    pub html: String,
    /// How many references were inlined.
    pub inlined: usize,
    /// What was left out, each URL and reason once, the first so many.
    pub left_out: Vec<LeftOut>,
    /// How many were left out.
    pub left_out_total: usize,
}

/// Inlines the page `html` (the final DOM, or the bytes as sent, decoded) whose address is `url`. `lookup` gives the
/// media type and the body of a resource that was captured; it is asked with absolute URLs without fragment.
pub fn inline<F>(html: &str, url: &Url, lookup: &F, options: &Options) -> SingleFile
where
    F: Fn(&Url) -> Option<(String, Bytes)>,
{
    let mut resources = Resources::new(lookup, *options, html.len());
    let html = page::rewrite(html, url, &mut resources, 0);
    SingleFile {
        html,
        inlined: resources.inlined,
        left_out_total: resources.left_out_total,
        left_out: resources.left_out,
    }
}

#[cfg(test)]
mod tests;
