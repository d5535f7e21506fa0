//! A directory as a plain file server.

use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

use super::reply::Message;

/// The file behind a path, or `None`. `if_none_match` is the request's header.
pub(super) fn serve(root: &Path, path: &str, if_none_match: Option<&str>) -> Option<Message> {
    let file = locate(root, path)?;
    let body = std::fs::read(&file).ok()?;
    let etag = format!("\"{}\"", &hex::encode(Sha256::digest(&body))[..16]);
    if if_none_match == Some(etag.as_str()) {
        let message = Message { status: 304, headers: Vec::new(), body: Default::default() };
        return Some(message.with("ETag", &etag));
    }
    Some(Message::new(200, content_type(&file), body).with("ETag", &etag))
}

fn locate(root: &Path, path: &str) -> Option<PathBuf> {
    let decoded = percent_decode_str(path).decode_utf8().ok()?;
    let relative = Path::new(decoded.trim_start_matches('/'));
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let mut file = root.join(relative);
    if file.is_dir() {
        file.push("index.html");
    }
    file.is_file().then_some(file)
}

/// The type a web server gives a file.
pub(super) fn content_type(file: &Path) -> &'static str {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("");
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "xhtml" => "application/xhtml+xml",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "json" | "map" => "application/json",
        "txt" | "md" => "text/plain; charset=utf-8",
        "csv" => "text/csv",
        "xml" => "application/xml",
        "rss" => "application/rss+xml",
        "atom" => "application/atom+xml",
        "opml" => "text/x-opml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}
