//! The body of a message: `{"run":"<uuid>","kind":"snapshot","v":1}`.

use serde::Deserialize;
use uuid::Uuid;

/// The version this code writes and the only one it reads: a later one may mean something else.
pub const VERSION: u64 = 1;
/// Longest body read, in bytes. Ours have about 100.
pub const MAX_BODY_BYTES: usize = 4096;
/// Longest name of a kind, in bytes (an SQS queue name has 80 characters, some of them prefix).
pub const MAX_KIND_BYTES: usize = 64;

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The run to claim.
    pub run: Uuid,
    /// Its kind, lower-case letters, digits and dashes.
    pub kind: String,
}

/// Why a body is no message. None of them heals: the message belongs into the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// More than [`MAX_BODY_BYTES`].
    #[error("message body is too long")]
    TooLong,
    /// Not a JSON object with the fields of a message.
    #[error("message body is malformed: {0}")]
    Malformed(String),
    /// Another version than [`VERSION`].
    #[error("message version {0} is not understood")]
    Version(u64),
    /// The kind is no name.
    #[error("message kind is not a name")]
    Kind,
}

impl DecodeError {
    /// Always: the same body decodes to the same error.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        true
    }
}

/// Read first, so that a later version may change every other field.
#[derive(Deserialize)]
struct Envelope {
    v: u64,
}

#[derive(Deserialize)]
struct Body {
    run: Uuid,
    kind: String,
}

/// Writes a body.
#[must_use]
pub fn encode_message(run: Uuid, kind: &str) -> String {
    serde_json::json!({ "run": run, "kind": kind, "v": VERSION }).to_string()
}

/// Reads a body. Fields it does not know are ignored.
///
/// # Errors
/// [`DecodeError`] when it is not a message of [`VERSION`].
pub fn parse_message(body: &str) -> Result<Message, DecodeError> {
    if body.len() > MAX_BODY_BYTES {
        return Err(DecodeError::TooLong);
    }
    let malformed = |error: serde_json::Error| DecodeError::Malformed(error.to_string());
    let Envelope { v } = serde_json::from_str(body).map_err(malformed)?;
    if v != VERSION {
        return Err(DecodeError::Version(v));
    }
    let Body { run, kind } = serde_json::from_str(body).map_err(malformed)?;
    if !is_kind(&kind) {
        return Err(DecodeError::Kind);
    }
    Ok(Message { run, kind })
}

/// What may become part of a queue's name.
pub(crate) fn is_kind(kind: &str) -> bool {
    (1..=MAX_KIND_BYTES).contains(&kind.len())
        && kind.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RUN: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0001);

    #[test]
    fn what_is_written_is_read() {
        let body = encode_message(RUN, "crawl-seal");
        assert_eq!(parse_message(&body), Ok(Message { run: RUN, kind: "crawl-seal".into() }));
        assert!(body.len() < 110, "{body}");
    }

    #[test]
    fn bodies_of_others_are_read_or_refused() {
        let run = RUN.to_string();
        type Expected = Result<(), fn(&DecodeError) -> bool>;
        let cases: [(String, Expected); 11] = [
            (format!(r#"{{"run":"{run}","kind":"sweep","v":1,"trace":"x","more":[1]}}"#), Ok(())),
            (format!(r#" {{ "v": 1, "kind": "sweep", "run": "{}" }} "#, run.to_uppercase()), Ok(())),
            (format!(r#"{{"run":"{run}","kind":"sweep","v":2}}"#), Err(|e| *e == DecodeError::Version(2))),
            (r#"{"v":7,"work":"elsewhere"}"#.into(), Err(|e| *e == DecodeError::Version(7))),
            (format!(r#"{{"run":"{run}","kind":"sweep"}}"#), Err(|e| matches!(e, DecodeError::Malformed(_)))),
            (format!(r#"{{"run":"{run}","kind":"sweep","v":"1"}}"#), Err(|e| matches!(e, DecodeError::Malformed(_)))),
            (r#"{"run":"7","kind":"sweep","v":1}"#.into(), Err(|e| matches!(e, DecodeError::Malformed(_)))),
            (format!(r#"{{"run":"{run}","kind":"","v":1}}"#), Err(|e| *e == DecodeError::Kind)),
            (format!(r#"{{"run":"{run}","kind":"../x","v":1}}"#), Err(|e| *e == DecodeError::Kind)),
            (String::new(), Err(|e| matches!(e, DecodeError::Malformed(_)))),
            (format!("{}{}", "[".repeat(3000), "]".repeat(3000)), Err(|e| *e == DecodeError::TooLong)),
        ];
        for (body, expected) in cases {
            match (parse_message(&body), expected) {
                (Ok(message), Ok(())) => assert_eq!(message, Message { run: RUN, kind: "sweep".into() }),
                (Err(error), Err(is)) => assert!(is(&error), "{body}: {error}"),
                (got, _) => panic!("{body}: {got:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn hostile_bodies_do_not_panic(body in "\\PC{0,200}", nesting in 0_usize..2000) {
            prop_assert!(parse_message(&body).is_err());
            prop_assert!(parse_message(&"[".repeat(nesting)).is_err());
        }
    }
}
