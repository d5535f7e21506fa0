//! `hashes.json`: the digest of every file of a snapshot, and one root over them all.
//!
//! The root is the Merkle tree hash of RFC 6962, section 2.1, with SHA-256, over the files in ascending order of their
//! paths' UTF-8 bytes:
//!
//! - a file is the entry `path 0x00 digest size`: the path in UTF-8, one zero byte, the 32 bytes of its SHA-256, and its
//!   size as 8 bytes, most significant first;
//! - a leaf is `SHA-256(0x00 entry)`;
//! - an inner node is `SHA-256(0x01 left right)`, where the left side of n > 1 entries takes the largest power of two
//!   smaller than n;
//! - no files at all give `SHA-256("")`.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The name of the construction above, as it stands in the file.
pub const CONSTRUCTION: &str = "rfc6962-sha256(path 00 sha256 size-u64-be)";

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileHash {
    /// Relative to the snapshot.
    pub path: String,
    /// Lower-case hex.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
}

/// `hashes.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hashes {
    /// Always [`CONSTRUCTION`].
    pub construction: String,
    /// Lower-case hex.
    pub merkle_root: String,
    /// How many files.
    pub file_count: usize,
    /// Their bytes together.
    pub total_size: u64,
    /// In order of their paths.
    pub files: Vec<FileHash>,
}

/// Why there is no root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HashesError {
    /// Not 64 digits of hex.
    #[error("the digest of `{path}` is not a SHA-256 in hex")]
    BadDigest {
        /// Whose.
        path: String,
    },
    /// Two files of one name.
    #[error("`{path}` is there twice")]
    Duplicate {
        /// Whose name.
        path: String,
    },
}

impl HashesError {
    /// The same files give the same answer.
    pub fn is_permanent(&self) -> bool {
        true
    }
}

/// Makes `hashes.json` of a snapshot's files, in whatever order they come.
///
/// # Errors
/// [`HashesError`].
pub fn hashes(mut files: Vec<FileHash>) -> Result<Hashes, HashesError> {
    files.sort();
    if let Some(pair) = files.windows(2).find(|pair| pair[0].path == pair[1].path) {
        return Err(HashesError::Duplicate { path: pair[0].path.clone() });
    }
    let leaves = files.iter_mut().map(leaf).collect::<Result<Vec<_>, _>>()?;
    Ok(Hashes {
        construction: CONSTRUCTION.to_owned(),
        merkle_root: hex::encode(root(&leaves)),
        file_count: files.len(),
        total_size: files.iter().fold(0, |sum, file| sum.saturating_add(file.size)),
        files,
    })
}

fn leaf(file: &mut FileHash) -> Result<[u8; 32], HashesError> {
    file.sha256.make_ascii_lowercase();
    let mut digest = [0u8; 32];
    hex::decode_to_slice(&file.sha256, &mut digest).map_err(|_| HashesError::BadDigest { path: file.path.clone() })?;
    let hash = Sha256::new()
        .chain_update([0x00])
        .chain_update(file.path.as_bytes())
        .chain_update([0x00])
        .chain_update(digest)
        .chain_update(file.size.to_be_bytes());
    Ok(hash.finalize().into())
}

/// RFC 6962's tree. The recursion is as deep as the logarithm of the number of leaves.
fn root(leaves: &[[u8; 32]]) -> [u8; 32] {
    match leaves {
        [] => Sha256::digest([]).into(),
        [one] => *one,
        _ => {
            let split = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at(split);
            Sha256::new().chain_update([0x01]).chain_update(root(left)).chain_update(root(right)).finalize().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> FileHash {
        FileHash { path: path.into(), sha256: hex::encode(Sha256::digest(content)), size: content.len() as u64 }
    }

    #[test]
    fn the_root_is_what_the_construction_says() {
        let sha = |parts: &[&[u8]]| -> [u8; 32] { Sha256::digest(parts.concat()).into() };
        let entry = |path: &str, content: &str| {
            let digest = Sha256::digest(content);
            sha(&[&[0], path.as_bytes(), &[0], &digest, &(content.len() as u64).to_be_bytes()])
        };
        let (a, b, c) = (entry("a", "1"), entry("b", "22"), entry("c/d", ""));
        let made = hashes(vec![file("c/d", ""), file("a", "1"), file("b", "22")]).unwrap();
        let expected = sha(&[&[1], &sha(&[&[1], &a, &b]), &c]);
        assert_eq!(made.merkle_root, hex::encode(expected));
        assert_eq!((made.file_count, made.total_size), (3, 3));
        assert_eq!(made.files.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["a", "b", "c/d"]);
        let empty = hashes(vec![]).unwrap();
        assert_eq!(empty.merkle_root, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn any_change_changes_the_root() {
        let root = |files: &[FileHash]| hashes(files.to_vec()).unwrap().merkle_root;
        let one = vec![file("a", "1"), file("b", "2")];
        let mut renamed = one.clone();
        renamed[1].path = "c".into();
        let mut resized = one.clone();
        resized[0].size += 1;
        let roots = [root(&one), root(&renamed), root(&resized), root(&one[..1])];
        let distinct: std::collections::HashSet<_> = roots.iter().collect();
        assert_eq!(distinct.len(), 4);
    }

    #[test]
    fn bad_lists_are_refused() {
        let mut bad = file("a", "1");
        bad.sha256.pop();
        assert!(matches!(hashes(vec![bad]), Err(HashesError::BadDigest { .. })));
        assert!(matches!(hashes(vec![file("a", "1"), file("a", "2")]), Err(HashesError::Duplicate { .. })));
    }
}
