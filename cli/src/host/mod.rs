//! The one-process host: a private database, disk blobs, every function, the clock and the API in
//! one process, started in that order and ended in the opposite one.

pub mod cluster;
pub mod functions;
mod limits;
pub mod server;
pub mod start;
pub mod ticker;

use crate::failure::{Exit, Failure};
use crate::home::{Home, HostFile, write_private};
use crate::user::for_browser;
use cluster::{Cluster, ClusterConfig};
use fonds_blobs::BlobStore;
use fonds_blobs::disk::{DiskBlobs, Durability};
use fonds_blobs::s3::{S3Blobs, S3Config};
use fonds_blobs::sign::LocalSigner;
use fonds_queues::LocalBell;
use fonds_store::tokens::{self, Scope};
use fonds_store::{Db, DbConfig, runs};
use fonds_submit_api::{ApiConfig, ApiState};
use functions::{FunctionsHandle, HostDeps};
use server::Server;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What running slices are given at the end: the longest margin of the policy table and a little.
const PATIENCE: Duration = Duration::from_secs(25);
/// Connections of the pool: the workers', the API's and the listener's.
const CONNECTIONS: u32 = 40;
/// A log is moved aside at the next start when it is longer than this.
const LOG_MAX: u64 = 20 * 1024 * 1024;

/// How the host is to run.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The data folder.
    pub home: Home,
    /// Port of the API; none: the default or the next free one.
    pub port: Option<u16>,
    /// Whether private addresses may be archived.
    pub allow_private: bool,
    /// A database of the user's own.
    pub database_url: Option<String>,
    /// A place for blobs of the user's own.
    pub blobs: Option<String>,
}

/// A running host.
pub struct Host {
    home: Home,
    /// What others are told about it.
    pub file: HostFile,
    cluster: Option<Cluster>,
    db: Db,
    server: Server,
    functions: FunctionsHandle,
    ticker: tokio::task::JoinHandle<()>,
    // Last: the folder is free only when all else has ended.
    lock: crate::home::HomeLock,
}

impl Host {
    /// Starts everything and tells where it is.
    ///
    /// # Errors
    /// The first thing that could not be started, with what to do about it.
    pub async fn start(options: &HostOptions) -> Result<Host, Failure> {
        let home = &options.home;
        home.prepare()?;
        let lock = home.lock()?;
        home.unpublish();
        empty(&home.scratch())?;
        limits::prepare_process();

        let (cluster, database_url) = match &options.database_url {
            Some(url) => (None, url.clone()),
            None => {
                let config = ClusterConfig::of(home).map_err(cluster_failure)?;
                let url = config.url();
                (Some(Cluster::start(config).await.map_err(cluster_failure)?), url)
            }
        };
        match Host::assemble(options, &database_url).await {
            Ok((db, server, functions, ticker, file)) => {
                home.publish(&file)?;
                Ok(Host { home: home.clone(), file, cluster, db, server, functions, ticker, lock })
            }
            Err(failure) => {
                if let Some(cluster) = cluster {
                    cluster.stop().await;
                }
                drop(lock);
                Err(failure)
            }
        }
    }

    async fn assemble(
        options: &HostOptions,
        database_url: &str,
    ) -> Result<(Db, Server, FunctionsHandle, tokio::task::JoinHandle<()>, HostFile), Failure> {
        let db = Db::connect_lazy(&DbConfig { url: database_url.to_owned(), max_connections: CONNECTIONS })?;
        db.migrate().await?;
        if options.database_url.is_none() {
            // Nobody else uses this database: what is still held was held by a host that was killed.
            runs::end_leases(&mut *db.conn().await?).await?;
        }
        let token = local_token(&options.home, &db).await?;
        let signing_key = tokens::signing_key(&mut *db.conn().await?).await?.to_vec();
        let listener = server::listen(options.port).await?;
        let address = listener.local_addr().map_err(|e| Failure::io("the API's listener", &e))?;
        let url = format!("http://{address}");
        let (blobs, place) = open_blobs(options, &url, &signing_key).await?;
        let bell = Arc::new(LocalBell::new());
        let api = ApiState::new(db.clone(), blobs.clone(), bell.clone(), ApiConfig::new(signing_key))
            .map_err(|e| Failure::new("INTERNAL", e.to_string()))?;
        let deps = HostDeps {
            db: db.clone(),
            blobs,
            bell: bell.clone(),
            allow_private: options.allow_private,
            own: vec![address],
            browser_user: tokio::task::spawn_blocking(for_browser).await.ok().flatten(),
            scratch: options.home.scratch(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let functions = functions::start(deps).await.map_err(|e| Failure::new("FUNCTIONS_FAILED", format!("{e:#}")))?;
        let ticker = ticker::start(db.clone(), bell);
        let server = Server::start(listener, fonds_submit_api::router(api));
        let file = HostFile {
            url,
            pid: std::process::id(),
            token,
            database_url: database_url.to_owned(),
            blobs: place,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            allow_private: options.allow_private,
            started_at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        };
        Ok((db, server, functions, ticker, file))
    }

    /// Ends everything: no new claims, running slices get their margin, then the API, the pool and
    /// the database. The API answers until the work has settled, so that who waits sees the end of it.
    pub async fn stop(self) {
        self.ticker.abort();
        self.functions.stop(PATIENCE).await;
        self.server.stop().await;
        self.db.close().await;
        if let Some(cluster) = self.cluster {
            cluster.stop().await;
        }
        self.home.unpublish();
        drop(self.lock);
    }

    /// Runs until SIGTERM or SIGINT and ends cleanly; a second signal ends the process at once.
    ///
    /// # Errors
    /// When signals cannot be received.
    pub async fn run(self) -> Result<(), Failure> {
        let mut signals = Signals::new()?;
        let which = signals.next().await;
        tracing::info!(signal = which, "ending: no new work is begun, what runs is given {} s", PATIENCE.as_secs());
        let home = self.home.clone();
        let processes = self.cluster.as_ref().map(|c| c.state());
        tokio::select! {
            () = self.stop() => {
                tracing::info!("ended");
                Ok(())
            }
            second = signals.next() => {
                tracing::warn!(signal = second, "ending at once; work under way continues after the next start");
                // The server would outlive us otherwise.
                if let Some(cluster::State::Ready { pid }) = processes.map(|p| p.borrow().clone()) {
                    cluster::interrupt(pid);
                }
                home.unpublish();
                std::process::exit(Exit::Interrupted as i32);
            }
        }
    }
}

/// The signals that end the host.
struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl Signals {
    fn new() -> Result<Signals, Failure> {
        let on = |kind| signal(kind).map_err(|e| Failure::io("signals", &e));
        Ok(Signals {
            term: on(SignalKind::terminate())?,
            int: on(SignalKind::interrupt())?,
            hup: on(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
            _ = self.hup.recv() => "SIGHUP",
        }
    }
}

/// The local admin token: the same over restarts, so that scripts may keep it; made anew when it
/// was revoked or the database is another one.
async fn local_token(home: &Home, db: &Db) -> Result<String, Failure> {
    let mut conn = db.conn().await?;
    if let Ok(secret) = std::fs::read_to_string(home.token())
        && let Some(bearer) = tokens::authenticate(&mut conn, secret.trim()).await?
        && bearer.may(Scope::Admin)
    {
        return Ok(secret.trim().to_owned());
    }
    let (_, secret) = tokens::create(&mut conn, "this machine", &[Scope::Admin], None).await?;
    write_private(&home.token(), &format!("{secret}\n"))?;
    Ok(secret)
}

async fn open_blobs(
    options: &HostOptions,
    url: &str,
    signing_key: &[u8],
) -> Result<(Arc<dyn BlobStore>, String), Failure> {
    if let Some(location) = options.blobs.as_deref().filter(|b| b.starts_with("s3://")) {
        let store = S3Blobs::connect(S3Config::from_url(location)?).await?;
        store.ensure_bucket().await?;
        return Ok((Arc::new(store), location.to_owned()));
    }
    let dir = options.blobs.as_deref().map_or_else(|| options.home.blobs(), |b| Path::new(b).to_owned());
    let dir = std::path::absolute(&dir).map_err(|e| Failure::io(dir.display(), &e))?;
    crate::home::make_dir(&dir, 0o700)?;
    let base = url::Url::parse(&format!("{url}/blobs/")).map_err(|e| Failure::new("INTERNAL", e.to_string()))?;
    let store = DiskBlobs::open(&dir, Durability::Flushed, LocalSigner::new(base, signing_key)?)?;
    Ok((Arc::new(store), dir.display().to_string()))
}

/// What an earlier host left in its working space is of no use to anyone.
fn empty(dir: &Path) -> Result<(), Failure> {
    let gone = std::fs::read_dir(dir).map_err(|e| Failure::io(dir.display(), &e))?;
    for entry in gone.flatten() {
        let path = entry.path();
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), %error, "could not be removed");
        }
    }
    Ok(())
}

fn cluster_failure(error: cluster::ClusterError) -> Failure {
    let code = match error {
        cluster::ClusterError::NoBinaries { .. } | cluster::ClusterError::NoUser => "POSTGRES_MISSING",
        _ => "POSTGRES_FAILED",
    };
    let advice = error.advice();
    Failure::new(code, error.to_string()).advise(advice)
}

/// Twelve hex digits that stand for a path, for names that must be short and the path's own.
#[must_use]
pub fn short_hash(path: &Path) -> String {
    hex::encode(&Sha256::digest(path.as_os_str().as_encoded_bytes())[..6])
}

/// Moves a long log aside, keeping one.
pub(crate) fn rotate(log: &Path) {
    if std::fs::metadata(log).is_ok_and(|m| m.len() > LOG_MAX) {
        let mut old = log.as_os_str().to_owned();
        old.push(".1");
        if let Err(error) = std::fs::rename(log, old) {
            tracing::warn!(%error, "a log could not be moved aside");
        }
    }
}
