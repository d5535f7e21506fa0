//! What an exchange is made of: filling a [`Resource`] from the two accounts the browser gives of it,
//! the page's and the network stack's.

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::event::{RequestData, ResponseData, ResponseExtra};
use super::model::Resource;
use crate::proxy::EGRESS_HEADER;

pub(super) fn apply(resource: &mut Resource, response: ResponseData, proxy: SocketAddr) {
    resource.status = u16::try_from(response.status).ok().filter(|s| *s > 0);
    resource.status_text = response.status_text;
    resource.response_headers = response.headers.0;
    resource.protocol = response.protocol.filter(|p| !p.is_empty());
    resource.mime = response.mime_type;
    resource.charset = response.charset;
    resource.from_cache |= response.from_disk_cache || response.from_prefetch_cache;
    resource.from_service_worker = response.from_service_worker;
    let ip = response.remote_ip.and_then(|ip| ip.trim_matches(['[', ']']).parse::<IpAddr>().ok());
    resource.remote_ip = ip.filter(|ip| !(*ip == proxy.ip() && response.remote_port == Some(proxy.port())));
}

pub(super) fn apply_extra(resource: &mut Resource, extra: ResponseExtra) {
    // A response that was kept from the page (CORS) is told by this alone.
    let status = extra.status_code.and_then(|s| u16::try_from(s).ok());
    if resource.status.is_none() {
        resource.status = status;
    }
    // A revalidated answer has the status 200 for the page and 304 on the wire.
    if status != resource.status {
        return;
    }
    if let Some(head) = extra.headers_text.filter(|head| !head.is_empty()) {
        let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
        if let Some(reason) = lines.next().and_then(|line| line.splitn(3, ' ').nth(2)) {
            resource.status_text = reason.to_owned();
        }
        resource.response_headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        resource.response_head = Some(head);
    } else if !extra.headers.0.is_empty() {
        resource.response_headers = extra.headers.0;
    }
}

/// An answer that the guard gave in place of the origin is no answer of the origin.
pub(super) fn egress_failure(resource: &mut Resource) {
    if !resource.url.starts_with("http:") {
        return;
    }
    let told = resource
        .response_headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(EGRESS_HEADER))
        .map(|(_, value)| value.clone());
    if let Some(code) = told {
        resource.failed = Some(code);
        resource.status = None;
        resource.status_text.clear();
        resource.response_headers.clear();
        resource.response_head = None;
        resource.body = None;
    }
}

/// What the browser says to a proxy is not said to the origin.
pub(super) fn without_proxy(mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
    headers.retain(|(name, _)| !name.get(..6).is_some_and(|p| p.eq_ignore_ascii_case("proxy-")));
    headers
}

pub(super) fn has_body(resource: &Resource) -> bool {
    let status = resource.status.unwrap_or(0);
    !resource.fulfilled
        && resource.failed.is_none()
        && resource.method != "HEAD"
        && resource.resource_type != "Preflight"
        && status >= 200
        && !matches!(status, 204 | 205 | 304)
        && !(resource.redirected_to_other(status))
}

impl Resource {
    /// A redirect has no body the browser keeps.
    fn redirected_to_other(&self, status: u16) -> bool {
        matches!(status, 301 | 302 | 303 | 307 | 308)
            && self.response_headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("location"))
    }
}

pub(super) fn post_data(request: &RequestData) -> Option<Bytes> {
    if request.post_data_entries.is_empty() {
        return request.post_data.clone().map(Bytes::from);
    }
    let mut all = Vec::new();
    for entry in &request.post_data_entries {
        all.extend(STANDARD.decode(entry.bytes.as_deref()?).ok()?);
    }
    Some(all.into())
}
