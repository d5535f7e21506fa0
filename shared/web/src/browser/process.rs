//! The browser's process group: what it uses, and its end.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};

/// What the processes of a browser use, summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, user and system, of those that live and of their ended children.
    pub cpu: Duration,
    /// Private memory, bytes: resident without what is shared.
    pub memory: u64,
    /// How many processes.
    pub processes: usize,
}

/// A process group that is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Group(Pid);

impl Group {
    /// The group led by this process.
    pub(super) fn new(leader: u32) -> Option<Self> {
        i32::try_from(leader).ok().and_then(Pid::from_raw).map(Self)
    }

    /// Its leader's process id.
    pub(super) fn id(&self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// Kills every process of it, at once and for good.
    pub(super) fn kill(&self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }

    /// Whether a process of it is left, an ended one that nobody took away included.
    pub(super) fn exists(&self) -> bool {
        test_kill_process_group(self.0).is_ok()
    }

    /// Takes away ended processes that were handed to us: orphans go to process 1, which in a
    /// container may be this program.
    pub(super) fn reap(&self) {
        while let Ok(Some(_)) = waitpgid(self.0, WaitOptions::NOHANG) {}
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sums over the processes of the group led by `leader`. Processes that end meanwhile count as
/// nothing.
pub(super) fn usage(leader: i32) -> Usage {
    let mut total = Usage::default();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return total;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if !entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        if let Some(cpu) = cpu_of(&path, leader) {
            total.cpu += cpu;
            total.memory += private_memory(&path);
            total.processes += 1;
        }
    }
    total
}

/// CPU time of a process if it belongs to the group: proc_pid_stat(5), fields 5 and 14 to 17.
fn cpu_of(proc: &Path, group: i32) -> Option<Duration> {
    let stat = std::fs::read_to_string(proc.join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    if fields.get(2)?.parse::<i32>().ok()? != group {
        return None;
    }
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|f| f.parse::<u64>().ok()).sum();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second))
}

/// Resident minus shared pages: proc_pid_statm(5).
fn private_memory(proc: &Path) -> u64 {
    let Ok(statm) = std::fs::read_to_string(proc.join("statm")) else {
        return 0;
    };
    let mut fields = statm.split_ascii_whitespace().skip(1).map(|f| f.parse::<u64>().unwrap_or(0));
    let resident = fields.next().unwrap_or(0);
    let shared = fields.next().unwrap_or(0);
    resident.saturating_sub(shared) * rustix::param::page_size() as u64
}
