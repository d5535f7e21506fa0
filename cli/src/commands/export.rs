//! `export`: a snapshot or a whole crawl as one WACZ file.

use super::Context;
use crate::args::Export;
use crate::assembly::{Assembly, AssemblyError, Originals, SOFTWARE, Source, missing_originals, page_ids};
use crate::client::Client;
use crate::client::find::{Found, find};
use crate::client::view::{Crawl, Link, Snapshot, read};
use crate::failure::Failure;
use crate::output::clean;
use crate::units::{count, size};
use chrono::{DateTime, Utc};
use fonds_warc::PackageMeta;
use http_body_util::BodyExt;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;

/// Earlier pages of a crawl that are looked through for what a page's revisits refer to. They are mostly
/// the first few; a page that needs more is better exported with its crawl.
const DONORS: usize = 200;

/// Writes the file.
///
/// # Errors
/// When there is nothing to export yet, or the file cannot be written.
pub async fn export(cx: &Context, args: Export) -> Result<(), Failure> {
    let client = Client::find(&cx.home)?;
    let found = find(&client, &args.id).await?;
    let (name, made) = match &found {
        Found::Snapshot(row) => {
            let page: Snapshot = read(row);
            (file_name(&page.host, &page.id), snapshot(cx, &client, &page).await?)
        }
        Found::Crawl(row) => {
            let crawl: Crawl = read(row);
            (file_name("crawl", &crawl.id), whole_crawl(cx, &client, &crawl).await?)
        }
    };
    if args.output.as_deref() == Some(Path::new("-")) {
        return to_stdout(made).await;
    }
    let path = args.output.unwrap_or_else(|| PathBuf::from(name));
    let target = path.clone();
    let written = blocking(move || place(made, &target)).await?;
    cx.out.value(&json!({"id": found.id(), "file": path, "size": written}));
    cx.out.line(format_args!("{} ({})", path.display(), size(written)));
    Ok(())
}

/// The snapshot's own package, byte for byte, unless it holds other pages too or refers to bodies that
/// other packages hold: then one that has all of this page and nothing else.
async fn snapshot(cx: &Context, client: &Client, page: &Snapshot) -> Result<File, Failure> {
    let package = package(client, &page.id).await?.ok_or_else(|| {
        Failure::new("NO_WACZ", format!("no WACZ was made of snapshot {}", page.id))
            .advise("Archive the page again with the outputs warc and wacz.")
    })?;
    let (source, alone) = source(client, &page.id, package.1).await?;
    let (source, mut wanted) = blocking(move || {
        let wanted = missing_originals(&source)?;
        Ok((source, wanted))
    })
    .await?;
    if wanted.is_empty() && alone {
        return source.package().try_clone().map_err(|e| Failure::io("a temporary file", &e));
    }
    let mut originals = Originals::default();
    let mut donor = Some(source.package().try_clone().map_err(|e| Failure::io("a temporary file", &e))?);
    let mut donors = if wanted.is_empty() { Vec::new() } else { donors(client, page).await? }.into_iter();
    while !wanted.is_empty() {
        if let Some(donor) = donor.take() {
            (originals, wanted) = blocking(move || {
                originals.take(&donor, &mut wanted)?;
                Ok((originals, wanted))
            })
            .await?;
        }
        let Some(next) = donors.next() else { break };
        donor = self::package(client, &next).await?.map(|(_, file)| file);
    }
    if !wanted.is_empty() {
        cx.out.note(format_args!(
            "fonds: {} of this page held by other snapshots could not be found; `fonds export {} --wacz` writes the whole crawl",
            count(wanted.len() as u64, "part"),
            page.crawl_id
        ));
    }
    let meta = meta(page.title.as_deref().unwrap_or(&page.url), Some(page));
    blocking(move || {
        let mut assembly = Assembly::new(meta.created)?;
        assembly.add(&source, None, Some(&mut originals))?;
        finish(assembly, &meta)
    })
    .await
}

/// What the snapshot contributes, and whether that is its whole package.
async fn source(client: &Client, id: &str, package: File) -> Result<(Source, bool), Failure> {
    let (package, pages) = blocking(move || {
        let pages = page_ids(&package)?;
        Ok((package, pages))
    })
    .await?;
    if pages.len() <= 1 {
        return Ok((Source::whole(package), true));
    }
    let page: Snapshot = read(&client.get(&format!("/v1/snapshots/{id}"), &[]).await?);
    let file = page.results.iter().find(|r| r.extractor == "warc").and_then(|r| r.files.first()).ok_or_else(|| {
        Failure::new(
            "NO_WACZ",
            format!(
                "the records of snapshot {id} lie among those of other pages, and it has no `warc` output of its own"
            ),
        )
        .advise("Export the whole crawl instead.")
    })?;
    let link: Link = read(&client.get(&file.href, &[("link", "true".to_owned())]).await?);
    Ok((Source::page(package, id, download(client, &link, id).await?), false))
}

/// Other snapshots of the page's crawl, the oldest first: a body is held by the first page that had it.
async fn donors(client: &Client, page: &Snapshot) -> Result<Vec<String>, Failure> {
    let ids = pages_of(client, &page.crawl_id).await?;
    Ok(ids.into_iter().map(|p| p.id).filter(|id| *id != page.id).take(DONORS).collect())
}

async fn pages_of(client: &Client, crawl: &str) -> Result<Vec<Snapshot>, Failure> {
    let rows = client.list("/v1/snapshots", &[("crawl", crawl.to_owned())], usize::MAX).await?;
    Ok(rows.iter().rev().map(read).collect())
}

async fn whole_crawl(cx: &Context, client: &Client, crawl: &Crawl) -> Result<File, Failure> {
    if !crawl.is_over() {
        cx.out.note(format_args!(
            "fonds: crawl {} is still {}; what is archived by now is exported",
            crawl.id, crawl.status
        ));
    }
    let pages = pages_of(client, &crawl.id).await?;
    let name = if crawl.label.is_empty() { format!("crawl {}", crawl.id) } else { clean(&crawl.label) };
    let meta = meta(&name, pages.iter().find(|p| p.depth == 0));
    let mut assembly = Assembly::new(meta.created).map_err(assembly_failure)?;
    let mut without = 0u64;
    // The pages of a batch lie in one package, and mostly behind one another.
    let mut last: Option<(String, File)> = None;
    for page in &pages {
        let Some(link) = package_link(client, &page.id).await? else {
            without += 1;
            continue;
        };
        let digest = link.sha256.clone().unwrap_or_default();
        let file = match last.take() {
            Some((known, file)) if known == digest && !digest.is_empty() => file,
            _ => download(client, &link, &page.id).await?,
        };
        last = Some((digest, file.try_clone().map_err(|e| Failure::io("a temporary file", &e))?));
        let (source, _) = source(client, &page.id, file).await?;
        let id = page.id.clone();
        assembly = blocking(move || {
            assembly.add(&source, Some(&id), None)?;
            Ok(assembly)
        })
        .await?;
    }
    if assembly.pages() == 0 {
        return Err(Failure::new("NO_WACZ", format!("crawl {} has no page with a WACZ", crawl.id)));
    }
    if without > 0 {
        cx.out.note(format_args!("fonds: {} of the crawl without a WACZ left out", count(without, "page")));
    }
    blocking(move || finish(assembly, &meta)).await
}

fn meta(title: &str, first: Option<&Snapshot>) -> PackageMeta {
    let date = |stamp: &String| DateTime::parse_from_rfc3339(stamp).ok().map(|t| t.to_utc());
    PackageMeta {
        title: Some(clean(title)),
        created: Utc::now(),
        software: SOFTWARE.to_owned(),
        main_page_url: first.map(|p| p.url.clone()),
        main_page_date: first.and_then(|p| p.downloaded_at.as_ref().and_then(date)),
        ..PackageMeta::default()
    }
}

fn finish(assembly: Assembly, meta: &PackageMeta) -> Result<File, AssemblyError> {
    let mut out = tempfile::tempfile()?;
    assembly.finish(&mut out, meta)?;
    Ok(out)
}

/// Where the package of a snapshot is; none when it has none or is not done yet.
async fn package_link(client: &Client, id: &str) -> Result<Option<Link>, Failure> {
    match client.get(&format!("/v1/snapshots/{id}/wacz"), &[("link", "true".to_owned())]).await {
        Ok(value) => Ok(Some(read(&value))),
        Err(failure) if matches!(failure.code.as_str(), "NO_WACZ" | "NOT_SEALED") => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The package of a snapshot in a temporary file, with its link.
async fn package(client: &Client, id: &str) -> Result<Option<(Link, File)>, Failure> {
    let Some(link) = package_link(client, id).await? else { return Ok(None) };
    let file = download(client, &link, id).await?;
    Ok(Some((link, file)))
}

/// What a link leads to, in a temporary file, checked against what the service says of it.
async fn download(client: &Client, link: &Link, id: &str) -> Result<File, Failure> {
    let io = |e: std::io::Error| Failure::io("a temporary file", &e);
    let mut body = client.open(&link.url).await?.into_body();
    let mut file = tokio::fs::File::from_std(tempfile::tempfile().map_err(io)?);
    let mut hash = Sha256::new();
    let mut written = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Failure::unreachable("UNREACHABLE", format!("the download broke off: {e}")))?;
        if let Ok(data) = frame.into_data() {
            hash.update(&data);
            written += data.len() as u64;
            file.write_all(&data).await.map_err(io)?;
        }
    }
    file.flush().await.map_err(io)?;
    let digest = hex::encode(hash.finalize());
    let whole =
        link.size.is_none_or(|s| s == written) && link.sha256.as_ref().is_none_or(|s| s.is_empty() || *s == digest);
    if !whole {
        return Err(
            Failure::new("DAMAGED", format!("the package of snapshot {id} did not arrive whole")).advise("Try again.")
        );
    }
    Ok(file.into_std().await)
}

/// Writes one file of a snapshot to a place of the caller's.
///
/// # Errors
/// When it cannot be had or written.
pub(super) async fn save(client: &Client, href: &str, id: &str, path: PathBuf) -> Result<u64, Failure> {
    let link: Link = read(&client.get(href, &[("link", "true".to_owned())]).await?);
    let file = download(client, &link, id).await?;
    blocking(move || place(file, &path)).await
}

/// Work on files, away from the runtime's threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AssemblyError> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(assembly_failure),
        Err(error) => Err(Failure::new("INTERNAL", error.to_string())),
    }
}

fn assembly_failure(error: AssemblyError) -> Failure {
    match error {
        AssemblyError::Io(e) => Failure::io("the export", &e),
        other => Failure::new("DAMAGED", format!("a stored package cannot be read: {other}")),
    }
}

/// Puts the finished file into its place, whole or not at all.
fn place(made: File, path: &Path) -> Result<u64, AssemblyError> {
    use std::io::{Seek, SeekFrom};
    let mut made = made;
    made.seek(SeekFrom::Start(0))?;
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut part = tempfile::Builder::new().prefix(".fonds-export").tempfile_in(dir)?;
    let written = std::io::copy(&mut made, part.as_file_mut())?;
    part.as_file().sync_all()?;
    let file = part.persist(path).map_err(|e| e.error)?;
    // A temporary file is its owner's alone; an export is an ordinary file.
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    Ok(written)
}

async fn to_stdout(made: File) -> Result<(), Failure> {
    use std::io::{Seek, SeekFrom};
    blocking(move || {
        let mut made = made;
        made.seek(SeekFrom::Start(0))?;
        std::io::copy(&mut made, &mut std::io::stdout().lock())?;
        Ok(())
    })
    .await
}

/// `example.org-0192f0c1-2b3c.wacz`.
fn file_name(host: &str, id: &str) -> String {
    let host: String = host.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    format!("{}-{}.wacz", host.trim_matches(['.', '-']), id.get(..13).unwrap_or(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_after_host_and_id() {
        assert_eq!(
            file_name("example.org:8080", "0192f0c1-2b3c-7d4e-8f90-123456789abc"),
            "example.org-8080-0192f0c1-2b3c.wacz"
        );
        assert_eq!(file_name("../..", "x"), "-x.wacz");
    }

    #[test]
    fn an_export_replaces_its_target_whole() {
        use std::io::Write;
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join("out.wacz");
        std::fs::write(&path, "old").expect("written");
        let mut made = tempfile::tempfile().expect("temp file");
        made.write_all(b"new content").expect("written");
        assert_eq!(place(made, &path).expect("placed"), 11);
        assert_eq!(std::fs::read(&path).expect("read"), b"new content");
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1, "nothing else is left");
        assert!(place(tempfile::tempfile().expect("temp file"), Path::new("/no/such/dir/x.wacz")).is_err());
    }
}
