//! The parts of protocol events that are used. Everything optional that may be missing: a message of
//! a newer browser must still be read.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Every event a capture listens to.
pub(super) const METHODS: &[&str] = &[
    "Network.requestWillBeSent",
    "Network.requestWillBeSentExtraInfo",
    "Network.responseReceived",
    "Network.responseReceivedExtraInfo",
    "Network.dataReceived",
    "Network.loadingFinished",
    "Network.loadingFailed",
    "Network.requestServedFromCache",
    "Network.webSocketCreated",
    "Page.frameNavigated",
    "Page.frameStoppedLoading",
    "Page.loadEventFired",
    "Page.javascriptDialogOpening",
    "Page.windowOpen",
    "Page.downloadWillBegin",
    "Runtime.consoleAPICalled",
    "Runtime.exceptionThrown",
    "Log.entryAdded",
    "Target.attachedToTarget",
    "Inspector.targetCrashed",
    "Fetch.requestPaused",
];

/// Header fields in the order given; values that were joined by a line feed (`Set-Cookie`) apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HeaderList(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for HeaderList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = HeaderList;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<HeaderList, A::Error> {
                let mut list = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    if value.contains('\n') {
                        list.extend(value.split('\n').map(|part| (name.clone(), part.to_owned())));
                    } else {
                        list.push((name, value));
                    }
                }
                Ok(HeaderList(list))
            }
        }
        deserializer.deserialize_map(List)
    }
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestWillBeSent {
    pub(super) request_id: String,
    pub(super) request: RequestData,
    #[serde(default)]
    pub(super) wall_time: f64,
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    pub(super) frame_id: Option<String>,
    pub(super) redirect_response: Option<ResponseData>,
    pub(super) redirect_has_extra_info: Option<bool>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestData {
    pub(super) url: String,
    #[serde(default)]
    pub(super) method: String,
    #[serde(default)]
    pub(super) headers: HeaderList,
    pub(super) post_data: Option<String>,
    #[serde(default)]
    pub(super) post_data_entries: Vec<PostDataEntry>,
}

#[derive(Deserialize, Debug)]
pub(super) struct PostDataEntry {
    /// Base64.
    pub(super) bytes: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResponseData {
    pub(super) url: String,
    pub(super) status: i64,
    pub(super) status_text: String,
    pub(super) headers: HeaderList,
    pub(super) mime_type: String,
    pub(super) charset: String,
    pub(super) protocol: Option<String>,
    #[serde(rename = "remoteIPAddress")]
    pub(super) remote_ip: Option<String>,
    pub(super) remote_port: Option<u16>,
    pub(super) from_disk_cache: bool,
    pub(super) from_prefetch_cache: bool,
    pub(super) from_service_worker: bool,
    pub(super) encoded_data_length: f64,
    pub(super) security_details: Option<SecurityDetails>,
}

#[derive(Deserialize, Debug, Clone)]
pub(super) struct SecurityDetails {
    pub(super) protocol: String,
    pub(super) cipher: String,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseReceived {
    pub(super) request_id: String,
    pub(super) response: ResponseData,
    pub(super) has_extra_info: Option<bool>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestExtra {
    pub(super) request_id: String,
    pub(super) headers: HeaderList,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseExtra {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) headers: HeaderList,
    pub(super) status_code: Option<i64>,
    pub(super) headers_text: Option<String>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct DataReceived<'a> {
    #[serde(borrow)]
    pub(super) request_id: std::borrow::Cow<'a, str>,
    #[serde(default)]
    pub(super) data_length: f64,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadingFinished {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) encoded_data_length: f64,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoadingFailed {
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) error_text: String,
    pub(super) blocked_reason: Option<String>,
    pub(super) cors_error_status: Option<CorsError>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct CorsError {
    pub(super) cors_error: String,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfRequest {
    pub(super) request_id: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct WithUrl {
    #[serde(default)]
    pub(super) url: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct FrameNavigated {
    pub(super) frame: Frame,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame {
    pub(super) parent_id: Option<String>,
    pub(super) url: String,
    #[serde(default)]
    pub(super) url_fragment: String,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfFrame {
    pub(super) frame_id: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct Dialog {
    #[serde(default)]
    pub(super) message: String,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attached {
    pub(super) session_id: String,
    pub(super) target_info: TargetInfo,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub(super) struct TargetInfo {
    pub(super) target_id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// A request held by the Fetch domain.
#[derive(Deserialize, Debug, Clone)]
#[serde(rename_all = "camelCase")]
pub(super) struct Paused {
    pub(super) request_id: String,
    pub(super) request: PausedRequest,
    #[serde(default)]
    pub(super) resource_type: String,
    #[serde(default)]
    pub(super) frame_id: String,
}

#[derive(Deserialize, Debug, Clone)]
pub(super) struct PausedRequest {
    pub(super) url: String,
    #[serde(default)]
    pub(super) method: String,
    #[serde(default)]
    pub(super) headers: HeaderList,
}
