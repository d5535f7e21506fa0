//! Twenty thousand damaged archives: no panic, no memory beyond the caps, no end that does not come. Alone in its binary,
//! because it counts what the whole process allocates.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "each test binary uses its part")]
mod support;

use fonds_archives::{ArchiveKind, ArchiveReader, Budget, Flow, Limits, SNIFF_BYTES, sniff};
use peak_alloc::PeakAlloc;
use std::io::{self, Cursor};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{
    Coder, Tar, Zipped, corpora, directory, rar4, rar5, sample, sample_lzma, sample_xz, seven_z, wrapped, zip,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const CASES: usize = 20_000;
const MIB: usize = 1 << 20;

/// Tight enough that going beyond them shows.
fn limits() -> Limits {
    Limits {
        entries: 2_000,
        member_bytes: 4 << 20,
        total_bytes: 8 << 20,
        ratio: 200,
        ratio_floor: 1 << 20,
        nesting_depth: 1,
        dictionary_bytes: 4 << 20,
        directory_bytes: 1 << 20,
    }
}

/// Two dictionaries (a decoder and the sniffer's, or rar's window and its copy) and what a decoder keeps besides; the
/// sniffer's own cap is the default one.
const PEAK: usize = 2 * (4 * MIB) + 24 * MIB;

/// xorshift: the same cases every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// A member of every method.
fn members() -> Vec<Zipped> {
    let data = sample();
    vec![
        Zipped::stored("stored.jpg", &data[..500]),
        Zipped::deflated("deflated.jpg", &data),
        Zipped::packed("bzip2", 12, &data, wrapped(ArchiveKind::TarBzip2, &data)),
        Zipped::packed("lzma", 14, &data, sample_lzma()).with(|m| m.flags = 2),
        Zipped::packed("xz", 95, &data, sample_xz(false)),
        Zipped::packed("zstd", 93, &data, zstd::encode_all(data.as_slice(), 3).unwrap()),
        Zipped::deflated("deflate64", &data[..40]).with(|m| m.method = 9),
        Zipped::deflated("wide", &data).with(|m| m.zip64 = true),
    ]
}

fn tar() -> Vec<u8> {
    let data = sample();
    Tar::default()
        .file("a.txt", &data[..700])
        .gnu_long(&[b'n'; 200], b"long")
        .pax(&[("path", "p.jpg"), ("size", "4")], "x", b"body")
        .end()
}

/// Damage inside: a zip whose directory is sound and whose members are not, a tar broken before it was wrapped.
fn damaged_inside(case: usize, seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    if case.is_multiple_of(3) {
        let kind = [ArchiveKind::Tar, ArchiveKind::TarGzip, ArchiveKind::TarXz, ArchiveKind::TarZstd][random.below(4)];
        return wrapped(kind, &mutate(&tar(), seeds, random));
    }
    let mut members = members();
    members.rotate_left(case % 8);
    members.truncate(3);
    for member in &mut members {
        member.packed = mutate(&member.packed, seeds, random);
        if random.below(4) == 0 {
            member.size = random.next() >> random.below(64);
            member.local = Some((0, 0, 0));
        }
        if member.method == 0 {
            member.size = member.packed.len() as u64;
        }
    }
    zip(&members)
}

fn seeds() -> Vec<Vec<u8>> {
    let data = sample();
    let (members, tar) = (members(), tar());
    let files: [(&str, &[u8]); 3] = [("a", &data[..900]), ("empty", b""), ("b", &data[900..])];
    let raw: Vec<(&[u8], &[u8])> = files.iter().map(|(name, body)| (name.as_bytes(), *body)).collect();
    let mut seeds = vec![
        zip(&members),
        zip(&members[1..2]),
        support::zip_with(&members, &support::End { zip64: true, prepended: vec![1; 40], ..Default::default() }),
        zip(&[Zipped::stored("inner.zip", zip(&members[..2]))]),
        seven_z(Coder::Copy, &[&files]),
        seven_z(Coder::Lzma2Sample, &[&files]),
        seven_z(Coder::Copy, &[&files[..2], &files[2..]]),
        rar5(0, &files),
        rar5(4, &files),
        rar4(0, &raw),
        rar4(8, &raw),
    ];
    let kinds =
        [ArchiveKind::Tar, ArchiveKind::TarGzip, ArchiveKind::TarBzip2, ArchiveKind::TarXz, ArchiveKind::TarZstd];
    seeds.extend(kinds.map(|kind| wrapped(kind, &tar)));
    if let Some(dir) = corpora() {
        let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        seeds.extend(files.iter().map(|path| std::fs::read(path).unwrap()).filter(|bytes| bytes.len() < 80_000));
    }
    seeds
}

/// Damages an archive in one to four ways, often where the headers are.
fn mutate(seed: &[u8], seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const TELLING: [u64; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
    let mut bytes = seed.to_vec();
    let ways = [1, 1, 1, 2, 2, 4][random.below(6)];
    for _ in 0..ways {
        let place = |random: &mut Random, len: usize| match random.below(6) {
            0 => random.below(len.min(64)),
            1 => len.saturating_sub(1 + random.below(len.min(300))),
            _ => random.below(len),
        };
        let at = place(random, bytes.len());
        match random.below(12) {
            0 | 1 | 9..=11 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => bytes[at] = random.next() as u8,
            3 => {
                let value = TELLING[random.below(TELLING.len())].to_le_bytes();
                let width = 1 << random.below(4);
                bytes.iter_mut().skip(at).take(width).zip(value).for_each(|(byte, new)| *byte = new);
            }
            4 => bytes.truncate(at),
            5 => {
                let end = (at + random.below(64)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            6 => {
                let piece = bytes[at.min(bytes.len())..(at + random.below(200)).min(bytes.len())].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            7 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                let piece = &other[from..(from + random.below(200)).min(other.len())];
                bytes.splice(at.min(bytes.len())..at.min(bytes.len()), piece.iter().copied());
            }
            _ => {
                let run = random.below(32);
                bytes.iter_mut().skip(at).take(run).for_each(|byte| *byte = 0xff);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    // Checksums over headers would stop most of the damage at the door: mostly they are made to fit again.
    if random.below(4) > 0 {
        mend(&mut bytes);
    }
    bytes
}

/// Makes the checksums of a 7z's headers, a rar 5's headers and a tar's first header true.
fn mend(bytes: &mut [u8]) {
    if bytes.starts_with(b"7z\xbc\xaf\x27\x1c") && bytes.len() > 32 {
        let at = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().unwrap());
        let (start, len) = (at(12).saturating_add(32), at(20));
        let range = usize::try_from(start).ok().zip(usize::try_from(start.saturating_add(len)).ok());
        if let Some(header) = range.and_then(|(start, end)| bytes.get(start..end)) {
            let crc = crc32fast::hash(header);
            bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes[12..32]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    } else if bytes.starts_with(b"Rar!\x1a\x07\x01\0") {
        let mut at = 8;
        while at + 6 < bytes.len() {
            let len = usize::from(bytes[at + 4]);
            let end = (at + 5 + len).min(bytes.len());
            let crc = crc32fast::hash(&bytes[at + 4..end]);
            bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
            // Only the archive's header and the first file's: behind them lies data.
            if at > 8 {
                break;
            }
            at = end;
        }
    } else if bytes.len() >= 512 && bytes[257..].starts_with(b"ustar") {
        bytes[148..156].fill(b' ');
        let sum: u32 = bytes[..512].iter().map(|b| u32::from(*b)).sum();
        bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}

/// How far the damage got.
#[derive(Default)]
struct Reached {
    opened: usize,
    read: usize,
    refused: usize,
}

/// Reads everything of an archive that can be read; how many bytes it was.
fn read(bytes: &[u8], limits: &Limits, reached: &mut Reached) -> u64 {
    let budget = Budget::new(limits.clone());
    if let Some(kind) = sniff(&bytes[..bytes.len().min(SNIFF_BYTES)])
        && let Ok(mut reader) = ArchiveReader::open(Cursor::new(bytes.to_vec()), kind, limits)
    {
        reached.opened += 1;
        let mut last = None;
        let _ = reader.visit(.., &budget, &mut |member, body| {
            assert!(last.is_none_or(|last| member.ordinal == last + 1), "announced once and in order");
            last = Some(member.ordinal);
            match body.copy_to(&mut io::sink()) {
                Ok(extracted) => {
                    assert!(extracted.size <= limits.member_bytes);
                    reached.read += 1;
                }
                Err(_) => reached.refused += 1,
            }
            Flow::Continue
        });
    }
    if bytes.starts_with(b"PK") {
        let _ = directory(bytes, limits);
    }
    budget.produced()
}

#[test]
fn damaged_archives_cost_neither_panics_nor_memory_nor_time() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    // Panics of decoders are caught, and counted here all the same: the net is there to be empty.
    std::panic::set_hook(Box::new(|info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        eprintln!("{info}");
    }));
    let limits = limits();
    let seeds = seeds();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let begun = Instant::now();
    let mut reached = Reached::default();
    let (mut most, mut slowest) = (0, Duration::ZERO);
    for case in 0..CASES {
        let seed = case % seeds.len();
        let bytes = match case % 3 {
            0 => damaged_inside(case / 3, &seeds, &mut random),
            _ => mutate(&seeds[seed], &seeds, &mut random),
        };
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let started = Instant::now();
        let produced = read(&bytes, &limits, &mut reached);
        let (took, peak) = (started.elapsed(), ALLOCATOR.peak_usage().saturating_sub(before));
        assert!(peak < PEAK, "case {case} of seed {seed} allocated {peak} bytes");
        // A read that crosses the cap has happened by the time it is counted.
        assert!(produced <= limits.total_bytes + (1 << 20), "case {case} of seed {seed} produced {produced} bytes");
        assert!(took < Duration::from_secs(60), "case {case} of seed {seed} took {took:?}");
        (most, slowest) = (most.max(peak), slowest.max(took));
    }
    let panics = PANICS.load(Ordering::Relaxed);
    eprintln!(
        "{CASES} cases of {} seeds in {:?}: at most {} KiB, slowest {slowest:?}, {panics} panics caught; {} opened, {} \
         members read, {} refused",
        seeds.len(),
        begun.elapsed(),
        most / 1024,
        reached.opened,
        reached.read,
        reached.refused
    );
    assert!(reached.opened > CASES / 4 && reached.refused > CASES / 2, "the damage did not get far");
    assert_eq!(panics, 0);
}
