//! `Idempotency-Key`: a submission that is sent twice is made once.
//!
//! The key's row is inserted before the crawl, in the same transaction. A concurrent twin waits at
//! that insert until the first commits, and then finds its row; so no crawl is made to be undone.

use crate::{Conn, StoreError};
use fonds_domain::{CrawlId, TokenId};
use uuid::Uuid;

/// What a key says about a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Not seen before: make the crawl, then [`bind`] it.
    Fresh,
    /// Made before, by the same body.
    Replay(CrawlId),
    /// Used before, with another body.
    Mismatch,
}

/// Claims a key within the caller's transaction.
///
/// # Errors
/// When the database fails.
pub async fn claim(c: &mut Conn, token: TokenId, key: &str, body_hash: &[u8; 32]) -> Result<Claim, StoreError> {
    // A row that is deleted between the two statements is claimed in the next round.
    for _ in 0..3 {
        let inserted = sqlx::query!(
            r#"INSERT INTO idempotency (token_id, key, body_hash, crawl_id) VALUES ($1, $2, $3, $4)
               ON CONFLICT (token_id, key) DO NOTHING"#,
            token.0,
            key,
            &body_hash[..],
            Uuid::nil(),
        )
        .execute(&mut *c)
        .await?;
        if inserted.rows_affected() == 1 {
            return Ok(Claim::Fresh);
        }
        let row =
            sqlx::query!("SELECT body_hash, crawl_id FROM idempotency WHERE token_id = $1 AND key = $2", token.0, key)
                .fetch_optional(&mut *c)
                .await?;
        match row {
            Some(row) if row.body_hash == body_hash => return Ok(Claim::Replay(CrawlId(row.crawl_id))),
            Some(_) => return Ok(Claim::Mismatch),
            None => {}
        }
    }
    Err(StoreError::Stored(format!("idempotency key {key:?} comes and goes")))
}

/// Writes which crawl a fresh key made.
///
/// # Errors
/// When the database fails.
pub async fn bind(c: &mut Conn, token: TokenId, key: &str, crawl: CrawlId) -> Result<(), StoreError> {
    sqlx::query!("UPDATE idempotency SET crawl_id = $3 WHERE token_id = $1 AND key = $2", token.0, key, crawl.0)
        .execute(c)
        .await?;
    Ok(())
}

/// Forgets up to `limit` keys older than `age_s` seconds, for the daily retention.
///
/// # Errors
/// When the database fails.
pub async fn expire(c: &mut Conn, age_s: f64, limit: i64) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        r#"DELETE FROM idempotency WHERE (token_id, key) IN (
               SELECT token_id, key FROM idempotency WHERE created_at < now() - make_interval(secs => $1)
               LIMIT $2 FOR UPDATE SKIP LOCKED)"#,
        age_s,
        limit,
    )
    .execute(c)
    .await?;
    Ok(done.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;

    #[sqlx::test(migrator = "crate::MIGRATOR")]
    async fn a_key_belongs_to_one_body_of_one_token(pool: sqlx::PgPool) {
        let db = Db::from_pool(pool);
        let (alice, bob) = (TokenId::fresh(), TokenId::fresh());
        let crawl = CrawlId::fresh();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(claim(&mut tx, alice, "k", &[1; 32]).await.unwrap(), Claim::Fresh);
        bind(&mut tx, alice, "k", crawl).await.unwrap();
        tx.commit().await.unwrap();

        let mut c = db.conn().await.unwrap();
        assert_eq!(claim(&mut c, alice, "k", &[1; 32]).await.unwrap(), Claim::Replay(crawl));
        assert_eq!(claim(&mut c, alice, "k", &[2; 32]).await.unwrap(), Claim::Mismatch);
        assert_eq!(claim(&mut c, bob, "k", &[2; 32]).await.unwrap(), Claim::Fresh);
        assert_eq!(expire(&mut c, 3600.0, 10).await.unwrap(), 0);
        assert_eq!(expire(&mut c, -1.0, 10).await.unwrap(), 2);
        assert_eq!(claim(&mut c, alice, "k", &[3; 32]).await.unwrap(), Claim::Fresh);
    }

    #[sqlx::test(migrator = "crate::MIGRATOR")]
    async fn a_rolled_back_submission_leaves_the_key_free(pool: sqlx::PgPool) {
        let db = Db::from_pool(pool);
        let token = TokenId::fresh();
        let mut tx = db.begin().await.unwrap();
        assert_eq!(claim(&mut tx, token, "k", &[1; 32]).await.unwrap(), Claim::Fresh);
        tx.rollback().await.unwrap();
        let mut c = db.conn().await.unwrap();
        assert_eq!(claim(&mut c, token, "k", &[2; 32]).await.unwrap(), Claim::Fresh);
    }
}
