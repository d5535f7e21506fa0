//! Queues as a whole, for tests, emulators and deployments without the template. Workers on Lambda need none of it:
//! there the platform receives and deletes.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};

use super::{SqsConfig, SqsError};

/// How long dead letters are kept: SQS's longest.
const DEAD_LETTER_RETENTION: Duration = Duration::from_secs(14 * 24 * 3600);
/// How long a message waits to be received before it is dropped: SQS's default. The row stays due and is rung again.
const RETENTION: Duration = Duration::from_secs(4 * 24 * 3600);

/// Where messages go that were received too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// Name of the queue, made when it is missing.
    pub queue: String,
    /// Receives before a message is moved.
    pub max_receives: u32,
}

/// What a queue is to be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// How long a received message is hidden: six times the function's timeout.
    pub visibility: Duration,
    /// Its dead-letter queue.
    pub dead_letters: Option<DeadLetters>,
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// What SQS calls it.
    pub id: String,
    /// For [`SqsQueues::delete`] and [`SqsQueues::change_visibility`].
    pub receipt: String,
    /// See [`crate::parse_message`].
    pub body: String,
    /// How often it was received, this time included.
    pub receives: u32,
}

/// Numbers of messages; approximate, as SQS says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Waiting.
    pub visible: u64,
    /// Received and not yet deleted.
    pub in_flight: u64,
    /// Held back.
    pub delayed: u64,
}

/// Makes, reads and empties queues. Queues are named by their URL but in [`Self::ensure_queue`].
#[derive(Debug, Clone)]
pub struct SqsQueues {
    client: Client,
}

impl SqsQueues {
    /// Builds the client. Nothing is sent.
    pub async fn connect(config: &SqsConfig) -> Self {
        Self { client: config.client().await }
    }

    /// Makes the queue (and its dead-letter queue), or brings one that exists to the specification. Gives its URL.
    ///
    /// # Errors
    /// [`SqsError`] of whichever call failed; repeat it whole.
    pub async fn ensure_queue(&self, name: &str, spec: &QueueSpec) -> Result<String, SqsError> {
        let mut attributes = HashMap::from([
            (QueueAttributeName::VisibilityTimeout, seconds(spec.visibility)),
            (QueueAttributeName::MessageRetentionPeriod, seconds(RETENTION)),
            (QueueAttributeName::ReceiveMessageWaitTimeSeconds, "20".to_owned()),
        ]);
        if let Some(dead) = &spec.dead_letters {
            let retention =
                HashMap::from([(QueueAttributeName::MessageRetentionPeriod, seconds(DEAD_LETTER_RETENTION))]);
            let url = self.make(&dead.queue, retention).await?;
            let arn = self.attribute(&url, QueueAttributeName::QueueArn).await?;
            // Numbers in this policy are strings in AWS's own examples and taken either way.
            let policy = serde_json::json!({ "deadLetterTargetArn": arn, "maxReceiveCount": dead.max_receives });
            attributes.insert(QueueAttributeName::RedrivePolicy, policy.to_string());
        }
        self.make(name, attributes).await
    }

    /// Up to ten messages, waiting up to `wait` (20 s at most) for the first.
    ///
    /// # Errors
    /// [`SqsError::NoQueue`] and transport errors.
    pub async fn receive(&self, url: &str, max: usize, wait: Duration) -> Result<Vec<Received>, SqsError> {
        let receive = self
            .client
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(i32::try_from(max.clamp(1, 10)).unwrap_or(10));
        let receive = receive.wait_time_seconds(i32::try_from(wait.as_secs().min(20)).unwrap_or(20));
        let count = MessageSystemAttributeName::ApproximateReceiveCount;
        let answer = receive
            .message_system_attribute_names(count.clone())
            .send()
            .await
            .map_err(|error| SqsError::new(url, &error))?;
        let message = |message: aws_sdk_sqs::types::Message| Received {
            receives: message.attributes.as_ref().and_then(|all| all.get(&count)?.parse().ok()).unwrap_or(1),
            id: message.message_id.unwrap_or_default(),
            receipt: message.receipt_handle.unwrap_or_default(),
            body: message.body.unwrap_or_default(),
        };
        Ok(answer.messages.unwrap_or_default().into_iter().map(message).collect())
    }

    /// Takes a message off the queue. Again is fine.
    ///
    /// # Errors
    /// [`SqsError::Receipt`] for a receipt that never was one, and transport errors.
    pub async fn delete(&self, url: &str, receipt: &str) -> Result<(), SqsError> {
        let delete = self.client.delete_message().queue_url(url).receipt_handle(receipt).send().await;
        delete.map(drop).map_err(|error| SqsError::new(url, &error))
    }

    /// Hides a received message for `hidden` from now; zero gives it back at once.
    ///
    /// # Errors
    /// [`SqsError::Receipt`] when it is not in flight any more, and transport errors.
    pub async fn change_visibility(&self, url: &str, receipt: &str, hidden: Duration) -> Result<(), SqsError> {
        let change = self.client.change_message_visibility().queue_url(url).receipt_handle(receipt);
        let change = change.visibility_timeout(i32::try_from(hidden.as_secs()).unwrap_or(i32::MAX)).send().await;
        change.map(drop).map_err(|error| SqsError::new(url, &error))
    }

    /// How full the queue is.
    ///
    /// # Errors
    /// [`SqsError::NoQueue`] and transport errors.
    pub async fn depth(&self, url: &str) -> Result<Depth, SqsError> {
        let attributes = self.attributes(url).await?;
        let number = |name| attributes.get(&name).and_then(|value| value.parse().ok()).unwrap_or_default();
        Ok(Depth {
            visible: number(QueueAttributeName::ApproximateNumberOfMessages),
            in_flight: number(QueueAttributeName::ApproximateNumberOfMessagesNotVisible),
            delayed: number(QueueAttributeName::ApproximateNumberOfMessagesDelayed),
        })
    }

    /// The URL of a queue by its name.
    ///
    /// # Errors
    /// [`SqsError::NoQueue`] and transport errors.
    pub async fn url(&self, name: &str) -> Result<String, SqsError> {
        let found =
            self.client.get_queue_url().queue_name(name).send().await.map_err(|error| SqsError::new(name, &error))?;
        found.queue_url.ok_or_else(|| SqsError::NoQueue(name.to_owned()))
    }

    /// The `RedrivePolicy` as stored: JSON, `None` when there is none.
    ///
    /// # Errors
    /// [`SqsError::NoQueue`] and transport errors.
    pub async fn redrive_policy(&self, url: &str) -> Result<Option<String>, SqsError> {
        Ok(self.attributes(url).await?.remove(&QueueAttributeName::RedrivePolicy))
    }

    /// Removes the queue and what is in it; one that is gone is fine.
    ///
    /// # Errors
    /// Transport errors.
    pub async fn delete_queue(&self, url: &str) -> Result<(), SqsError> {
        match self.client.delete_queue().queue_url(url).send().await.map_err(|error| SqsError::new(url, &error)) {
            Ok(_) | Err(SqsError::NoQueue(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// CreateQueue answers for a queue that exists only when every attribute is the same; otherwise they are set.
    async fn make(&self, name: &str, attributes: HashMap<QueueAttributeName, String>) -> Result<String, SqsError> {
        let url = match self.url(name).await {
            Ok(url) => url,
            Err(SqsError::NoQueue(_)) => {
                let created = self.client.create_queue().queue_name(name).set_attributes(Some(attributes)).send().await;
                let created = created.map_err(|error| SqsError::new(name, &error))?;
                return created.queue_url.ok_or_else(|| SqsError::NoQueue(name.to_owned()));
            }
            Err(error) => return Err(error),
        };
        let set = self.client.set_queue_attributes().queue_url(&url).set_attributes(Some(attributes)).send().await;
        set.map_err(|error| SqsError::new(name, &error))?;
        Ok(url)
    }

    async fn attribute(&self, url: &str, name: QueueAttributeName) -> Result<String, SqsError> {
        let missing = || SqsError::Invalid(format!("{url} has no {}", name.as_str()));
        self.attributes(url).await?.remove(&name).ok_or_else(missing)
    }

    async fn attributes(&self, url: &str) -> Result<HashMap<QueueAttributeName, String>, SqsError> {
        let get =
            self.client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::All).send().await;
        Ok(get.map_err(|error| SqsError::new(url, &error))?.attributes.unwrap_or_default())
    }
}

fn seconds(duration: Duration) -> String {
    duration.as_secs().to_string()
}
