use std::net::IpAddr;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

use super::Fault;
use crate::record::{RecordId, RecordType};

/// The header of a record as read: every field as text, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHeader {
    version: String,
    fields: Vec<(String, String)>,
}

impl RecordHeader {
    /// Parses the lines from `WARC/1.1` to before the empty line.
    pub(super) fn parse(block: &[u8]) -> (Self, Vec<Fault>) {
        let mut faults = Vec::new();
        let mut bare = false;
        let mut lines = block.split_inclusive(|&b| b == b'\n').map(|line| {
            bare |= line.ends_with(b"\n") && !line.ends_with(b"\r\n");
            line.trim_ascii_end()
        });
        let version = text(lines.next().unwrap_or_default());
        let mut fields: Vec<(String, String)> = Vec::new();
        let mut bad_line = false;
        for line in lines.filter(|line| !line.is_empty()) {
            // Continuation lines are allowed by WARC 1.0 and 1.1 (section 4).
            if matches!(line.first(), Some(b' ' | b'\t')) {
                match fields.last_mut() {
                    Some((_, value)) => {
                        value.push(' ');
                        value.push_str(&text(line.trim_ascii()));
                    }
                    None => bad_line = true,
                }
                continue;
            }
            match line.iter().position(|&b| b == b':') {
                Some(colon) if colon > 0 => {
                    fields.push((text(line[..colon].trim_ascii()), text(line[colon + 1..].trim_ascii())));
                }
                _ => bad_line = true,
            }
        }
        if !["WARC/1.1", "WARC/1.0", "WARC/0.18", "WARC/0.17"].contains(&version.as_str()) {
            faults.push(Fault::UnknownVersion(version.chars().take(40).collect()));
        }
        if bad_line {
            faults.push(Fault::BadHeaderLine);
        }
        if bare {
            faults.push(Fault::BareLineFeed);
        }
        let header = Self { version, fields };
        header.check(&mut faults);
        (header, faults)
    }

    /// What the standard requires (WARC 1.1, section 5).
    fn check(&self, faults: &mut Vec<Fault>) {
        for name in ["WARC-Record-ID", "WARC-Date", "WARC-Type", "Content-Length"] {
            match self.all(name).count() {
                0 => faults.push(Fault::MissingField(name)),
                1 => {}
                _ => faults.push(Fault::RepeatedField(name)),
            }
        }
        if self.get("WARC-Record-ID").is_some_and(|id| !id.starts_with('<') || !id.ends_with('>') || id.contains(' ')) {
            faults.push(Fault::BadField("WARC-Record-ID"));
        }
        if self.get("WARC-Date").is_some() && self.date().is_none() {
            faults.push(Fault::BadField("WARC-Date"));
        }
        if self.get("Content-Length").is_some() && self.content_length().is_none() {
            faults.push(Fault::BadField("Content-Length"));
        }
        if self.get("WARC-IP-Address").is_some_and(|ip| ip.parse::<IpAddr>().is_err()) {
            faults.push(Fault::BadField("WARC-IP-Address"));
        }
        let kind = self.get("WARC-Type").unwrap_or_default();
        if !kind.is_empty() && self.record_type().is_none() && kind != "continuation" {
            faults.push(Fault::UnknownType(kind.chars().take(40).collect()));
        }
        match self.get("WARC-Target-URI") {
            None if matches!(kind, "response" | "request" | "revisit" | "resource" | "conversion" | "continuation") => {
                faults.push(Fault::MissingField("WARC-Target-URI"));
            }
            None => {}
            Some(uri) => {
                if uri.starts_with('<') && uri.ends_with('>') {
                    faults.push(Fault::BracketedTargetUri);
                }
                if uri.contains(' ') {
                    faults.push(Fault::SpaceInTargetUri);
                }
            }
        }
        if kind == "revisit" && self.get("WARC-Profile").is_none() {
            faults.push(Fault::MissingField("WARC-Profile"));
        }
    }

    /// `WARC/1.1` or whatever the first line says.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All fields in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of a field, by name in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a field, by name in any case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// `WARC-Type`, when it is one this crate writes.
    #[must_use]
    pub fn record_type(&self) -> Option<RecordType> {
        self.get("WARC-Type").and_then(RecordType::parse)
    }

    /// `WARC-Record-ID`, when it is a UUID.
    #[must_use]
    pub fn record_id(&self) -> Option<RecordId> {
        self.get("WARC-Record-ID").and_then(RecordId::parse)
    }

    /// `WARC-Date`; also without zone or with a date alone, as older writers left it.
    #[must_use]
    pub fn date(&self) -> Option<DateTime<Utc>> {
        self.get("WARC-Date").and_then(parse_date)
    }

    /// `WARC-Target-URI` without angle brackets, spaces as `%20`.
    #[must_use]
    pub fn target_uri(&self) -> Option<String> {
        self.get("WARC-Target-URI").map(plain_uri)
    }

    /// `Content-Length` of the record.
    #[must_use]
    pub fn content_length(&self) -> Option<u64> {
        let value = self.get("Content-Length")?;
        value.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse().ok()).flatten()
    }

    /// Whether the block is an HTTP message.
    #[must_use]
    pub fn is_http(&self) -> bool {
        matches!(self.record_type(), Some(RecordType::Response | RecordType::Request | RecordType::Revisit))
            && match self.get("Content-Type") {
                Some(value) => {
                    let value = value.to_ascii_lowercase();
                    value.starts_with("application/http") || (!value.contains('/') && self.has_http_target())
                }
                None => self.has_http_target(),
            }
    }

    fn has_http_target(&self) -> bool {
        self.target_uri().is_some_and(|uri| {
            let scheme = uri.split(':').next().unwrap_or_default();
            scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
        })
    }
}

/// A URI field without angle brackets and without spaces.
pub(crate) fn plain_uri(value: &str) -> String {
    let inner = value.strip_prefix('<').and_then(|v| v.strip_suffix('>')).unwrap_or(value);
    inner.replace(' ', "%20")
}

/// Parses the date forms met in WARC files.
pub(crate) fn parse_date(value: &str) -> Option<DateTime<Utc>> {
    if let Ok(date) = DateTime::parse_from_rfc3339(value) {
        return Some(date.with_timezone(&Utc));
    }
    NaiveDateTime::parse_from_str(value, "%Y-%m-%dT%H:%M:%S%.f")
        .ok()
        .or_else(|| NaiveDateTime::parse_from_str(value, "%Y-%m-%dT%H:%MZ").ok())
        .or_else(|| NaiveDate::parse_from_str(value, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0))
        .map(|naive| naive.and_utc())
}

/// UTF-8, or Latin-1 where it is not.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&b| char::from(b)).collect(),
    }
}
