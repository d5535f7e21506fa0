//! The bell and the admin against SQS's protocol, spoken by MiniStack.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use fonds_queues::{
    Bell, DeadLetters, Depth, Keys, QueueNames, QueueSpec, Received, Ring, SqsBell, SqsConfig, SqsError, SqsQueues,
    parse_message,
};
use uuid::Uuid;

const NO_WAIT: Duration = Duration::ZERO;
const WAIT: Duration = Duration::from_secs(10);

struct Sqs {
    config: SqsConfig,
    queues: SqsQueues,
    prefix: String,
}

impl Sqs {
    async fn start() -> Option<Self> {
        let (id, secret) = fonds_ministack::CREDENTIALS;
        let config = SqsConfig {
            region: Some(fonds_ministack::REGION.to_owned()),
            endpoint: Some(fonds_ministack::endpoint()?.to_owned()),
            keys: Some(Keys { id: id.to_owned(), secret: secret.to_owned() }),
        };
        let queues = SqsQueues::connect(&config).await;
        Some(Self { config, queues, prefix: format!("{}-", fonds_ministack::unique("q")) })
    }

    async fn queue(&self, kind: &str, visibility: Duration, max_receives: Option<u32>) -> String {
        let name = format!("{}{kind}", self.prefix);
        let dead_letters = max_receives.map(|max_receives| DeadLetters { queue: format!("{name}-dead"), max_receives });
        self.queues.ensure_queue(&name, &QueueSpec { visibility, dead_letters }).await.unwrap()
    }

    async fn bell(&self) -> SqsBell {
        SqsBell::connect(&self.config, QueueNames { prefix: Some(self.prefix.clone()), ..QueueNames::default() }).await
    }

    /// Receives and deletes until `expected` messages came or the queue is silent for [`WAIT`].
    async fn drain(&self, url: &str, expected: usize) -> Vec<Received> {
        let mut all = Vec::new();
        while all.len() < expected {
            let batch = self.queues.receive(url, 10, WAIT).await.unwrap();
            if batch.is_empty() {
                break;
            }
            for message in batch {
                self.queues.delete(url, &message.receipt).await.unwrap();
                all.push(message);
            }
        }
        all
    }
}

fn runs(messages: &[Received]) -> BTreeSet<Uuid> {
    messages.iter().map(|message| parse_message(&message.body).unwrap().run).collect()
}

#[tokio::test]
async fn every_ring_arrives_in_the_queue_of_its_kind() {
    let Some(sqs) = Sqs::start().await else { return };
    let kinds = ["snapshot", "crawl-seal", "sweep"];
    let mut urls = BTreeMap::new();
    for kind in kinds {
        urls.insert(kind, sqs.queue(kind, Duration::from_secs(60), None).await);
    }
    let mut expected = BTreeMap::<&str, BTreeSet<Uuid>>::new();
    let rings: Vec<Ring> = (0..57)
        .map(|at| {
            let (run, kind) = (Uuid::now_v7(), kinds[at % 3]);
            expected.entry(kind).or_default().insert(run);
            Ring::new(run, kind)
        })
        .collect();
    let bell = sqs.bell().await;
    bell.ring(&rings).await.unwrap();
    bell.ring(&[]).await.unwrap();
    for (kind, url) in &urls {
        let got = sqs.drain(url, 19).await;
        assert_eq!(got.len(), 19, "{kind}");
        assert_eq!(runs(&got), expected[kind], "{kind}");
        assert!(got.iter().all(|message| parse_message(&message.body).unwrap().kind == *kind && message.receives == 1));
        assert_eq!(sqs.queues.depth(url).await.unwrap(), Depth::default());
    }
}

#[tokio::test]
async fn the_same_run_twice_is_two_messages() {
    let Some(sqs) = Sqs::start().await else { return };
    let url = sqs.queue("sweep", Duration::from_secs(60), None).await;
    let run = Uuid::now_v7();
    sqs.bell().await.ring(&[Ring::new(run, "sweep"), Ring::new(run, "sweep")]).await.unwrap();
    let got = sqs.drain(&url, 2).await;
    assert_eq!((got.len(), runs(&got)), (2, BTreeSet::from([run])));
}

#[tokio::test]
async fn urls_given_win_over_names_looked_up() {
    let Some(sqs) = Sqs::start().await else { return };
    let (named, given) = (sqs.queue("sweep", WAIT, None).await, sqs.queue("elsewhere", WAIT, None).await);
    let names =
        QueueNames { urls: HashMap::from([("sweep".to_owned(), given.clone())]), prefix: Some(sqs.prefix.clone()) };
    SqsBell::connect(&sqs.config, names).await.ring(&[Ring::new(Uuid::now_v7(), "sweep")]).await.unwrap();
    assert_eq!(sqs.drain(&given, 1).await.len(), 1);
    assert_eq!(sqs.queues.depth(&named).await.unwrap(), Depth::default());
}

#[tokio::test]
async fn one_kind_without_a_queue_does_not_silence_the_others() {
    let Some(sqs) = Sqs::start().await else { return };
    let url = sqs.queue("sweep", Duration::from_secs(60), None).await;
    let (good, missing, hostile) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    let rings = [Ring::new(missing, "nowhere"), Ring::new(good, "sweep"), Ring::new(hostile, "../sweep")];
    let error = sqs.bell().await.ring(&rings).await.unwrap_err();
    assert_eq!(error.unrung.iter().copied().collect::<BTreeSet<_>>(), BTreeSet::from([missing, hostile]));
    assert!(error.is_permanent(), "{error}");
    assert_eq!(runs(&sqs.drain(&url, 1).await), BTreeSet::from([good]));
}

#[tokio::test]
async fn an_unreachable_queue_is_transient_and_names_the_runs() {
    // Port 9 (discard) has no listener.
    let config = SqsConfig {
        endpoint: Some("http://127.0.0.1:9".to_owned()),
        region: Some(fonds_ministack::REGION.to_owned()),
        keys: Some(Keys { id: "id".to_owned(), secret: "secret".to_owned() }),
    };
    let bell = SqsBell::connect(&config, QueueNames { prefix: Some("x-".to_owned()), ..QueueNames::default() }).await;
    let run = Uuid::now_v7();
    let error = bell.ring(&[Ring::new(run, "sweep")]).await.unwrap_err();
    assert_eq!((error.unrung.as_slice(), error.is_permanent()), (&[run][..], false), "{error}");
}

#[tokio::test]
async fn a_queue_made_anew_is_found_again() {
    let Some(sqs) = Sqs::start().await else { return };
    let url = sqs.queue("sweep", WAIT, None).await;
    let bell = sqs.bell().await;
    bell.ring(&[Ring::new(Uuid::now_v7(), "sweep")]).await.unwrap();
    sqs.queues.delete_queue(&url).await.unwrap();
    sqs.queues.delete_queue(&url).await.unwrap();
    assert!(bell.ring(&[Ring::new(Uuid::now_v7(), "sweep")]).await.unwrap_err().is_permanent());
    let url = sqs.queue("sweep", WAIT, None).await;
    let run = Uuid::now_v7();
    bell.ring(&[Ring::new(run, "sweep")]).await.unwrap();
    assert_eq!(runs(&sqs.drain(&url, 1).await), BTreeSet::from([run]));
}

#[tokio::test]
async fn a_delayed_ring_is_held_back() {
    let Some(sqs) = Sqs::start().await else { return };
    let url = sqs.queue("sweep", Duration::from_secs(60), None).await;
    let bell = sqs.bell().await;
    let run = Uuid::now_v7();
    let start = std::time::Instant::now();
    bell.ring(&[Ring::new(run, "sweep").after(Duration::from_millis(1200))]).await.unwrap();
    // Longer than SQS can: cut, not refused.
    bell.ring(&[Ring::new(Uuid::now_v7(), "sweep").after(Duration::from_secs(86_400))]).await.unwrap();
    assert_eq!(sqs.queues.receive(&url, 10, NO_WAIT).await.unwrap(), []);
    assert_eq!(sqs.queues.depth(&url).await.unwrap(), Depth { visible: 0, in_flight: 0, delayed: 2 });
    assert_eq!(runs(&sqs.drain(&url, 1).await), BTreeSet::from([run]));
    assert!(start.elapsed() >= Duration::from_millis(1900), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_message_not_deleted_comes_again_until_it_is_a_dead_letter() {
    let Some(sqs) = Sqs::start().await else { return };
    let url = sqs.queue("sweep", Duration::from_secs(60), Some(2)).await;
    let dead = sqs.queues.url(&format!("{}sweep-dead", sqs.prefix)).await.unwrap();
    let policy: serde_json::Value =
        serde_json::from_str(&sqs.queues.redrive_policy(&url).await.unwrap().unwrap()).unwrap();
    assert!(policy["deadLetterTargetArn"].as_str().unwrap().ends_with("sweep-dead"), "{policy}");
    assert_eq!(policy["maxReceiveCount"].to_string().trim_matches('"'), "2");

    let run = Uuid::now_v7();
    sqs.bell().await.ring(&[Ring::new(run, "sweep")]).await.unwrap();
    for receives in 1..=2 {
        let got = sqs.queues.receive(&url, 1, WAIT).await.unwrap();
        assert_eq!(got[0].receives, receives);
        assert_eq!(sqs.queues.depth(&url).await.unwrap(), Depth { visible: 0, in_flight: 1, delayed: 0 });
        assert_eq!(sqs.queues.receive(&url, 1, NO_WAIT).await.unwrap(), [], "hidden while in flight");
        sqs.queues.change_visibility(&url, &got[0].receipt, Duration::ZERO).await.unwrap();
    }
    assert_eq!(sqs.queues.receive(&url, 1, NO_WAIT).await.unwrap(), [], "received often enough");
    assert_eq!(runs(&sqs.drain(&dead, 1).await), BTreeSet::from([run]));
}

#[tokio::test]
async fn visibility_ends_by_itself_and_can_be_extended() {
    let Some(sqs) = Sqs::start().await else { return };
    let url = sqs.queue("sweep", Duration::from_secs(1), None).await;
    sqs.bell().await.ring(&[Ring::new(Uuid::now_v7(), "sweep")]).await.unwrap();
    let first = sqs.queues.receive(&url, 1, WAIT).await.unwrap().remove(0);
    let second = sqs.queues.receive(&url, 1, WAIT).await.unwrap().remove(0);
    assert_eq!((second.id.as_str(), second.receives), (first.id.as_str(), 2), "given again after its second");
    let start = std::time::Instant::now();
    sqs.queues.change_visibility(&url, &second.receipt, Duration::from_secs(3)).await.unwrap();
    let third = sqs.queues.receive(&url, 1, WAIT).await.unwrap().remove(0);
    assert!(third.receives == 3 && start.elapsed() >= Duration::from_millis(2500), "{:?}", start.elapsed());
    sqs.queues.delete(&url, &third.receipt).await.unwrap();
    // SQS takes a receipt again; MiniStack has forgotten it.
    assert!(matches!(sqs.queues.delete(&url, &third.receipt).await, Ok(()) | Err(SqsError::Receipt)));
    assert_eq!(sqs.queues.depth(&url).await.unwrap(), Depth::default());
}

#[tokio::test]
async fn ensure_brings_an_existing_queue_to_the_specification() {
    let Some(sqs) = Sqs::start().await else { return };
    let first = sqs.queue("sweep", Duration::from_secs(60), None).await;
    assert_eq!(sqs.queues.redrive_policy(&first).await.unwrap(), None);
    assert_eq!(sqs.queue("sweep", Duration::from_secs(120), Some(5)).await, first);
    assert!(sqs.queues.redrive_policy(&first).await.unwrap().unwrap().contains("sweep-dead"));
    assert_eq!(sqs.queue("sweep", Duration::from_secs(120), Some(5)).await, first);
    let missing = sqs.queues.url(&format!("{}nothing", sqs.prefix)).await.unwrap_err();
    assert!(matches!(missing, SqsError::NoQueue(_)) && missing.is_permanent(), "{missing:?}");
    let missing = sqs.queues.receive(&format!("{first}-gone"), 1, NO_WAIT).await.unwrap_err();
    assert!(matches!(missing, SqsError::NoQueue(_)), "{missing:?}");
    let wrong = sqs.queues.delete(&first, "no-receipt").await.unwrap_err();
    assert!(wrong.is_permanent(), "{wrong:?}");
}
