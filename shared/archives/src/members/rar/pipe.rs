//! Between the decoder's thread and the pass: bytes one way, decisions the other.

use super::problem_of;
use crate::error::{ArchiveError, Problem};
use rars::{ArchiveReadOptions, Error, ExtractionDecision, ExtractionErrorAction};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

/// Decoded bytes are handed over in pieces of this.
const PIECE: usize = 64 << 10;

/// What the decoder's thread tells. That it is gone means that it is done.
pub(super) enum Event {
    /// At the next member; it waits for a [`Reply`].
    Begin,
    Data(Vec<u8>),
    /// The member failed, the next one is tried.
    Failed(ArchiveError),
    /// Nothing more can be read.
    Fatal(ArchiveError),
}

pub(super) enum Reply {
    Extract,
    Skip,
    Stop,
}

/// The decoder's end: gathers its writes into pieces.
pub(super) struct Pipe {
    events: SyncSender<Event>,
    piece: Vec<u8>,
    /// Nobody wants the rest of this member.
    unwanted: Arc<AtomicBool>,
    /// ... but the decoder needs it.
    solid: bool,
}

impl Pipe {
    pub(super) fn new(events: SyncSender<Event>, unwanted: Arc<AtomicBool>, solid: bool) -> Self {
        Self { events, piece: Vec::with_capacity(PIECE), unwanted, solid }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.events.send(Event::Data(piece)).map_err(gone)
    }
}

fn gone<T>(_: T) -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

struct PipeWriter(Rc<RefCell<Pipe>>);

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pipe = self.0.try_borrow_mut().map_err(io::Error::other)?;
        if !pipe.solid && pipe.unwanted.load(Ordering::Acquire) {
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
pub(super) fn decode(archive: &rars::Archive, options: ArchiveReadOptions<'_>, pipe: Pipe, replies: &Receiver<Reply>) {
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
pub(super) struct Feed<'a> {
    events: &'a Receiver<Event>,
    piece: Vec<u8>,
    at: usize,
    pub(super) state: FeedState,
}

impl<'a> Feed<'a> {
    pub(super) fn new(events: &'a Receiver<Event>) -> Self {
        Self { events, piece: Vec::new(), at: 0, state: FeedState::Within }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FeedState {
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
