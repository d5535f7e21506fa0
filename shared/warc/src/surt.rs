//! SURT keys ("sort-friendly URI reordering transform") as the index tools of the field make them, so that our indexes sort and match
//! with theirs: `http://www.Example.com:80/A?b=2&a=1` becomes `com,example)/a?a=1&b=2`.
//!
//! The key is for finding, never for requesting: it lower-cases, drops `www.`, default ports, fragments, logins, session ids and
//! trailing slashes, undoes needless escapes and sorts the query.

use std::net::Ipv4Addr;

/// The SURT key of a URL. What cannot be taken apart is its own key.
#[must_use]
pub fn surt(url: &str) -> String {
    if url.is_empty() {
        return "-".to_owned();
    }
    if url.starts_with("filedesc") {
        return url.to_owned();
    }
    match key(url.as_bytes()) {
        Some(key) => String::from_utf8(key).unwrap_or_else(|_| url.to_owned()),
        None => url.to_owned(),
    }
}

fn key(url: &[u8]) -> Option<Vec<u8>> {
    let mut url: Vec<u8> = trim_space(url).iter().copied().filter(|b| !matches!(b, b'\n' | b'\r' | b'\t')).collect();
    if scheme_len(&url).is_none() {
        url.splice(0..0, *b"http://");
    }
    let (scheme, rest) = split_scheme(&url);
    let parts = Parts::split(scheme, rest)?;
    let host = parts.host.as_deref().map(|host| canonical_host(host, scheme)).filter(|host| !host.is_empty());
    let path = canonical_path(&parts.path, host.is_some());
    let query = canonical_query(&parts.query);

    let mut out = Vec::with_capacity(url.len() + 8);
    match &host {
        None => {
            out.extend_from_slice(scheme);
            out.push(b':');
        }
        Some(host) => {
            for (i, label) in host.split(|&b| b == b'.').rev().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(label);
            }
            if let Some(port) = parts.port.filter(|&port| Some(port) != default_port(scheme)) {
                out.extend_from_slice(format!(":{port}").as_bytes());
            }
            out.push(b')');
        }
    }
    if path.is_empty() && !query.is_empty() {
        out.push(b'/');
    }
    out.extend_from_slice(&path);
    if !query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&query);
    }
    Some(out)
}

fn trim_space(mut bytes: &[u8]) -> &[u8] {
    let space = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    while bytes.first().is_some_and(space) {
        bytes = &bytes[1..];
    }
    while bytes.last().is_some_and(space) {
        bytes = &bytes[..bytes.len() - 1];
    }
    bytes
}

/// Length of what looks like a scheme before a colon.
fn scheme_len(url: &[u8]) -> Option<usize> {
    let len = url.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')).count();
    (url.first().is_some_and(u8::is_ascii_alphabetic) && url.get(len) == Some(&b':')).then_some(len)
}

/// Scheme and what follows its colon. Doubled schemes (`http://https://host`) count once, the last.
fn split_scheme(url: &[u8]) -> (&[u8], &[u8]) {
    let mut url = url;
    while let Some(rest) = url.strip_prefix(b"https://").or_else(|| url.strip_prefix(b"http://")) {
        if !rest.starts_with(b"https://") && !rest.starts_with(b"http://") {
            break;
        }
        url = rest;
    }
    let len = scheme_len(url).unwrap_or(0);
    (&url[..len], url.get(len + 1..).unwrap_or_default())
}

struct Parts {
    host: Option<Vec<u8>>,
    port: Option<u16>,
    path: Vec<u8>,
    query: Vec<u8>,
}

impl Parts {
    /// RFC 3986, appendix B, after the scheme. `None` when the port is no port.
    fn split(scheme: &[u8], rest: &[u8]) -> Option<Self> {
        let rest = rest.split(|&b| b == b'#').next().unwrap_or_default();
        let (before, query) = match rest.iter().position(|&b| b == b'?') {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &[][..]),
        };
        let (authority, path) = match before.strip_prefix(b"//") {
            Some(after) => after.split_at(after.iter().position(|&b| b == b'/').unwrap_or(after.len())),
            None => (&[][..], before),
        };
        let (mut host, port) = split_authority(authority)?;
        let mut path = path.to_vec();
        if host.is_empty() && scheme.starts_with(b"http") && !path.is_empty() {
            let start = path.iter().take_while(|&&b| b == b'/').count();
            let after = &path[start..];
            let end = after.iter().position(|&b| b == b'/').unwrap_or(after.len());
            host = after[..end].to_vec();
            let tail = after.get(end + 1..).unwrap_or_default();
            path = [b"/", tail].concat();
        }
        Some(Self { host: (!host.is_empty()).then_some(host), port, path, query: query.to_vec() })
    }
}

/// Host in lower case and port; the login is dropped. `None` when the port is not one.
fn split_authority(authority: &[u8]) -> Option<(Vec<u8>, Option<u16>)> {
    let mut authority = authority;
    while let Some(shorter) = authority.strip_suffix(b":") {
        authority = shorter;
    }
    let after_login = authority.iter().rposition(|&b| b == b'@').map_or(authority, |at| &authority[at + 1..]);
    let (host, port) = match after_login.strip_prefix(b"[") {
        Some(bracketed) => {
            let end = bracketed.iter().position(|&b| b == b']').unwrap_or(bracketed.len());
            let after = bracketed.get(end + 1..).unwrap_or_default();
            (&bracketed[..end], after.iter().position(|&b| b == b':').map(|at| &after[at + 1..]))
        }
        None => match after_login.iter().position(|&b| b == b':') {
            Some(at) => (&after_login[..at], Some(&after_login[at + 1..])),
            None => (after_login, None),
        },
    };
    let port = match port.filter(|p| !p.is_empty()) {
        Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
            Some(std::str::from_utf8(digits).ok()?.parse::<u16>().ok()?).filter(|&p| p != 0)
        }
        Some(_) => return None,
        None => None,
    };
    Some((host.to_ascii_lowercase(), port))
}

fn default_port(scheme: &[u8]) -> Option<u16> {
    match scheme.to_ascii_lowercase().as_slice() {
        b"http" => Some(80),
        b"https" => Some(443),
        _ => None,
    }
}

fn canonical_host(host: &[u8], scheme: &[u8]) -> Vec<u8> {
    let mut host = unescape(host);
    if !host.is_ascii()
        && let Ok(ascii) = url::Host::parse(&String::from_utf8_lossy(&host).replace(char::REPLACEMENT_CHARACTER, ""))
    {
        host = ascii.to_string().into_bytes();
    }
    let host = replace_pairs(&host);
    let host = trim_dots(&host);
    if let Some(ip) = loose_ipv4(host) {
        return ip.to_string().into_bytes();
    }
    let host = escape(&host.to_ascii_lowercase()).to_ascii_lowercase();
    if scheme == b"dns" { host } else { strip_www(&host).to_vec() }
}

/// `..` becomes `.`, once over.
fn replace_pairs(host: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(host.len());
    let mut at = 0;
    while at < host.len() {
        out.push(host[at]);
        at += if host[at..].starts_with(b"..") { 2 } else { 1 };
    }
    out
}

fn trim_dots(mut host: &[u8]) -> &[u8] {
    while let Some(rest) = host.strip_prefix(b".") {
        host = rest;
    }
    while let Some(rest) = host.strip_suffix(b".") {
        host = rest;
    }
    host
}

/// `www.`, `www2.` and so on.
fn strip_www(host: &[u8]) -> &[u8] {
    let Some(rest) = host.strip_prefix(b"www") else { return host };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b".").unwrap_or(host)
}

/// IPv4 in the forms `inet_aton` takes: one to four decimal or octal numbers, the last filling what is left.
fn loose_ipv4(host: &[u8]) -> Option<Ipv4Addr> {
    let text = std::str::from_utf8(host).ok()?;
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    if !text.contains('.') {
        // A lone number is decimal whatever it begins with, cut to 32 bits.
        let value = text.bytes().fold(0u32, |n, b| n.wrapping_mul(10).wrapping_add(u32::from(b - b'0')));
        return Some(Ipv4Addr::from(value));
    }
    let numbers: Vec<u32> = text.split('.').map(aton_number).collect::<Option<_>>()?;
    let (last, leading) = numbers.split_last()?;
    if leading.len() > 3 || leading.iter().any(|&n| n > 255) {
        return None;
    }
    let room = 32 - 8 * u32::try_from(leading.len()).ok()?;
    if u64::from(*last) >= 1u64 << room {
        return None;
    }
    let high = leading.iter().enumerate().fold(0u32, |sum, (i, n)| sum | n << (24 - 8 * i));
    Some(Ipv4Addr::from(high | last))
}

fn aton_number(text: &str) -> Option<u32> {
    match text.strip_prefix('0') {
        Some("") => Some(0),
        Some(octal) => u32::from_str_radix(octal, 8).ok(),
        None => text.parse().ok(),
    }
}

fn canonical_path(path: &[u8], has_host: bool) -> Vec<u8> {
    let mut path = unescape(path);
    if has_host {
        path = resolve_dots(&path);
    }
    let path = escape(&path).to_ascii_lowercase();
    let mut path = strip_path_session(path);
    if path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
    path
}

/// `.` and `..` resolved, doubled slashes made one; a `..` too many stays.
fn resolve_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&b| b == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let mut out = vec![b'/'];
    if let Some((last, leading)) = kept.split_last() {
        for segment in leading.iter().filter(|s| !s.is_empty()) {
            out.extend_from_slice(segment);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}

/// ASP.NET session folders: `/(s(24 characters))/page.aspx` and `/(24 characters)/page.aspx`. `path` is in lower case.
fn strip_path_session(path: Vec<u8>) -> Vec<u8> {
    let id = |bytes: &[u8]| bytes.len() >= 24 && bytes[..24].iter().all(u8::is_ascii_alphanumeric);
    let path = strip_folder(path, |mut inner| {
        let whole = inner.len();
        while inner.len() >= 27
            && inner[0].is_ascii_alphabetic()
            && inner[1] == b'('
            && id(&inner[2..])
            && inner[26] == b')'
        {
            inner = &inner[27..];
        }
        whole - inner.len()
    });
    strip_folder(path, |inner| if id(inner) { 24 } else { 0 })
}

/// Removes the last folder `(session)/` that is followed by an `.aspx` page; `session_len` says how long a session is at a place.
fn strip_folder(path: Vec<u8>, session_len: impl Fn(&[u8]) -> usize) -> Vec<u8> {
    for start in (0..path.len()).rev().filter(|&i| path[i..].starts_with(b"/(")) {
        let inner = &path[start + 2..];
        let len = session_len(inner);
        let Some(tail) = inner[len..].strip_prefix(b")/").filter(|_| len > 0) else { continue };
        let page = tail.windows(5).position(|w| w == b".aspx");
        if page.is_some_and(|at| at > 0 && !tail[..at].contains(&b'?')) {
            return [&path[..=start], tail].concat();
        }
    }
    path
}

fn canonical_query(query: &[u8]) -> Vec<u8> {
    if query.is_empty() {
        return Vec::new();
    }
    let query = escape(&unescape(query)).to_ascii_lowercase();
    let query = strip_query_sessions(query);
    if query.len() <= 1 {
        return query;
    }
    let mut args: Vec<(&[u8], Option<&[u8]>)> = query
        .split(|&b| b == b'&')
        .map(|arg| match arg.iter().position(|&b| b == b'=') {
            Some(at) => (&arg[..at], Some(&arg[at + 1..])),
            None => (arg, None),
        })
        .collect();
    args.sort_unstable();
    let mut out = Vec::with_capacity(query.len());
    for (i, (name, value)) in args.into_iter().enumerate() {
        if i > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(name);
        if let Some(value) = value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
    out
}

/// Removes session ids that are known by name and form, one of each kind. `query` is in lower case.
fn strip_query_sessions(mut query: Vec<u8>) -> Vec<u8> {
    let alnum32 = |after: &[u8]| (after.len() >= 32 && after[..32].iter().all(u8::is_ascii_alphanumeric)).then_some(32);
    for name in [&b"jsessionid="[..], b"phpsessid=", b"sid="] {
        query = strip_argument(query, name, alnum32);
    }
    query = strip_argument(query, b"aspsessionid", |after| {
        let letters = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_alphabetic);
        (after.len() >= 33 && letters(&after[..8]) && after[8] == b'=' && letters(&after[9..33])).then_some(33)
    });
    strip_cold_fusion(query)
}

/// Removes the last `cfid=...&cftoken=...`. One pass from the end, since a hostile query may have thousands of beginnings.
fn strip_cold_fusion(query: Vec<u8>) -> Vec<u8> {
    let mut ampersands = (query.len(), query.len());
    for start in (0..query.len()).rev() {
        if query[start] == b'&' {
            ampersands = (start, ampersands.0);
        } else if query[start..].starts_with(b"cfid=") {
            let (first, second) = ampersands;
            let token = query.get(first + 1..second).and_then(|arg| arg.strip_prefix(b"cftoken="));
            if first > start + 5 && token.is_some_and(|token| !token.is_empty()) {
                return [&query[..start], query.get(second + 1..).unwrap_or_default()].concat();
            }
        }
    }
    query
}

/// Removes the last `name` + value, the value being as long as `value_len` says and followed by `&` or the end.
fn strip_argument(query: Vec<u8>, name: &[u8], value_len: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
    for start in (0..query.len()).rev().filter(|&i| query[i..].starts_with(name)) {
        let after = &query[start + name.len()..];
        let Some(tail) = value_len(after).map(|len| &after[len..]) else { continue };
        if tail.is_empty() || tail[0] == b'&' {
            return [&query[..start], tail.get(1..).unwrap_or_default()].concat();
        }
    }
    query
}

/// Undoes percent-escapes until none is left. Escapes cannot overlap, so undoing each as soon as it is complete comes to the same
/// end as repeated passes, in one.
fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let hex = |byte: u8| char::from(byte).to_digit(16);
    for &byte in bytes {
        out.push(byte);
        while let [.., b'%', high, low] = out[..]
            && let (Some(high), Some(low)) = (hex(high), hex(low))
        {
            out.truncate(out.len() - 3);
            out.push(u8::try_from(high << 4 | low).unwrap_or_default());
        }
    }
    out
}

/// Percent-escapes controls, space, `#`, `%` and bytes that are not ASCII.
fn escape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_graphic() && !matches!(byte, b'#' | b'%') {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}
