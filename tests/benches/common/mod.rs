//! What the benchmarks share: a database of their own, CPU seconds, arguments, tables.

mod database;
mod report;
mod usage;

pub(crate) use database::Database;
pub(crate) use report::{Args, Report, Table};
pub(crate) use usage::{Meter, Used};

/// Median; `NaN` of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this share of the values lies; `NaN` of nothing.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    sorted.get((last * share).round() as usize).copied().unwrap_or(f64::NAN)
}
