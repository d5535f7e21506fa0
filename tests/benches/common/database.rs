//! A database that lives as long as one benchmark.

use anyhow::Context;
use fonds_store::{Db, DbConfig};
use sqlx::{Connection, PgConnection};
use url::Url;

/// A migrated, empty database on the server that `DATABASE_URL` names.
pub(crate) struct Database {
    /// The pool, as the one-process host makes it.
    pub(crate) db: Db,
    url: Url,
}

impl Database {
    /// Makes the database, lets `work` use it and drops it, whatever comes of the work.
    pub(crate) async fn with<T>(
        bench: &str,
        work: impl AsyncFnOnce(&Database) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let server = std::env::var("DATABASE_URL").context("DATABASE_URL names the server; ./fonds bench sets it")?;
        let mut url = Url::parse(&server).context("DATABASE_URL")?;
        let name = format!("fonds_bench_{bench}_{}", std::process::id());
        url.set_path(&name);
        let mut admin = PgConnection::connect(&server).await.context("the database server")?;
        sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await?;
        let db = Db::connect_lazy(&DbConfig { url: url.to_string(), max_connections: 40 })?;
        let database = Database { db, url };
        let worked = async {
            database.db.migrate().await?;
            work(&database).await
        };
        let worked = tokio::select! {
            worked = worked => worked,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        };
        database.db.close().await;
        sqlx::query(sqlx::AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).execute(&mut admin).await?;
        worked
    }

    /// A connection beside the pool, without its time limits.
    pub(crate) async fn connect(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::connect(self.url.as_str()).await?)
    }
}
