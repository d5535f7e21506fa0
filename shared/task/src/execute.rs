//! Claim, run, settle.

use crate::context::{Budget, Cx};
use crate::task::{Item, Outcome, Task, TaskError};
use async_trait::async_trait;
use fonds_domain::kind::backoff;
use fonds_domain::{ErrorCode, Kind, RunId};
use fonds_queues::{Bell, Ring};
use fonds_store::runs::{self, Claimed, FailedRun, RunRef, Select, Settlement, Verdict};
use fonds_store::{Db, StoreError, crawls};
use serde_json::Value;
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What one call of `execute` came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executed {
    /// This many runs were claimed and settled; zero means that there was nothing to claim.
    Settled(usize),
    /// Nothing could be recorded: the message must come again.
    Unrecorded,
}

/// A task with what it needs to be executed.
pub struct Executor<T: Task> {
    task: T,
    db: Db,
    bell: Arc<dyn Bell>,
}

/// An executor of any kind.
#[async_trait]
pub trait Runner: Send + Sync {
    /// The kind it executes.
    fn kind(&self) -> Kind;
    /// Claims up to the kind's batch, works, settles. `slice` is the time until the platform ends
    /// the function; `claimed` is called once the claim is through, so that a driver may let the
    /// next one claim.
    async fn execute(&self, select: Select, slice: Duration, claimed: &(dyn Fn(usize) + Sync)) -> Executed;
}

#[async_trait]
impl<T: Task> Runner for Executor<T> {
    fn kind(&self) -> Kind {
        T::KIND
    }

    async fn execute(&self, select: Select, slice: Duration, claimed: &(dyn Fn(usize) + Sync)) -> Executed {
        let until = Instant::now() + slice.saturating_sub(T::KIND.policy().margin);
        let runs = match self.claim(&select).await {
            Ok(runs) => runs,
            Err(error) => {
                tracing::error!(%error, run.kind = %T::KIND, "claim failed");
                claimed(0);
                return Executed::Unrecorded;
            }
        };
        claimed(runs.len());
        if runs.is_empty() {
            return Executed::Settled(0);
        }
        let began = Instant::now();
        let n = runs.len();
        let (settlements, effects) = self.work(&runs, Budget { until }).await;
        let settled = self.settle(&runs, settlements, effects).await;
        let work_ms = began.elapsed().as_secs_f64() * 1000.0;
        fonds_telemetry::emit(
            T::KIND.as_str(),
            &[("runs", "Count", n as f64), ("duration_ms", "Milliseconds", work_ms)],
        );
        match settled {
            Ok(()) => Executed::Settled(n),
            Err(error) => {
                tracing::error!(%error, run.kind = %T::KIND, runs = n, "settle failed; the leases will run out");
                Executed::Unrecorded
            }
        }
    }
}

/// A settlement and, by position, the effect that goes with it.
type Effects<T> = Vec<Option<<T as Task>::Effect>>;

impl<T: Task> Executor<T> {
    /// Binds a task to its database and bell.
    pub fn new(task: T, db: Db, bell: Arc<dyn Bell>) -> Self {
        Self { task, db, bell }
    }

    async fn claim(&self, select: &Select) -> Result<Vec<Claimed>, StoreError> {
        let mut conn = self.db.conn().await?;
        runs::claim(&mut conn, T::KIND, select).await
    }

    /// Runs the claimed set inside the budget. Every run gets a verdict.
    async fn work(&self, runs: &[Claimed], budget: Budget) -> (Vec<Settlement>, Effects<T>) {
        let mut verdicts: Vec<Option<(Verdict, Option<T::Effect>)>> = runs.iter().map(|_| None).collect();
        let mut items = Vec::with_capacity(runs.len());
        let mut positions = Vec::with_capacity(runs.len());
        for (i, run) in runs.iter().enumerate() {
            if run.cancel_requested {
                verdicts[i] = Some((Verdict::Cancelled, None));
                continue;
            }
            match self.item(run, budget) {
                Ok(item) => {
                    items.push(item);
                    positions.push(i);
                }
                Err(error) => verdicts[i] = Some(failure::<T>(run, &error)),
            }
        }
        if !items.is_empty() {
            let work = crate::task::caught(async { Ok(self.task.run_batch(&items).await) });
            let outcomes = tokio::select! {
                outcomes = tokio::time::timeout_at(budget.until.into(), work) => outcomes,
                never = self.renew(runs) => match never {},
            };
            let why = match outcomes {
                Ok(Ok(outcomes)) => {
                    for (position, outcome) in positions.iter().zip(outcomes) {
                        let run = &runs[*position];
                        verdicts[*position] = Some(match outcome {
                            Ok(outcome) => verdict::<T>(run, outcome),
                            Err(error) => failure::<T>(run, &error),
                        });
                    }
                    TaskError::permanent(ErrorCode::INTERNAL, anyhow::anyhow!("the task gave no outcome for this run"))
                }
                Ok(Err(panic)) => panic,
                Err(_) => TaskError::transient(
                    ErrorCode::SLICE_TIMEOUT,
                    anyhow::anyhow!("the slice of {:?} ended before the work did", T::KIND.policy().slice),
                ),
            };
            for position in positions {
                let run = &runs[position];
                verdicts[position].get_or_insert_with(|| failure::<T>(run, &why));
            }
        }
        runs.iter()
            .zip(verdicts)
            .map(|(run, decided)| {
                let (verdict, effect) = decided.unwrap_or((Verdict::Cancelled, None));
                log(T::KIND, run, &verdict);
                (Settlement { run: run.id, lease: run.lease, verdict }, effect)
            })
            .unzip()
    }

    /// Signs of life while the work runs. A failed one is no matter: the next may do, and the fence
    /// decides in the end.
    async fn renew(&self, runs: &[Claimed]) -> Infallible {
        let ids: Vec<RunId> = runs.iter().map(|r| r.id).collect();
        loop {
            tokio::time::sleep(T::KIND.policy().beat()).await;
            let renewed = async {
                let mut conn = self.db.conn().await?;
                runs::renew(&mut conn, T::KIND, runs[0].lease, &ids).await
            };
            if let Err(error) = renewed.await {
                tracing::warn!(%error, run.kind = %T::KIND, "a lease could not be renewed");
            }
        }
    }

    fn item(&self, run: &Claimed, budget: Budget) -> Result<Item<T>, TaskError> {
        let input = serde_json::from_value(run.input.clone())
            .map_err(|e| TaskError::permanent(ErrorCode::BAD_INPUT, anyhow::anyhow!("input: {e}")))?;
        let phase = Instant::now() + Duration::from_secs_f64(run.phase_left_s.clamp(0.0, 86_400.0));
        Ok(Item {
            cx: Cx {
                db: self.db.clone(),
                budget: Budget { until: budget.until.min(phase) },
                run: run.id,
                crawl: run.crawl,
                entity: run.entity,
                attempt: run.attempt,
                last_attempt: run.attempt >= run.max_attempts,
                lease: run.lease,
            },
            input,
            cursor: run.cursor.clone(),
        })
    }

    /// Settles the whole set; when that fails for a reason of its own, run by run, so that one
    /// item's failure stays its own.
    async fn settle(
        &self,
        runs: &[Claimed],
        settlements: Vec<Settlement>,
        effects: Effects<T>,
    ) -> Result<(), StoreError> {
        match self.settle_patiently(runs, &settlements, &effects).await {
            Err(error) if error.is_permanent() && runs.len() > 1 => {
                tracing::warn!(%error, run.kind = %T::KIND, "settling one by one");
                let mut last = Ok(());
                for ((run, settlement), effect) in runs.iter().zip(settlements).zip(effects) {
                    let outcome = self.settle_alone(run, settlement, effect).await;
                    if outcome.is_err() {
                        last = outcome;
                    }
                }
                last
            }
            Err(error) if error.is_permanent() => self.settle_failed(&runs[0], &error).await,
            other => other,
        }
    }

    async fn settle_alone(
        &self,
        run: &Claimed,
        settlement: Settlement,
        effect: Option<T::Effect>,
    ) -> Result<(), StoreError> {
        match self.settle_patiently(std::slice::from_ref(run), &[settlement], &[effect]).await {
            Err(error) if error.is_permanent() => self.settle_failed(run, &error).await,
            other => other,
        }
    }

    /// The effects cannot be written: the run fails with that as its error.
    async fn settle_failed(&self, run: &Claimed, error: &StoreError) -> Result<(), StoreError> {
        let error = TaskError::transient(ErrorCode::INTERNAL, anyhow::anyhow!("writing the result: {error}"));
        let (verdict, _) = failure::<T>(run, &error);
        let settlement = Settlement { run: run.id, lease: run.lease, verdict };
        self.settle_patiently(std::slice::from_ref(run), &[settlement], &[None]).await
    }

    /// A few tries against a database that is restarting; the lease outlives them.
    async fn settle_patiently(
        &self,
        runs: &[Claimed],
        settlements: &[Settlement],
        effects: &[Option<T::Effect>],
    ) -> Result<(), StoreError> {
        let mut wait = Duration::from_millis(50);
        loop {
            match self.settle_once(runs, settlements, effects).await {
                Err(error) if !error.is_permanent() && wait < Duration::from_secs(7) => {
                    tracing::warn!(%error, run.kind = %T::KIND, "settle will be tried again");
                    tokio::time::sleep(wait).await;
                    wait *= 3;
                }
                other => return other,
            }
        }
    }

    async fn settle_once(
        &self,
        runs: &[Claimed],
        settlements: &[Settlement],
        effects: &[Option<T::Effect>],
    ) -> Result<(), StoreError> {
        let plain = size_of::<T::Effect>() == 0
            && settlements.iter().all(|s| !matches!(s.verdict, Verdict::Failed { .. } | Verdict::Continue(_)));
        if plain {
            // Nothing else to write: one statement, its own transaction.
            let mut conn = self.db.conn().await?;
            runs::settle(&mut conn, settlements).await?;
            drop(conn);
            ring_again(&*self.bell, T::KIND, settlements).await;
            return Ok(());
        }
        let mut tx = self.db.begin().await?;
        let held: HashSet<RunId> = runs::settle(&mut tx, settlements).await?.into_iter().collect();
        let mut rings = self.apply_held(&mut tx, &held, settlements, effects).await?;
        let mut failed = Vec::new();
        for (run, s) in runs.iter().zip(settlements).filter(|(r, _)| held.contains(&r.id)) {
            match &s.verdict {
                Verdict::Failed { code, error } => failed.push(FailedRun {
                    id: run.id,
                    kind: T::KIND,
                    crawl: run.crawl,
                    entity: run.entity,
                    code: *code,
                    error: error.clone(),
                }),
                Verdict::Continue(_) => rings.push(RunRef { id: run.id, kind: T::KIND }),
                _ => {}
            }
        }
        rings.extend(crawls::runs_failed(&mut tx, &failed).await?);
        tx.commit().await?;
        ring(&*self.bell, &rings).await;
        ring_again(&*self.bell, T::KIND, settlements).await;
        Ok(())
    }

    async fn apply_held(
        &self,
        tx: &mut fonds_store::Conn,
        held: &HashSet<RunId>,
        settlements: &[Settlement],
        effects: &[Option<T::Effect>],
    ) -> Result<Vec<RunRef>, StoreError> {
        if size_of::<T::Effect>() == 0 {
            return Ok(Vec::new());
        }
        let pending: Vec<&T::Effect> = settlements
            .iter()
            .zip(effects)
            .filter(|(s, _)| held.contains(&s.run))
            .filter_map(|(_, effect)| effect.as_ref())
            .collect();
        if pending.is_empty() { Ok(Vec::new()) } else { self.task.apply(tx, &pending).await }
    }
}

/// Rings after a commit. A bell that fails is no loss: the sweep rings what stays quiet.
pub(crate) async fn ring(bell: &dyn Bell, refs: &[RunRef]) {
    if refs.is_empty() {
        return;
    }
    let rings: Vec<Ring> = refs.iter().map(|r| Ring::new(r.id.0, r.kind.as_str())).collect();
    if let Err(error) = bell.ring(&rings).await {
        tracing::warn!(%error, runs = rings.len(), "ringing failed; the sweep will ring again");
    }
}

/// Rings for what is to be tried later; the row's `not_before` decides, the delay only saves an
/// empty claim.
async fn ring_again(bell: &dyn Bell, kind: Kind, settlements: &[Settlement]) {
    let rings: Vec<Ring> = settlements
        .iter()
        .filter_map(|s| match &s.verdict {
            Verdict::Retry { delay, .. } | Verdict::Snooze(delay) => {
                Some(Ring::new(s.run.0, kind.as_str()).after(*delay))
            }
            _ => None,
        })
        .collect();
    if !rings.is_empty()
        && let Err(error) = bell.ring(&rings).await
    {
        tracing::warn!(%error, runs = rings.len(), "ringing failed; the sweep will ring again");
    }
}

fn verdict<T: Task>(run: &Claimed, outcome: Outcome<T>) -> (Verdict, Option<T::Effect>) {
    match outcome {
        Outcome::Done(effect) => (Verdict::Succeeded, Some(effect)),
        Outcome::Snooze(delay) => (Verdict::Snooze(delay), None),
        Outcome::Hold => (Verdict::Hold, None),
        Outcome::Cancel(effect) => (Verdict::Cancelled, effect),
        Outcome::Discard(why) => (Verdict::Discarded(why), None),
        Outcome::Continue(cursor, effect) => match serde_json::to_value(&cursor) {
            Ok(next) if next == run.cursor.clone().unwrap_or(Value::Null) => (
                Verdict::Failed {
                    code: ErrorCode::NO_PROGRESS,
                    error: format!("two slices in a row ended at the cursor {next}"),
                },
                None,
            ),
            Ok(next) => (Verdict::Continue(next), effect),
            Err(e) => (Verdict::Failed { code: ErrorCode::INTERNAL, error: format!("cursor: {e}") }, None),
        },
    }
}

fn failure<T: Task>(run: &Claimed, error: &TaskError) -> (Verdict, Option<T::Effect>) {
    let text = error.to_string();
    let verdict = match error {
        TaskError::Permanent { code, .. } => Verdict::Failed { code: *code, error: text },
        TaskError::Transient { code, .. } if run.attempt >= run.max_attempts => {
            Verdict::Failed { code: *code, error: text }
        }
        TaskError::Transient { code, .. } => {
            Verdict::Retry { delay: backoff(run.attempt, run.id.0.as_u128() as u64), code: *code, error: text }
        }
    };
    (verdict, None)
}

fn log(kind: Kind, run: &Claimed, verdict: &Verdict) {
    let (id, attempt) = (run.id, run.attempt);
    match verdict {
        Verdict::Failed { code, error } => {
            tracing::warn!(run.id = %id, run.kind = %kind, run.attempt = attempt, %code, error, "run {id} failed");
        }
        Verdict::Retry { code, error, delay } => {
            tracing::info!(run.id = %id, run.kind = %kind, run.attempt = attempt, %code, error,
                delay_ms = delay.as_millis() as u64, "run {id} will be tried again");
        }
        other => {
            tracing::debug!(run.id = %id, run.kind = %kind, run.attempt = attempt, verdict = ?other, "run {id} settled")
        }
    }
}
