//! rar 1.5 to 5. The format's parser and decoders are `rars`'s, which pushes bytes; here they are pulled, so the decoder
//! runs in a thread of its own for the length of a pass. That thread is also where its panics end.

use super::{Block, Body, Flow, Kind, Member, Pass, Source, Visitor, announce, check_spent};
use crate::error::{ArchiveError, Problem};
use crate::limits::{Budget, Limits};
use crate::names::{self, Guess, Name};
use crate::stream::{Expect, Packed, Paid, Ratio, Watch, Watched, caught};
use rars::{
    ArchiveMember, ArchiveMemberDetail, ArchiveReadOptions, AttrSource, Error, ErrorKind, ExtractionDecision,
    ExtractionErrorAction,
};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Decoded bytes are handed over in pieces of this.
const PIECE: usize = 64 << 10;
/// How many pieces may wait.
const WAITING: usize = 4;
/// Members are decoded as a stream beyond this.
const BUFFERED: u64 = 1 << 20;
/// A decoder's tables and staging, besides its dictionary and the copy it keeps of it.
const WORKSPACE: u64 = 64 << 20;
/// How often a pass over independent members begins again behind one that ends it.
const RESTARTS: usize = 64;

pub(super) struct Rar {
    archive: rars::Archive,
    watch: Watch,
    /// Members need those before them: none can be left out.
    solid: bool,
}

fn problem_of(error: &Error) -> Problem {
    let text = || error.to_string();
    match error.kind() {
        ErrorKind::PasswordRequired | ErrorKind::BadPassword => Problem::Encrypted,
        // Decryption is left out of the build: what asks for it is encrypted.
        ErrorKind::UnsupportedFeature if text().contains("encryption") => Problem::Encrypted,
        ErrorKind::UnsupportedFeature | ErrorKind::UnsupportedFormat | ErrorKind::ResourceLimit => {
            Problem::UnsupportedMethod
        }
        ErrorKind::ChecksumMismatch => Problem::CrcMismatch,
        _ => Problem::CorruptMember,
    }
}

fn open_error(error: &Error, watch: &Watch) -> ArchiveError {
    if let Some(fault) = watch.take_fault() {
        return ArchiveError::Read(fault);
    }
    let problem = match error.kind() {
        ErrorKind::ResourceLimit => Problem::TooManyEntries,
        ErrorKind::Io => Problem::Truncated,
        _ if error.to_string().contains("too short") => Problem::Truncated,
        _ => match problem_of(error) {
            known @ (Problem::Encrypted | Problem::UnsupportedMethod) => known,
            _ => Problem::CorruptDirectory,
        },
    };
    ArchiveError::refused(problem, error.to_string())
}

fn options(limits: &Limits) -> ArchiveReadOptions<'static> {
    ArchiveReadOptions::new()
        // The main header, service headers (comments, recovery data) and the end come on top of the members.
        .with_max_header_count(limits.entries.saturating_mul(2).saturating_add(16))
        .with_max_header_bytes(limits.directory_bytes)
        .with_max_reader_workspace_bytes(limits.dictionary_bytes.saturating_mul(2).saturating_add(WORKSPACE))
        .with_rar50_dictionary_size_limit(limits.dictionary_bytes)
        .with_rar50_buffered_decode_limit(BUFFERED)
}

impl Rar {
    pub(super) fn open(
        source: Box<dyn Source>,
        limits: &Limits,
    ) -> Result<(Self, Vec<Member>, Vec<Block>), ArchiveError> {
        let watch = Watch::default();
        let source = Watched::new(source, watch.clone());
        let read = || rars::ArchiveReader::read_reader_with_options(source, options(limits));
        let archive = caught("the headers break their reader", read)?.map_err(|e| open_error(&e, &watch))?;
        let (volume, solid) = match &archive {
            rars::Archive::Rar15To40(archive) => (archive.main.is_volume(), archive.main.is_solid()),
            rars::Archive::Rar50Plus(archive) => (archive.main.is_volume(), archive.main.is_solid()),
            _ => return Err(ArchiveError::refused(Problem::UnsupportedMethod, "rar of before 1.5")),
        };
        let found: Vec<ArchiveMember> = archive.members().collect();
        if volume || found.iter().any(|m| m.meta.is_split_before || m.meta.is_split_after) {
            return Err(ArchiveError::refused(Problem::MultiVolume, "one volume of several"));
        }
        if found.len() as u64 > limits.entries {
            return Err(ArchiveError::refused(Problem::TooManyEntries, format!("{} members", found.len())));
        }
        let solid = solid || found.iter().any(ArchiveMember::is_solid);
        let members = members(&found, limits);
        let blocks = blocks(&members, solid);
        Ok((Self { archive, watch, solid }, members, blocks))
    }
}

fn members(found: &[ArchiveMember], limits: &Limits) -> Vec<Member> {
    let mut guess = Guess::default();
    let undeclared = |m: &&ArchiveMember| !m.name_is_unicode() && std::str::from_utf8(&m.meta.name).is_err();
    found.iter().filter(undeclared).for_each(|m| guess.add(&m.meta.name));
    let member = |(i, m): (usize, &ArchiveMember)| {
        let name = name(m, &guess);
        let kind = kind(m);
        let problem = match kind {
            Kind::Link | Kind::Other => Some(Problem::NotAFile),
            _ if m.meta.is_encrypted => Some(Problem::Encrypted),
            Kind::File if dictionary(m) > limits.dictionary_bytes => Some(Problem::UnsupportedMethod),
            _ => names::judge(&name),
        };
        let too_large = (m.meta.unpacked_size > limits.member_bytes).then_some(Problem::MemberTooLarge);
        Member {
            ordinal: u32::try_from(i).unwrap_or(u32::MAX),
            name,
            size: Some(m.meta.unpacked_size),
            compressed: Some(m.meta.packed_size),
            crc32: match &m.detail {
                ArchiveMemberDetail::Rar15To40 { crc32, .. } => Some(*crc32),
                ArchiveMemberDetail::Rar50Plus { crc32, .. } => *crc32,
                _ => None,
            },
            kind,
            problem: problem.or(too_large),
        }
    };
    found.iter().enumerate().map(member).collect()
}

fn name(m: &ArchiveMember, guess: &Guess) -> Name {
    let raw = m.meta.name.as_slice();
    if let ArchiveMemberDetail::Rar15To40 { unicode_name: Some(wire), .. } = &m.detail {
        let text = String::from_utf8_lossy(raw).into_owned();
        return Name { raw: wire.clone(), ..Name::utf16(text) };
    }
    guess.decode(raw, m.name_is_unicode())
}

/// Folders and links as the format has them, and by the Unix mode where one is stored.
fn kind(m: &ArchiveMember) -> Kind {
    let unix = if m.meta.attr_source() == AttrSource::Unix { m.meta.file_attr & 0o170_000 } else { 0 };
    match unix {
        _ if m.meta.is_redirection => Kind::Link,
        0o120_000 => Kind::Link,
        0o040_000 => Kind::Dir,
        _ if m.meta.is_directory => Kind::Dir,
        0 | 0o100_000 => Kind::File,
        _ => Kind::Other,
    }
}

/// What a rar 5 member declares: 128 KiB by a power of two, in rar 7 with 32nds on top. That of rar 4 is 4 MiB at most.
fn dictionary(m: &ArchiveMember) -> u64 {
    let ArchiveMemberDetail::Rar50Plus { compression_info: info, .. } = &m.detail else {
        return 0;
    };
    let is_7 = info & 0x3f != 0;
    let power = info >> 10 & if is_7 { 0x1f } else { 0x0f };
    let base = 0x2_0000_u64 << power;
    if m.meta.is_stored {
        0
    } else if is_7 {
        base.saturating_add(base / 32 * (info >> 15 & 0x1f))
    } else {
        base
    }
}

fn blocks(members: &[Member], solid: bool) -> Vec<Block> {
    let sum = |of: fn(&Member) -> Option<u64>| Some(members.iter().filter_map(of).fold(0, u64::saturating_add));
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    if solid && count > 0 {
        return vec![Block {
            ordinals: 0..count,
            unpacked: sum(|m| m.size),
            packed: sum(|m| m.compressed),
            solid: true,
        }];
    }
    let alone =
        |m: &Member| Block { ordinals: m.ordinal..m.ordinal + 1, unpacked: m.size, packed: m.compressed, solid: false };
    members.iter().map(alone).collect()
}

/// What the decoder's thread tells. That it is gone means that it is done.
enum Event {
    /// At the next member; it waits for a [`Reply`].
    Begin,
    Data(Vec<u8>),
    /// The member failed, the next one is tried.
    Failed(ArchiveError),
    /// Nothing more can be read.
    Fatal(ArchiveError),
}

enum Reply {
    Extract,
    Skip,
    Stop,
}

/// The decoder's end: gathers its writes into pieces.
struct Pipe {
    events: SyncSender<Event>,
    piece: Vec<u8>,
    /// Nobody wants the rest of this member.
    unwanted: Arc<AtomicBool>,
    /// ... but the decoder needs it.
    solid: bool,
}

fn gone<T>(_: T) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Pipe {
    fn hand_over(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.events.send(Event::Data(piece)).map_err(gone)
    }
}

struct PipeWriter(Rc<RefCell<Pipe>>);

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pipe = self.0.try_borrow_mut().map_err(io::Error::other)?;
        if !pipe.solid && pipe.unwanted.load(Ordering::Relaxed) {
            return Err(gone(()));
        }
        let n = bytes.len().min(PIECE - pipe.piece.len());
        pipe.piece.extend_from_slice(&bytes[..n]);
        if pipe.piece.len() == PIECE {
            pipe.hand_over()?;
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The decoder's thread.
fn decode(archive: &rars::Archive, options: ArchiveReadOptions<'_>, pipe: Pipe, replies: &Receiver<Reply>) {
    let events = pipe.events.clone();
    let pipe = Rc::new(RefCell::new(pipe));
    let hand_over = || -> rars::Result<()> {
        pipe.try_borrow_mut().map_err(io::Error::other).and_then(|mut pipe| pipe.hand_over()).map_err(Error::from)
    };
    let result = archive.extract_with_control_and_errors(
        options,
        |_| {
            hand_over()?;
            events.send(Event::Begin).map_err(|e| Error::from(gone(e)))?;
            Ok(match replies.recv().map_err(|e| Error::from(gone(e)))? {
                Reply::Extract => ExtractionDecision::Extract(Box::new(PipeWriter(Rc::clone(&pipe)))),
                Reply::Skip => ExtractionDecision::Skip,
                Reply::Stop => ExtractionDecision::Stop,
            })
        },
        |_, error| {
            hand_over()?;
            let failure = ArchiveError::refused(problem_of(error), error.to_string());
            events.send(Event::Failed(failure)).map_err(|e| Error::from(gone(e)))?;
            Ok(ExtractionErrorAction::Continue)
        },
    );
    // Where nobody listens any more there is nothing left to say.
    let last = hand_over();
    if let Err(error) = result.map(|_| ()).and(last) {
        let _unheard = events.send(Event::Fatal(ArchiveError::refused(problem_of(&error), error.to_string())));
    }
}

/// The reader's end: the bytes of one member.
struct Feed<'a> {
    events: &'a Receiver<Event>,
    piece: Vec<u8>,
    at: usize,
    state: FeedState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FeedState {
    Within,
    /// The member ended, as it should or not.
    Ended,
    /// And the decoder waits at the next one.
    Next,
    /// Nothing more comes, for this reason if it is not the end.
    Done(Option<Problem>),
}

impl Read for Feed<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            if self.state != FeedState::Within {
                return Ok(0);
            }
            match self.events.recv() {
                Ok(Event::Data(piece)) => (self.piece, self.at) = (piece, 0),
                Ok(Event::Begin) => self.state = FeedState::Next,
                Ok(Event::Failed(error)) => {
                    self.state = FeedState::Ended;
                    return Err(io::Error::other(error));
                }
                Ok(Event::Fatal(error)) => {
                    self.state = FeedState::Done(error.problem());
                    return Err(io::Error::other(error));
                }
                Err(_) => self.state = FeedState::Done(None),
            }
        }
        let n = buf.len().min(self.piece.len() - self.at);
        buf[..n].copy_from_slice(&self.piece[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// A pass: one run of the decoder, and where it has come to.
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
    dead: Option<Problem>,
}

/// One pass over the members of the range.
pub(super) fn visit(
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
    let next = if *solid { 0 } else { range.start };
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
    fn run(&mut self, archive: &rars::Archive) -> Result<(), ArchiveError> {
        let (events, heard) = sync_channel(WAITING);
        let (replies, told) = sync_channel(1);
        let unwanted = Arc::new(AtomicBool::new(false));
        let pipe =
            Pipe { events, piece: Vec::with_capacity(PIECE), unwanted: Arc::clone(&unwanted), solid: self.solid };
        let options = options(self.budget.limits());
        let before = self.next;
        std::thread::scope(|scope| {
            // All that is not `Send` is made within the thread.
            let decoder = scope.spawn(move || decode(archive, options, pipe, &told));
            let result = self.listen(&heard, &replies, &unwanted);
            drop((heard, replies));
            if decoder.join().is_err() {
                self.dead = Some(Problem::CorruptMember);
            }
            result
        })?;
        if let Some(fault) = self.watch.take_fault() {
            return Err(ArchiveError::Read(fault));
        }
        // A run that came nowhere would do so again.
        if self.next == before {
            self.dead = self.dead.or(Some(Problem::CorruptMember));
            self.next = if self.solid { self.next } else { self.announce_one(self.next) };
        }
        Ok(())
    }

    fn listen(
        &mut self,
        heard: &Receiver<Event>,
        replies: &SyncSender<Reply>,
        unwanted: &AtomicBool,
    ) -> Result<(), ArchiveError> {
        let mut ordinal = 0;
        let mut ratio = Ratio::new(Packed::Watched(self.watch.clone()));
        let mut waiting = false;
        loop {
            if !waiting {
                match heard.recv() {
                    Ok(Event::Begin) => {}
                    Ok(Event::Fatal(error)) => {
                        self.dead = error.problem();
                        return Ok(());
                    }
                    Ok(Event::Data(_) | Event::Failed(_)) => continue,
                    Err(_) => return Ok(()),
                }
            }
            waiting = false;
            let Some(member) = self.members.get(ordinal as usize).filter(|_| ordinal < self.range.end) else {
                // Whether it hears this or that nobody listens is the same to it.
                let _ = replies.send(Reply::Stop);
                return Ok(());
            };
            ordinal += 1;
            let again = member.ordinal < self.next;
            let wanted = self.range.contains(&member.ordinal) && !again;
            let is_file = member.kind == Kind::File;
            let decodes = is_file
                && member.problem != Some(Problem::Encrypted)
                && if self.solid { true } else { wanted && member.problem.is_none() };
            if !decodes {
                if wanted {
                    self.next = self.announce_one(member.ordinal);
                } else if !again {
                    self.next = member.ordinal + 1;
                }
                let encrypted_within = self.solid && is_file;
                if encrypted_within {
                    self.dead = Some(Problem::Encrypted);
                }
                if self.stopped || encrypted_within {
                    let _ = replies.send(Reply::Stop);
                    return Ok(());
                }
                if replies.send(Reply::Skip).is_err() {
                    return Ok(());
                }
                continue;
            }
            unwanted.store(false, Ordering::Relaxed);
            if replies.send(Reply::Extract).is_err() {
                return Ok(());
            }
            let mut feed = Feed { events: heard, piece: Vec::new(), at: 0, state: FeedState::Within };
            if !self.solid {
                ratio = Ratio::new(Packed::Known(member.compressed.unwrap_or_default()));
            }
            self.one(member, wanted, &mut Paid::new(&mut feed, self.budget, &mut ratio), unwanted)?;
            match feed.state {
                FeedState::Done(problem) => {
                    self.dead = problem;
                    return Ok(());
                }
                state => waiting = state == FeedState::Next,
            }
            if self.stopped {
                let _ = replies.send(Reply::Stop);
                return Ok(());
            }
        }
    }

    /// One member whose bytes come.
    fn one(
        &mut self,
        member: &Member,
        wanted: bool,
        input: &mut Paid<'_, &mut Feed<'_>>,
        unwanted: &AtomicBool,
    ) -> Result<(), ArchiveError> {
        self.next = member.ordinal + 1;
        if wanted {
            let expect = Expect { size: member.size, crc32: member.crc32 };
            let mut body = Body::new(input, member, expect, self.budget, self.watch);
            self.stopped = (self.visitor)(member, &mut body) == Flow::Stop;
        }
        let last = self.next >= self.range.end || self.stopped;
        // What is left comes still: of independent members as little as is on its way, of others all of it.
        unwanted.store(!self.solid || last, Ordering::Relaxed);
        if self.stopped && self.solid {
            return Ok(());
        }
        loop {
            match io::copy(input, &mut io::sink()) {
                Ok(_) => break,
                Err(error) if input.get_mut().state == FeedState::Within => {
                    // The budget's error, not the decoder's.
                    let error = self.watch.judge(error);
                    if self.solid || error.problem() == Some(Problem::ArchiveTooLarge) {
                        return Err(error);
                    }
                }
                Err(_) => break,
            }
        }
        check_spent(self.budget)
    }

    fn announce_one(&mut self, ordinal: u32) -> u32 {
        if let Some(member) = self.members.get(ordinal as usize) {
            let member = Member { problem: member.problem.or(self.dead), ..member.clone() };
            self.stopped = announce(&member, self.budget, self.visitor) == Flow::Stop;
        }
        ordinal + 1
    }

    /// Announces what can not be reached any more.
    fn give_up(&mut self) {
        self.dead = self.dead.or(Some(Problem::CorruptMember));
        self.next = self.next.max(self.range.start);
        while self.next < self.range.end && !self.stopped {
            self.next = self.announce_one(self.next);
        }
    }
}
