//! Arguments and output.

use anyhow::Context;
use std::fmt::Write as _;

/// The command line after `--`.
pub(crate) struct Args(Vec<String>);

impl Args {
    /// Reads the command line; `usage` is shown for `--help` and for what is not in it.
    pub(crate) fn read(usage: &str) -> anyhow::Result<Args> {
        // Cargo adds --bench for harnesses that know it.
        let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
        let known = |a: &String| !a.starts_with("--") || usage.split([' ', '[', ']']).any(|word| word == a);
        if args.iter().any(|a| a == "--help") || !args.iter().all(known) {
            anyhow::bail!("usage: {usage}");
        }
        Ok(Args(args))
    }

    /// Whether a switch is given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|a| a == name)
    }

    /// The number after a name.
    pub(crate) fn number(&self, name: &str, default: u32) -> anyhow::Result<u32> {
        let Some(at) = self.0.iter().position(|a| a == name) else { return Ok(default) };
        let value = self.0.get(at + 1).map_or("", String::as_str).replace('_', "");
        value.parse().with_context(|| format!("{name} wants a number"))
    }
}

/// Where people's tables and the machine's line go.
pub(crate) struct Report {
    json: bool,
}

impl Report {
    /// With `--json` standard output is one line, and everything for people goes to standard error.
    pub(crate) fn new(args: &Args) -> Report {
        Report { json: args.has("--json") }
    }

    /// A line or more for people.
    pub(crate) fn say(&self, text: impl AsRef<str>) {
        if self.json {
            eprintln!("{}", text.as_ref());
        } else {
            println!("{}", text.as_ref());
        }
    }

    /// The state of the machine, without which a figure means little.
    pub(crate) fn machine(&self) {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load: Vec<&str> = load.split_ascii_whitespace().take(3).collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.say(format!("{cores} cores, load average {}", load.join(" ")));
    }

    /// The figures.
    pub(crate) fn figures(&self, figures: &serde_json::Value) {
        if self.json {
            println!("{figures}");
        }
    }
}

/// A table: the first column to the left, the others to the right.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column names.
    pub(crate) fn new(columns: &[&str]) -> Table {
        Table { rows: vec![columns.iter().map(|c| (*c).to_owned()).collect()] }
    }

    /// Adds a row: its name and its numbers, each with this many decimals.
    pub(crate) fn row(&mut self, name: &str, cells: &[(f64, usize)]) {
        let mut row = vec![name.to_owned()];
        row.extend(cells.iter().map(|(v, d)| if v.is_finite() { format!("{v:.d$}") } else { "-".to_owned() }));
        self.rows.push(row);
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                if line.is_empty() {
                    write!(line, "{cell:width$}")?;
                } else {
                    write!(line, "  {cell:>width$}")?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
