//! The bell that rings by SQS messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures_util::{FutureExt, StreamExt, stream};

use super::{MAX_DELAY, SqsConfig, SqsError};
use crate::message::is_kind;
use crate::{Bell, BellError, Ring, encode_message};

/// Most messages of one SendMessageBatch.
const BATCH: usize = 10;
/// Batches in flight.
const IN_FLIGHT: usize = 8;
/// Tries of messages that SQS says failed for now.
const ROUNDS: u32 = 4;

/// Which queue a kind has: a URL given for it, else the URL of the queue called `<prefix><kind>`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueNames {
    /// Queue URL by kind, as the template passes them in.
    pub urls: HashMap<String, String>,
    /// Prefix of queue names, looked up once a kind; `None` when only `urls` count.
    pub prefix: Option<String>,
}

/// Sends doorbells to one queue a kind.
#[derive(Debug)]
pub struct SqsBell {
    client: Client,
    names: QueueNames,
    found: RwLock<HashMap<String, String>>,
}

impl SqsBell {
    /// Builds the client. Nothing is sent.
    pub async fn connect(config: &SqsConfig, names: QueueNames) -> Self {
        Self { client: config.client().await, names, found: RwLock::default() }
    }

    async fn url(&self, kind: &str) -> Result<String, SqsError> {
        if let Some(url) = self.names.urls.get(kind) {
            return Ok(url.clone());
        }
        if let Some(url) = self.found.read().unwrap_or_else(PoisonError::into_inner).get(kind) {
            return Ok(url.clone());
        }
        let Some(prefix) = &self.names.prefix else { return Err(SqsError::NoQueue(kind.to_owned())) };
        let name = format!("{prefix}{kind}");
        let found =
            self.client.get_queue_url().queue_name(&name).send().await.map_err(|error| SqsError::new(&name, &error))?;
        let url = found.queue_url.ok_or(SqsError::NoQueue(name))?;
        self.found.write().unwrap_or_else(PoisonError::into_inner).insert(kind.to_owned(), url.clone());
        Ok(url)
    }

    /// Sends one batch of one kind; gives the rings that failed and the reason.
    async fn send<'a>(&self, kind: &str, rings: &'a [Ring]) -> Result<(), (Vec<&'a Ring>, SqsError)> {
        let mut left: Vec<&Ring> = rings.iter().collect();
        if !is_kind(kind) {
            return Err((left, SqsError::Invalid(format!("{kind:?} is no kind"))));
        }
        let mut round = 0;
        loop {
            let failure = match self.send_once(kind, &left).await {
                Ok(Sent { again, refused, reason }) => {
                    let Some(reason) = reason else { return Ok(()) };
                    if !refused.is_empty() {
                        return Err(([again, refused].concat(), SqsError::Invalid(reason)));
                    }
                    left = again;
                    SqsError::Unavailable(reason)
                }
                Err(error) => {
                    // The queue may have been made anew under another URL.
                    let had = self.found.write().unwrap_or_else(PoisonError::into_inner).remove(kind).is_some();
                    match error {
                        SqsError::NoQueue(_) if had => {}
                        error => return Err((left, error)),
                    }
                    SqsError::NoQueue(kind.to_owned())
                }
            };
            round += 1;
            if round == ROUNDS {
                return Err((left, failure));
            }
            tokio::time::sleep(Duration::from_millis(rand::random_range(0..=50 << round))).await;
        }
    }

    /// One call. An answer may name messages that failed though it is a 200.
    async fn send_once<'a>(&self, kind: &str, rings: &[&'a Ring]) -> Result<Sent<'a>, SqsError> {
        let url = self.url(kind).await?;
        let entries = rings.iter().enumerate().map(|(at, ring)| entry(at, ring)).collect::<Result<Vec<_>, _>>()?;
        let answer = self.client.send_message_batch().queue_url(&url).set_entries(Some(entries)).send().await;
        let answer = answer.map_err(|error| SqsError::new(kind, &error))?;
        let mut sent = Sent::default();
        for failed in answer.failed {
            let Some(ring) = failed.id.parse::<usize>().ok().and_then(|at| rings.get(at)) else { continue };
            sent.reason.get_or_insert_with(|| format!("{}: {}", failed.code, failed.message.unwrap_or_default()));
            if failed.sender_fault { sent.refused.push(*ring) } else { sent.again.push(*ring) }
        }
        Ok(sent)
    }
}

#[derive(Default)]
struct Sent<'a> {
    again: Vec<&'a Ring>,
    refused: Vec<&'a Ring>,
    reason: Option<String>,
}

/// The id only has to be unique within the batch; the position is.
fn entry(at: usize, ring: &Ring) -> Result<SendMessageBatchRequestEntry, SqsError> {
    let entry =
        SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(encode_message(ring.run, &ring.kind));
    let delay = ring.delay.map(delay_seconds).filter(|seconds| *seconds > 0);
    entry.set_delay_seconds(delay).build().map_err(|error| SqsError::Invalid(error.to_string()))
}

/// Whole seconds, rounded up (early would be an empty claim), at most [`MAX_DELAY`].
fn delay_seconds(delay: Duration) -> i32 {
    let delay = delay.min(MAX_DELAY);
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[async_trait]
impl Bell for SqsBell {
    async fn ring(&self, rings: &[Ring]) -> Result<(), BellError> {
        let mut kinds: BTreeMap<&str, Vec<Ring>> = BTreeMap::new();
        for ring in rings {
            kinds.entry(&ring.kind).or_default().push(ring.clone());
        }
        let batches =
            kinds.iter().flat_map(|(kind, rings)| rings.chunks(BATCH).map(move |batch| self.send(kind, batch).boxed()));
        let results: Vec<_> = stream::iter(batches.collect::<Vec<_>>()).buffer_unordered(IN_FLIGHT).collect().await;
        let mut failure: Option<BellError> = None;
        for (unrung, reason) in results.into_iter().filter_map(Result::err) {
            let failure = failure.get_or_insert_with(|| BellError {
                unrung: Vec::new(),
                reason: reason.to_string(),
                permanent: true,
            });
            failure.permanent &= reason.is_permanent();
            failure.unrung.extend(unrung.iter().map(|ring| ring.run));
        }
        failure.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_whole_seconds_rounded_up_and_cut() {
        for (millis, expected) in [(0, 0), (1, 1), (1000, 1), (1001, 2), (900_000, 900), (86_400_000, 900)] {
            assert_eq!(delay_seconds(Duration::from_millis(millis)), expected, "{millis} ms");
        }
    }
}
