//! What an archive may cost, and the account of what it did cost.

use crate::error::{ArchiveError, Problem};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The caps. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Members of one archive, with those of the archives within it.
    pub entries: u64,
    /// One member, unpacked.
    pub member_bytes: u64,
    /// All members together, unpacked, with those of the archives within it.
    pub total_bytes: u64,
    /// Unpacked bytes per packed byte, ...
    pub ratio: u64,
    /// ... beyond this many unpacked bytes: small files that pack very well are no bombs.
    pub ratio_floor: u64,
    /// How many archives may lie around a member besides the outermost one. 0: archives within archives are refused.
    pub nesting_depth: u8,
    /// The largest dictionary (window, model) a decoder may ask for.
    pub dictionary_bytes: u64,
    /// The largest directory: what the names and headers of an archive may fill.
    pub directory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 100_000,
            member_bytes: 8 << 30,
            total_bytes: 64 << 30,
            ratio: 200,
            ratio_floor: 64 << 20,
            nesting_depth: 0,
            dictionary_bytes: 128 << 20,
            directory_bytes: 64 << 20,
        }
    }
}

/// What was produced, counted where the bytes come out of a decoder, whatever the archive declares. Clones share the
/// account, so that blocks read in parallel and nested archives spend from the same one.
///
/// A pass that is resumed decodes solid data again up to its ordinal and pays for it again: give it a new budget.
#[derive(Clone, Debug)]
pub struct Budget {
    account: Arc<Account>,
    depth: u8,
}

#[derive(Debug)]
struct Account {
    limits: Limits,
    produced: AtomicU64,
    entries: AtomicU64,
}

impl Budget {
    /// A fresh account for an outermost archive.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let account = Account { limits, produced: AtomicU64::new(0), entries: AtomicU64::new(0) };
        Self { account: Arc::new(account), depth: 0 }
    }

    /// The caps it was made with.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.account.limits
    }

    /// Bytes produced so far.
    #[must_use]
    pub fn produced(&self) -> u64 {
        self.account.produced.load(Ordering::Relaxed)
    }

    /// How many archives lie around the one this budget is for.
    #[must_use]
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// Whether an archive found among the members may be opened.
    #[must_use]
    pub fn may_nest(&self) -> bool {
        self.depth < self.account.limits.nesting_depth
    }

    /// The same account for an archive within this one.
    ///
    /// # Errors
    /// [`Problem::NestedArchive`] beyond [`Limits::nesting_depth`].
    pub fn nested(&self) -> Result<Budget, ArchiveError> {
        if self.may_nest() {
            return Ok(Self { account: Arc::clone(&self.account), depth: self.depth + 1 });
        }
        Err(ArchiveError::refused(Problem::NestedArchive, "an archive within an archive"))
    }

    /// Counts members.
    ///
    /// # Errors
    /// [`Problem::TooManyEntries`].
    pub fn enter(&self, members: u64) -> Result<(), ArchiveError> {
        let before = self.account.entries.fetch_add(members, Ordering::Relaxed);
        if before.saturating_add(members) <= self.account.limits.entries {
            return Ok(());
        }
        let detail = format!("more than {} members", self.account.limits.entries);
        Err(ArchiveError::refused(Problem::TooManyEntries, detail))
    }

    /// Counts bytes that came out of a decoder.
    ///
    /// # Errors
    /// [`Problem::ArchiveTooLarge`].
    pub fn produce(&self, bytes: u64) -> Result<(), ArchiveError> {
        let before = self.account.produced.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= self.account.limits.total_bytes {
            return Ok(());
        }
        let detail = format!("the members unpack to more than {} bytes", self.account.limits.total_bytes);
        Err(ArchiveError::refused(Problem::ArchiveTooLarge, detail))
    }
}
