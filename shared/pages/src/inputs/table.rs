//! Rows: CSV and its relatives.

use super::dates::parse_date;
use super::sink::{Item, Sink};
use crate::codes;
use csv::{ByteRecord, ReaderBuilder};

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

const URL: &[&str] = &[
    "url",
    "href",
    "link",
    "uri",
    "address",
    "pageurl",
    "resolvedurl",
    "givenurl",
    "articleurl",
    "sourceurl",
    "web",
    "website",
    "permalink",
    "location",
];
const TITLE: &[&str] = &["title", "name", "resolvedtitle", "giventitle", "articletitle", "headline"];
const TAGS: &[&str] = &["tags", "tag", "labels", "label", "keywords", "categories", "category"];
const DATE: &[&str] = &[
    "timeadded",
    "dateadded",
    "addedat",
    "added",
    "createdat",
    "created",
    "saved",
    "savedat",
    "saveddate",
    "datesaved",
    "timestamp",
    "adddate",
    "bookmarkedat",
    "time",
    "date",
];
const NOTE: &[&str] =
    &["note", "notes", "excerpt", "description", "selection", "comment", "comments", "summary", "extended"];
const FOLDER: &[&str] = &["folder", "collection", "list", "folderpath", "path"];

#[derive(Clone, Debug, Default, PartialEq)]
struct Columns {
    url: Option<usize>,
    title: Option<usize>,
    tags: Option<usize>,
    date: Option<usize>,
    note: Option<usize>,
    folder: Option<usize>,
}

impl Columns {
    /// The columns a header row names.
    fn named<'f>(fields: impl Iterator<Item = &'f str>) -> Columns {
        let names: Vec<String> = fields.map(normal).collect();
        // Earlier names in a list count for more, whatever the order of the columns.
        let find = |known: &[&str]| known.iter().find_map(|k| names.iter().position(|n| n == k));
        Columns {
            url: find(URL),
            title: find(TITLE),
            tags: find(TAGS),
            date: find(DATE),
            note: find(NOTE),
            folder: find(FOLDER),
        }
    }
}

fn normal(field: &str) -> String {
    field.trim_start_matches('\u{FEFF}').chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn delimiter_of(line: &str) -> u8 {
    let count = |d: &u8| line.bytes().filter(|b| b == d).count();
    DELIMITERS.into_iter().rev().max_by_key(count).filter(|d| count(d) > 0).unwrap_or(b',')
}

/// Whether the first line names a URL column and at least one other.
pub(super) fn has_header(text: &str) -> bool {
    let line = text.lines().next().unwrap_or("");
    if line.len() > 4_096 || line.contains("://") {
        return false;
    }
    let delimiter = char::from(delimiter_of(line));
    let columns = Columns::named(line.split(delimiter).map(|f| f.trim_matches(['"', ' '])));
    columns.url.is_some() && line.contains(delimiter)
}

pub(super) fn read(text: &str, sink: &mut Sink<'_>) {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let delimiter = delimiter_of(first);
    let mut columns = None;
    let mut reader =
        ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text.as_bytes());
    let mut row = ByteRecord::new();
    loop {
        if sink.is_full() {
            return;
        }
        let offset = usize::try_from(reader.position().byte()).ok();
        match reader.read_byte_record(&mut row) {
            Ok(true) => {}
            Ok(false) => return,
            Err(e) => {
                sink.reject_at("", codes::MALFORMED_ROW, &e.to_string(), offset);
                return;
            }
        }
        let fields: Vec<&str> = row.iter().map(|f| std::str::from_utf8(f).unwrap_or("")).collect();
        // The position is behind the row before, blank lines not counted.
        let offset = offset.map(|at| at + blank(text.get(at..).unwrap_or("")));
        if columns.is_none() {
            let named = Columns::named(fields.iter().copied());
            if named.url.is_some() && !fields.iter().any(|f| f.contains("://")) {
                columns = Some(named);
                continue;
            }
            columns = Some(Columns::default());
        }
        if let Some(columns) = &columns {
            one(&fields, columns, offset, sink);
        }
    }
}

fn blank(text: &str) -> usize {
    text.bytes().take_while(|b| matches!(b, b'\n' | b'\r')).count()
}

fn is_url(field: &str) -> bool {
    let start = field.trim().get(..8).unwrap_or(field.trim()).to_ascii_lowercase();
    start.starts_with("http://") || start.starts_with("https://")
}

fn one(fields: &[&str], columns: &Columns, offset: Option<usize>, sink: &mut Sink<'_>) {
    let field = |at: Option<usize>| at.and_then(|at| fields.get(at)).map(|f| f.trim()).filter(|f| !f.is_empty());
    if fields.iter().all(|f| f.trim().is_empty()) {
        return;
    }
    // A row whose URL is not where the header says (an unquoted comma in the title) still has one.
    let by_name = field(columns.url).filter(|f| is_url(f) || sink.base.is_some());
    let shifted = by_name.is_none();
    let position = if shifted { fields.iter().position(|f| is_url(f)) } else { columns.url };
    let Some(url) = field(position).or_else(|| field(columns.url)) else {
        sink.reject_at(&fields.join(","), codes::MALFORMED_ROW, "this row has no URL", offset);
        return;
    };
    let at = |column: Option<usize>| match (shifted, column, columns.url, position) {
        // Behind the URL, the row is shifted as the URL is.
        (true, Some(c), Some(u), Some(p)) if c > u => field(Some(c + p - u)),
        (_, column, ..) => field(column),
    };
    let title = if columns.url.is_none() { untitled(fields, position) } else { field(columns.title) };
    let item = Item {
        title: title.map(str::to_owned),
        tags: at(columns.tags).map(split_tags).unwrap_or_default(),
        added_at: at(columns.date).and_then(parse_date),
        description: at(columns.note).map(str::to_owned),
        folder: at(columns.folder).map(split_folder).unwrap_or_default(),
        offset,
        ..Item::default()
    };
    sink.add(url, item);
}

/// Without a header, the first field that is neither the URL nor a number is the title.
fn untitled<'f>(fields: &[&'f str], url: Option<usize>) -> Option<&'f str> {
    fields
        .iter()
        .enumerate()
        .filter(|(i, _)| Some(*i) != url)
        .map(|(_, f)| f.trim())
        .find(|f| f.chars().any(char::is_alphabetic) && !is_url(f) && parse_date(f).is_none())
}

/// Pocket separates by `|`, Instapaper writes a JSON list, everybody else commas.
pub(super) fn split_tags(text: &str) -> Vec<String> {
    if text.starts_with('[') {
        return serde_json::from_str::<Vec<String>>(text).unwrap_or_default();
    }
    let separator = if text.contains('|') {
        '|'
    } else if text.contains(';') && !text.contains(',') {
        ';'
    } else {
        ','
    };
    text.split(separator).map(|tag| tag.trim().to_owned()).collect()
}

fn split_folder(text: &str) -> Vec<String> {
    text.split('/').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}
