//! The API's listener: on loopback only, with a grace for what is under way at the end.

use crate::failure::Failure;
use axum::Router;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Where the API is when nothing else is asked for.
pub const DEFAULT_PORT: u16 = 8710;
/// How many ports after it are tried.
const NEXT_PORTS: u16 = 20;
/// How long an answer under way may take at the end.
const GRACE: Duration = Duration::from_secs(10);

/// Listens on the port asked for, or on the first free one from the default on, or on any.
///
/// # Errors
/// `PORT_IN_USE` when the port asked for is taken.
pub async fn listen(port: Option<u16>) -> Result<TcpListener, Failure> {
    let bind = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    if let Some(port) = port {
        return bind(port).await.map_err(|e| match e.kind() {
            ErrorKind::AddrInUse => Failure::new("PORT_IN_USE", format!("port {port} is taken on 127.0.0.1"))
                .advise("Choose another with --port, or leave it out."),
            _ => Failure::io(format_args!("port {port}"), &e),
        });
    }
    for port in (DEFAULT_PORT..DEFAULT_PORT + NEXT_PORTS).chain([0]) {
        if let Ok(listener) = bind(port).await {
            return Ok(listener);
        }
    }
    Err(Failure::new("PORT_IN_USE", "no port is free on 127.0.0.1").advise("Choose one with --port."))
}

/// The server while it runs.
pub struct Server {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts answering.
    #[must_use]
    pub fn start(listener: TcpListener, router: Router) -> Server {
        let (stop, mut stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let until = async move {
                // An error means that the server was dropped, which is the same wish.
                let _ = stopped.wait_for(|s| *s).await;
            };
            if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(until).await {
                tracing::error!(%error, "the API ended");
            }
        });
        Server { stop, task }
    }

    /// Takes no new connections and lets what is under way end.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        let abort = self.task.abort_handle();
        if timeout(GRACE, self.task).await.is_err() {
            tracing::warn!("requests still under way were cut off");
            abort.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_taken_port_is_refused_only_when_asked_for() {
        let first = listen(Some(0)).await.expect("any port");
        let port = first.local_addr().expect("bound").port();
        assert_eq!(listen(Some(port)).await.expect_err("taken").code, "PORT_IN_USE");
        let one = listen(None).await.expect("free");
        let two = listen(None).await.expect("free");
        assert_ne!(one.local_addr().expect("bound"), two.local_addr().expect("bound"));
    }
}
