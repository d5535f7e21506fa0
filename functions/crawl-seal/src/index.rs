//! index.jsonl (every snapshot with its results and where their bytes are), index.json (the crawl
//! and, of a small one, its snapshots), index.html (for people), collection.json (multi-WACZ).

use crate::CrawlSeal;
use fonds_blobs::{BlobKey, CrawlFile, PutBody};
use fonds_domain::SnapshotId;
use fonds_store::crawls::Crawl;
use fonds_store::listing::{self, Line};
use fonds_task::Cx;
use fonds_warc::PackageMeta;
use fonds_warc::wacz::{CollectionItem, collection_json};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{Read, Seek, SeekFrom, Write};
use uuid::Uuid;

/// Snapshots read at once.
const PAGE: i64 = 500;
/// Snapshots that index.json and index.html list themselves; beyond, they point to index.jsonl.
const LISTED: usize = 5_000;

/// One written file, as the crawl's row lists it.
#[derive(Debug, Serialize)]
pub(crate) struct Written {
    name: &'static str,
    mime: &'static str,
    size: u64,
    sha256: String,
    object: String,
}

/// index.json.
#[derive(Serialize)]
struct Index {
    crawl: Value,
    snapshots_listed: usize,
    more: Option<&'static str>,
    /// The lines of index.jsonl as they are there.
    snapshots: Vec<Box<RawValue>>,
}

/// Writes all files of a crawl.
pub(crate) async fn write(seal: &CrawlSeal, cx: &Cx, crawl: &Crawl) -> anyhow::Result<Vec<Written>> {
    let mut lines = tempfile::NamedTempFile::new_in(&seal.spool)?;
    let mut listed: Vec<Box<RawValue>> = Vec::new();
    let mut rows = String::new();
    let mut total = 0usize;
    let mut after = SnapshotId(Uuid::nil());
    loop {
        let mut conn = cx.db.conn().await?;
        let page = listing::page(&mut conn, crawl.id, after, PAGE).await?;
        drop(conn);
        let Some(last) = page.last() else { break };
        after = last.id;
        let mut text = Vec::with_capacity(page.len() * 2048);
        for line in &page {
            let start = text.len();
            serde_json::to_writer(&mut text, line)?;
            if total < LISTED {
                let json = std::str::from_utf8(&text[start..])?;
                listed.push(RawValue::from_string(json.to_owned())?);
                row(&mut rows, line)?;
            }
            text.push(b'\n');
            total += 1;
        }
        lines.write_all(&text)?;
    }
    let mut written = vec![put_file(seal, crawl, CrawlFile::IndexJsonl, &mut lines).await?];
    let index = Index {
        crawl: summary(crawl, total),
        snapshots_listed: listed.len(),
        more: (total > listed.len()).then_some("index.jsonl lists every snapshot"),
        snapshots: listed,
    };
    written.push(put(seal, crawl, CrawlFile::IndexJson, serde_json::to_string(&index)? + "\n").await?);
    written.push(put(seal, crawl, CrawlFile::IndexHtml, html(crawl, total, &rows)?).await?);
    written.push(put(seal, crawl, CrawlFile::Collection, collection(cx, crawl).await?).await?);
    Ok(written)
}

fn summary(crawl: &Crawl, total: usize) -> Value {
    json!({
        "id": crawl.id, "label": crawl.label, "tags": crawl.tags, "created_at": crawl.created_at,
        "config": crawl.config, "limits": crawl.limits, "snapshots": total, "bytes": crawl.bytes,
    })
}

async fn collection(cx: &Cx, crawl: &Crawl) -> anyhow::Result<String> {
    let mut conn = cx.db.conn().await?;
    let objects = listing::objects(&mut conn, crawl.id).await?;
    drop(conn);
    let items: Vec<CollectionItem> = objects
        .into_iter()
        .map(|o| CollectionItem {
            name: o.key.rsplit('/').next().unwrap_or_default().to_owned(),
            // Relative to crawls/<crawl>/collection.json, wherever the store is mounted.
            path: format!("../../{}", o.key),
            sha256: fonds_warc::Sha256Digest::from_bytes(o.sha256),
            bytes: o.size,
        })
        .collect();
    let meta = PackageMeta {
        title: Some(title(crawl)),
        created: crawl.created_at,
        software: concat!("fonds ", env!("CARGO_PKG_VERSION")).to_owned(),
        ..PackageMeta::default()
    };
    Ok(collection_json(&meta, &items))
}

fn title(crawl: &Crawl) -> String {
    if crawl.label.is_empty() { format!("Crawl {}", crawl.id) } else { crawl.label.clone() }
}

async fn put(seal: &CrawlSeal, crawl: &Crawl, file: CrawlFile, text: String) -> anyhow::Result<Written> {
    let key = BlobKey::crawl_file(crawl.id.0, file);
    let written = Written {
        name: file.name(),
        mime: key.content_type(),
        size: text.len() as u64,
        sha256: hex::encode(Sha256::digest(text.as_bytes())),
        object: key.to_string(),
    };
    seal.blobs.replace(&key, PutBody::from(text.into_bytes()), key.content_type()).await?;
    Ok(written)
}

async fn put_file(
    seal: &CrawlSeal,
    crawl: &Crawl,
    file: CrawlFile,
    content: &mut tempfile::NamedTempFile,
) -> anyhow::Result<Written> {
    let key = BlobKey::crawl_file(crawl.id.0, file);
    content.as_file_mut().seek(SeekFrom::Start(0))?;
    let mut hash = Sha256::new();
    let mut size = 0u64;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = content.as_file_mut().read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
        size += n as u64;
    }
    seal.blobs.replace(&key, PutBody::File(content.path().to_owned()), key.content_type()).await?;
    Ok(Written {
        name: file.name(),
        mime: key.content_type(),
        size,
        sha256: hex::encode(hash.finalize()),
        object: key.to_string(),
    })
}

fn row(out: &mut String, line: &Line) -> std::fmt::Result {
    let title = line.title.as_deref().unwrap_or(&line.url);
    let state = match (&line.error_code, line.http_status) {
        (Some(code), _) => escape(code),
        (None, Some(status)) => status.to_string(),
        (None, None) => String::new(),
    };
    let made = line.results.iter().filter(|r| r.status == "succeeded").count();
    writeln!(
        out,
        "<tr><td><a href=\"{url}\" rel=\"noreferrer\">{title}</a><br><small>{url}</small></td>\
         <td>{state}</td><td>{made}</td><td>{size}</td></tr>",
        url = escape(&line.url),
        title = escape(title),
        size = line.size,
    )
}

fn html(crawl: &Crawl, total: usize, rows: &str) -> Result<String, std::fmt::Error> {
    let title = escape(&title(crawl));
    let mut out = String::new();
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <style>:root{{color-scheme:light dark}}body{{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;\
         padding:0 1rem}}table{{border-collapse:collapse;width:100%}}td,th{{text-align:left;padding:.4rem .6rem;\
         border-bottom:1px solid #8884;vertical-align:top;overflow-wrap:anywhere}}small{{opacity:.7}}</style></head>\
         <body><h1>{title}</h1><p>{total} pages, submitted {created}. index.jsonl lists every page with its files.</p>\n\
         <table><thead><tr><th>Page</th><th>Status</th><th>Results</th><th>Bytes</th></tr></thead><tbody>\n{rows}\
         </tbody></table></body></html>\n",
        created = crawl.created_at.format("%Y-%m-%d %H:%M UTC"),
    )?;
    Ok(out)
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn titles_cannot_break_out_of_the_page() {
        assert_eq!(escape("<script>\"'&"), "&lt;script&gt;&quot;&#39;&amp;");
    }
}
