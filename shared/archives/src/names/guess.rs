//! Guessing the encoding of names that do not tell it.

use super::{Name, NameEncoding};
use encoding_rs::Encoding;

/// Names longer than this together make no better guess.
const ENOUGH: usize = 64 << 10;

/// Collects the undeclared names of an archive that are not UTF-8, and guesses one encoding for all of them.
#[derive(Debug, Default)]
pub struct Guess {
    names: Vec<u8>,
    /// The last guess of [`Guess::next_name`], and over how many bytes it was made.
    last: Option<(usize, NameEncoding)>,
}

pub(super) fn codec(encoding: NameEncoding) -> Option<&'static Encoding> {
    match encoding {
        NameEncoding::ShiftJis => Some(encoding_rs::SHIFT_JIS),
        NameEncoding::Gbk => Some(encoding_rs::GBK),
        NameEncoding::EucKr => Some(encoding_rs::EUC_KR),
        NameEncoding::Cp866 => Some(encoding_rs::IBM866),
        _ => None,
    }
}

impl Guess {
    /// Takes one more name into account.
    pub fn add(&mut self, raw: &[u8]) {
        if !raw.is_ascii() && self.names.len() < ENOUGH {
            let raw = raw.get(..ENOUGH).unwrap_or(raw);
            self.names.extend_from_slice(raw);
            // Not a letter of any of the encodings, nor a second byte: names do not run into each other.
            self.names.push(b'\n');
        }
    }

    /// The encoding that fits all names: of those that archives were really made with, else CP437.
    #[must_use]
    pub fn encoding(&self) -> NameEncoding {
        let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Deny);
        detector.feed(&self.names, true);
        let guessed = detector.guess(None, chardetng::Utf8Detection::Deny);
        let candidates = [NameEncoding::ShiftJis, NameEncoding::Gbk, NameEncoding::EucKr, NameEncoding::Cp866];
        let fitting = candidates.into_iter().find(|candidate| codec(*candidate) == Some(guessed));
        match fitting {
            Some(encoding) if self.decodes_as(encoding) => encoding,
            _ if self.looks_russian() => NameEncoding::Cp866,
            _ => NameEncoding::Cp437,
        }
    }

    /// For names that come one by one: the name, in an encoding guessed over it and those before it. The guess is made
    /// again each time what it rests on has doubled, so that it costs no more than the names are long, and the same on
    /// every pass.
    pub(crate) fn next_name(&mut self, raw: &[u8], declared: bool) -> Name {
        if let Some(name) = Name::certain(raw, declared) {
            return name;
        }
        self.add(raw);
        let last = self.last.filter(|(seen, _)| self.names.len() < 2 * seen);
        let last = last.unwrap_or_else(|| (self.names.len(), self.encoding()));
        self.last = Some(last);
        Name::decoded(raw, last.1)
    }

    fn decodes_as(&self, encoding: NameEncoding) -> bool {
        codec(encoding).is_some_and(|c| c.decode_without_bom_handling_and_without_replacement(&self.names).is_some())
    }

    /// Words of CP866's letters. In CP437 the same bytes are accented letters (which stand between ASCII ones) and box
    /// drawing: what separates the two is whether the bytes come in runs of their own.
    fn looks_russian(&self) -> bool {
        let letter = |b: &u8| matches!(b, 0x80..=0xaf | 0xe0..=0xf1);
        let (mut in_words, mut others) = (0, 0);
        for word in self.names.split(|b| b.is_ascii() && !b.is_ascii_alphabetic()).filter(|word| !word.is_ascii()) {
            if word.len() > 1 && word.iter().all(letter) {
                in_words += word.len();
            } else {
                others += word.len();
            }
        }
        in_words > 2 * others
    }
}
