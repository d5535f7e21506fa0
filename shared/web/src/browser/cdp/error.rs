use std::time::Duration;

/// Why a command has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CdpError {
    /// The browser process ended, or the pipe was closed.
    #[error("the browser is gone")]
    Gone,
    /// No answer in time.
    #[error("no answer to {method} within {limit:?}")]
    Timeout {
        /// The command.
        method: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// The browser answered with an error.
    #[error("{method} was refused: {message} ({code})")]
    Refused {
        /// The command.
        method: &'static str,
        /// The error number (JSON-RPC, and -32000 for most).
        code: i64,
        /// The browser's text.
        message: String,
    },
    /// The answer, or a parameter, has another shape than expected.
    #[error("{method} could not be read: {detail}")]
    Malformed {
        /// The command or event.
        method: &'static str,
        /// What the decoder said.
        detail: String,
    },
}

impl CdpError {
    /// Whether trying the same again cannot help.
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::Malformed { .. })
    }
}
