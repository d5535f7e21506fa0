//! The executor's promises, on a real database with a toy task.

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use fonds_domain::{ErrorCode, Kind, Priority, RunId};
use fonds_queues::{Bell, RecordingBell, encode_message};
use fonds_store::runs::{self, NewRun, RunRef};
use fonds_store::{Conn, Db, StoreError};
use fonds_task::{Cx, Executed, Executor, Outcome, Runner, Select, Task, TaskError};
use serde_json::{Value, json};
use sqlx::{PgPool, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Does what its input says.
struct Toy {
    snoozed: AtomicBool,
}

impl Task for Toy {
    const KIND: Kind = Kind::SnapshotPlain;
    type Input = String;
    type Cursor = u32;
    type Effect = String;

    async fn run(&self, cx: &Cx, input: &String, cursor: u32) -> Result<Outcome<Self>, TaskError> {
        match input.as_str() {
            "panic" => panic!("on purpose"),
            "flaky" if cx.attempt < 3 => {
                Err(TaskError::transient(ErrorCode::FETCH_TIMEOUT, anyhow::anyhow!("not yet")))
            }
            "never" => Err(TaskError::transient(ErrorCode::FETCH_TIMEOUT, anyhow::anyhow!("never"))),
            "wrong" => Err(TaskError::permanent(ErrorCode::INVALID_URL, anyhow::anyhow!("no use"))),
            "slices" if cursor < 5 => Ok(Outcome::Continue(cursor + 1, None)),
            "stuck" => Ok(Outcome::Continue(7, None)),
            // Snoozing costs no attempt, so the attempt cannot tell the first time from the second.
            "snooze" if !self.snoozed.swap(true, Ordering::SeqCst) => Ok(Outcome::Snooze(Duration::from_secs(40))),
            "hold" => Ok(Outcome::Hold),
            "hang" => std::future::pending().await,
            "nothing" => Ok(Outcome::Discard("nothing to do")),
            other => Ok(Outcome::Done(other.to_owned())),
        }
    }

    async fn apply(&self, conn: &mut Conn, effects: &[&String]) -> Result<Vec<RunRef>, StoreError> {
        for effect in effects {
            if effect.as_str() == "poison" {
                sqlx::query("SELECT 1/0").execute(&mut *conn).await?;
            }
            // A row, so that it goes with its transaction; a second one of the same name is refused.
            sqlx::query("INSERT INTO app_setting (key, value) VALUES ($1, '1')")
                .bind(effect.as_str())
                .execute(&mut *conn)
                .await?;
        }
        Ok(Vec::new())
    }
}

struct World {
    db: Db,
    bell: Arc<RecordingBell>,
    runner: Executor<Toy>,
}

impl World {
    fn new(pool: PgPool) -> World {
        let db = Db::from_pool(pool);
        let bell = Arc::new(RecordingBell::new());
        let shared: Arc<dyn Bell> = bell.clone();
        let runner = Executor::new(Toy { snoozed: AtomicBool::new(false) }, db.clone(), shared);
        World { db, bell, runner }
    }

    async fn enqueue(&self, inputs: &[&str]) -> Vec<RunId> {
        let runs: Vec<NewRun> = inputs
            .iter()
            .map(|input| NewRun {
                kind: Kind::SnapshotPlain,
                crawl: None,
                entity: None,
                input: json!(input),
                priority: Priority::SUBMITTED,
            })
            .collect();
        let mut conn = self.db.conn().await.expect("database");
        runs::enqueue(&mut conn, &runs).await.expect("enqueued").into_iter().map(|r| r.id).collect()
    }

    async fn row(&self, id: RunId) -> (String, Option<String>, i32, i32, Option<String>) {
        let row = sqlx::query("SELECT status, error_code, attempt, step, error FROM task_run WHERE id = $1")
            .bind(id.0)
            .fetch_one(self.db.pool())
            .await
            .expect("the run");
        (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))
    }

    async fn drain(&self) -> usize {
        let mut total = fonds_task::testing::drain(&[&self.runner]).await;
        for _ in 0..6 {
            fonds_task::testing::elapse(&self.db, Duration::from_secs(100)).await;
            total += fonds_task::testing::drain(&[&self.runner]).await;
        }
        total
    }
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn every_way_to_end_leaves_its_mark_and_one_item_does_not_touch_another(pool: PgPool) {
    let world = World::new(pool);
    let inputs = ["fine", "panic", "flaky", "never", "wrong", "slices", "stuck", "snooze", "nothing", "poison", "hold"];
    let ids = world.enqueue(&inputs).await;
    world.drain().await;
    // input, status, code, attempts, slices
    let expected = [
        ("fine", "succeeded", None, 1, 0),
        ("panic", "failed", Some("PANICKED"), 1, 0),
        ("flaky", "succeeded", None, 3, 0),
        ("never", "failed", Some("FETCH_TIMEOUT"), 3, 0),
        ("wrong", "failed", Some("INVALID_URL"), 1, 0),
        ("slices", "succeeded", None, 1, 5),
        ("stuck", "failed", Some("NO_PROGRESS"), 1, 1),
        ("snooze", "succeeded", None, 1, 0),
        ("nothing", "discarded", None, 1, 0),
        ("poison", "failed", Some("INTERNAL"), 3, 0),
        ("hold", "queued", None, 0, 0),
    ];
    for (id, (input, status, code, attempt, step)) in ids.iter().zip(expected) {
        let row = world.row(*id).await;
        assert_eq!((row.0.as_str(), row.1.as_deref(), row.2, row.3), (status, code, attempt, step), "{input}: {row:?}");
    }
    let written: Vec<String> =
        sqlx::query_scalar("SELECT key FROM app_setting ORDER BY key").fetch_all(world.db.pool()).await.expect("read");
    assert_eq!(written, ["fine", "flaky", "slices", "snooze"], "each wrote its effect once, and nobody else");
    let (_, _, _, _, error) = world.row(ids[1]).await;
    assert_eq!(error.as_deref(), Some("on purpose"), "the panic's message is kept");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_slice_that_does_not_end_is_ended_and_tried_again(pool: PgPool) {
    let world = World::new(pool);
    let ids = world.enqueue(&["hang"]).await;
    // The margin is kept back from the slice, so a slice as short as it has no time to work.
    let ended = world.runner.execute(Select::Next(1), Kind::SnapshotPlain.policy().margin, &|_| ()).await;
    assert_eq!(ended, Executed::Settled(1));
    let row = world.row(ids[0]).await;
    assert_eq!((row.0.as_str(), row.1.as_deref()), ("queued", Some("SLICE_TIMEOUT")));
    let rings = world.bell.take();
    assert_eq!(rings.len(), 1);
    assert!(rings[0].delay.is_some_and(|d| d >= Duration::from_secs(5)), "rung again after its backoff");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn two_claimers_never_hold_one_run(pool: PgPool) {
    let world = World::new(pool);
    let ids = world.enqueue(&vec!["fine"; 200]).await;
    let claims = (0..8).map(|_| async {
        let mut held = Vec::new();
        loop {
            let mut conn = world.db.conn().await.expect("database");
            let some = runs::claim(&mut conn, Kind::SnapshotPlain, &Select::Next(7)).await.expect("claimed");
            if some.is_empty() {
                return held;
            }
            held.extend(some.into_iter().map(|c| c.id));
        }
    });
    let mut all: Vec<RunId> = futures_util::future::join_all(claims).await.concat();
    all.sort_unstable();
    let mut expected = ids.clone();
    expected.sort_unstable();
    // A claimer that met only locked rows may have ended early; what is left is claimed once more.
    let mut conn = world.db.conn().await.expect("database");
    all.extend(
        runs::claim(&mut conn, Kind::SnapshotPlain, &Select::Next(500)).await.expect("claimed").iter().map(|c| c.id),
    );
    all.sort_unstable();
    assert_eq!(all, expected);
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_lambda_batch_gives_back_only_what_could_not_be_recorded(pool: PgPool) {
    let world = World::new(pool);
    let ids = world.enqueue(&["fine", "never"]).await;
    let message = |id: &str, body: String| {
        let mut m = SqsMessage::default();
        m.message_id = Some(id.to_owned());
        m.body = Some(body);
        m
    };
    let kind = Kind::SnapshotPlain.as_str();
    let mut event = SqsEvent::default();
    event.records = vec![
        message("a", encode_message(ids[0].0, kind)),
        message("b", encode_message(ids[1].0, kind)),
        message("again", encode_message(ids[0].0, kind)),
        message("broken", "{\"run\": 7".to_owned()),
        message("gone", encode_message(uuid::Uuid::now_v7(), kind)),
    ];
    let response = fonds_task::lambda::handle(&world.runner, event, Duration::from_secs(60)).await;
    let again: Vec<_> = response.batch_item_failures.iter().map(|f| f.item_identifier.as_str()).collect();
    assert_eq!(again, ["broken"]);
    assert_eq!(world.row(ids[0]).await.0, "succeeded");
    assert_eq!(world.row(ids[1]).await.0, "queued", "a handled failure is recorded, not redelivered");
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn a_status_moves_only_as_the_table_says(pool: PgPool) {
    use fonds_domain::RunStatus;
    let rows: Vec<(String, String)> = sqlx::query_as("SELECT old, new FROM status_transition WHERE entity = 'run'")
        .fetch_all(&pool)
        .await
        .expect("rows");
    for &old in RunStatus::ALL {
        for &new in RunStatus::ALL {
            let listed = rows.iter().any(|(o, n)| o == old.as_str() && n == new.as_str());
            assert_eq!(listed, old.may_become(new), "{old} -> {new}");
        }
    }
    let world = World::new(pool);
    let ids = world.enqueue(&["fine"]).await;
    world.drain().await;
    let revived = sqlx::query("UPDATE task_run SET status = 'queued', finished_at = NULL WHERE id = $1")
        .bind(ids[0].0)
        .execute(world.db.pool())
        .await;
    assert!(revived.expect_err("refused").to_string().contains("illegal run transition succeeded -> queued"));
}

#[sqlx::test(migrator = "fonds_store::MIGRATOR")]
async fn what_is_due_comes_by_urgency_and_then_by_age(pool: PgPool) {
    let world = World::new(pool);
    let mut conn = world.db.conn().await.expect("database");
    for priority in [Priority::RETRY, Priority::page(2, false), Priority::SUBMITTED, Priority::page(1, false)] {
        let run = NewRun { kind: Kind::SnapshotPlain, crawl: None, entity: None, input: Value::Null, priority };
        runs::enqueue(&mut conn, &[run.clone(), run]).await.expect("enqueued");
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        for claimed in runs::claim(&mut conn, Kind::SnapshotPlain, &Select::Next(2)).await.expect("claimed") {
            let priority: i16 = sqlx::query_scalar("SELECT priority FROM task_run WHERE id = $1")
                .bind(claimed.id.0)
                .fetch_one(&mut *conn)
                .await
                .expect("row");
            order.push(priority);
        }
    }
    assert_eq!(order, [0, 0, 101, 101, 102, 102, 300, 300]);
}
