//! WARC records of a capture: what went over plain HTTP as it was sent, what the browser loaded as
//! it gave it, revisits for bodies already held.

use crate::page::Page;
use chrono::{DateTime, SubsecRound, Utc};
use fonds_store::capture::{HeldPayload, PayloadRow};
use fonds_warc::digest::Sha256Digest;
use fonds_warc::http_head::{self, StoredBody};
use fonds_warc::record::{Body, Record, RecordId, RefersTo, Truncated};
use fonds_warc::{CdxjIndex, WarcError, WarcWriter, Written};
use fonds_web::browser::Resource;
use fonds_web::fetch::Hop;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::net::IpAddr;

/// Bodies below this are stored again: a revisit would save nothing and tie objects together.
const DEDUP_MIN: u64 = 1024;

/// The WARC's name within a package.
pub(crate) const WARC_NAME: &str = fonds_warc::wacz::WARC_NAME;

/// Bodies held elsewhere, by digest.
pub(crate) type Held = HashMap<[u8; 32], HeldPayload>;

/// What writing the records of one page came to.
#[derive(Default)]
pub(crate) struct PageRecords {
    /// First byte of the page's gzip members within the WARC.
    pub(crate) offset: u64,
    /// Bytes of all of them.
    pub(crate) length: u64,
    /// Records written.
    pub(crate) count: usize,
    /// Revisits among them.
    pub(crate) revisits: usize,
    /// Objects that the revisits refer to.
    pub(crate) originals: HashSet<String>,
    /// Bodies now held; `object` is filled in when the object has its name.
    pub(crate) payloads: Vec<PayloadRow>,
    /// Date of the page's own record.
    pub(crate) date: Option<DateTime<Utc>>,
}

/// Digests of the bodies of a page that may be held already.
pub(crate) fn digests(page: &Page) -> Vec<[u8; 32]> {
    let hops = page.fetched.hops.iter().filter(|h| h.body.len() >= DEDUP_MIN).map(|h| h.body_sha256);
    let resources = browser_resources(page)
        .filter_map(|r| r.body.as_ref())
        .filter(|b| b.len() as u64 >= DEDUP_MIN)
        .map(|b| Sha256::digest(b).into());
    hops.chain(resources).collect()
}

/// What the browser loaded itself over the wire; the document was given to it and is among the hops.
fn browser_resources(page: &Page) -> impl Iterator<Item = &Resource> {
    page.rendered()
        .into_iter()
        .flat_map(|r| &r.capture.resources)
        .filter(|r| !r.fulfilled && !r.from_cache && r.failed.is_none() && r.status.is_some())
}

/// Writes one WARC for one page or for a batch of them.
pub(crate) struct Records<'h, W: Write> {
    warc: WarcWriter<W>,
    index: CdxjIndex,
    held: &'h Held,
    /// Bodies written to this WARC.
    here: HashMap<[u8; 32], (RecordId, String, DateTime<Utc>)>,
}

impl<'h, W: Write> Records<'h, W> {
    /// Begins a WARC with its warcinfo record.
    pub(crate) fn begin(out: W, held: &'h Held) -> Result<Self, WarcError> {
        let mut warc = WarcWriter::new(out);
        let software = concat!("fonds ", env!("CARGO_PKG_VERSION"));
        let fields = [("software", software), ("format", "WARC File Format 1.1")];
        warc.write(Record::warcinfo(now(), Some(WARC_NAME), &fields))?;
        Ok(Self { warc, index: CdxjIndex::default(), held, here: HashMap::new() })
    }

    /// Ends the WARC: the output, its facts, its index.
    pub(crate) fn finish(self) -> Result<(W, fonds_warc::ContentFacts, CdxjIndex), WarcError> {
        let (out, facts) = self.warc.finish()?;
        Ok((out, facts, self.index))
    }

    /// Writes everything a page's capture exchanged.
    pub(crate) fn page(&mut self, page: &Page) -> Result<PageRecords, WarcError> {
        let mut records = PageRecords { offset: self.warc.offset(), ..PageRecords::default() };
        for hop in &page.fetched.hops {
            self.hop(hop, &mut records)?;
        }
        for resource in browser_resources(page) {
            self.resource(resource, &mut records)?;
        }
        records.length = self.warc.offset() - records.offset;
        Ok(records)
    }

    fn hop(&mut self, hop: &Hop, records: &mut PageRecords) -> Result<(), WarcError> {
        let stored = StoredBody::as_sent(hop.body.len());
        // An answer that is no HTTP has no head to store; what there is of it is in the error.
        let Ok(head) = http_head::response(&hop.response_head, stored) else { return Ok(()) };
        let exchange = Exchange {
            url: hop.url.as_str(),
            date: hop.started_at.trunc_subsecs(6),
            ip: Some(hop.remote_addr.ip()),
            head,
            digest: hop.body_sha256,
            len: hop.body.len(),
            truncated: hop.truncated.map(|t| match t.as_str() {
                "length" => Truncated::Length,
                "time" => Truncated::Time,
                "disconnect" => Truncated::Disconnect,
                _ => Truncated::Unspecified,
            }),
        };
        let written = match (hop.body.as_memory(), hop.body.as_path()) {
            (Some(bytes), _) => self.response(&exchange, Body::from(&bytes[..]), records)?,
            (None, Some(path)) => {
                let mut file = std::fs::File::open(path)?;
                self.response(&exchange, Body::file(&mut file)?, records)?
            }
            (None, None) => self.response(&exchange, Body::empty(), records)?,
        };
        records.date = Some(exchange.date);
        self.request(&exchange, &hop.request_head, &hop.request_body, written.id, records)
    }

    fn resource(&mut self, r: &Resource, records: &mut PageRecords) -> Result<(), WarcError> {
        let empty = bytes::Bytes::new();
        let body = r.body.as_ref().unwrap_or(&empty);
        let Ok(head) = http_head::response(&response_head(r), StoredBody::decoded(body.len() as u64)) else {
            return Ok(());
        };
        let exchange = Exchange {
            url: &r.url,
            date: r.started_at.trunc_subsecs(6),
            ip: r.remote_ip,
            head,
            digest: Sha256::digest(body).into(),
            len: body.len() as u64,
            // A body the browser would not hand out is not whole.
            truncated: (r.body.is_none() && r.body_error.is_some()).then_some(Truncated::Unspecified),
        };
        let written = self.response(&exchange, Body::from(&body[..]), records)?;
        let post = r.post_data.clone().unwrap_or_default();
        self.request(&exchange, &request_head(r), &post, written.id, records)
    }

    /// A response record, or a revisit when the body is held.
    fn response(
        &mut self,
        exchange: &Exchange<'_>,
        body: Body<'_>,
        records: &mut PageRecords,
    ) -> Result<Written, WarcError> {
        let digest = Sha256Digest::from_bytes(exchange.digest);
        let refers = self.original(exchange, records);
        let revisit = refers.is_some();
        let record = match refers {
            Some(refers) => Record::revisit(exchange.url, exchange.date, &exchange.head, digest, refers),
            None => Record::response(exchange.url, exchange.date, &exchange.head, body)
                .truncated(exchange.truncated)
                .expect_payload(digest),
        };
        let written = self.warc.write(record.ip(exchange.ip))?;
        self.index.extend(written.cdxj(WARC_NAME));
        records.count += 1;
        records.revisits += usize::from(revisit);
        if !revisit && exchange.len >= DEDUP_MIN && exchange.truncated.is_none() {
            self.here.insert(exchange.digest, (written.id, exchange.url.to_owned(), exchange.date));
            records.payloads.push(PayloadRow {
                sha256: exchange.digest,
                object: String::new(),
                record_id: written.id.to_string(),
                url: exchange.url.to_owned(),
                date: exchange.date,
                offset: written.offset,
                length: written.length,
            });
        }
        Ok(written)
    }

    /// Where the body of an exchange is held, if it is.
    fn original(&self, exchange: &Exchange<'_>, records: &mut PageRecords) -> Option<RefersTo> {
        if exchange.len < DEDUP_MIN {
            return None;
        }
        if let Some((id, url, date)) = self.here.get(&exchange.digest) {
            return Some(RefersTo { record_id: Some(*id), target_uri: url.clone(), date: *date });
        }
        let held = self.held.get(&exchange.digest)?;
        records.originals.insert(held.object.clone());
        // Judges that look at one file cannot find an id of another; replay goes by URI and date.
        Some(RefersTo { record_id: None, target_uri: held.url.clone(), date: held.date })
    }

    fn request(
        &mut self,
        exchange: &Exchange<'_>,
        raw: &[u8],
        body: &[u8],
        of: RecordId,
        records: &mut PageRecords,
    ) -> Result<(), WarcError> {
        let Ok(head) = http_head::request(raw, StoredBody::as_sent(body.len() as u64)) else { return Ok(()) };
        self.warc.write(Record::request(exchange.url, exchange.date, &head, body, of).ip(exchange.ip))?;
        records.count += 1;
        Ok(())
    }
}

/// The head as the browser had it, else rebuilt from its list of headers.
fn response_head(r: &Resource) -> Vec<u8> {
    if let Some(raw) = &r.response_head {
        return raw.clone().into_bytes();
    }
    let version = if r.protocol.as_deref() == Some("h2") { "HTTP/2" } else { "HTTP/1.1" };
    let line = format!("{version} {} {}", r.status.unwrap_or_default(), r.status_text);
    http_head::raw_head(line.trim_end(), r.response_headers.iter().map(|(n, v)| (n, v)))
}

/// The request rebuilt from its headers: a proxy stood between, so no raw bytes exist that the
/// origin saw as they were.
fn request_head(r: &Resource) -> Vec<u8> {
    let path = url::Url::parse(&r.url)
        .map(|u| u[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
        .unwrap_or_else(|_| "/".to_owned());
    let headers = r.request_headers.iter().filter(|(n, _)| !n.starts_with(':')).map(|(n, v)| (n, v));
    http_head::raw_head(&format!("{} {path} HTTP/1.1", r.method), headers)
}

/// One exchange on its way into the WARC.
struct Exchange<'a> {
    url: &'a str,
    date: DateTime<Utc>,
    ip: Option<IpAddr>,
    head: http_head::StoredHead,
    digest: [u8; 32],
    len: u64,
    truncated: Option<Truncated>,
}

/// The present, as exact as a WARC date.
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}
