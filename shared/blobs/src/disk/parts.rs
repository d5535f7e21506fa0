//! Multipart uploads on a disk: a folder with the parts as files, joined when the upload is completed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::tree::{Tree, modified};
use crate::store::{check_part_number, check_parts};
use crate::{BlobError, BlobKey, MIN_PART_BYTES, OpenUpload, PutOutcome, UploadId, UploadedPart};

/// The file that names key and media type, a line each.
const ABOUT: &str = "about";

pub(super) fn create(tree: &Tree, key: &BlobKey, content_type: &str) -> Result<UploadId, BlobError> {
    if content_type.contains('\n') {
        return Err(BlobError::Invalid("a media type is one line".to_owned()));
    }
    let id = Uuid::now_v7().to_string();
    let folder = tree.uploads.join(&id);
    fs::create_dir(&folder)?;
    fs::write(folder.join(ABOUT), format!("{key}\n{content_type}"))?;
    Ok(UploadId(id))
}

pub(super) fn upload(
    tree: &Tree,
    key: &BlobKey,
    id: &UploadId,
    number: u32,
    body: &[u8],
) -> Result<UploadedPart, BlobError> {
    check_part_number(number)?;
    let (folder, _) = open(tree, key, id)?;
    let etag = hex::encode(&Sha256::digest(body)[..16]);
    let tmp = tree.write_tmp(|file| file.write_all(body))?;
    if let Err(error) = fs::rename(&tmp, part_path(&folder, number, &etag)) {
        fs::remove_file(&tmp).ok();
        return Err(if error.kind() == io::ErrorKind::NotFound { BlobError::upload_gone(key) } else { error.into() });
    }
    Ok(UploadedPart { number, etag })
}

pub(super) fn complete(
    tree: &Tree,
    key: &BlobKey,
    id: &UploadId,
    parts: &[UploadedPart],
) -> Result<PutOutcome, BlobError> {
    check_parts(parts)?;
    let (folder, content_type) = match open(tree, key, id) {
        // Completed before, by a call whose answer was lost.
        Err(BlobError::UploadGone { .. }) if tree.head(key)?.is_some() => return Ok(PutOutcome::Existed),
        found => found?,
    };
    let mut files = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        let path = part_path(&folder, part.number, &part.etag);
        let Ok(about) = fs::metadata(&path) else {
            return Err(BlobError::Invalid(format!("part {} of {key} was not uploaded under this tag", part.number)));
        };
        if at + 1 < parts.len() && about.len() < MIN_PART_BYTES {
            return Err(BlobError::Invalid(format!("part {} of {key} is below {MIN_PART_BYTES} bytes", part.number)));
        }
        files.push(path);
    }
    let tmp =
        tree.write_tmp(|whole| files.iter().try_for_each(|part| io::copy(&mut File::open(part)?, whole).map(drop)))?;
    let outcome = tree.adopt(key, &tmp, &content_type);
    if !matches!(outcome, Ok(PutOutcome::Created)) {
        fs::remove_file(&tmp).ok();
    }
    let outcome = outcome?;
    fs::remove_dir_all(&folder).or_else(ignore_gone)?;
    Ok(outcome)
}

pub(super) fn abort(tree: &Tree, key: &BlobKey, id: &UploadId) -> Result<(), BlobError> {
    match open(tree, key, id) {
        Ok((folder, _)) => Ok(fs::remove_dir_all(folder).or_else(ignore_gone)?),
        Err(BlobError::UploadGone { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(super) fn stale(
    tree: &Tree,
    prefix: &str,
    before: DateTime<Utc>,
    limit: usize,
) -> Result<Vec<OpenUpload>, BlobError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(&tree.uploads)? {
        let entry = entry?;
        // Completed or aborted while we look.
        let Ok(about) = fs::metadata(entry.path().join(ABOUT)) else { continue };
        let Ok(text) = fs::read_to_string(entry.path().join(ABOUT)) else { continue };
        let Some(key) = text.lines().next().and_then(|key| BlobKey::parse(key).ok()) else { continue };
        let started = modified(&about);
        if started < before && key.as_str().starts_with(prefix) {
            found.push(OpenUpload { key, id: UploadId(entry.file_name().to_string_lossy().into_owned()), started });
        }
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// The upload's folder and media type, when it exists and is of this key. The id is a folder name, so it is parsed, never
/// joined as it came.
fn open(tree: &Tree, key: &BlobKey, id: &UploadId) -> Result<(PathBuf, String), BlobError> {
    let id = Uuid::parse_str(&id.0).map_err(|_| BlobError::upload_gone(key))?;
    let folder = tree.uploads.join(id.to_string());
    let text = match fs::read_to_string(folder.join(ABOUT)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(BlobError::upload_gone(key)),
        Err(error) => return Err(error.into()),
    };
    match text.split_once('\n') {
        Some((of, content_type)) if of == key.as_str() => Ok((folder, content_type.to_owned())),
        _ => Err(BlobError::upload_gone(key)),
    }
}

/// The tag is part of the name, so a part can only be completed as it was uploaded. It came from a caller: anything but
/// hexadecimal digits names no file.
fn part_path(folder: &std::path::Path, number: u32, etag: &str) -> PathBuf {
    let etag = if etag.bytes().all(|b| b.is_ascii_hexdigit()) { etag } else { "none" };
    folder.join(format!("{number:05}.{etag}"))
}

fn ignore_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
