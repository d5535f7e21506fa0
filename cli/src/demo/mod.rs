//! The bundled site and the server that answers for it on loopback: pages, pictures, scripts, a
//! redirect, a feed, a PDF, a page that is gone and one of 5 MB.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use http::{HeaderValue, Response, StatusCode, Uri, header};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Least size of the long page.
const LONG_PAGE: usize = 5 * 1024 * 1024;
/// Days of the chronicle that are there to be read; the others are in its register.
const DAYS: usize = 2 * 365;

/// One file of the site.
struct File {
    path: &'static str,
    mime: &'static str,
    bytes: &'static [u8],
}

macro_rules! site {
    ($($path:literal $mime:literal,)+) => {
        const SITE: &[File] = &[$(File {
            path: $path,
            mime: $mime,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../demo/site/", $path)),
        }),+];
    };
}

site! {
    "index.html" "text/html; charset=utf-8",
    "tides.html" "text/html; charset=utf-8",
    "boats.html" "text/html; charset=utf-8",
    "chart.html" "text/html; charset=utf-8",
    "log.html" "text/html; charset=utf-8",
    "weather.html" "text/html; charset=utf-8",
    "knots.html" "text/html; charset=utf-8",
    "letters.html" "text/html; charset=utf-8",
    "regulations.html" "text/html; charset=utf-8",
    "pilot.html" "text/html; charset=utf-8",
    "style/site.css" "text/css; charset=utf-8",
    "style/type.css" "text/css; charset=utf-8",
    "log.js" "text/javascript; charset=utf-8",
    "weather.js" "text/javascript; charset=utf-8",
    "data/log.json" "application/json",
    "data/soundings.csv" "text/csv; charset=utf-8",
    "images/dawn.png" "image/png",
    "images/noon.png" "image/png",
    "images/gale.png" "image/png",
    "images/bay.png" "image/png",
    "images/lamp.svg" "image/svg+xml",
    "images/knots.svg" "image/svg+xml",
    "favicon.png" "image/png",
    "tide-table.pdf" "application/pdf",
    "feed.xml" "application/atom+xml; charset=utf-8",
    "sitemap.xml" "application/xml; charset=utf-8",
    "robots.txt" "text/plain; charset=utf-8",
}

/// The running server; ends when dropped.
pub struct DemoSite {
    /// `http://127.0.0.1:PORT`.
    pub origin: String,
    task: JoinHandle<()>,
}

impl Drop for DemoSite {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl DemoSite {
    /// Serves the site on a free port of loopback.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start() -> std::io::Result<DemoSite> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let router = Router::new().fallback(answer).with_state(Arc::<str>::from(origin.as_str()));
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the demo site ended");
            }
        });
        Ok(DemoSite { origin, task })
    }
}

async fn answer(State(origin): State<Arc<str>>, uri: Uri) -> Response<Body> {
    match uri.path() {
        "/old/regulations" => {
            response(StatusCode::MOVED_PERMANENTLY, "text/plain", Bytes::new(), Some("/regulations.html"))
        }
        "/chronicle.html" => response(StatusCode::OK, "text/html; charset=utf-8", Bytes::from(chronicle()), None),
        path => {
            let name = if path == "/" { "index.html" } else { path.trim_start_matches('/') };
            match SITE.iter().find(|f| f.path == name) {
                Some(file) => response(StatusCode::OK, file.mime, filled(file, &origin), None),
                None => response(
                    StatusCode::NOT_FOUND,
                    "text/html; charset=utf-8",
                    Bytes::from_static(GONE.as_bytes()),
                    None,
                ),
            }
        }
    }
}

const GONE: &str = "<!doctype html><html lang=\"en\"><title>Gone - The Lenn Harbour Book</title>\
<link rel=\"stylesheet\" href=\"/style/site.css\"><h2>Gone</h2><p>The ferry does not run any more, and its page went with it.</p></html>";

/// The site map and robots.txt must name the site by its address.
fn filled(file: &File, origin: &str) -> Bytes {
    match (file.path, std::str::from_utf8(file.bytes)) {
        ("sitemap.xml" | "robots.txt", Ok(text)) => Bytes::from(text.replace("{origin}", origin)),
        _ => Bytes::from_static(file.bytes),
    }
}

fn response(status: StatusCode, mime: &'static str, body: Bytes, location: Option<&'static str>) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    if let Some(location) = location {
        answer.headers_mut().insert(header::LOCATION, HeaderValue::from_static(location));
    }
    answer
}

/// The long page: the harbour's days, made up as they are asked for and the same every time.
fn chronicle() -> String {
    const BOATS: [&str; 5] = ["Wren", "Marram", "Second Thought", "Old Bessel", "the ferry"];
    const DEEDS: [&str; 7] = [
        "went out before light and came back with nothing but the story of it",
        "waited for water on the bar until the tea was cold",
        "landed fish that the gulls had already heard about",
        "lay at the stairs, which is against the regulations",
        "met fog at the outer mark and rang until it was sorry",
        "carried a piano to the island and, a week later, back",
        "was painted, except for the side that nobody sees",
    ];
    const SKIES: [&str; 6] =
        ["clear", "grey", "falling glass", "wind from the west", "rain in sheets", "not worth writing down"];
    let mut page = String::with_capacity(LONG_PAGE + 4096);
    page.push_str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>The chronicle - The Lenn Harbour Book</title>\n<link rel=\"stylesheet\" href=\"/style/site.css\"></head><body><main><h2>The chronicle</h2>\n<p>Every day of the harbour since the book was begun. <a href=\"/\">Back to the quay.</a></p>\n");
    // Steps that share no factor with the lists' lengths go through every combination.
    let entry = |day: usize| (SKIES[day * 5 % 6], BOATS[day * 3 % 5], DEEDS[day * 4 % 7]);
    for day in 0..DAYS {
        let (sky, boat, deed) = entry(day);
        page.push_str(&format!(
            "<p id=\"d{day}\"><b>Year {}, day {}.</b> Sky: {sky}. {boat} {deed}.</p>\n",
            1 + day / 365,
            1 + day % 365
        ));
    }
    // Most of a large page is seldom text: what a script would make a table of.
    page.push_str("<script type=\"application/json\" id=\"register\">[");
    let mut day = DAYS;
    while page.len() < LONG_PAGE {
        let (sky, boat, deed) = entry(day);
        page.push_str(&format!("{{\"day\":{day},\"sky\":\"{sky}\",\"boat\":\"{boat}\",\"entry\":\"{deed}\"}},\n"));
        day += 1;
    }
    page.push_str("null]</script></main></body></html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(origin: &Arc<str>, path: &str) -> (StatusCode, String, Bytes) {
        let answer = answer(State(origin.clone()), path.parse().expect("a path")).await;
        let mime = answer.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned();
        let status = answer.status();
        (status, mime, axum::body::to_bytes(answer.into_body(), usize::MAX).await.expect("a body"))
    }

    #[tokio::test]
    async fn every_link_of_the_site_leads_somewhere() {
        let origin: Arc<str> = "http://127.0.0.1:1".into();
        let (mut checked, mut gone) = (0, Vec::new());
        for file in SITE.iter().filter(|f| f.path.ends_with(".html")) {
            let text = std::str::from_utf8(file.bytes).expect("UTF-8");
            for part in
                text.split(['"', '\'']).filter(|p| p.starts_with('/') || p.ends_with(".html") || p.ends_with(".png"))
            {
                let path = part.split('#').next().unwrap_or_default();
                let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
                let (status, _, _) = get(&origin, &path).await;
                checked += 1;
                if status == StatusCode::NOT_FOUND {
                    gone.push(path);
                }
            }
        }
        assert!(checked > 100, "{checked}");
        assert_eq!(gone, ["/ferry.html"], "one link is dead on purpose");
    }

    #[tokio::test]
    async fn the_special_answers_are_special() {
        let origin: Arc<str> = "http://127.0.0.1:7".into();
        let (status, _, _) = get(&origin, "/old/regulations").await;
        assert_eq!(status, StatusCode::MOVED_PERMANENTLY);
        let (status, mime, long) = get(&origin, "/chronicle.html").await;
        assert_eq!((status, mime.starts_with("text/html")), (StatusCode::OK, true));
        assert!(long.len() >= LONG_PAGE && long.len() < LONG_PAGE + 4096, "{}", long.len());
        assert_eq!(get(&origin, "/chronicle.html").await.2, long, "the same every time");
        let (_, mime, pdf) = get(&origin, "/tide-table.pdf").await;
        assert!(mime == "application/pdf" && pdf.starts_with(b"%PDF-1.4"));
        let (_, _, map) = get(&origin, "/sitemap.xml").await;
        assert!(String::from_utf8_lossy(&map).contains("<loc>http://127.0.0.1:7/tides.html</loc>"));
        assert!(String::from_utf8_lossy(&get(&origin, "/robots.txt").await.2).contains("Sitemap: http://127.0.0.1:7/"));
    }
}
