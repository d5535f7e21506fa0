//! Element names, held in place so that comparing one allocates nothing.

const CAP: usize = 15;

/// A lower-case element name. Names longer than any this crate knows are empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Name {
    len: u8,
    buf: [u8; CAP],
}

impl Name {
    /// The lower-case form of `raw`.
    pub fn new(raw: &str) -> Name {
        let bytes = raw.as_bytes();
        let mut name = Name::default();
        // Non-ASCII names are nobody's we know, and cutting them could split a character.
        if bytes.len() > CAP || !raw.is_ascii() {
            return name;
        }
        for (to, from) in name.buf.iter_mut().zip(bytes) {
            *to = from.to_ascii_lowercase();
        }
        name.len = u8::try_from(bytes.len()).unwrap_or(0);
        name
    }

    /// The lower-case form of `raw` without its namespace prefix.
    pub fn local(raw: &str) -> Name {
        Name::new(raw.rsplit_once(':').map_or(raw, |(_, local)| local))
    }

    /// The name, to match on.
    pub fn as_str(&self) -> &str {
        self.buf.get(..usize::from(self.len)).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or("")
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
