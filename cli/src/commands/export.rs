//! `export`: a snapshot or a whole crawl as one WACZ file.

use super::Context;
use crate::args::Export;
use crate::client::Client;
use crate::client::find::{Found, find};
use crate::client::view::{Link, Snapshot, read};
use crate::failure::Failure;
use crate::units::size;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes the file.
///
/// # Errors
/// When the snapshot has none yet, or the file cannot be written.
pub async fn export(cx: &Context, args: Export) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    let found = find(&client, &args.id).await?;
    match &found {
        Found::Snapshot(row) => snapshot(cx, &client, &read(row), args.output.as_deref()).await,
        Found::Crawl(row) => Err(Failure::new("NOT_YET", format!("crawl {}", row["id"]))),
    }
}

async fn snapshot(cx: &Context, client: &Client, page: &Snapshot, output: Option<&Path>) -> Result<(), Failure> {
    let link: Link = read(&client.get(&format!("/v1/snapshots/{}/wacz", page.id), &[("link", "true".to_owned())]).await?);
    if output == Some(Path::new("-")) {
        download(client, &link, &mut tokio::io::stdout()).await?;
        return Ok(());
    }
    let path = output.map_or_else(|| PathBuf::from(file_name(&page.host, &page.id)), Path::to_owned);
    let part = path.with_extension("wacz.part");
    let io = |e: std::io::Error| Failure::io(path.display(), &e);
    let mut file = tokio::fs::File::create(&part).await.map_err(io)?;
    let written = match download(client, &link, &mut file).await {
        Ok(written) => written,
        Err(failure) => {
            // Half a package helps nobody.
            let _ = tokio::fs::remove_file(&part).await;
            return Err(failure);
        }
    };
    file.sync_all().await.map_err(io)?;
    tokio::fs::rename(&part, &path).await.map_err(io)?;
    cx.out.value(&json!({"snapshot": page.id, "file": path, "size": written}));
    cx.out.line(format_args!("{} ({})", path.display(), size(written)));
    Ok(())
}

/// Copies what the link leads to and checks it against what the service says of it.
async fn download(client: &Client, link: &Link, to: &mut (impl AsyncWrite + Unpin)) -> Result<u64, Failure> {
    let mut body = client.open(&link.url).await?.into_body();
    let mut hash = Sha256::new();
    let mut written = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Failure::unreachable("UNREACHABLE", format!("the download broke off: {e}")))?;
        if let Ok(data) = frame.into_data() {
            hash.update(&data);
            written += data.len() as u64;
            to.write_all(&data).await.map_err(|e| Failure::io("writing the file", &e))?;
        }
    }
    to.flush().await.map_err(|e| Failure::io("writing the file", &e))?;
    let digest = hex::encode(hash.finalize());
    if link.size.is_some_and(|s| s != written) || link.sha256.as_ref().is_some_and(|s| *s != digest) {
        return Err(Failure::new("DAMAGED", "what was downloaded is not what the service has").advise("Try again."));
    }
    Ok(written)
}

/// `example.org-0192f0c1.wacz`.
fn file_name(host: &str, id: &str) -> String {
    let host: String = host.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    format!("{}-{}.wacz", host.trim_matches(['.', '-']), id.get(..13).unwrap_or(id))
}

#[expect(dead_code, reason = "names what the crawl export will list")]
fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|r| r["id"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_after_host_and_id() {
        assert_eq!(file_name("example.org:8080", "0192f0c1-2b3c-7d4e-8f90-123456789abc"), "example.org-8080-0192f0c1-2b3c.wacz");
        assert_eq!(file_name("../..", "x"), "-x.wacz");
    }
}
