//! API tokens. Only the SHA-256 of a secret is stored; a secret has 256 random bits, so nothing
//! slower than one hash is needed to keep a stolen table useless.

use crate::{Conn, StoreError};
use chrono::{DateTime, Utc};
use fonds_domain::TokenId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// What every secret starts with, so that scanners for leaked credentials can know it.
pub const PREFIX: &str = "fonds_";

/// What a token may do. A wider scope includes the narrower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Look.
    Read,
    /// Submit, change, delete.
    Write,
    /// Tokens.
    Admin,
}

impl Scope {
    /// The text stored in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = StoreError;
    fn from_str(name: &str) -> Result<Self, StoreError> {
        [Scope::Read, Scope::Write, Scope::Admin]
            .into_iter()
            .find(|s| s.as_str() == name)
            .ok_or_else(|| StoreError::Stored(format!("unknown scope {name:?}")))
    }
}

/// A token as people see it: everything but the secret.
#[derive(Debug, Clone)]
pub struct Token {
    /// The row.
    pub id: TokenId,
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Last use, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// The bearer of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bearer {
    /// The token.
    pub id: TokenId,
    /// Its widest scope.
    pub scope: Scope,
}

impl Bearer {
    /// Whether it may do what `wanted` stands for.
    #[must_use]
    pub fn may(&self, wanted: Scope) -> bool {
        self.scope >= wanted
    }
}

fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}

fn scopes(names: &[String]) -> Result<Vec<Scope>, StoreError> {
    names.iter().map(|n| n.parse()).collect()
}

/// Makes a token. The secret is in the answer and nowhere else.
///
/// # Errors
/// When the database fails.
pub async fn create(
    c: &mut Conn,
    name: &str,
    scopes: &[Scope],
    expires_at: Option<DateTime<Utc>>,
) -> Result<(TokenId, String), StoreError> {
    let random: [u8; 32] = rand::random();
    let secret = format!("{PREFIX}{}", base64url(&random));
    let id = TokenId::fresh();
    let names: Vec<String> = scopes.iter().map(|s| s.as_str().to_owned()).collect();
    sqlx::query!(
        "INSERT INTO api_token (id, name, hash, scopes, expires_at) VALUES ($1, $2, $3, $4, $5)",
        id.0,
        name,
        hash(&secret),
        &names,
        expires_at,
    )
    .execute(c)
    .await?;
    Ok((id, secret))
}

/// Finds the token of a secret and stamps its use, at most once a minute so that a busy client
/// does not rewrite the row with every request. Unknown, expired and revoked are all none.
///
/// # Errors
/// When the database fails or the row holds a scope of another version.
pub async fn authenticate(c: &mut Conn, secret: &str) -> Result<Option<Bearer>, StoreError> {
    if !secret.starts_with(PREFIX) || secret.len() > 200 {
        return Ok(None);
    }
    let row = sqlx::query!(
        r#"SELECT id, scopes, last_used_at IS NULL OR last_used_at < now() - interval '1 minute' AS "stale!"
           FROM api_token
           WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"#,
        hash(secret),
    )
    .fetch_optional(&mut *c)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let Some(scope) = scopes(&row.scopes)?.into_iter().max() else { return Ok(None) };
    if row.stale {
        // Skipping a locked row: another request of the same client is stamping it this moment.
        sqlx::query!(
            r#"UPDATE api_token SET last_used_at = now()
               WHERE id IN (SELECT id FROM api_token WHERE id = $1 FOR UPDATE SKIP LOCKED)"#,
            row.id
        )
        .execute(c)
        .await?;
    }
    Ok(Some(Bearer { id: TokenId(row.id), scope }))
}

/// Tokens, newest first, below `before`.
///
/// # Errors
/// When the database fails.
pub async fn list(c: &mut Conn, before: Option<TokenId>, limit: i64) -> Result<Vec<Token>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT id, name, scopes, created_at, last_used_at, expires_at, revoked_at FROM api_token
           WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2"#,
        before.map(|t| t.0),
        limit,
    )
    .fetch_all(c)
    .await?;
    rows.into_iter()
        .map(|r| {
            Ok(Token {
                id: TokenId(r.id),
                name: r.name,
                scopes: scopes(&r.scopes)?,
                created_at: r.created_at,
                last_used_at: r.last_used_at,
                expires_at: r.expires_at,
                revoked_at: r.revoked_at,
            })
        })
        .collect()
}

/// Revokes a token at once. False when there is none.
///
/// # Errors
/// When the database fails.
pub async fn revoke(c: &mut Conn, id: TokenId) -> Result<bool, StoreError> {
    let done = sqlx::query!("UPDATE api_token SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1", id.0)
        .execute(c)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// The key that signs short-lived links, shared by every process on this database and made by the
/// first that asks. Whoever can read it here can read the archive's rows anyway.
///
/// # Errors
/// When the database fails or the setting is damaged.
pub async fn signing_key(c: &mut Conn) -> Result<[u8; 32], StoreError> {
    const KEY: &str = "api.signing_key";
    let fresh: [u8; 32] = rand::random();
    sqlx::query!(
        "INSERT INTO app_setting (key, value) VALUES ($1, to_jsonb($2::text)) ON CONFLICT (key) DO NOTHING",
        KEY,
        hex::encode(fresh),
    )
    .execute(&mut *c)
    .await?;
    let stored = sqlx::query_scalar!(r#"SELECT value #>> '{}' AS "value!" FROM app_setting WHERE key = $1"#, KEY)
        .fetch_one(c)
        .await?;
    let mut key = [0; 32];
    hex::decode_to_slice(&stored, &mut key).map_err(|e| StoreError::Stored(format!("{KEY}: {e}")))?;
    Ok(key)
}

/// RFC 4648 section 5 without padding.
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..=chunk.len() {
            let index = (word >> (18 - 6 * i)) & 63;
            out.push(char::from(ALPHABET[index as usize]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Db;
    use chrono::TimeDelta;

    #[test]
    fn base64url_is_rfc_4648() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (&[0xfb, 0xff, 0xfe], "-__-"),
        ] {
            assert_eq!(base64url(bytes), text);
        }
    }

    #[sqlx::test(migrator = "crate::MIGRATOR")]
    async fn a_secret_works_until_it_is_revoked_or_expires(pool: sqlx::PgPool) {
        let db = Db::from_pool(pool);
        let mut c = db.conn().await.unwrap();
        let (id, secret) = create(&mut c, "laptop", &[Scope::Read, Scope::Write], None).await.unwrap();
        assert!(secret.starts_with(PREFIX) && secret.len() == PREFIX.len() + 43, "{secret}");

        let bearer = authenticate(&mut c, &secret).await.unwrap().expect("known");
        assert_eq!(bearer.id, id);
        assert!(bearer.may(Scope::Read) && bearer.may(Scope::Write) && !bearer.may(Scope::Admin));
        let used = list(&mut c, None, 10).await.unwrap()[0].last_used_at.expect("stamped");
        authenticate(&mut c, &secret).await.unwrap().expect("known");
        assert_eq!(list(&mut c, None, 10).await.unwrap()[0].last_used_at, Some(used), "not stamped twice a minute");

        for wrong in ["", "fonds_", &secret[..secret.len() - 1], &secret.to_lowercase(), &"fonds_x".repeat(100)] {
            assert_eq!(authenticate(&mut c, wrong).await.unwrap(), None, "{wrong}");
        }
        assert!(revoke(&mut c, id).await.unwrap() && revoke(&mut c, id).await.unwrap());
        assert_eq!(authenticate(&mut c, &secret).await.unwrap(), None);
        assert!(!revoke(&mut c, TokenId::fresh()).await.unwrap());

        let past = Utc::now() - TimeDelta::seconds(1);
        let (_, expired) = create(&mut c, "old", &[Scope::Admin], Some(past)).await.unwrap();
        assert_eq!(authenticate(&mut c, &expired).await.unwrap(), None);
    }

    #[sqlx::test(migrator = "crate::MIGRATOR")]
    async fn the_signing_key_is_made_once(pool: sqlx::PgPool) {
        let db = Db::from_pool(pool);
        let first = signing_key(&mut db.conn().await.unwrap()).await.unwrap();
        assert_eq!(signing_key(&mut db.conn().await.unwrap()).await.unwrap(), first);
        assert_ne!(first, [0; 32]);
    }
}
