//! Sizes and times as people write and read them.

use std::time::Duration;

/// Bytes from `1500`, `500k`, `45mb`, `1.5g`, `2TiB`; units are powers of 1024.
///
/// # Errors
/// A sentence for the person who wrote it.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(format!("{unit:?} is no unit of size; write 500k, 45mb or 2g")),
    };
    let value: f64 = number.parse().map_err(|_| "write a size such as 500k, 45mb or 2g".to_owned())?;
    let bytes = value * factor as f64;
    // Beyond 2^53 a float no longer holds whole bytes, and nobody means that.
    if !(1.0..9.0e15).contains(&bytes) {
        return Err("must be at least one byte and below 8 PiB".to_owned());
    }
    Ok(bytes.round() as u64)
}

/// Seconds from `90`, `90s`, `30m`, `2h`, `1d`.
///
/// # Errors
/// A sentence for the person who wrote it.
pub fn parse_seconds(text: &str) -> Result<u32, String> {
    let (number, unit) = split(text);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(format!("{unit:?} is no unit of time; write 90s, 30m or 2h")),
    };
    let value: u32 = number.parse().map_err(|_| "write a time such as 90s, 30m or 2h".to_owned())?;
    value
        .checked_mul(factor)
        .filter(|s| *s > 0)
        .ok_or_else(|| "must be at least one second and below 136 years".to_owned())
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    (number.trim_end(), unit)
}

/// `0 B`, `999 B`, `1.0 KB`, `45 MB`: at most four characters of number.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KB", "MB", "GB", "TB", "PB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // 999.5 would be shown as a four-digit 1000.
    while value >= 999.5 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 9.95 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `3 d 4 h`.
#[must_use]
pub fn time(duration: Duration) -> String {
    let s = duration.as_secs();
    match s {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

/// `1 page`, `2 pages`.
#[must_use]
pub fn count(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("1500", 1500),
            ("500k", 512_000),
            ("45mb", 47_185_920),
            ("1.5G", 1_610_612_736),
            (" 2 TiB ", 2_199_023_255_552),
            ("1b", 1),
        ] {
            assert_eq!(parse_size(text), Ok(expected), "{text:?}");
        }
        for text in ["", "k", "0", "-1", "1x", "1e9", "inf", "nan", "99999p", "10000t"] {
            assert!(parse_size(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn times_are_read() {
        for (text, expected) in [("90", 90), ("90s", 90), ("30m", 1800), ("30min", 1800), ("2h", 7200), ("1d", 86_400)]
        {
            assert_eq!(parse_seconds(text), Ok(expected), "{text:?}");
        }
        for text in ["", "0", "s", "1.5h", "-5", "5w", "4294967295d"] {
            assert!(parse_seconds(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn values_are_shown_short() {
        let sizes: Vec<String> = [0, 999, 1000, 1024, 10 * 1024 - 60, 45 << 20, 999 << 20, 1023 << 20, u64::MAX]
            .into_iter()
            .map(size)
            .collect();
        assert_eq!(sizes, ["0 B", "999 B", "1.0 KB", "1.0 KB", "9.9 KB", "45 MB", "999 MB", "1.0 GB", "16384 PB"]);
        let times: Vec<String> = [400, 9_990, 12_000, 185_000, 7_800_000, 273_600_000]
            .into_iter()
            .map(|ms| time(Duration::from_millis(ms)))
            .collect();
        assert_eq!(times, ["0.4 s", "10.0 s", "12 s", "3 min 5 s", "2 h 10 min", "3 d 4 h"]);
        assert_eq!((count(1, "page"), count(0, "page")), ("1 page".into(), "0 pages".into()));
    }
}
