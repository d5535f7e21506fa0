//! What a name may be. Nothing is ever written by a member's name; these rules keep names that were made to be harmful
//! from being shown as if they were sound, and out of the hands of whatever exports them one day.

use super::{Name, NameEncoding};
use crate::error::Problem;

/// Devices of DOS, which Windows finds in every folder.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Files that systems leave behind, lower case.
const LEFT_BEHIND: &[&str] = &[".ds_store", "thumbs.db", "ehthumbs.db", "desktop.ini"];

/// The path within the archive: components joined by `/`, without `.` and empty ones.
///
/// # Errors
/// [`Problem::UnsafePath`] for a name that is empty, absolute (`/`, `\`, a drive), climbs (`..`), holds NUL, or is a
/// device's. `\` separates as `/` does, for that is what the system it would be harmful on does.
pub fn member_path(name: &Name) -> Result<String, Problem> {
    let text = name.text.as_str();
    let drive = matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    // The Unicode names of rar 4 have NUL in their coding, not in the name.
    let nul = text.contains('\0') || (name.encoding != NameEncoding::Utf16 && name.raw.contains(&0));
    if drive || nul || text.starts_with(['/', '\\']) {
        return Err(Problem::UnsafePath);
    }
    let mut path = String::with_capacity(text.len());
    for component in text.split(['/', '\\']).filter(|c| !c.is_empty() && *c != ".") {
        // Windows drops trailing dots and spaces: `.. ` climbs too.
        let stripped = component.trim_end_matches([' ', '.']);
        if (stripped.is_empty() && component.starts_with("..")) || is_device(stripped) {
            return Err(Problem::UnsafePath);
        }
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(component);
    }
    if path.is_empty() && !matches!(text, "." | "./") {
        return Err(Problem::UnsafePath);
    }
    Ok(path)
}

/// `CON` and the like, `COM1` to `LPT9`: the bare names. With an extension (`aux.jpg`) a file is meant.
fn is_device(component: &str) -> bool {
    let name = component.to_ascii_lowercase();
    let numbered = name.strip_prefix("com").or_else(|| name.strip_prefix("lpt"));
    DEVICES.contains(&name.as_str()) || numbered.is_some_and(|n| n.len() == 1 && n.as_bytes()[0].is_ascii_digit())
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).find(|c| !c.is_empty()).unwrap_or("")
}

/// Whether a path is a system's own by its name alone: within `__MACOSX`, or one of the files systems leave behind.
#[must_use]
pub fn is_system_file(path: &str) -> bool {
    path.split(['/', '\\']).any(|c| c == "__MACOSX")
        || LEFT_BEHIND.contains(&file_name(path).to_ascii_lowercase().as_str())
}

/// Whether a member is the resource fork macOS puts beside a file: by its name, and by its first bytes (RFC 1740), since
/// anything may be called `._picture.jpg`.
#[must_use]
pub fn is_apple_double(path: &str, head: &[u8]) -> bool {
    file_name(path).starts_with("._") && (head.starts_with(&[0, 5, 0x16, 7]) || head.starts_with(&[0, 5, 0x16, 0]))
}

/// What is against a name, if anything.
#[must_use]
pub fn judge(name: &Name) -> Option<Problem> {
    match member_path(name) {
        Err(problem) => Some(problem),
        Ok(path) => is_system_file(&path).then_some(Problem::SystemFile),
    }
}
