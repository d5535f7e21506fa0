//! What a command ends with when it does not end well: an exit code for scripts, a code and a
//! sentence for people, and what to do about it.

use serde_json::json;
use std::fmt;

/// Exit codes; 0 is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Something failed and was named.
    Failed = 1,
    /// The command was used wrongly.
    Usage = 2,
    /// The service cannot be reached.
    Unreachable = 3,
    /// Interrupted; the work goes on in the service.
    Interrupted = 130,
}

/// A command's failure.
#[derive(Debug, Clone)]
pub struct Failure {
    /// How the process exits.
    pub exit: Exit,
    /// A stable code such as `NO_HOST`, or the service's own.
    pub code: String,
    /// What happened.
    pub detail: String,
    /// What to do; empty when the detail says it.
    pub advice: String,
}

impl Failure {
    /// Something failed.
    pub fn new(code: &str, detail: impl Into<String>) -> Failure {
        Failure { exit: Exit::Failed, code: code.to_owned(), detail: detail.into(), advice: String::new() }
    }

    /// The command was used wrongly.
    pub fn usage(detail: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, ..Failure::new("USAGE", detail) }
    }

    /// The service cannot be reached.
    pub fn unreachable(code: &str, detail: impl Into<String>) -> Failure {
        Failure { exit: Exit::Unreachable, ..Failure::new(code, detail) }
    }

    /// A file or folder of this machine could not be used.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Failure {
        Failure::new("IO", format!("{what}: {error}"))
    }

    /// Adds what to do.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Failure {
        self.advice = advice.into();
        self
    }

    /// Another exit code.
    #[must_use]
    pub fn exit(mut self, exit: Exit) -> Failure {
        self.exit = exit;
        self
    }

    /// The failure as one JSON line, for `--json`.
    #[must_use]
    pub fn json(&self) -> String {
        json!({"error": {"code": self.code, "detail": self.detail, "advice": self.advice}}).to_string()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fonds: {}: {}", self.code, self.detail)?;
        if !self.advice.is_empty() {
            write!(f, "\n       {}", self.advice)?;
        }
        Ok(())
    }
}

impl From<fonds_store::StoreError> for Failure {
    fn from(error: fonds_store::StoreError) -> Failure {
        let advice = "See `fonds doctor`, and logs/postgres.log in the data folder.";
        match error {
            fonds_store::StoreError::Migrate(_) => Failure::new("MIGRATION_FAILED", error.to_string())
                .advise("The database may be newer than this program: use the newer one."),
            _ => Failure::unreachable("DATABASE_UNAVAILABLE", error.to_string()).advise(advice),
        }
    }
}

impl From<fonds_blobs::BlobError> for Failure {
    fn from(error: fonds_blobs::BlobError) -> Failure {
        Failure::new("BLOB_UNAVAILABLE", error.to_string())
            .advise("Check the place given with --blobs and its credentials.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_code_detail_and_advice() {
        let failure = Failure::unreachable("NO_HOST", "nothing runs").advise("Start it.");
        assert_eq!(failure.to_string(), "fonds: NO_HOST: nothing runs\n       Start it.");
        assert_eq!(failure.exit as u8, 3);
        assert!(failure.json().contains("\"NO_HOST\""));
        assert_eq!(Failure::usage("x").to_string(), "fonds: USAGE: x");
    }
}
