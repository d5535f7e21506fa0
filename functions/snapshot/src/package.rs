//! The `store` stage: one WACZ object for one page or for a batch of plain ones, with every file of
//! every result as a stored entry, so that each is served by a ranged read.

use crate::deps::Deps;
use crate::page::{File, FileBody, Output, Page};
use crate::records::{self, Held, PageRecords, Records, WARC_NAME};
use bytes::Bytes;
use fonds_blobs::{BlobKey, PutBody};
use fonds_domain::{ErrorCode, ResultStatus};
use fonds_pages::hashes::{FileHash, hashes};
use fonds_store::capture::{ObjectUse, ResultFile};
use fonds_task::TaskError;
use fonds_warc::wacz::Content as Entry;
use fonds_warc::{ContentFacts, EntryPlace, PackageMeta, Page as WaczPage, WaczWriter};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use uuid::Uuid;

/// A page with everything that was made of it.
pub(crate) struct Made {
    /// The capture.
    pub(crate) page: Arc<Page>,
    /// One a wanted extractor that applied.
    pub(crate) outputs: Vec<Output>,
}

/// A page after its object was stored.
pub(crate) struct Stored {
    /// The capture.
    pub(crate) page: Arc<Page>,
    /// Outputs, those of the `store` stage among them.
    pub(crate) outputs: Vec<(Output, Vec<ResultFile>)>,
    /// Its records.
    pub(crate) records: PageRecords,
    /// Bytes of the object that are this page's.
    pub(crate) size: u64,
    /// The object.
    pub(crate) object: ObjectUse,
}

/// Packages below this are made in memory.
const IN_MEMORY: u64 = 24 * 1024 * 1024;

/// Writes the package of some pages of one crawl and puts it under a key that the lease names.
pub(crate) async fn store(deps: &Deps, lease: Uuid, made: Vec<Made>, held: Held) -> Result<Vec<Stored>, TaskError> {
    let Some(first) = made.first() else { return Ok(Vec::new()) };
    let crawl = first.page.crawl.id.0;
    let alone = made.len() == 1;
    let key = if alone {
        BlobKey::snapshot_wacz(crawl, first.page.snapshot.id.0, lease)
    } else {
        BlobKey::batch_wacz(crawl, lease)
    };
    let spool = deps.spool.clone();
    let work = {
        let key = key.as_str().to_owned();
        tokio::task::spawn_blocking(move || write(made, &held, &key, &spool))
    };
    let (body, stored) = work
        .await
        .map_err(|e| TaskError::permanent(ErrorCode::PANICKED, e))?
        .map_err(|e| TaskError::transient(ErrorCode::INTERNAL, e.context("writing the package")))?;
    let (body, _spooled) = body.split();
    deps.blobs
        .put_if_absent(&key, body, key.content_type())
        .await
        .map_err(|e| TaskError::transient(ErrorCode::BLOB_UNAVAILABLE, e))?;
    Ok(stored)
}

/// The finished package.
enum Package {
    Memory(Vec<u8>),
    Spooled(tempfile::TempPath),
}

impl Package {
    fn split(self) -> (PutBody, Option<tempfile::TempPath>) {
        match self {
            Package::Memory(bytes) => (PutBody::Bytes(bytes.into()), None),
            Package::Spooled(path) => (PutBody::File(path.to_path_buf()), Some(path)),
        }
    }
}

fn write(made: Vec<Made>, held: &Held, key: &str, spool: &std::path::Path) -> anyhow::Result<(Package, Vec<Stored>)> {
    let bytes: u64 = made.iter().map(|m| weight(&m.page, &m.outputs)).sum();
    if bytes <= IN_MEMORY {
        let (out, stored) = pack(
            made,
            held,
            key,
            Vec::new(),
            |warc, facts, wacz| wacz.add_warc(WARC_NAME, Entry::Reader { facts, reader: &mut &warc[..] }),
            Vec::with_capacity(usize::try_from(bytes / 2).unwrap_or(0)),
        )?;
        return Ok((Package::Memory(out), stored));
    }
    let warc = BufWriter::new(tempfile::tempfile_in(spool)?);
    let package = tempfile::NamedTempFile::new_in(spool)?;
    let (file, path) = package.into_parts();
    let (mut out, stored) = pack(
        made,
        held,
        key,
        warc,
        |warc, facts, wacz| {
            let mut file = warc.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            file.seek(SeekFrom::Start(0))?;
            wacz.add_warc(WARC_NAME, Entry::Reader { facts, reader: &mut file })
        },
        BufWriter::new(file),
    )?;
    out.flush()?;
    Ok((Package::Spooled(path), stored))
}

/// Bytes of everything a page brings, roughly.
fn weight(page: &Page, outputs: &[Output]) -> u64 {
    let hops: u64 = page.fetched.hops.iter().map(|h| h.body.len()).sum();
    let resources: u64 = page
        .rendered()
        .into_iter()
        .flat_map(|r| &r.capture.resources)
        .filter_map(|r| r.body.as_ref())
        .map(|b| b.len() as u64)
        .sum();
    let files: u64 = outputs
        .iter()
        .flat_map(|o| &o.files)
        .map(|f| match &f.body {
            FileBody::Bytes(b) => b.len() as u64,
            FileBody::Path(_, len) => *len,
        })
        .sum();
    hops + resources + files + 4096
}

fn pack<W: Write, O: Write>(
    made: Vec<Made>,
    held: &Held,
    key: &str,
    warc_out: W,
    add_warc: impl FnOnce(W, ContentFacts, &mut WaczWriter<O>) -> Result<EntryPlace, fonds_warc::wacz::WaczError>,
    out: O,
) -> anyhow::Result<(O, Vec<Stored>)> {
    let now = records::now();
    let mut records = Records::begin(warc_out, held)?;
    let mut per_page = Vec::with_capacity(made.len());
    for m in &made {
        per_page.push(records.page(&m.page)?);
    }
    let (warc, facts, index) = records.finish()?;
    let mut wacz = WaczWriter::new(out, now);
    let place = add_warc(warc, facts, &mut wacz)?;
    let alone = made.len() == 1;
    let mut pages = Vec::with_capacity(made.len());
    let mut stored = Vec::with_capacity(made.len());
    for (m, mut records) in made.into_iter().zip(per_page) {
        for payload in &mut records.payloads {
            payload.object = key.to_owned();
            payload.offset += place.offset;
        }
        let prefix = if alone { String::new() } else { format!("{}-", short(&m.page)) };
        let Made { page, outputs } = m;
        let mut outputs = add_files(&mut wacz, key, &prefix, outputs)?;
        store_outputs(&mut wacz, key, &prefix, &page, &records, &place, &mut outputs)?;
        let size = records.length
            + outputs.iter().flat_map(|(_, f)| f).filter(|f| f.object == key).map(|f| f.length).sum::<u64>();
        pages.push(page_line(&page, &records, now));
        let object = ObjectUse { key: key.to_owned(), size: 0, sha256: [0; 32], own: true };
        stored.push(Stored { page, outputs, records, size, object });
    }
    wacz.add_index(index)?;
    wacz.add_pages(&pages)?;
    let meta = PackageMeta {
        title: stored.first().filter(|_| alone).and_then(|s| s.page.title()),
        created: now,
        software: concat!("fonds ", env!("CARGO_PKG_VERSION")).to_owned(),
        main_page_url: pages.first().filter(|_| alone).map(|p| p.url.clone()),
        main_page_date: stored.first().filter(|_| alone).and_then(|s| s.records.date),
        ..PackageMeta::default()
    };
    let done = wacz.finish(&meta)?;
    let whole = ResultFile {
        path: "wacz/snapshot.wacz".to_owned(),
        mime: "application/wacz+zip".to_owned(),
        size: done.facts.len,
        sha256: done.facts.sha256.hex(),
        object: key.to_owned(),
        offset: 0,
        length: done.facts.len,
    };
    for s in &mut stored {
        for (output, files) in &mut s.outputs {
            if output.extractor == "wacz" {
                files.push(whole.clone());
            }
        }
        s.object.size = done.facts.len;
        s.object.sha256 = *done.facts.sha256.as_bytes();
    }
    Ok((done.out, stored))
}

/// A prefix that tells the pages of a batch apart; the random end of the id, since the ids of a
/// batch begin alike.
fn short(page: &Page) -> String {
    let id = page.snapshot.id.0.simple().to_string();
    id[20..].to_owned()
}

fn page_line(page: &Page, records: &PageRecords, now: chrono::DateTime<chrono::Utc>) -> WaczPage {
    // A player looks a page up under the URL that was captured last.
    let url = page.answer().map_or(page.url.as_str(), |hop| hop.url.as_str());
    WaczPage {
        id: Some(page.snapshot.id.to_string()),
        title: page.title(),
        text: page
            .best_facts()
            .map(|f| fonds_pages::search_text::index_text(&f.text, 20_000))
            .filter(|t| !t.is_empty()),
        ..WaczPage::new(url, records.date.unwrap_or(now))
    }
}

/// Adds every file of every output as an entry.
fn add_files<O: Write>(
    wacz: &mut WaczWriter<O>,
    key: &str,
    prefix: &str,
    outputs: Vec<Output>,
) -> anyhow::Result<Vec<(Output, Vec<ResultFile>)>> {
    let mut out = Vec::with_capacity(outputs.len());
    for mut output in outputs {
        let mut files = Vec::with_capacity(output.files.len());
        for file in output.files.drain(..) {
            files.push(add_file(wacz, key, prefix, output.extractor, &file)?);
        }
        out.push((output, files));
    }
    Ok(out)
}

fn add_file<O: Write>(
    wacz: &mut WaczWriter<O>,
    key: &str,
    prefix: &str,
    extractor: &str,
    file: &File,
) -> anyhow::Result<ResultFile> {
    let entry = format!("{prefix}{extractor}");
    let place = match &file.body {
        FileBody::Bytes(bytes) => wacz.add_artifact(&entry, &file.name, &bytes[..])?,
        FileBody::Path(path, _) => {
            let facts = ContentFacts::of_reader(&mut std::fs::File::open(path)?)?;
            let mut reader = std::fs::File::open(path)?;
            wacz.add_artifact(&entry, &file.name, Entry::Reader { facts, reader: &mut reader as &mut dyn Read })?
        }
    };
    Ok(result_file(key, format!("{extractor}/{}", file.name), &file.mime, &place))
}

fn result_file(key: &str, path: String, mime: &str, place: &EntryPlace) -> ResultFile {
    ResultFile {
        path,
        mime: mime.to_owned(),
        size: place.len,
        sha256: place.sha256.hex(),
        object: key.to_owned(),
        offset: place.offset,
        length: place.len,
    }
}

/// `hashes`, `warc`, `wacz` and `search`: about everything else.
fn store_outputs<O: Write>(
    wacz: &mut WaczWriter<O>,
    key: &str,
    prefix: &str,
    page: &Page,
    records: &PageRecords,
    warc: &EntryPlace,
    outputs: &mut Vec<(Output, Vec<ResultFile>)>,
) -> anyhow::Result<()> {
    let config = page.config();
    if config.wants("hashes") {
        let list = outputs
            .iter()
            .flat_map(|(_, files)| files)
            .map(|f| FileHash { path: f.path.clone(), sha256: f.sha256.clone(), size: f.size })
            .collect();
        let (output, files) = match hashes(list) {
            Ok(hashes) => {
                let json = serde_json::to_vec_pretty(&hashes)?;
                let file = File::new("hashes.json", "application/json", Bytes::from(json));
                let file = add_file(wacz, key, prefix, "hashes", &file)?;
                (store_output("hashes", Some(hashes.merkle_root), None), vec![file])
            }
            Err(e) => (store_output("hashes", None, Some((ErrorCode::INTERNAL, e.to_string()))), Vec::new()),
        };
        outputs.push((output, files));
    }
    if config.wants("warc") {
        let line = format!("{} records, {} of them revisits", records.count, records.revisits);
        // The page's members are a WARC of their own, whatever else the object's WARC holds. Their
        // digest would cost another pass over them; the index has one for each record.
        let file = ResultFile {
            path: format!("warc/{WARC_NAME}"),
            mime: "application/warc".to_owned(),
            size: records.length,
            sha256: String::new(),
            object: key.to_owned(),
            offset: warc.offset + records.offset,
            length: records.length,
        };
        outputs.push((store_output("warc", Some(line), None), vec![file]));
    }
    if config.wants("wacz") {
        let line = (!prefix.is_empty()).then(|| "the package of its batch, with other pages in it".to_owned());
        // Its file is the object itself, known when that is finished.
        outputs.push((store_output("wacz", line, None), Vec::new()));
    }
    if config.wants("search") && page.best_facts().is_some() {
        outputs.push((store_output("search", None, None), Vec::new()));
    }
    Ok(())
}

fn store_output(extractor: &'static str, line: Option<String>, error: Option<(ErrorCode, String)>) -> Output {
    Output {
        extractor,
        status: if error.is_some() { ResultStatus::Failed } else { ResultStatus::Succeeded },
        files: Vec::new(),
        line,
        error,
        duration_ms: 0,
        tool: None,
    }
}
