//! Stable error codes. A code is kept on the row and shown by the API, the page and the cli; its
//! sentence says what happened and what to do about it.

use serde::{Serialize, Serializer};
use std::fmt;

/// A stable code such as `EGRESS_REFUSED`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(&'static str);

macro_rules! codes {
    ($($name:ident, $advice:literal;)+) => {
        impl ErrorCode {
            $(#[doc = $advice] pub const $name: ErrorCode = ErrorCode(stringify!($name));)+
        }
        /// Every code with the sentence shown to people.
        pub const CODES: &[(ErrorCode, &str)] = &[$((ErrorCode::$name, $advice)),+];
    };
}

codes! {
    // executor
    LEASE_EXPIRED, "The function that held this work died or hung; it was tried as often as allowed. Retry it, and look at the host's memory if it happens again.";
    STALLED, "The work showed no progress for longer than its kind allows. Retry it.";
    NO_PROGRESS, "The work went on for another slice without moving its cursor. This is a defect of fonds; the run's cursor tells where.";
    PHASE_TIMEOUT, "The work took longer than its whole phase may. Split it, or raise the limit.";
    SLICE_TIMEOUT, "One slice of the work did not end within its budget. Retry it.";
    PANICKED, "The task hit a defect of fonds; the error text tells where.";
    BAD_INPUT, "The run's stored input could not be read by this version of fonds.";
    INTERNAL, "Something failed that has no code of its own; the error text tells what.";
    CANCELLED, "The crawl was cancelled.";
    GONE, "The row this work belonged to was deleted.";
    // input
    INVALID_URL, "Not a URL that can be archived: only http and https with a host are.";
    URL_TOO_LONG, "The URL is longer than 65,535 bytes.";
    INVALID_PATTERN, "An allow or deny pattern is not a valid regular expression.";
    NO_URLS, "The input holds no URL that can be archived.";
    ALREADY_ARCHIVED, "Archived before, and only_new was asked for.";
    DENIED_BY_RULES, "An allow or deny list keeps this URL out.";
    OUT_OF_SCOPE, "The URL lies outside the crawl's scope.";
    PATH_TRAP, "The path repeats itself as endless relative links do.";
    LIMIT_REACHED, "A limit of the crawl keeps this URL out; raise it to go on.";
    ROBOTS_DENIED, "robots.txt of the host disallows this URL and the crawl obeys it.";
    // network
    EGRESS_REFUSED, "The address is private, loopback, link-local or otherwise not public. Start fonds with --allow-private or FONDS_EGRESS_ALLOW if it is yours.";
    DNS_FAILED, "The host name did not resolve.";
    CONNECT_FAILED, "The host refused the connection or is not reachable.";
    URL_INVALID, "The URL cannot be requested.";
    HEADER_TIMEOUT, "The server took the request and did not answer in time.";
    TLS_TIMEOUT, "The secure connection was not made in time.";
    LOCAL_IO, "This machine failed (disk or memory); `fonds doctor` may tell why.";
    REDIRECT_BAD_LOCATION, "A redirect leads to something that is not a URL.";
    REDIRECT_BAD_SCHEME, "A redirect leads to something other than http or https.";
    REDIRECT_NO_LOCATION, "A redirect says nowhere to go.";
    CONNECT_TIMEOUT, "The host did not answer the connection in time.";
    TLS_FAILED, "No secure connection could be made.";
    HTTP_MALFORMED, "The server's answer is not HTTP.";
    HEADER_TOO_LARGE, "The server's header is larger than the limit.";
    BODY_TOO_LARGE, "The body is larger than the limit; what came until then is kept.";
    BODY_TIMEOUT, "The body did not end in time; what came until then is kept.";
    SLOW_BODY, "The body came too slowly; what came until then is kept.";
    CONNECTION_CLOSED, "The server closed the connection before the answer was whole.";
    FETCH_TIMEOUT, "The server did not answer in time.";
    REDIRECT_LOOP, "The redirects lead in a circle.";
    TOO_MANY_REDIRECTS, "More redirects than allowed.";
    CONTENT_ENCODING_BROKEN, "The body does not decode as its Content-Encoding says; it is kept as sent.";
    RATE_LIMITED, "The host asked to be left alone for longer than the crawl waits.";
    HOST_UNREACHABLE, "The host failed too often in this crawl; its remaining pages were not tried.";
    HTTP_ERROR, "The server answered with an error status; its answer is archived all the same.";
    // capture
    EXTRACTOR_TIMEOUT, "The extractor did not finish within its timeout; raise it for this crawl.";
    EXTRACTOR_GONE, "The extractor does not exist in this version.";
    TOOL_MISSING, "A tool this extractor needs is not installed; `fonds doctor` names it.";
    BROWSER_GONE, "The browser ended during the capture.";
    BROWSER_LAUNCH_FAILED, "The browser could not be started; `fonds doctor` tells why.";
    BROWSER_REFUSED, "The browser refused what was asked of it; the error text tells what.";
    PAGE_CLOSED, "The page closed itself.";
    PAGE_CRASHED, "The page crashed its browser tab.";
    NAVIGATION_FAILED, "The browser could not load the page.";
    OUTPUT_TOO_LARGE, "The output is larger than the limit.";
    PAGE_TOO_LARGE, "The page is too large to be rendered; its bytes are archived.";
    TOO_DEEP, "The document is nested too deeply for this extractor.";
    SNAPSHOT_TOO_LARGE, "The snapshot reached snapshot_max_size; the remaining extractors were not run.";
    NOT_APPLICABLE, "The extractor does not apply to what was fetched.";
    DEPENDENCY_FAILED, "An output this extractor needs was not made.";
    // storage
    BLOB_UNAVAILABLE, "The blob store could not be reached.";
    BLOB_MISSING, "The stored object is missing.";
    // import
    NOT_AN_ARCHIVE, "The file is none of the archives fonds reads: zip, tar (plain, gzip, bzip2, xz, zstd), 7z, rar 4 and 5.";
    ENCRYPTED, "Encrypted; fonds keeps no passwords for archives. Decrypt it and import it again.";
    MULTIVOLUME, "One part of an archive in several volumes. Join the parts into one archive and import that.";
    TRUNCATED, "The archive ends before its data does. Get a whole copy and import it again.";
    CORRUPT_DIRECTORY, "The archive's directory contradicts itself, so nothing in it can be trusted.";
    CORRUPT_MEMBER, "This member's header or data is damaged; the rest of the archive is imported.";
    SIZE_MISMATCH, "The member's size is not what the archive declares.";
    CRC_MISMATCH, "The member's checksum is not what the archive declares.";
    UNSAFE_PATH, "The member's name is absolute, climbs out by .., holds NUL or is a device's name.";
    NOT_A_FILE, "The member is a link, a device or a pipe; only files are imported.";
    SYSTEM_FILE, "Data of the system that packed the archive (__MACOSX, AppleDouble, .DS_Store, Thumbs.db); nothing is lost by leaving it out.";
    OVERLAPPING, "The member shares its bytes with another one, as decompression bombs do.";
    UNSUPPORTED_METHOD, "The member is packed by a method fonds does not read, or needs a larger dictionary than allowed. Pack it again with a usual one.";
    RATIO_EXCEEDED, "The data grows more than archive_max_ratio allows, as decompression bombs do.";
    MEMBER_TOO_LARGE, "The member is larger than archive_max_member_size.";
    ARCHIVE_TOO_LARGE, "The archive unpacks to more than archive_max_size; what came until then is kept.";
    TOO_MANY_ENTRIES, "The archive has more members than archive_max_entries, or names that fill more than its share of memory.";
    BLOCK_TOO_LARGE, "A solid block is too large to be unpacked within one slice. Import it with the one-process host, or pack it again with smaller blocks.";
    NESTED_ARCHIVE, "An archive within an archive. Import it by itself, or raise archive_nesting_depth.";
}

impl ErrorCode {
    /// The code of this name; codes that other crates carry as text come in here. A name that is
    /// not in the table becomes `INTERNAL`, so that nothing unlisted is ever shown.
    #[must_use]
    pub fn named(name: &str) -> ErrorCode {
        CODES.iter().map(|(c, _)| *c).find(|c| c.0 == name).unwrap_or(ErrorCode::INTERNAL)
    }

    /// The text stored in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// What happened and what to do, for people.
    #[must_use]
    pub fn advice(self) -> &'static str {
        CODES.iter().find(|(c, _)| *c == self).map_or("", |(_, a)| a)
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        for (i, (code, advice)) in CODES.iter().enumerate() {
            assert!(advice.ends_with('.'), "{code}");
            assert!(CODES[i + 1..].iter().all(|(c, _)| c != code), "{code} twice");
            assert_eq!(ErrorCode::named(code.as_str()), *code);
        }
        assert_eq!(ErrorCode::named("NO_SUCH"), ErrorCode::INTERNAL);
    }
}
