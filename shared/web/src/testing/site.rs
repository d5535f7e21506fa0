//! A generated site: any number of linked pages, thirteen requests each.
//!
//! `/site/N/` asks for the page itself, two style sheets, two scripts, six pictures (three shared, three
//! of its own), `/favicon.ico`, and through `fetch()` its `data.json`. Page 0 is the root of a tree: page N
//! links to pages `N*10+1 ..= N*10+10`, as far as they exist. `/site/` is page 0, and
//! `/site/sitemap.xml` lists all.

use std::fmt::Write as _;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::reply::Message;

/// Requests a browser makes for one page.
pub const REQUESTS_PER_PAGE: usize = 13;
const LINKS_PER_PAGE: usize = 10;

/// The message for a path of a site with `pages` pages.
pub(super) fn serve(pages: usize, path: &str) -> Option<Message> {
    if path == "/favicon.ico" {
        return Some(Message::new(200, "image/x-icon", icon()));
    }
    let rest = path.strip_prefix("/site/")?;
    match rest {
        "" => return Some(page(0, pages)),
        "sitemap.xml" => return Some(sitemap(pages)),
        "static/base.css" => return css("body { font-family: sans-serif; margin: 2em }"),
        "static/theme.css" => return css("h1 { color: #245 } img { border: 1px solid #888 }"),
        "static/app.js" => return js("window.appLoaded = true;"),
        "static/page.js" => return js(PAGE_JS),
        _ => {}
    }
    if let Some(name) = rest.strip_prefix("static/shared-") {
        let n: u32 = name.strip_suffix(".png")?.parse().ok()?;
        return (n < 3).then(|| Message::new(200, "image/png", png(n)));
    }
    let (number, file) = rest.split_once('/')?;
    let number: usize = number.parse().ok().filter(|n| *n < pages)?;
    match file {
        "" => Some(page(number, pages)),
        "data.json" => {
            let body = format!("{{\"page\":{number},\"loaded\":true}}");
            Some(Message::new(200, "application/json", body))
        }
        _ => {
            let n: u32 = file.strip_prefix("own-")?.strip_suffix(".png")?.parse().ok()?;
            let seed = u32::try_from(number).ok()?.wrapping_mul(31) + 100 + n;
            (n < 3).then(|| Message::new(200, "image/png", png(seed)))
        }
    }
}

const PAGE_JS: &str = "fetch('/site/' + document.body.dataset.page + '/data.json').then(r => r.json()).then(d => {
  document.getElementById('data').textContent = 'data of page ' + d.page;
});";

fn css(text: &'static str) -> Option<Message> {
    Some(Message::new(200, "text/css", text))
}

fn js(text: &'static str) -> Option<Message> {
    Some(Message::new(200, "text/javascript", text))
}

fn page(number: usize, pages: usize) -> Message {
    let mut html = String::with_capacity(4096);
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <title>Page {number} of the test site</title>\n\
         <meta name=\"description\" content=\"Number {number} of {pages} generated pages.\">\n\
         <link rel=\"stylesheet\" href=\"/site/static/base.css\">\n\
         <link rel=\"stylesheet\" href=\"/site/static/theme.css\">\n\
         <script src=\"/site/static/app.js\"></script></head>\n\
         <body data-page=\"{number}\"><h1>Page {number}</h1>\n<article>\n"
    );
    for paragraph in 0..5 {
        let _ = writeln!(
            html,
            "<p>Paragraph {paragraph} of page {number}. The archive keeps what was said, in the words \
             it was said in, with the pictures beside it, so that it can be read again when the \
             page has long gone. This is sentence {}.</p>",
            number * 5 + paragraph
        );
    }
    for n in 0..3 {
        let _ = writeln!(
            html,
            "<img src=\"/site/static/shared-{n}.png\" alt=\"shared {n}\">\
             <img src=\"/site/{number}/own-{n}.png\" alt=\"own {n}\">"
        );
    }
    html.push_str("</article>\n<p id=\"data\">no data yet</p>\n<ul>\n");
    let first = number * LINKS_PER_PAGE + 1;
    for child in (first..first + LINKS_PER_PAGE).take_while(|n| *n < pages) {
        let _ = writeln!(html, "<li><a href=\"/site/{child}/\">To page {child}</a></li>");
    }
    html.push_str("</ul>\n");
    html.push_str("<script src=\"/site/static/page.js\"></script></body></html>\n");
    Message::new(200, "text/html; charset=utf-8", html)
}

fn sitemap(pages: usize) -> Message {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for number in 0..pages {
        // Sitemaps want absolute URLs; the origin's address is not known here, so paths it is.
        let _ = writeln!(xml, "<url><loc>/site/{number}/</loc></url>");
    }
    xml.push_str("</urlset>\n");
    Message::new(200, "application/xml", xml)
}

/// A 48 x 48 picture that differs by `seed`.
fn png(seed: u32) -> Bytes {
    const SIDE: u32 = 48;
    let mut rows = Vec::with_capacity((SIDE * (SIDE * 3 + 1)) as usize);
    for y in 0..SIDE {
        rows.push(0);
        for x in 0..SIDE {
            let shade = |k: u32| ((x * k + y * (seed % 7 + 1) + seed * 37) & 0xff) as u8;
            rows.extend_from_slice(&[shade(5), shade(3), shade(seed % 11 + 1)]);
        }
    }
    let mut header = Vec::with_capacity(13);
    header.extend_from_slice(&SIDE.to_be_bytes());
    header.extend_from_slice(&SIDE.to_be_bytes());
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = zlib.write_all(&rows);
    let data = zlib.finish().unwrap_or_default();
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut out, b"IHDR", &header);
    chunk(&mut out, b"IDAT", &data);
    chunk(&mut out, b"IEND", &[]);
    out.into()
}

fn chunk(out: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    let mut crc = flate2::Crc::new();
    crc.update(name);
    crc.update(data);
    out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(name);
    out.extend_from_slice(data);
    out.extend_from_slice(&crc.sum().to_be_bytes());
}

/// A PNG in an ICO.
fn icon() -> Bytes {
    let png = png(7);
    let mut out = vec![0, 0, 1, 0, 1, 0, 48, 48, 0, 0, 1, 0, 24, 0];
    out.extend_from_slice(&u32::try_from(png.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(&22u32.to_le_bytes());
    out.extend_from_slice(&png);
    out.into()
}
