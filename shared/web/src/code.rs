//! The stable codes of everything that can go wrong between us and a web server.

use std::fmt;

/// Why a fetch did not give the whole answer. The text of [`FetchCode::as_str`] is kept on rows and
/// shown by the API, so it never changes meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FetchCode {
    /// Not an http(s) URL with a host, or not expressible on the wire.
    UrlInvalid,
    /// The egress guard refused the address or port.
    EgressRefused,
    /// The name has no address, or the resolver failed or timed out.
    DnsFailed,
    /// Every address refused or dropped the connection.
    ConnectFailed,
    /// No address accepted the connection in time.
    ConnectTimeout,
    /// The TLS handshake or certificate check failed.
    TlsFailed,
    /// The TLS handshake did not finish in time.
    TlsTimeout,
    /// Connected, but no response head came in time.
    HeaderTimeout,
    /// What came is not HTTP.
    HttpMalformed,
    /// The response head is larger than the limit.
    HeaderTooLarge,
    /// The body is larger than the cap; what fits is kept.
    BodyTooLarge,
    /// The body stood still for longer than the idle limit; what came is kept.
    BodyTimeout,
    /// The body dripped below the minimum rate; what came is kept.
    SlowBody,
    /// The peer closed or reset the connection before the end; what came is kept.
    ConnectionClosed,
    /// The whole fetch ran out of time; what came is kept.
    FetchTimeout,
    /// The same URL was reached twice with nothing changed in between.
    RedirectLoop,
    /// More redirects than the limit.
    TooManyRedirects,
    /// A redirect status without a Location.
    RedirectNoLocation,
    /// A Location that is no URL.
    RedirectBadLocation,
    /// A Location whose scheme is not http or https.
    RedirectBadScheme,
    /// A Content-Encoding that did not decode to the end.
    ContentEncodingBroken,
    /// Our own disk or runtime failed.
    LocalIo,
}

impl FetchCode {
    /// Every code, for documentation and tests.
    pub const ALL: [Self; 22] = [
        Self::UrlInvalid,
        Self::EgressRefused,
        Self::DnsFailed,
        Self::ConnectFailed,
        Self::ConnectTimeout,
        Self::TlsFailed,
        Self::TlsTimeout,
        Self::HeaderTimeout,
        Self::HttpMalformed,
        Self::HeaderTooLarge,
        Self::BodyTooLarge,
        Self::BodyTimeout,
        Self::SlowBody,
        Self::ConnectionClosed,
        Self::FetchTimeout,
        Self::RedirectLoop,
        Self::TooManyRedirects,
        Self::RedirectNoLocation,
        Self::RedirectBadLocation,
        Self::RedirectBadScheme,
        Self::ContentEncodingBroken,
        Self::LocalIo,
    ];

    /// The stable text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UrlInvalid => "URL_INVALID",
            Self::EgressRefused => "EGRESS_REFUSED",
            Self::DnsFailed => "DNS_FAILED",
            Self::ConnectFailed => "CONNECT_FAILED",
            Self::ConnectTimeout => "CONNECT_TIMEOUT",
            Self::TlsFailed => "TLS_FAILED",
            Self::TlsTimeout => "TLS_TIMEOUT",
            Self::HeaderTimeout => "HEADER_TIMEOUT",
            Self::HttpMalformed => "HTTP_MALFORMED",
            Self::HeaderTooLarge => "HEADER_TOO_LARGE",
            Self::BodyTooLarge => "BODY_TOO_LARGE",
            Self::BodyTimeout => "BODY_TIMEOUT",
            Self::SlowBody => "SLOW_BODY",
            Self::ConnectionClosed => "CONNECTION_CLOSED",
            Self::FetchTimeout => "FETCH_TIMEOUT",
            Self::RedirectLoop => "REDIRECT_LOOP",
            Self::TooManyRedirects => "TOO_MANY_REDIRECTS",
            Self::RedirectNoLocation => "REDIRECT_NO_LOCATION",
            Self::RedirectBadLocation => "REDIRECT_BAD_LOCATION",
            Self::RedirectBadScheme => "REDIRECT_BAD_SCHEME",
            Self::ContentEncodingBroken => "CONTENT_ENCODING_BROKEN",
            Self::LocalIo => "LOCAL_IO",
        }
    }

    /// Whether asking again cannot help.
    pub const fn is_permanent(self) -> bool {
        !matches!(
            self,
            Self::DnsFailed
                | Self::ConnectFailed
                | Self::ConnectTimeout
                | Self::TlsTimeout
                | Self::HeaderTimeout
                | Self::BodyTimeout
                | Self::SlowBody
                | Self::ConnectionClosed
                | Self::FetchTimeout
                | Self::LocalIo
        )
    }

    /// The code of this text, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }
}

impl fmt::Display for FetchCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
