//! Keyset paging: `limit` and `cursor`.

use crate::problem::Problem;
use uuid::Uuid;

/// Rows of a page unless asked otherwise.
const DEFAULT: u32 = 50;
/// Rows of a page at most.
const MAX: u32 = 200;

/// Where a page begins and how long it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paging {
    pub(crate) before: Option<Uuid>,
    pub(crate) limit: usize,
}

impl Paging {
    pub(crate) fn new(limit: Option<u32>, cursor: Option<&str>) -> Result<Paging, Problem> {
        Ok(Paging { limit: bounded("limit", limit, DEFAULT, MAX)? as usize, before: cursor.map(read).transpose()? })
    }

    /// One row more than the page has tells whether there is a next one.
    pub(crate) fn fetch(&self) -> i64 {
        i64::try_from(self.limit).unwrap_or(i64::MAX - 1) + 1
    }
}

fn read(cursor: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(cursor).map_err(|_| Problem::field("cursor", "take it from `next` of the page before"))
}

/// A number between one and `max`.
pub(crate) fn bounded(field: &str, given: Option<u32>, default: u32, max: u32) -> Result<u32, Problem> {
    let n = given.unwrap_or(default);
    if (1..=max).contains(&n) { Ok(n) } else { Err(Problem::field(field, format!("must be between 1 and {max}"))) }
}
