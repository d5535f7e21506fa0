//! `meta` elements.

use serde::{Deserialize, Serialize};

/// What `meta name=robots` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobotsMeta {
    /// `noindex` or `none`.
    pub noindex: bool,
    /// `nofollow` or `none`.
    pub nofollow: bool,
    /// `noarchive` or `nocache`.
    pub noarchive: bool,
}

impl RobotsMeta {
    /// Adds what one `content` (or one `X-Robots-Tag` value) says.
    pub fn add(&mut self, content: &str) {
        for word in content.split([',', ' ', ';']) {
            match word.trim().to_ascii_lowercase().as_str() {
                "noindex" => self.noindex = true,
                "nofollow" => self.nofollow = true,
                "none" => (self.noindex, self.nofollow) = (true, true),
                "noarchive" | "nocache" => self.noarchive = true,
                _ => {}
            }
        }
    }
}

/// Reads the content of `meta http-equiv=refresh` (WHATWG HTML, "shared declarative refresh steps"): seconds, and the
/// URL as written if there is one.
pub fn parse_refresh(content: &str) -> Option<(u32, Option<&str>)> {
    let content = content.trim_start();
    let digits = content.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 && !content.starts_with('.') {
        return None;
    }
    let after = content[..digits].parse().unwrap_or(if digits == 0 { 0 } else { u32::MAX });
    let rest = content[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !rest.is_empty() && !rest.starts_with([';', ',']) && !rest.starts_with(|c: char| c.is_ascii_whitespace()) {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches([';', ',']).trim_start();
    if rest.is_empty() {
        return Some((after, None));
    }
    let lower = rest.get(..3).map(str::to_ascii_lowercase);
    let url = match lower.as_deref() {
        Some("url") => {
            let behind = rest[3..].trim_start();
            behind.strip_prefix('=').map_or(rest, str::trim_start)
        }
        _ => rest,
    };
    let url = match url.chars().next() {
        Some(quote @ ('"' | '\'')) => url[1..].split(quote).next().unwrap_or(""),
        _ => url.trim_end(),
    };
    Some((after, Some(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_is_read_as_browsers_do() {
        for (content, expected) in [
            ("0; url=https://x.org/", Some((0, Some("https://x.org/")))),
            ("5;URL='a b'", Some((5, Some("a b")))),
            (" 3.5 , next.html ", Some((3, Some("next.html")))),
            ("0;url = \"x\"y", Some((0, Some("x")))),
            ("10", Some((10, None))),
            ("0;url", Some((0, Some("url")))),
            ("url=x", None),
            ("5x", None),
            ("", None),
            ("99999999999; x", Some((u32::MAX, Some("x")))),
        ] {
            assert_eq!(parse_refresh(content), expected, "{content}");
        }
    }

    #[test]
    fn robots_words_add_up() {
        let mut robots = RobotsMeta::default();
        robots.add("index, NoFollow");
        robots.add("noarchive");
        assert_eq!(robots, RobotsMeta { noindex: false, nofollow: true, noarchive: true });
        robots.add("none");
        assert!(robots.noindex);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(content in ".{0,60}") {
            let _ = parse_refresh(&content);
        }
    }
}
