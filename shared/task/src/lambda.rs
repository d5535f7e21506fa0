//! The Lambda driver: an SQS batch in, the items to be delivered again out.

use crate::execute::{Executed, Runner};
use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use chrono::Utc;
use fonds_domain::{Kind, RunId};
use fonds_store::runs::Select;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use std::time::Duration;

/// Handles one batch. Items of a set-based kind are one set; the others run side by side, each a
/// set of one. Only what could not be recorded comes back: a body that cannot be read (it ends in
/// the DLQ), or a database that is down.
pub async fn handle(runner: &dyn Runner, event: SqsEvent, slice: Duration) -> SqsBatchResponse {
    let mut again = Vec::new();
    let mut named: Vec<(String, RunId)> = Vec::new();
    for record in event.records {
        // Without an id the failure could not be reported; SQS always sends one.
        let Some(message_id) = record.message_id else { continue };
        match fonds_queues::parse_message(record.body.as_deref().unwrap_or_default()) {
            Ok(m) if m.kind == runner.kind().as_str() => named.push((message_id, RunId(m.run))),
            Ok(m) => {
                tracing::error!(message.id = %message_id, kind = %m.kind, "message {message_id} is for another function");
                again.push(message_id);
            }
            Err(error) => {
                tracing::error!(message.id = %message_id, %error, "message {message_id} cannot be read");
                again.push(message_id);
            }
        }
    }
    let ids = |set: &[(String, RunId)]| Select::Ids(set.iter().map(|(_, r)| *r).collect());
    let sets: Vec<&[(String, RunId)]> =
        if runner.kind().policy().set_based { vec![&named[..]] } else { named.chunks(1).collect() };
    let ends = sets
        .iter()
        .filter(|s| !s.is_empty())
        .map(|set| async { (*set, runner.execute(ids(set), slice, &|_| ()).await) });
    for (set, end) in futures_util::future::join_all(ends).await {
        if end == Executed::Unrecorded {
            again.extend(set.iter().map(|(id, _)| id.clone()));
        }
    }
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = again
        .into_iter()
        .map(|id| {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = id;
            failure
        })
        .collect();
    response
}

/// Serves the Lambda runtime until the environment ends.
///
/// # Errors
/// When the runtime API cannot be reached.
pub async fn serve(runner: impl Runner) -> Result<(), Error> {
    let runner = &runner;
    lambda_runtime::run(service_fn(async move |event: LambdaEvent<SqsEvent>| {
        let slice = time_left(event.context.deadline, runner.kind());
        Ok::<_, Error>(handle(runner, event.payload, slice).await)
    }))
    .await
}

/// What the platform leaves this invocation, never more than the policy's slice. `deadline` is in
/// milliseconds since 1970, as the runtime gives it; it decides no lease.
fn time_left(deadline: u64, kind: Kind) -> Duration {
    let now = u64::try_from(Utc::now().timestamp_millis()).unwrap_or(0);
    Duration::from_millis(deadline.saturating_sub(now)).min(kind.policy().slice)
}
