//! One WACZ out of the packages of several snapshots: one WARC, one index, one page list, and every
//! artifact under a name that tells whose it is. Blocking; files in, file out.

use chrono::{DateTime, Utc};
use fonds_warc::assemble::{AssembleError, KeepRevisits, Payloads, RevisitTarget};
use fonds_warc::cdxj::CdxjIndex;
use fonds_warc::reader::RecordHeader;
use fonds_warc::record::{ReadSeek, RecordType};
use fonds_warc::wacz::{Content, WaczError};
use fonds_warc::{ContentFacts, PackageMeta, Page, WaczReader, WaczWriter, WarcError, WarcMerge, WarcReader};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Name of the WARC in the package.
const WARC: &str = "data.warc.gz";
/// Folder of artifacts in a package.
const ARTIFACTS: &str = "artifacts/";
/// The software that a package names.
pub const SOFTWARE: &str = concat!("fonds ", env!("CARGO_PKG_VERSION"));

/// Why a package could not be assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// A source is no sound package, or the result could not be written.
    #[error(transparent)]
    Wacz(#[from] WaczError),
    /// The records of a source could not be copied.
    #[error(transparent)]
    Records(#[from] AssembleError),
    /// Writing failed.
    #[error(transparent)]
    Warc(#[from] WarcError),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a revisit record refers to: the original's URI and the date of its record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Original {
    uri: String,
    date: DateTime<Utc>,
}

impl Original {
    fn of_target(target: &RevisitTarget) -> Option<Original> {
        Some(Original { uri: target.target_uri.clone()?, date: target.date? })
    }

    fn of_record(header: &RecordHeader) -> Option<Original> {
        (header.record_type() == Some(RecordType::Response))
            .then(|| Some(Original { uri: header.target_uri()?, date: header.date()? }))
            .flatten()
    }
}

/// Originals that lie elsewhere, fetched to make revisits whole.
#[derive(Debug, Default)]
pub struct Originals {
    /// The payload as stored, after its HTTP head.
    found: HashMap<Original, File>,
}

impl Originals {
    /// Takes those of `wanted` that the package holds and strikes them off.
    ///
    /// # Errors
    /// When the package cannot be read.
    pub fn take(&mut self, package: &File, wanted: &mut HashSet<Original>) -> Result<(), AssemblyError> {
        for warc in warcs(package)? {
            let mut reader = WarcReader::new(BufReader::new(warc))?;
            while let Some(mut record) = reader.next_record()? {
                let Some(original) = Original::of_record(record.header()).filter(|o| wanted.contains(o)) else {
                    continue;
                };
                let mut block = tempfile::tempfile()?;
                io::copy(&mut record, &mut block)?;
                let head = record.finish()?.http_head.map_or(0, |h| h.len() as u64);
                let mut payload = tempfile::tempfile()?;
                block.seek(SeekFrom::Start(head))?;
                io::copy(&mut block, &mut payload)?;
                wanted.remove(&original);
                self.found.insert(original, payload);
            }
        }
        Ok(())
    }
}

impl Payloads for Originals {
    fn payload(&mut self, target: &RevisitTarget) -> io::Result<Option<Box<dyn ReadSeek>>> {
        let Some(mut file) =
            Original::of_target(target).and_then(|o| self.found.get(&o)).map(File::try_clone).transpose()?
        else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(0))?;
        Ok(Some(Box::new(file)))
    }
}

/// What the package's revisits refer to and the package itself does not hold.
///
/// # Errors
/// When the package cannot be read.
pub fn missing_originals(package: &File) -> Result<HashSet<Original>, AssemblyError> {
    let (mut wanted, mut held) = (HashSet::new(), HashSet::new());
    for warc in warcs(package)? {
        let mut reader = WarcReader::new(BufReader::new(warc))?;
        while let Some(record) = reader.next_record()? {
            let header = record.header();
            wanted.extend(RevisitTarget::of(header).as_ref().and_then(Original::of_target));
            held.extend(Original::of_record(header));
            record.finish()?;
        }
    }
    wanted.retain(|original| !held.contains(original));
    Ok(wanted)
}

/// The WARC files of a package, each as a file of its own that can be sought in.
fn warcs(package: &File) -> Result<Vec<File>, AssemblyError> {
    let mut file = package.try_clone()?;
    file.seek(SeekFrom::Start(0))?;
    let mut reader = WaczReader::open(BufReader::new(file))?;
    let paths: Vec<String> = reader.warcs().map(str::to_owned).collect();
    paths.iter().map(|path| unpacked(&mut reader, path)).collect()
}

fn unpacked(reader: &mut WaczReader<BufReader<File>>, path: &str) -> Result<File, AssemblyError> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut reader.entry(path)?, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// An artifact waiting for the end in the spool.
struct Artifact {
    path: String,
    offset: u64,
    facts: ContentFacts,
}

/// A package being put together.
pub struct Assembly {
    warc: WarcMerge<BufWriter<File>>,
    pages: Vec<Page>,
    /// Artifacts one behind the other: thousands of small files would be thousands of open ones.
    spool: File,
    artifacts: Vec<Artifact>,
}

impl Assembly {
    /// An empty package, in temporary files.
    ///
    /// # Errors
    /// When those cannot be made.
    pub fn new(now: DateTime<Utc>) -> Result<Assembly, AssemblyError> {
        let out = BufWriter::new(tempfile::tempfile()?);
        let warc = WarcMerge::new(out, WARC, now, &[("software", SOFTWARE), ("format", "WARC File Format 1.1")])?;
        Ok(Assembly { warc, pages: Vec::new(), spool: tempfile::tempfile()?, artifacts: Vec::new() })
    }

    /// How many pages are in it.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Adds all of a snapshot's package. Its artifacts are named after `owner` when there are several.
    ///
    /// # Errors
    /// When the package is damaged; nothing of it is in the result then but, perhaps, artifacts.
    pub fn add(
        &mut self,
        package: &File,
        owner: Option<&str>,
        originals: Option<&mut Originals>,
    ) -> Result<(), AssemblyError> {
        let mut file = package.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        let (mut reader, _) = WaczReader::open_verified(BufReader::new(file))?;
        let mut keep = KeepRevisits;
        let payloads: &mut dyn Payloads = match originals {
            Some(originals) => originals,
            None => &mut keep,
        };
        let paths: Vec<String> = reader.warcs().map(str::to_owned).collect();
        for path in paths {
            self.warc.copy(&mut unpacked(&mut reader, &path)?, payloads)?;
        }
        self.pages.extend(reader.pages()?);
        let artifacts: Vec<String> =
            reader.entries().iter().map(|e| e.path.clone()).filter(|p| p.starts_with(ARTIFACTS)).collect();
        for path in artifacts {
            let offset = self.spool.seek(SeekFrom::End(0))?;
            let mut entry = reader.entry(&path)?;
            let facts = ContentFacts::of_reader(&mut Tee { from: &mut entry, to: &mut self.spool })?;
            drop(entry);
            self.artifacts.push(Artifact { path: named(&path, owner), offset, facts });
        }
        Ok(())
    }

    /// Writes the package.
    ///
    /// # Errors
    /// When the output fails.
    pub fn finish(self, out: &mut File, meta: &PackageMeta) -> Result<u64, AssemblyError> {
        let merged = self.warc.finish()?;
        let mut warc = merged.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        warc.seek(SeekFrom::Start(0))?;
        let mut package = WaczWriter::new(BufWriter::new(&mut *out), meta.created);
        package.add_warc(WARC, Content::Reader { facts: merged.facts, reader: &mut BufReader::new(warc) })?;
        let mut spool = BufReader::new(self.spool);
        for artifact in &self.artifacts {
            spool.seek(SeekFrom::Start(artifact.offset))?;
            let mut reader = (&mut spool).take(artifact.facts.len);
            package.add(&artifact.path, Content::Reader { facts: artifact.facts, reader: &mut reader })?;
        }
        let mut index = CdxjIndex::default();
        index.extend(merged.entries);
        package.add_index(index)?;
        package.add_pages(&self.pages)?;
        let finished = package.finish(meta)?;
        let mut buffer = finished.out;
        buffer.flush()?;
        Ok(finished.facts.len)
    }
}

/// `artifacts/pdf-output.pdf` of snapshot X among several: `artifacts/X-pdf-output.pdf`.
fn named(path: &str, owner: Option<&str>) -> String {
    match owner {
        Some(owner) => format!("{ARTIFACTS}{owner}-{}", path.trim_start_matches(ARTIFACTS)),
        None => path.to_owned(),
    }
}

/// Copies what is read.
struct Tee<'a, R, W> {
    from: &'a mut R,
    to: &'a mut W,
}

impl<R: Read, W: Write> Read for Tee<'_, R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        self.to.write_all(&buffer[..n])?;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fonds_warc::record::RefersTo;
    use fonds_warc::{CdxjEntry, Record, Sha256Digest, StoredBody, WarcBuffer, http_head};

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::<Utc>::from_timestamp(1_700_000_000 + second, 123_456_000).expect("a time")
    }

    const BODY: &[u8] = b"body { color: red }";

    /// The package of one page with a style sheet: stored, or as a revisit of the one of `original`.
    fn package(page: &str, second: i64, original: Option<DateTime<Utc>>) -> File {
        let mut warc = WarcBuffer::buffer();
        let mut index = CdxjIndex::default();
        let html = format!("<title>{page}</title>");
        let head = |len: usize| {
            http_head::response(b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n", StoredBody::as_sent(len as u64))
                .expect("a head")
        };
        let main = head(html.len());
        let written = warc.write(Record::response(page, at(second), &main, html.as_bytes())).expect("written");
        index.extend(written.cdxj(WARC));
        let css = "http://x.example/style.css";
        let style = head(BODY.len());
        let written = match original {
            None => warc.write(Record::response(css, at(second), &style, BODY)),
            Some(date) => {
                let refers = RefersTo { record_id: None, target_uri: css.to_owned(), date };
                warc.write(Record::revisit(css, at(second), &style, Sha256Digest::of(BODY), refers))
            }
        }
        .expect("written");
        index.extend(written.cdxj(WARC));
        let (bytes, _) = warc.finish().expect("finished");
        let mut file = tempfile::tempfile().expect("temp file");
        let mut wacz = WaczWriter::new(&mut file, at(second));
        wacz.add_warc(WARC, &bytes).expect("added");
        wacz.add_artifact("title", "title.txt", page.as_bytes()).expect("added");
        wacz.add_index(index).expect("added");
        wacz.add_pages(&[Page::new(page, at(second))]).expect("added");
        wacz.finish(&PackageMeta { created: at(second), ..PackageMeta::default() }).expect("finished");
        file
    }

    fn finish(assembly: Assembly) -> WaczReader<File> {
        let mut out = tempfile::tempfile().expect("temp file");
        let length =
            assembly.finish(&mut out, &PackageMeta { created: at(9), ..PackageMeta::default() }).expect("finished");
        assert_eq!(length, out.metadata().expect("metadata").len());
        let (reader, faults) = WaczReader::open_verified(out).expect("a sound package");
        assert!(faults.is_empty(), "{faults:?}");
        reader
    }

    fn entries(reader: &mut WaczReader<File>) -> Vec<CdxjEntry> {
        reader.index_text().expect("an index").lines().map(|l| CdxjEntry::parse(l).expect("a line")).collect()
    }

    #[test]
    fn packages_become_one() {
        let mut assembly = Assembly::new(at(9)).expect("begun");
        assembly.add(&package("http://x.example/a", 0, None), Some("s1"), None).expect("added");
        assembly.add(&package("http://x.example/b", 5, Some(at(0))), Some("s2"), None).expect("added");
        assert_eq!(assembly.pages(), 2);
        let mut reader = finish(assembly);
        let paths: Vec<String> = reader.entries().iter().map(|e| e.path.clone()).collect();
        for path in ["artifacts/s1-title-title.txt", "artifacts/s2-title-title.txt"] {
            assert!(paths.iter().any(|p| p == path), "{path} in {paths:?}");
        }
        assert_eq!(reader.read("artifacts/s2-title-title.txt", 100).expect("read"), b"http://x.example/b");
        assert_eq!(reader.pages().expect("pages").len(), 2);
        assert_eq!(entries(&mut reader).len(), 4, "the revisit is indexed beside its original");
    }

    #[test]
    fn a_page_alone_gets_what_its_revisits_refer_to() {
        let donor = package("http://x.example/a", 0, None);
        let page = package("http://x.example/b", 5, Some(at(0)));
        let mut wanted = missing_originals(&page).expect("read");
        assert_eq!(wanted.len(), 1);
        assert!(missing_originals(&donor).expect("read").is_empty());

        let mut originals = Originals::default();
        originals.take(&package("http://x.example/c", 3, None), &mut wanted).expect("read");
        assert_eq!(wanted.len(), 1, "another capture of the URL is not the original");
        originals.take(&donor, &mut wanted).expect("read");
        assert!(wanted.is_empty());

        let mut assembly = Assembly::new(at(9)).expect("begun");
        assembly.add(&page, None, Some(&mut originals)).expect("added");
        let mut reader = finish(assembly);
        let style = entries(&mut reader).into_iter().find(|e| e.url.ends_with("style.css")).expect("indexed");
        assert_ne!(style.mime.as_deref(), Some("warc/revisit"), "{style}");
        let mut out = tempfile::tempfile().expect("temp file");
        io::copy(&mut reader.entry("archive/data.warc.gz").expect("a WARC"), &mut out).expect("copied");
        out.seek(SeekFrom::Start(0)).expect("sought");
        let mut warc = WarcReader::new(out).expect("a WARC");
        let mut bodies = Vec::new();
        while let Some(mut record) = warc.next_record().expect("readable") {
            let mut block = Vec::new();
            record.read_to_end(&mut block).expect("read");
            assert_ne!(record.header().record_type(), Some(RecordType::Revisit));
            bodies.push(block);
        }
        assert!(bodies.iter().any(|b| b.ends_with(BODY)));
    }

    #[test]
    fn a_damaged_package_is_refused() {
        let mut file = package("http://x.example/a", 0, None);
        let middle = file.metadata().expect("metadata").len() / 4;
        file.seek(SeekFrom::Start(middle)).expect("sought");
        file.write_all(&[0xff; 32]).expect("written");
        let mut assembly = Assembly::new(at(9)).expect("begun");
        assert!(assembly.add(&file, None, None).is_err());
        assert_eq!(assembly.pages(), 0);
    }
}
