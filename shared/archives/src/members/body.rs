//! The body of a member, as a visitor sees it.

use super::{Extracted, Kind, Member};
use crate::error::{MemberError, Problem};
use crate::limits::Budget;
use crate::stream::{Expect, Watch, copy};
use std::io::{self, Read, Write};

/// The body of the member being visited. What the visitor leaves unread is passed over.
pub struct Body<'a> {
    input: &'a mut dyn Read,
    member: &'a Member,
    expect: Expect,
    budget: &'a Budget,
    watch: &'a Watch,
    begun: bool,
}

impl<'a> Body<'a> {
    /// `input` has the decoded bytes, paid for.
    pub(super) fn new(
        input: &'a mut dyn Read,
        member: &'a Member,
        expect: Expect,
        budget: &'a Budget,
        watch: &'a Watch,
    ) -> Self {
        Self { input, member, expect, budget, watch, begun: false }
    }

    fn refusal(&self) -> Option<MemberError> {
        match (self.member.problem, self.member.kind) {
            (Some(problem), _) => Some(MemberError::refused(problem, "refused by what the archive says of it")),
            (None, Kind::File) => None,
            (None, _) => Some(MemberError::refused(Problem::NotAFile, "not a file")),
        }
    }

    /// Writes the whole body to `sink`, checked against declared size and checksum, and paid from the budget.
    ///
    /// The sink gets nothing before the first [`SNIFF_BYTES`](crate::SNIFF_BYTES) were looked at (system files,
    /// archives); what it got before an error must be thrown away.
    ///
    /// # Errors
    /// The member's [`Problem`], found before or while reading.
    pub fn copy_to(&mut self, sink: &mut dyn Write) -> Result<Extracted, MemberError> {
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        if self.begun {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "a part of the member was read before");
            return Err(MemberError::Read(error));
        }
        self.begun = true;
        copy(self.input, self.expect, &self.member.name.text, self.budget, sink, self.watch)
    }
}

/// The body as a stream, for callers that want its beginning only: bounded and paid, but neither its size nor its checksum
/// is compared. An error that lies in the archive carries a [`MemberError`] inside.
impl Read for Body<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if let Some(refusal) = self.refusal() {
            return Err(io::Error::other(refusal));
        }
        self.begun = true;
        self.input.read(buf).map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => e,
            _ => io::Error::other(self.watch.judge(e)),
        })
    }
}

impl std::fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("member", self.member).field("begun", &self.begun).finish_non_exhaustive()
    }
}
