//! What was captured, and what of it still fits.

use super::{LeftOut, Options};
use crate::codes;
use crate::sniff;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::collections::{HashMap, HashSet};
use url::Url;

/// Resources up to this size may be repeated as often as the cap allows.
const SMALL: usize = 4 << 10;
const MAX_LEFT_OUT: usize = 1_000;

type Lookup<'f> = &'f dyn Fn(&Url) -> Option<(String, Bytes)>;

pub(super) struct Resources<'f> {
    lookup: Lookup<'f>,
    pub(super) options: Options,
    /// Bytes of the file so far, near enough.
    spent: usize,
    uses: HashMap<String, usize>,
    pub(super) inlined: usize,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) left_out_total: usize,
    noted: HashSet<(String, &'static str)>,
    /// The style sheets and frames that are being inlined, so that none holds itself.
    pub(super) open: Vec<String>,
}

impl<'f> Resources<'f> {
    pub(super) fn new(lookup: Lookup<'f>, options: Options, spent: usize) -> Self {
        Resources {
            lookup,
            options,
            spent,
            uses: HashMap::new(),
            inlined: 0,
            left_out: Vec::new(),
            left_out_total: 0,
            noted: HashSet::new(),
            open: Vec::new(),
        }
    }

    pub(super) fn leave_out(&mut self, url: &Url, code: &'static str) {
        if self.noted.len() < MAX_LEFT_OUT * 4 && !self.noted.insert((url.to_string(), code)) {
            return;
        }
        self.left_out_total += 1;
        if self.left_out.len() < MAX_LEFT_OUT {
            self.left_out.push(LeftOut { url: url.to_string(), code: code.to_owned() });
        }
    }

    /// Whether it was captured, without taking it.
    pub(super) fn has(&self, url: &Url) -> bool {
        (self.lookup)(&without_fragment(url)).is_some()
    }

    /// The resource, if it was captured and may be written out once more. `code` in the result says why not.
    pub(super) fn take(&mut self, url: &Url) -> Option<(String, Bytes)> {
        let bare = without_fragment(url);
        let Some((mime, body)) = (self.lookup)(&bare) else {
            self.leave_out(&bare, codes::RESOURCE_MISSING);
            return None;
        };
        if body.len() > self.options.max_resource {
            self.leave_out(&bare, codes::RESOURCE_TOO_LARGE);
            return None;
        }
        let encoded = body.len() / 3 * 4 + 64;
        if self.spent.saturating_add(encoded) > self.options.max_output {
            self.leave_out(&bare, codes::OUTPUT_FULL);
            return None;
        }
        let uses = self.uses.entry(bare.to_string()).or_default();
        *uses += 1;
        if body.len() > SMALL && *uses > self.options.max_uses {
            self.leave_out(&bare, codes::RESOURCE_REPEATED);
            return None;
        }
        self.spent += encoded;
        self.inlined += 1;
        Some((mime, body))
    }

    /// The resource as a `data:` URI with the URL's fragment (SVG sprites are addressed by it).
    pub(super) fn data_uri(&mut self, url: &Url) -> Option<String> {
        let (mime, body) = self.take(url)?;
        let mut out = data_uri(&sniff::sniff(&body, Some(&mime)).mime, &body);
        if let Some(fragment) = url.fragment() {
            out.push('#');
            out.push_str(fragment);
        }
        Some(out)
    }

    /// Whether text that replaces a resource, with that resource's own resources in it, has room; it is taken if so.
    pub(super) fn fits(&mut self, bytes: usize) -> bool {
        let total = self.spent.saturating_add(bytes);
        let fits = total <= self.options.max_output;
        if fits {
            self.spent = total;
        }
        fits
    }
}

pub(super) fn without_fragment(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    url
}

pub(super) fn data_uri(mime: &str, body: &[u8]) -> String {
    let mut out = String::with_capacity(mime.len() + 16 + body.len() / 3 * 4 + 4);
    out.push_str("data:");
    out.push_str(mime);
    out.push_str(";base64,");
    STANDARD.encode_string(body, &mut out);
    out
}
