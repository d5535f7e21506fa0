//! What can go wrong in the browser, as stable codes.

use std::fmt;

use super::cdp::CdpError;

/// Why an output, or a whole capture, is missing. The text of [`CaptureCode::as_str`] is kept on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaptureCode {
    /// The output did not come within its time limit (a page whose scripts never yield, for one).
    ExtractorTimeout,
    /// The page's renderer process crashed.
    PageCrashed,
    /// The page closed itself.
    PageClosed,
    /// The browser process ended.
    BrowserGone,
    /// The output is larger than its limit.
    OutputTooLarge,
    /// The browser answered the command with an error; the detail has its text.
    BrowserRefused,
    /// There is no page to take the output from: the navigation failed.
    NavigationFailed,
    /// The caller cancelled.
    Cancelled,
}

impl CaptureCode {
    /// The stable text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExtractorTimeout => "EXTRACTOR_TIMEOUT",
            Self::PageCrashed => "PAGE_CRASHED",
            Self::PageClosed => "PAGE_CLOSED",
            Self::BrowserGone => "BROWSER_GONE",
            Self::OutputTooLarge => "OUTPUT_TOO_LARGE",
            Self::BrowserRefused => "BROWSER_REFUSED",
            Self::NavigationFailed => "NAVIGATION_FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Whether trying the same again is unlikely to help.
    pub const fn is_permanent(self) -> bool {
        matches!(self, Self::OutputTooLarge | Self::PageClosed)
    }
}

impl fmt::Display for CaptureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why one output is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct OutputError {
    /// The stable code.
    pub code: CaptureCode,
    /// For people.
    pub detail: String,
}

impl OutputError {
    /// An error of this code.
    pub fn new(code: CaptureCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl From<CdpError> for OutputError {
    fn from(error: CdpError) -> Self {
        let code = match &error {
            CdpError::Gone => CaptureCode::BrowserGone,
            CdpError::Timeout { .. } => CaptureCode::ExtractorTimeout,
            // The session is gone although the browser lives: its page is.
            CdpError::Refused { code: -32001, .. } => CaptureCode::PageClosed,
            CdpError::Refused { message, .. } if message.contains("Target crashed") => CaptureCode::PageCrashed,
            CdpError::Refused { .. } | CdpError::Malformed { .. } => CaptureCode::BrowserRefused,
        };
        Self::new(code, error.to_string())
    }
}

/// Why there is no browser, or no capture at all.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// No browser binary is installed where it was looked for.
    #[error("no browser found; looked at {0}")]
    Missing(String),
    /// The browser did not start.
    #[error("the browser did not start: {0}")]
    Launch(String),
    /// The browser ended before there was anything to keep.
    #[error("the browser is gone")]
    Gone,
    /// The caller cancelled before there was anything to keep.
    #[error("cancelled")]
    Cancelled,
    /// The browser could not open a page.
    #[error("the browser could not open a page: {0}")]
    Page(CdpError),
}

impl BrowserError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing(_) => "TOOL_MISSING",
            Self::Launch(_) => "BROWSER_LAUNCH_FAILED",
            Self::Gone => "BROWSER_GONE",
            Self::Cancelled => "CANCELLED",
            Self::Page(_) => "BROWSER_REFUSED",
        }
    }

    /// Whether trying the same again cannot help.
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::Missing(_))
    }
}

impl From<CdpError> for BrowserError {
    fn from(error: CdpError) -> Self {
        match error {
            CdpError::Gone => Self::Gone,
            other => Self::Page(other),
        }
    }
}
