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

/// What a snapshot contributes.
#[derive(Debug)]
pub struct Source {
    package: File,
    /// The only page wanted of a package that holds those of a whole batch, and its own records.
    page: Option<(String, File)>,
}

impl Source {
    /// All of a package.
    #[must_use]
    pub fn whole(package: File) -> Source {
        Source { package, page: None }
    }

    /// One page of a package that holds several: `id` as its page list has it, and the page's own
    /// records, a WARC in itself.
    #[must_use]
    pub fn page(package: File, id: &str, records: File) -> Source {
        Source { package, page: Some((id.to_owned(), records)) }
    }

    /// The package itself, in which what the page refers to may be found.
    #[must_use]
    pub fn package(&self) -> &File {
        &self.package
    }

    fn open(&self) -> Result<WaczReader<BufReader<File>>, AssemblyError> {
        Ok(WaczReader::open_verified(BufReader::new(from_start(&self.package)?))?.0)
    }

    fn warcs(&self) -> Result<Vec<File>, AssemblyError> {
        match &self.page {
            Some((_, records)) => Ok(vec![from_start(records)?]),
            None => warcs(&self.package),
        }
    }

    fn wants(&self, page: &Page) -> bool {
        self.page.as_ref().is_none_or(|(id, _)| page.id.as_ref() == Some(id))
    }

    /// The artifact's name without its folder and without the mark of its page; none for another page's.
    fn artifact<'a>(&self, path: &'a str) -> Option<&'a str> {
        let name = path.strip_prefix(ARTIFACTS)?;
        match &self.page {
            Some((id, _)) => name.strip_prefix(&mark(id)),
            None => Some(name),
        }
    }
}

/// What tells a page's artifacts from the others' in the package of a batch: the random end of its id.
fn mark(id: &str) -> String {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{}-", digits.get(20..).unwrap_or(&digits))
}

/// Ids of the pages in a package.
///
/// # Errors
/// When the package cannot be read.
pub fn page_ids(package: &File) -> Result<Vec<String>, AssemblyError> {
    let mut reader = WaczReader::open(BufReader::new(from_start(package)?))?;
    Ok(reader.pages()?.into_iter().filter_map(|p| p.id).collect())
}

/// What the revisits refer to and is not there itself.
///
/// # Errors
/// When the source cannot be read.
pub fn missing_originals(source: &Source) -> Result<HashSet<Original>, AssemblyError> {
    let (mut wanted, mut held) = (HashSet::new(), HashSet::new());
    for warc in source.warcs()? {
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
    let mut reader = WaczReader::open(BufReader::new(from_start(package)?))?;
    let paths: Vec<String> = reader.warcs().map(str::to_owned).collect();
    paths.iter().map(|path| unpacked(&mut reader, path)).collect()
}

fn from_start(file: &File) -> io::Result<File> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
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

    /// Adds what a snapshot contributes. Its artifacts are named after `owner` when there are several.
    ///
    /// # Errors
    /// When the package is damaged; nothing of it is in the result then but, perhaps, artifacts.
    pub fn add(
        &mut self,
        source: &Source,
        owner: Option<&str>,
        originals: Option<&mut Originals>,
    ) -> Result<(), AssemblyError> {
        let mut reader = source.open()?;
        let mut keep = KeepRevisits;
        let payloads: &mut dyn Payloads = match originals {
            Some(originals) => originals,
            None => &mut keep,
        };
        for mut warc in source.warcs()? {
            self.warc.copy(&mut warc, payloads)?;
        }
        self.pages.extend(reader.pages()?.into_iter().filter(|page| source.wants(page)));
        let artifacts: Vec<String> = reader.entries().iter().map(|e| e.path.clone()).collect();
        for path in artifacts {
            let Some(name) = source.artifact(&path) else { continue };
            let offset = self.spool.seek(SeekFrom::End(0))?;
            let mut entry = reader.entry(&path)?;
            let facts = ContentFacts::of_reader(&mut Tee { from: &mut entry, to: &mut self.spool })?;
            drop(entry);
            let owner = owner.map(|o| format!("{o}-")).unwrap_or_default();
            self.artifacts.push(Artifact { path: format!("{ARTIFACTS}{owner}{name}"), offset, facts });
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

    fn whole(page: &str, second: i64, original: Option<DateTime<Utc>>) -> Source {
        Source::whole(package(page, second, original))
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
        assembly.add(&whole("http://x.example/a", 0, None), Some("s1"), None).expect("added");
        assembly.add(&whole("http://x.example/b", 5, Some(at(0))), Some("s2"), None).expect("added");
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
        let page = whole("http://x.example/b", 5, Some(at(0)));
        let mut wanted = missing_originals(&page).expect("read");
        assert_eq!(wanted.len(), 1);
        assert!(missing_originals(&Source::whole(donor.try_clone().expect("cloned"))).expect("read").is_empty());

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
    fn one_page_of_a_batch_comes_alone() {
        let ids = ["0192f0c1-2b3c-7d4e-8f90-aaaaaaaaaaaa", "0192f0c1-2b3c-7d4e-8f90-bbbbbbbbbbbb"];
        let mut all = WarcBuffer::buffer();
        let mut index = CdxjIndex::default();
        let mut pages = Vec::new();
        let mut file = tempfile::tempfile().expect("temp file");
        let mut wacz = WaczWriter::new(&mut file, at(0));
        let mut records = tempfile::tempfile().expect("temp file");
        for (id, url) in ids.iter().zip(["http://x.example/1", "http://x.example/2"]) {
            let head = http_head::response(b"HTTP/1.1 200 OK\r\n\r\n", StoredBody::as_sent(3)).expect("a head");
            let written = all.write(Record::response(url, at(0), &head, &b"one"[..])).expect("written");
            index.extend(written.cdxj(WARC));
            pages.push(Page { id: Some((*id).to_owned()), ..Page::new(url, at(0)) });
            if id.ends_with('b') {
                let mut own = WarcBuffer::buffer();
                own.write(Record::response(url, at(0), &head, &b"one"[..])).expect("written");
                records.write_all(&own.finish().expect("finished").0).expect("written");
            }
        }
        wacz.add_warc(WARC, &all.finish().expect("finished").0).expect("added");
        for (mark, text) in [("aaaaaaaaaaaa", "1"), ("bbbbbbbbbbbb", "2")] {
            wacz.add_artifact(&format!("{mark}-title"), "title.txt", text.as_bytes()).expect("added");
        }
        wacz.add_index(index).expect("added");
        wacz.add_pages(&pages).expect("added");
        wacz.finish(&PackageMeta { created: at(0), ..PackageMeta::default() }).expect("finished");
        assert_eq!(page_ids(&file).expect("read"), ids);

        let mut assembly = Assembly::new(at(9)).expect("begun");
        assembly.add(&Source::page(file, ids[1], records), None, None).expect("added");
        let mut reader = finish(assembly);
        assert_eq!(entries(&mut reader).iter().map(|e| e.url.as_str()).collect::<Vec<_>>(), ["http://x.example/2"]);
        assert_eq!(reader.pages().expect("pages")[0].id.as_deref(), Some(ids[1]));
        assert_eq!(reader.read("artifacts/title-title.txt", 9).expect("read"), b"2");
    }

    #[test]
    fn a_damaged_package_is_refused() {
        let mut file = package("http://x.example/a", 0, None);
        let middle = file.metadata().expect("metadata").len() / 4;
        file.seek(SeekFrom::Start(middle)).expect("sought");
        file.write_all(&[0xff; 32]).expect("written");
        let mut assembly = Assembly::new(at(9)).expect("begun");
        assert!(assembly.add(&Source::whole(file), None, None).is_err());
        assert_eq!(assembly.pages(), 0);
    }
}
