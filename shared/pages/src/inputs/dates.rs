//! Dates as exports write them: numbers without a unit, and text without a standard.

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeZone, Utc};

/// Years a bookmark can plausibly be from: the web is from the first on, and the second leaves clocks some room.
const PLAUSIBLE: std::ops::Range<i64> = 788_918_400..2_082_758_400;
/// Seconds from 1970 to 2001, where Apple's clocks begin.
const MAC_EPOCH: i64 = 978_307_200;
/// Seconds from 1601, where Windows's and Chrome's clocks begin, to 1970.
const WINDOWS_EPOCH: i64 = 11_644_473_600;

/// A number whose unit and epoch are told from what makes it a plausible date (1995 to 2035): Unix time in seconds,
/// milliseconds, microseconds or nanoseconds, Chrome's microseconds and Windows's 100 ns since 1601, Apple's seconds or
/// milliseconds since 2001, tried in this order.
pub fn parse_timestamp(value: f64) -> Option<DateTime<Utc>> {
    if !value.is_finite() || value < 1_000_000.0 {
        return None;
    }
    let readings: [(f64, i64); 8] = [
        (1.0, 0),
        (1e3, 0),
        (1e6, 0),
        (1e9, 0),
        (1e6, -WINDOWS_EPOCH),
        (1e7, -WINDOWS_EPOCH),
        (1.0, MAC_EPOCH),
        (1e3, MAC_EPOCH),
    ];
    readings.iter().find_map(|&(unit, epoch)| {
        let micros = (value / unit * 1e6).round();
        // Both bounds are far within i64.
        let in_range = micros.abs() < 4e17;
        let micros = if in_range { micros as i64 } else { return None };
        let micros = micros.checked_add(epoch.checked_mul(1_000_000)?)?;
        if !PLAUSIBLE.contains(&micros.div_euclid(1_000_000)) {
            return None;
        }
        DateTime::from_timestamp_micros(micros)
    })
}

/// A date in text: a number (see [`parse_timestamp`]), RFC 3339, RFC 2822, or one of the shapes exports and feeds use
/// in practice. Without a zone it is taken as UTC.
pub fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    let dots = text.bytes().filter(|b| *b == b'.').count();
    if dots < 2 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        let compact = NaiveDate::parse_from_str(text, "%Y%m%d").ok().filter(|_| text.len() == 8);
        return match compact {
            Some(day) => plausible(Utc.from_utc_datetime(&day.and_hms_opt(0, 0, 0)?)),
            None => parse_timestamp(text.parse().ok()?),
        };
    }
    zoned(text).or_else(|| local(text)).and_then(plausible).or_else(|| words(text).and_then(plausible))
}

fn plausible(date: DateTime<Utc>) -> Option<DateTime<Utc>> {
    PLAUSIBLE.contains(&date.timestamp()).then_some(date)
}

fn zoned(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(date) = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text)) {
        return Some(date.to_utc());
    }
    const SHAPES: [&str; 8] = [
        "%d/%b/%Y:%H:%M:%S %#z",
        "%Y-%m-%dT%H:%M:%S%.f%#z",
        "%Y-%m-%d %H:%M:%S%.f%#z",
        "%Y-%m-%d %H:%M:%S%.f %#z",
        "%Y-%m-%dT%H:%M%#z",
        "%a, %d %b %Y %H:%M %#z",
        "%d %b %Y %H:%M:%S %#z",
        "%a %b %d %H:%M:%S %#z %Y",
    ];
    SHAPES.iter().find_map(|shape| DateTime::parse_from_str(text, shape).ok()).map(|date| date.to_utc())
}

fn local(text: &str) -> Option<DateTime<Utc>> {
    // A zone by name is not worth a table: the day is right, and the hour nearly.
    let bare = match text.rsplit_once(' ') {
        Some((front, zone))
            if (2..=5).contains(&zone.len())
                && zone.bytes().all(|b| b.is_ascii_uppercase())
                && zone != "AM"
                && zone != "PM" =>
        {
            front
        }
        _ => text.trim_end_matches('Z'),
    };
    const TIMES: [&str; 14] = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
        "%Y/%m/%d %H:%M:%S",
        "%a, %d %b %Y %H:%M:%S",
        "%A, %d-%b-%y %H:%M:%S",
        "%a, %d %b %Y %H:%M",
        "%d %b %Y %H:%M:%S",
        "%a %b %d %H:%M:%S %Y",
        "%b %d, %Y %H:%M:%S",
        "%B %d, %Y at %I:%M%p",
        "%m/%d/%Y %H:%M:%S",
        "%d.%m.%Y %H:%M:%S",
    ];
    const DAYS: [&str; 9] = [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%d %b %Y",
        "%d %B %Y",
        "%b %d, %Y",
        "%B %d, %Y",
        "%a, %d %b %Y",
        "%d.%m.%Y",
        "%m/%d/%Y",
    ];
    let time = TIMES.iter().find_map(|shape| NaiveDateTime::parse_from_str(bare, shape).ok());
    let day = || DAYS.iter().find_map(|shape| NaiveDate::parse_from_str(bare, shape).ok());
    time.or_else(|| day()?.and_hms_opt(0, 0, 0)).map(|date| Utc.from_utc_datetime(&date))
}

/// Month names begin so, in the languages feeds are written in.
const MONTHS: [(&str, u32); 38] = [
    ("jan", 1),
    ("gen", 1),
    ("ene", 1),
    ("feb", 2),
    ("fev", 2),
    ("fév", 2),
    ("mar", 3),
    ("mär", 3),
    ("mrz", 3),
    ("mrt", 3),
    ("maa", 3),
    ("apr", 4),
    ("avr", 4),
    ("abr", 4),
    ("may", 5),
    ("mai", 5),
    ("mag", 5),
    ("mei", 5),
    ("jun", 6),
    ("juin", 6),
    ("giu", 6),
    ("jul", 7),
    ("juil", 7),
    ("lug", 7),
    ("aug", 8),
    ("aoû", 8),
    ("aou", 8),
    ("ago", 8),
    ("sep", 9),
    ("set", 9),
    ("oct", 10),
    ("okt", 10),
    ("ott", 10),
    ("out", 10),
    ("nov", 11),
    ("dec", 12),
    ("déc", 12),
    ("dic", 12),
];

/// A date whose parts stand in whatever order: a month by name, a day, a year of two or four digits, perhaps a time and
/// a zone.
fn words(text: &str) -> Option<DateTime<Utc>> {
    let (mut day, mut month, mut year, mut time, mut zone) = (None, None, None, None, 0);
    for word in text.split([' ', ',', 'T']).filter(|w| !w.is_empty()) {
        let lower = word.to_lowercase();
        if word.contains(':') {
            time = clock(word);
        } else if let Some(offset) = offset(word) {
            zone = offset;
        } else if lower == "pm" || lower == "am" {
            time = time.map(|(h, m, s): (u32, u32, u32)| (h % 12 + if lower == "pm" { 12 } else { 0 }, m, s));
        } else if let Ok(number) = word.trim_end_matches(['.', 't', 'h', 's', 'n', 'd', 'r']).parse::<i32>() {
            match (day, word.len()) {
                (_, 4) => year = year.or(Some(number)),
                (None, _) => day = u32::try_from(number).ok(),
                _ => year = year.or(Some(if number < 70 { 2000 + number } else { 1900 + number })),
            }
        } else if month.is_none() {
            // The longest match: `juin` is not `jul`.
            let found =
                MONTHS.iter().filter(|(start, _)| lower.starts_with(start)).max_by_key(|(start, _)| start.len());
            month = found.map(|(_, month)| *month);
        }
    }
    let (hour, minute, second) = time.unwrap_or((0, 0, 0));
    let date = NaiveDate::from_ymd_opt(year?, month?, day?)?.and_hms_opt(hour, minute, second)?;
    date.checked_sub_signed(chrono::TimeDelta::seconds(zone)).map(|date| Utc.from_utc_datetime(&date))
}

fn clock(word: &str) -> Option<(u32, u32, u32)> {
    let lower = word.to_ascii_lowercase();
    let afternoon = lower.ends_with("pm");
    let mut parts = lower.trim_end_matches(|c: char| !c.is_ascii_digit()).split(':');
    let hour: u32 = parts.next()?.parse().ok()?;
    let minute = parts.next()?.parse().ok()?;
    let second = parts.next().and_then(|s| s.split('.').next()?.parse().ok()).unwrap_or(0);
    Some((if afternoon { hour % 12 + 12 } else { hour }, minute, second))
}

/// `+0100`, in seconds.
fn offset(word: &str) -> Option<i64> {
    let sign = match word.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: i64 = word.get(1..).filter(|d| d.len() == 4)?.parse().ok()?;
    Some(sign * (digits / 100 * 3_600 + digits % 100 * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_find_their_unit_and_epoch() {
        for (text, expected) in [
            ("1466009412", Some("2016-06-15T16:50:12Z")),
            ("1466009412.5", Some("2016-06-15T16:50:12.500Z")),
            ("1466009412123", Some("2016-06-15T16:50:12.123Z")),
            ("1466009412123456", Some("2016-06-15T16:50:12.123456Z")),
            ("1466009412123456000", Some("2016-06-15T16:50:12.123456Z")),
            ("13110483012000000", Some("2016-06-15T16:50:12Z")),
            ("131104830120000000", Some("2016-06-15T16:50:12Z")),
            ("487702212", Some("2016-06-15T16:50:12Z")),
            ("487702212000", Some("2016-06-15T16:50:12Z")),
            ("725846400", Some("2024-01-02T00:00:00Z")),
            ("20240102", Some("2024-01-02T00:00:00Z")),
            ("0", None),
            ("1", None),
            ("-1466009412", None),
            ("99999999999999999999999999", None),
        ] {
            let expected: Option<DateTime<Utc>> = expected.map(|e| e.parse().unwrap());
            assert_eq!(parse_date(text), expected, "{text}");
        }
    }

    #[test]
    fn text_is_read_in_the_shapes_in_use() {
        for (text, expected) in [
            ("2016-10-31T15:57:56Z", "2016-10-31T15:57:56Z"),
            ("2016-09-08T11:55:58+0200", "2016-09-08T09:55:58Z"),
            ("2024-10-29T16:30:11.000Z", "2024-10-29T16:30:11Z"),
            ("2024-10-29 16:30:11", "2024-10-29T16:30:11Z"),
            ("2024-10-29 16:30:11 +02:00", "2024-10-29T14:30:11Z"),
            ("2024-10-29 16:30", "2024-10-29T16:30:00Z"),
            ("2024-10-29", "2024-10-29T00:00:00Z"),
            ("Sat, 07 Sep 2002 00:00:01 GMT", "2002-09-07T00:00:01Z"),
            ("Sat, 7 Sep 2002 02:00:01 +0200", "2002-09-07T00:00:01Z"),
            ("07 Sep 2002 00:00:01 EST", "2002-09-07T05:00:01Z"),
            ("Sat, 07 Sep 2002 00:00:01 CEST", "2002-09-07T00:00:01Z"),
            ("Sat Sep 07 00:00:01 2002", "2002-09-07T00:00:01Z"),
            ("September 7, 2002", "2002-09-07T00:00:00Z"),
            ("07.09.2002", "2002-09-07T00:00:00Z"),
            ("10/Oct/2000:13:55:36 +0300", "2000-10-10T10:55:36Z"),
            ("05 Jan 17 13:34:55", "2017-01-05T13:34:55Z"),
            ("Thu, 05 Jan 17 13:34:52 +0100", "2017-01-05T12:34:52Z"),
            ("mer, 16 nov 2022 00:38:15 +0100", "2022-11-15T23:38:15Z"),
            ("Sat, Dec 16 2023 02:02:33 PM", "2023-12-16T14:02:33Z"),
            ("1 août 2022", "2022-08-01T00:00:00Z"),
            ("3rd March 2021 9:05am", "2021-03-03T09:05:00Z"),
        ] {
            assert_eq!(parse_date(text), Some(expected.parse().unwrap()), "{text}");
        }
        for text in ["", "yesterday", "0000-00-00", "1970-01-01", "2999-01-01", "12:30"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,40}", number: f64) {
            let _ = parse_date(&text);
            let _ = parse_timestamp(number);
        }

        #[test]
        fn every_plausible_second_is_itself(second in 788_918_400i64..2_082_758_400) {
            proptest::prop_assert_eq!(parse_timestamp(second as f64).map(|d| d.timestamp()), Some(second));
            proptest::prop_assert_eq!(parse_timestamp(second as f64 * 1e3).map(|d| d.timestamp()), Some(second));
            proptest::prop_assert_eq!(parse_timestamp(second as f64 * 1e6).map(|d| d.timestamp()), Some(second));
        }
    }
}
