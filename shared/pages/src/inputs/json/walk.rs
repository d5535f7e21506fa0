//! The walk over a JSON document.

use super::item::{Draft, Meaning, meaning};
use crate::inputs::sink::Sink;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::ops::Range;

/// Walks one value and puts the bookmarks in it into the sink.
pub(super) struct Walk<'s, 'a> {
    sink: &'s mut Sink<'a>,
    /// A string that stands here is a bookmark (an array of URLs).
    strings_count: bool,
}

impl<'s, 'a> Walk<'s, 'a> {
    pub(super) fn new(sink: &'s mut Sink<'a>) -> Self {
        Walk { sink, strings_count: true }
    }

    /// Reads the next value of a document. Its depth is bounded by the reader (128).
    pub(super) fn document<'de, D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        self.deserialize(from)
    }

    fn within(&mut self, strings_count: bool) -> Walk<'_, 'a> {
        Walk { sink: self.sink, strings_count }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

/// Values that are neither list nor object.
macro_rules! scalars {
    () => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    scalars!();

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        if self.strings_count {
            self.sink.add_quietly(text, super::super::sink::Item::default());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let strings_count = self.strings_count;
        while seq.next_element_seed(self.within(strings_count))?.is_some() {
            if self.sink.is_full() {
                return Err(serde::de::Error::custom("enough"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let start = self.sink.len();
        let mut draft = Draft::default();
        // What was found under keys that are no lists of pages, in case the object turns out to be a page itself.
        let mut doubtful: Vec<Range<usize>> = Vec::new();
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            let meaning = meaning(&key);
            if meaning == Meaning::Unrelated {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let before = self.sink.len();
            map.next_value_seed(Field { walk: self.within(false), draft: &mut draft, key: &key, meaning })?;
            if meaning != Meaning::Children && self.sink.len() > before {
                doubtful.push(before..self.sink.len());
            }
            if self.sink.is_full() {
                return Err(serde::de::Error::custom("enough"));
            }
        }
        self.close(draft, start, doubtful);
        Ok(())
    }
}

impl Walk<'_, '_> {
    fn close(self, draft: Draft, start: usize, doubtful: Vec<Range<usize>>) {
        if !draft.has_url() {
            // An object without a URL around pages is a folder. Its name may stand behind its content.
            if let Some(name) = draft.name() {
                let name = name.to_owned();
                for url in self.sink.since(start) {
                    if url.folder.len() < 32 {
                        url.folder.insert(0, name.clone());
                    }
                }
            }
            return;
        }
        let Some((url, item)) = draft.into_item() else { return };
        for range in doubtful.into_iter().rev() {
            self.sink.drop_range(range);
        }
        self.sink.add(&url, item);
    }
}

/// One value of an object.
struct Field<'w, 's, 'a> {
    walk: Walk<'s, 'a>,
    draft: &'w mut Draft,
    key: &'w str,
    meaning: Meaning,
}

impl<'de> DeserializeSeed<'de> for Field<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Field<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    scalars!();

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.draft.number(self.meaning, value as f64);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.draft.number(self.meaning, value as f64);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.draft.number(self.meaning, value);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.draft.string(self.key, self.meaning, text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if self.meaning == Meaning::Tags {
            while let Some(name) = seq.next_element_seed(TagName)? {
                self.draft.tags.extend(name);
            }
            return Ok(());
        }
        let list = Walk {
            strings_count: self.meaning == Meaning::Children
                || matches!(self.meaning, Meaning::Unknown if self.key == "urls"),
            ..self.walk
        };
        list.visit_seq(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.meaning == Meaning::Tags {
            // Pocket's API: the names are the keys.
            while let Some((name, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                self.draft.tags.push(name);
            }
            return Ok(());
        }
        self.walk.visit_map(map)
    }
}

/// A tag: a string, or an object with a name.
struct TagName;

impl<'de> DeserializeSeed<'de> for TagName {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TagName {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tag")
    }

    scalars!();

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Some(value.to_string()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut name = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            if matches!(key.as_ref(), "name" | "label" | "title" | "tag" | "term") && name.is_none() {
                name = map.next_value_seed(TagName)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(name)
    }
}
