use super::CdxjEntry;

/// A sorted index as text, for look-ups by binary search. Nothing is parsed but the lines that match.
#[derive(Debug, Clone, Copy)]
pub struct CdxjText<'a> {
    text: &'a str,
}

impl<'a> CdxjText<'a> {
    /// Wraps the text of an index (`indexes/index.cdx`, or one decompressed block of `index.cdx.gz`).
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// All captures of a URL, oldest first. Lines that do not parse are left out.
    pub fn find(&self, url: &str) -> impl Iterator<Item = CdxjEntry> + use<'a> {
        self.find_key(&crate::surt::surt(url))
    }

    /// All captures under a SURT key, oldest first.
    pub fn find_key(&self, urlkey: &str) -> impl Iterator<Item = CdxjEntry> + use<'a> {
        let prefix = format!("{urlkey} ");
        let start = self.lower_bound(prefix.as_bytes());
        self.text[start..]
            .lines()
            .take_while(move |line| line.starts_with(&prefix))
            .filter_map(|line| CdxjEntry::parse(line).ok())
    }

    /// The capture of a URL nearest in time to a timestamp of up to 14 digits; of two equally near ones the earlier.
    #[must_use]
    pub fn closest(&self, url: &str, timestamp: &str) -> Option<CdxjEntry> {
        let wanted = seconds(timestamp);
        self.find(url).min_by_key(|entry| seconds(&entry.timestamp).abs_diff(wanted))
    }

    /// Offset of the first line that is not less than `key`.
    fn lower_bound(&self, key: &[u8]) -> usize {
        let bytes = self.text.as_bytes();
        let (mut low, mut high) = (0, bytes.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let start = bytes[low..middle].iter().rposition(|&b| b == b'\n').map_or(low, |at| low + at + 1);
            let end = bytes[middle..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| middle + at + 1);
            if &bytes[start..end] < key {
                low = end;
            } else {
                high = start;
            }
        }
        low
    }
}

/// Seconds since 1970 of a timestamp whose missing digits are filled up to its earliest moment.
fn seconds(timestamp: &str) -> i64 {
    const EARLIEST: &str = "19700101000000";
    let digits: String = timestamp.chars().filter(char::is_ascii_digit).take(14).collect();
    let full = format!("{digits}{}", EARLIEST.get(digits.len()..).unwrap_or_default());
    chrono::NaiveDateTime::parse_from_str(&full, "%Y%m%d%H%M%S").map_or(0, |date| date.and_utc().timestamp())
}
