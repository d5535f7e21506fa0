//! What the keys of a JSON object mean.

use crate::inputs::dates::{parse_date, parse_timestamp};
use crate::inputs::sink::Item;
use chrono::{DateTime, Utc};

/// What a key may hold, best first where several are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Url(u8),
    Title(u8),
    Tags,
    Date(u8),
    Note(u8),
    /// A string that is a folder's path.
    Folder,
    /// A list that belongs to the object but is about other pages.
    Children,
    /// Objects about people, pictures and the like, whose URLs are no bookmarks.
    Unrelated,
    Unknown,
}

pub(super) fn meaning(key: &str) -> Meaning {
    let key: String = key.chars().filter(|c| c.is_ascii_alphanumeric()).flat_map(char::to_lowercase).take(40).collect();
    match key.as_str() {
        "url" => Meaning::Url(0),
        "href" => Meaning::Url(1),
        "uri" => Meaning::Url(2),
        "link" => Meaning::Url(3),
        "resolvedurl" | "givenurl" | "pageurl" | "itemurl" | "articleurl" | "originalurl" | "sourceurl" | "weburl" => {
            Meaning::Url(4)
        }
        "externalurl" | "permalink" | "canonicalurl" | "address" | "u" => Meaning::Url(5),
        "title" => Meaning::Title(0),
        "resolvedtitle" | "giventitle" | "articletitle" | "pagetitle" | "name" | "headline" => Meaning::Title(1),
        // Pinboard and Delicious call the title so, and the description `extended`.
        "description" => Meaning::Note(3),
        "extended" | "note" | "notes" => Meaning::Note(0),
        "excerpt" | "articleexcerpt" | "summary" | "contenttext" | "comment" | "selection" => Meaning::Note(1),
        "tags" | "labels" | "tag" | "keywords" | "categories" | "tagnames" | "tagsstr" => Meaning::Tags,
        "bookmarkedat" | "timeadded" | "dateadded" | "addedat" | "adddate" | "savedat" | "saved" | "bookmarked" => {
            Meaning::Date(0)
        }
        "createdat" | "created" | "createdutc" | "time" | "timestamp" | "date" | "added" => Meaning::Date(1),
        "datepublished" | "publishedat" | "published" | "pubdate" => Meaning::Date(2),
        "folder" | "folderpath" | "collection" => Meaning::Folder,
        "children" | "items" | "bookmarks" | "links" | "entries" | "data" | "results" | "list" | "posts"
        | "articles" | "nodes" | "snapshots" | "roots" => Meaning::Children,
        "author" | "authors" | "user" | "users" | "owner" | "creator" | "icon" | "icons" | "image" | "images"
        | "thumbnail" | "thumbnails" | "avatar" | "favicon" | "attachments" | "enclosures" | "hubs" | "preview"
        | "media" | "annotations" | "highlights" | "videos" | "domainmetadata" | "publisher" | "annos" | "metainfo"
        | "headers" | "assets" => Meaning::Unrelated,
        _ => Meaning::Unknown,
    }
}

/// Keeps the value that counts more.
#[derive(Debug, Default)]
struct Best<T>(Option<(u8, T)>);

impl<T> Best<T> {
    fn offer(&mut self, rank: u8, value: T) {
        if self.0.as_ref().is_none_or(|(have, _)| rank < *have) {
            self.0 = Some((rank, value));
        }
    }

    fn take(self) -> Option<T> {
        self.0.map(|(_, value)| value)
    }
}

/// The scalar values of one object, as they come by.
#[derive(Debug, Default)]
pub(super) struct Draft {
    url: Best<String>,
    title: Best<String>,
    date: Best<DateTime<Utc>>,
    note: Best<String>,
    description: Option<String>,
    pub(super) tags: Vec<String>,
    folder: Vec<String>,
    pinboard: bool,
    /// A JSON Feed: its title is not a folder's.
    feed: bool,
}

impl Draft {
    pub(super) fn string(&mut self, key: &str, meaning: Meaning, value: &str) {
        let blank = value.trim().is_empty();
        self.feed |= key == "version" && value.contains("jsonfeed.org");
        match meaning {
            // `href` with `description` and no `title` is how Pinboard writes.
            Meaning::Url(rank) if !blank => {
                self.pinboard |= key == "href";
                self.url.offer(rank, value.to_owned());
            }
            Meaning::Title(rank) if !blank => self.title.offer(rank, value.to_owned()),
            Meaning::Note(3) if !blank => self.description = Some(value.to_owned()),
            Meaning::Note(rank) if !blank => self.note.offer(rank, value.to_owned()),
            Meaning::Tags if !blank => self.tags = split_tags(value),
            Meaning::Date(rank) => {
                if let Some(date) = parse_date(value) {
                    self.date.offer(rank, date);
                }
            }
            Meaning::Folder if !blank => self.folder = value.split('/').map(str::to_owned).collect(),
            _ => {}
        }
    }

    pub(super) fn number(&mut self, meaning: Meaning, value: f64) {
        if let Meaning::Date(rank) = meaning
            && let Some(date) = parse_timestamp(value)
        {
            self.date.offer(rank, date);
        }
    }

    pub(super) fn has_url(&self) -> bool {
        self.url.0.is_some()
    }

    /// The name of the folder this object may be.
    pub(super) fn name(&self) -> Option<&str> {
        if self.feed {
            return None;
        }
        self.title.0.as_ref().map(|(_, name)| name.as_str())
    }

    pub(super) fn into_item(self) -> Option<(String, Item)> {
        let url = self.url.take()?;
        let mut title = self.title.take();
        let mut note = self.note.take();
        match self.description {
            Some(text) if title.is_none() && self.pinboard => title = Some(text),
            Some(text) => note = note.or(Some(text)),
            None => {}
        }
        let item = Item {
            title,
            tags: self.tags,
            added_at: self.date.take(),
            description: note,
            folder: self.folder,
            ..Item::default()
        };
        Some((url, item))
    }
}

/// Tags in one string: with commas where there are any, else with spaces (Pinboard).
fn split_tags(value: &str) -> Vec<String> {
    if value.trim_start().starts_with('[')
        && let Ok(tags) = serde_json::from_str::<Vec<String>>(value)
    {
        return tags;
    }
    let separators: &[char] = if value.contains(',') { &[','] } else { &[' ', '\t', '\n'] };
    value.split(separators).map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}
