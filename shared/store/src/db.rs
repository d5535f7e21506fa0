//! The pool, transactions, migrations and the error type.

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::time::Duration;

/// A connection, in a transaction or not.
pub type Conn = sqlx::PgConnection;

/// The migrations, run by a command before a deployment and never at a cold start.
pub static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!("./migrations");

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, or answered with an error.
    #[error("database: {0}")]
    Db(#[from] sqlx::Error),
    /// A migration failed.
    #[error("migration: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A stored value that this version cannot read.
    #[error("stored value: {0}")]
    Stored(String),
}

impl StoreError {
    /// Whether trying again cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            StoreError::Db(sqlx::Error::Database(e)) => {
                // Class 40: serialization failure and deadlock; 53: out of resources; 57: shutdown.
                !e.code().is_some_and(|c| ["40", "53", "57"].iter().any(|class| c.starts_with(class)))
            }
            StoreError::Db(_) => false,
            StoreError::Migrate(_) | StoreError::Stored(_) => true,
        }
    }

    /// The violated constraint's name, when that is what happened.
    #[must_use]
    pub fn constraint(&self) -> Option<&str> {
        match self {
            StoreError::Db(sqlx::Error::Database(e)) => e.constraint(),
            _ => None,
        }
    }
}

impl From<fonds_domain::status::UnknownStatus> for StoreError {
    fn from(e: fonds_domain::status::UnknownStatus) -> Self {
        StoreError::Stored(e.to_string())
    }
}

impl From<fonds_domain::kind::UnknownKind> for StoreError {
    fn from(e: fonds_domain::kind::UnknownKind) -> Self {
        StoreError::Stored(e.to_string())
    }
}

/// How to reach the database.
#[derive(Debug, Clone)]
pub struct DbConfig {
    /// `postgres://...`, a unix socket as `postgres:///name?host=/dir`.
    pub url: String,
    /// Connections at most: one in a Lambda function, a few in the one-process host.
    pub max_connections: u32,
}

/// The pool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Db {
    pool: PgPool,
}

impl Db {
    /// Prepares a pool; connects at the first use.
    ///
    /// # Errors
    /// When the URL cannot be read.
    pub fn connect_lazy(config: &DbConfig) -> Result<Db, StoreError> {
        let options = PgConnectOptions::from_str(&config.url)?
            .application_name("fonds")
            .statement_cache_capacity(256)
            .options([("statement_timeout", "60s"), ("lock_timeout", "30s"), ("jit", "off")]);
        let pool = PgPoolOptions::new()
            .max_connections(config.max_connections)
            .min_connections(0)
            .acquire_timeout(Duration::from_secs(10))
            .connect_lazy_with(options);
        Ok(Db { pool })
    }

    /// Wraps a pool made elsewhere (`#[sqlx::test]`).
    #[must_use]
    pub fn from_pool(pool: PgPool) -> Db {
        Db { pool }
    }

    /// A connection from the pool.
    ///
    /// # Errors
    /// When none can be had in time.
    pub async fn conn(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Postgres>, StoreError> {
        Ok(self.pool.acquire().await?)
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// When no connection can be had in time.
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        Ok(Tx(self.pool.begin().await?))
    }

    /// Applies the migrations that are missing.
    ///
    /// # Errors
    /// When one fails or the database is ahead of this version.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        Ok(MIGRATOR.run(&self.pool).await?)
    }

    /// The pool itself, for listeners and tests.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// A transaction; rolled back when dropped.
pub struct Tx(sqlx::Transaction<'static, sqlx::Postgres>);

impl Tx {
    /// Commits.
    ///
    /// # Errors
    /// When the commit fails; the outcome is then unknown to the caller and decided by the fence.
    pub async fn commit(self) -> Result<(), StoreError> {
        Ok(self.0.commit().await?)
    }

    /// Rolls back.
    ///
    /// # Errors
    /// When the connection is gone; the server rolls back by itself then.
    pub async fn rollback(self) -> Result<(), StoreError> {
        Ok(self.0.rollback().await?)
    }
}

impl Deref for Tx {
    type Target = Conn;
    fn deref(&self) -> &Conn {
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.0
    }
}
