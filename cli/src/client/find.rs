//! Finding a row by the beginning of its id. Ids are UUIDs of version 7, so their first characters
//! are a time; the rows of that time are listed and compared. Nothing grows with the collection.

use crate::client::Client;
use crate::failure::Failure;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

/// Fewer characters would be days of rows.
const SHORTEST: usize = 8;
/// Rows looked at; more begin alike only in a bulk submission, where more characters help.
const MOST: usize = 2000;

/// What an id named.
#[derive(Debug, Clone)]
pub enum Found {
    /// A crawl, as the API shows one.
    Crawl(Value),
    /// A snapshot, as the API shows one.
    Snapshot(Value),
}

impl Found {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        let (Found::Crawl(row) | Found::Snapshot(row)) = self;
        row.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// Its path in the API.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            Found::Crawl(_) => format!("/v1/crawls/{}", self.id()),
            Found::Snapshot(_) => format!("/v1/snapshots/{}", self.id()),
        }
    }
}

/// The beginning of an id: lower-case hex digits without dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Prefix(String);

impl Prefix {
    fn parse(text: &str) -> Result<Prefix, Failure> {
        let digits: String = text.trim().chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
        if digits.len() < SHORTEST || digits.len() > 32 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(Failure::usage(format!("{text:?} is no id"))
                .advise("Give an id as `fonds list` shows it, or its first eight or more characters."));
        }
        Ok(Prefix(digits))
    }

    fn is_whole(&self) -> bool {
        self.0.len() == 32
    }

    fn begins(&self, id: &str) -> bool {
        let mut digits = id.chars().filter(|c| *c != '-');
        self.0.chars().all(|c| digits.next() == Some(c))
    }

    /// The 8-4-4-4-12 form of a whole id.
    fn dashed(&self) -> String {
        let d = &self.0;
        format!("{}-{}-{}-{}-{}", &d[..8], &d[8..12], &d[12..16], &d[16..20], &d[20..])
    }

    /// When rows with such an id can have been made: RFC 9562 puts the milliseconds since 1970 into
    /// the first 48 bits. The database stamps with its own clock, so a minute is added on both sides.
    fn window(&self) -> Result<(String, String), Failure> {
        let bound = |fill: char| {
            let digits: String = self.0.chars().chain(std::iter::repeat(fill)).take(12).collect();
            let ms = i64::from_str_radix(&digits, 16).unwrap_or(i64::MAX);
            DateTime::<Utc>::from_timestamp_millis(ms)
        };
        let slack = TimeDelta::minutes(1);
        let text = |t: DateTime<Utc>| t.to_rfc3339_opts(SecondsFormat::Millis, true);
        match (bound('0'), bound('f')) {
            (Some(first), Some(last)) if last.timestamp() < 4_102_444_800 => {
                Ok((text(first - slack), text(last + slack)))
            }
            // Beyond the year 2100: not made by us.
            _ => Err(not_found(&self.0)),
        }
    }
}

fn not_found(id: &str) -> Failure {
    Failure::new("NOT_FOUND", format!("nothing has an id that begins with {id}"))
        .advise("`fonds list` and `fonds crawl list` show ids.")
}

/// The snapshot or crawl of this id or beginning of one.
///
/// # Errors
/// `NOT_FOUND`; `AMBIGUOUS_ID` when several begin like that.
pub async fn find(client: &Client, id: &str) -> Result<Found, Failure> {
    let prefix = Prefix::parse(id)?;
    let (snapshots, crawls) = tokio::join!(rows(client, "snapshots", &prefix), rows(client, "crawls", &prefix));
    let mut found: Vec<Found> = snapshots?.into_iter().map(Found::Snapshot).collect();
    found.extend(crawls?.into_iter().map(Found::Crawl));
    one(&prefix, found, Found::id)
}

/// The id of the crawl that begins like this.
///
/// # Errors
/// As [`find`].
pub async fn crawl_id(client: &Client, id: &str) -> Result<String, Failure> {
    let prefix = Prefix::parse(id)?;
    let found = rows(client, "crawls", &prefix).await?;
    let row = one(&prefix, found, row_id)?;
    Ok(row_id(&row).to_owned())
}

/// The snapshot that begins like this, with its results.
///
/// # Errors
/// As [`find`].
pub async fn snapshot(client: &Client, id: &str) -> Result<Value, Failure> {
    let prefix = Prefix::parse(id)?;
    let row = one(&prefix, rows(client, "snapshots", &prefix).await?, row_id)?;
    client.get(&format!("/v1/snapshots/{}", row_id(&row)), &[]).await
}

/// The id of the token that begins like this.
///
/// # Errors
/// As [`find`].
pub async fn token_id(client: &Client, id: &str) -> Result<String, Failure> {
    let prefix = Prefix::parse(id)?;
    let all = client.list("/v1/tokens", &[], MOST).await?;
    let row = one(&prefix, all.into_iter().filter(|row| prefix.begins(row_id(row))).collect(), row_id)?;
    Ok(row_id(&row).to_owned())
}

fn row_id(row: &Value) -> &str {
    row.get("id").and_then(Value::as_str).unwrap_or_default()
}

async fn rows(client: &Client, what: &str, prefix: &Prefix) -> Result<Vec<Value>, Failure> {
    if prefix.is_whole() {
        return match client.get(&format!("/v1/{what}/{}", prefix.dashed()), &[]).await {
            Ok(row) => Ok(vec![row]),
            Err(failure) if failure.code == "NOT_FOUND" => Ok(Vec::new()),
            Err(failure) => Err(failure),
        };
    }
    let (since, until) = prefix.window()?;
    let listed = client.list(&format!("/v1/{what}"), &[("since", since), ("until", until)], MOST).await?;
    Ok(listed.into_iter().filter(|row| prefix.begins(row_id(row))).collect())
}

fn one<T>(prefix: &Prefix, mut found: Vec<T>, id: impl Fn(&T) -> &str) -> Result<T, Failure> {
    if found.len() > 1 {
        let some: Vec<&str> = found.iter().take(5).map(&id).collect();
        let more = if found.len() > some.len() { ", ..." } else { "" };
        return Err(Failure::new(
            "AMBIGUOUS_ID",
            format!("{} begin with {}: {}{more}", found.len(), prefix.0, some.join(", ")),
        )
        .advise("Give more characters."));
    }
    found.pop().ok_or_else(|| not_found(&prefix.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_compared_without_dashes_and_case() {
        let id = "0192f0c1-2b3c-7d4e-8f90-123456789abc";
        for text in ["0192f0c1", "0192F0C1-2b", "0192f0c12b3c7d4e", id, " 0192f0c1 "] {
            assert!(Prefix::parse(text).expect("an id").begins(id), "{text}");
        }
        assert!(!Prefix::parse("0192f0c2").expect("an id").begins(id));
        assert_eq!(Prefix::parse(id).expect("an id").dashed(), id);
        for text in ["", "0192f0c", "0192f0cg", "https://x", &"0".repeat(33), "0192\u{661}0c1"] {
            assert_eq!(Prefix::parse(text).expect_err(text).code, "USAGE");
        }
    }

    #[test]
    fn the_window_holds_every_id_that_begins_so() {
        // 0x0192f0c12b3c ms is 2024-11-03T06:40:44.348Z.
        let (since, until) = Prefix::parse("0192f0c12b3c").expect("an id").window().expect("a time");
        assert_eq!((since.as_str(), until.as_str()), ("2024-11-03T06:39:44.348Z", "2024-11-03T06:41:44.348Z"));
        let (since, until) = Prefix::parse("0192f0c1").expect("an id").window().expect("a time");
        assert!(since.as_str() < "2024-11-03T06:40:44.348Z" && until.as_str() > "2024-11-03T06:40:44.348Z");
        assert_eq!(Prefix::parse("ffffffff").expect("an id").window().expect_err("no time").code, "NOT_FOUND");
    }

    #[test]
    fn several_are_named() {
        let prefix = Prefix::parse("01234567").expect("an id");
        let ids: Vec<String> = (0..7).map(|i| format!("01234567-{i}")).collect();
        let failure = one(&prefix, ids.clone(), String::as_str).expect_err("several");
        assert_eq!(failure.code, "AMBIGUOUS_ID");
        assert!(failure.detail.starts_with("7 begin") && failure.detail.ends_with("..."), "{failure}");
        assert_eq!(one(&prefix, vec![ids[0].clone()], String::as_str).expect("one"), ids[0]);
        assert_eq!(one(&prefix, vec![], String::as_str).expect_err("none").code, "NOT_FOUND");
    }
}
