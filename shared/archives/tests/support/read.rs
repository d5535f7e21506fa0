use fonds_archives::zip::{ChunkLimits, ChunkReader, Directory, DirectoryReader, plan_chunks};
use fonds_archives::{
    ArchiveError, ArchiveKind, ArchiveReader, Budget, Flow, Kind, Limits, Pass, SNIFF_BYTES, sniff, sniff_named,
};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::ops::RangeBounds;
use std::path::PathBuf;

/// A member's bytes, or the code it was refused with.
pub(crate) type Outcome = Result<Vec<u8>, &'static str>;

/// What a pass told of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) ordinal: u32,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) outcome: Outcome,
}

/// Every member, and how the pass ended.
pub(crate) fn read_all(bytes: &[u8], limits: &Limits) -> (Vec<Seen>, Result<Pass, &'static str>) {
    read_range(bytes, limits, ..)
}

pub(crate) fn kind_of(bytes: &[u8]) -> Option<ArchiveKind> {
    sniff(&bytes[..bytes.len().min(SNIFF_BYTES)])
}

pub(crate) fn read_range(
    bytes: &[u8],
    limits: &Limits,
    range: impl RangeBounds<u32>,
) -> (Vec<Seen>, Result<Pass, &'static str>) {
    let mut seen = Vec::new();
    let Some(kind) = kind_of(bytes).or_else(|| sniff_named(bytes, "a.zip").filter(|_| bytes.len() >= 22)) else {
        return (seen, Err("NOT_AN_ARCHIVE"));
    };
    let budget = Budget::new(limits.clone());
    let pass = ArchiveReader::open(Cursor::new(bytes.to_vec()), kind, limits).and_then(|mut reader| {
        reader.visit(range, &budget, &mut |member, body| {
            let mut sink = Vec::new();
            let outcome = match body.copy_to(&mut sink) {
                Ok(extracted) => {
                    assert_eq!(extracted.size, sink.len() as u64);
                    assert_eq!(extracted.crc32, crc32fast::hash(&sink));
                    Ok(sink)
                }
                Err(error) => Err(error.code()),
            };
            let name = member.name.text.clone();
            seen.push(Seen { ordinal: member.ordinal, name, kind: member.kind, outcome });
            Flow::Continue
        })
    });
    (seen, pass.map_err(|error| error.code()))
}

/// Names and codes of a pass, for short comparisons; `OK` where the member was read.
pub(crate) fn codes(bytes: &[u8]) -> Vec<(String, &'static str)> {
    let (seen, pass) = read_all(bytes, &Limits::default());
    let mut codes: Vec<_> =
        seen.into_iter().map(|seen| (seen.name, seen.outcome.map_or_else(|code| code, |_| "OK"))).collect();
    if let Err(code) = pass {
        codes.push(("(archive)".into(), code));
    }
    codes
}

/// The members that were read, as text.
pub(crate) fn texts(seen: &[Seen]) -> Vec<(String, String)> {
    let text = |seen: &Seen| {
        let bytes = seen.outcome.clone().ok()?;
        Some((seen.name.clone(), String::from_utf8(bytes).unwrap()))
    };
    seen.iter().filter_map(text).collect()
}

/// The directory of a zip, by ranges.
pub(crate) fn directory(bytes: &[u8], limits: &Limits) -> Result<Directory, ArchiveError> {
    let mut reader = DirectoryReader::new(bytes.len() as u64, limits);
    let mut asked = 0;
    while let Some(range) = reader.wants() {
        asked += 1;
        assert!(asked < 100, "it asks for ever");
        assert!(range.start < range.end && range.end <= bytes.len() as u64, "{range:?} of {}", bytes.len());
        reader.feed(range.start, &bytes[range.start as usize..range.end as usize])?;
    }
    reader.finish()
}

/// Every member of a zip as the import reads it from an object store: directory, plan, one range per chunk.
pub(crate) fn by_chunks(bytes: &[u8], limits: &Limits) -> Result<BTreeMap<u32, Outcome>, &'static str> {
    let directory = directory(bytes, limits).map_err(|error| error.code())?;
    let budget = Budget::new(limits.clone());
    let refused = |problem: fonds_archives::Problem| Err(problem.code());
    let mut outcomes: BTreeMap<u32, Outcome> = directory
        .entries
        .iter()
        .filter(|entry| !entry.is_readable())
        .map(|entry| (entry.ordinal, entry.problem.map_or(Err("NOT_A_FILE"), refused)))
        .collect();
    for chunk in plan_chunks(&directory.entries, ChunkLimits::default()) {
        let range = &bytes[chunk.bytes.start as usize..chunk.bytes.end as usize];
        let mut reader = ChunkReader::new(chunk.bytes.start, range);
        for ordinal in chunk.ordinals {
            let mut sink = Vec::new();
            let entry = &directory.entries[ordinal as usize];
            let result = reader.read_member(entry, &budget, &mut sink);
            let before = outcomes.insert(ordinal, result.map(|_| sink).map_err(|error| error.code()));
            assert!(before.is_none(), "member {ordinal} twice");
        }
    }
    assert_eq!(outcomes.len(), directory.entries.len(), "every member has an outcome");
    Ok(outcomes)
}

pub(crate) fn corpora() -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");
    let path = std::env::var_os("FONDS_CORPORA").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let path = path.join("archives");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("no corpora at {}: nothing was checked against foreign files", path.display());
    None
}
