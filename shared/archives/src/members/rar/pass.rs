//! A pass: runs of the decoder, and where they have come to.

use super::pipe::{Event, Feed, FeedState, Pipe, Reply, decode};
use super::{Rar, options};
use crate::error::{ArchiveError, Problem};
use crate::limits::Budget;
use crate::members::{Body, Flow, Kind, Member, Pass, Visitor, announce, check_spent};
use crate::stream::{Expect, Packed, Paid, Ratio, Watch};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How many pieces may wait to be read.
const WAITING: usize = 4;
/// How often a pass over independent members begins again behind one that ends it.
const RESTARTS: usize = 64;

struct RarPass<'a, 'v> {
    members: &'a [Member],
    range: &'a Range<u32>,
    budget: &'a Budget,
    watch: &'a Watch,
    visitor: &'a mut Visitor<'v>,
    solid: bool,
    /// The first ordinal not yet announced (or passed over).
    next: u32,
    stopped: bool,
    /// Why nothing more can be read.
    dead: Option<Problem>,
}

/// The two channels, at the reader's end.
struct Line {
    heard: Receiver<Event>,
    replies: SyncSender<Reply>,
    /// Tells the decoder that the rest of an independent member is not wanted.
    unwanted: Arc<AtomicBool>,
}

/// One pass over the members of the range.
pub(in crate::members) fn visit(
    format: &Rar,
    members: &[Member],
    range: &Range<u32>,
    budget: &Budget,
    visitor: &mut Visitor<'_>,
) -> Result<Pass, ArchiveError> {
    let Rar { archive, watch, solid } = format;
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    let end = range.end.min(count);
    let range = &(range.start.min(end)..end);
    let next = range.start;
    let mut pass = RarPass { members, range, budget, watch, visitor, solid: *solid, next, stopped: false, dead: None };
    for _ in 0..RESTARTS {
        if pass.next >= range.end || pass.stopped || (pass.solid && pass.dead.is_some()) {
            break;
        }
        pass.run(archive)?;
    }
    pass.give_up();
    if pass.stopped { Ok(Pass::Stopped) } else { Ok(Pass::Complete) }
}

impl RarPass<'_, '_> {
    /// One run of the decoder, up to the end or to what ends it.
    fn run(&mut self, archive: &rars::Archive) -> Result<(), ArchiveError> {
        let (events, heard) = sync_channel(WAITING);
        let (replies, told) = sync_channel(1);
        let unwanted = Arc::new(AtomicBool::new(false));
        let pipe = Pipe::new(events, Arc::clone(&unwanted), self.solid);
        let line = Line { heard, replies, unwanted };
        let options = options(self.budget.limits());
        let before = self.next;
        std::thread::scope(|scope| {
            let decoder = scope.spawn(move || decode(archive, options, pipe, &told));
            let result = self.listen(&line);
            // The decoder ends when nobody listens.
            drop(line);
            if decoder.join().is_err() {
                self.dead = Some(Problem::CorruptMember);
            }
            result
        })?;
        if let Some(fault) = self.watch.take_fault() {
            return Err(ArchiveError::Read(fault));
        }
        if self.next == before && !self.solid {
            // A run that came nowhere would do so again.
            self.dead = self.dead.or(Some(Problem::CorruptMember));
            self.announce_next();
        }
        Ok(())
    }

    fn listen(&mut self, line: &Line) -> Result<(), ArchiveError> {
        let mut ratio = Ratio::new(Packed::Watched(self.watch.clone()));
        let mut waiting = false;
        let mut members = self.members.iter();
        while waiting || self.begins(line) {
            let Some(member) = members.next().filter(|member| member.ordinal < self.range.end) else {
                return Ok(());
            };
            waiting = false;
            let decodes = self.decodes(member);
            let reply = if decodes { Reply::Extract } else { self.pass_over(member) };
            // Before the reply, which is what sets the decoder going.
            line.unwanted.store(false, Ordering::Release);
            if matches!(reply, Reply::Stop) || line.replies.send(reply).is_err() {
                return Ok(());
            }
            if decodes {
                if !self.solid {
                    ratio = Ratio::new(Packed::Known(member.compressed.unwrap_or_default()));
                }
                match self.decode(member, line, &mut ratio)? {
                    FeedState::Done(problem) => {
                        self.dead = problem;
                        return Ok(());
                    }
                    state => waiting = state == FeedState::Next,
                }
            }
            if self.stopped || self.next >= self.range.end {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits until the decoder is at a member; `false` when it is done.
    fn begins(&mut self, line: &Line) -> bool {
        loop {
            match line.heard.recv() {
                Ok(Event::Begin) => return true,
                Ok(Event::Data(_) | Event::Failed(_)) => {}
                Ok(Event::Fatal(error)) => {
                    self.dead = error.problem();
                    return false;
                }
                Err(_) => return false,
            }
        }
    }

    fn wanted(&self, member: &Member) -> bool {
        self.range.contains(&member.ordinal) && member.ordinal >= self.next
    }

    /// Of a solid archive everything that can be is decoded, of others what is wanted and sound.
    fn decodes(&self, member: &Member) -> bool {
        let possible = member.kind == Kind::File && member.problem != Some(Problem::Encrypted);
        possible && (self.solid || (self.wanted(member) && member.problem.is_none()))
    }

    fn pass_over(&mut self, member: &Member) -> Reply {
        if self.solid && member.kind == Kind::File {
            // Encrypted, and all behind it needs it.
            self.dead = Some(Problem::Encrypted);
            return Reply::Stop;
        }
        if self.wanted(member) {
            self.next = member.ordinal;
            self.announce_next();
        }
        if self.stopped { Reply::Stop } else { Reply::Skip }
    }

    /// A member whose bytes come; what became of the line.
    fn decode(&mut self, member: &Member, line: &Line, ratio: &mut Ratio) -> Result<FeedState, ArchiveError> {
        let mut feed = Feed::new(&line.heard);
        let mut input = Paid::new(&mut feed, self.budget, ratio);
        if self.wanted(member) {
            self.next = member.ordinal + 1;
            let expect = Expect { size: member.size, crc32: member.crc32 };
            let mut body = Body::new(&mut input, member, expect, self.budget, self.watch);
            self.stopped = (self.visitor)(member, &mut body) == Flow::Stop;
            check_spent(self.budget)?;
        }
        if self.stopped || self.next >= self.range.end {
            return Ok(FeedState::Ended);
        }
        if self.solid {
            let drained = io::copy(&mut input, &mut io::sink());
            if let Err(error) = drained
                && feed.state == FeedState::Within
            {
                // Not the decoder's error, but the budget's.
                return Err(self.watch.judge(error));
            }
        } else {
            line.unwanted.store(true, Ordering::Release);
            // Some pieces are on their way still; how the member would have ended is of no interest.
            let _ignored = io::copy(&mut feed, &mut io::sink());
        }
        Ok(feed.state)
    }

    /// Announces a member that is not read.
    fn announce_next(&mut self) {
        if let Some(member) = self.members.get(self.next as usize) {
            let lost = self.dead.filter(|_| member.kind == Kind::File);
            let member = Member { problem: member.problem.or(lost), ..member.clone() };
            self.stopped = announce(&member, self.budget, self.visitor) == Flow::Stop;
        }
        self.next += 1;
    }

    /// Announces what can not be reached any more.
    fn give_up(&mut self) {
        self.dead = self.dead.or(Some(Problem::CorruptMember));
        while self.next < self.range.end && !self.stopped {
            self.announce_next();
        }
    }
}
