//! The codes with which this crate refuses or limits something. They are part of the API and of what users see, so a
//! code is never re-used for another meaning.

/// The text is no absolute URL at all.
pub const NOT_A_URL: &str = "NOT_A_URL";
/// A relative reference, and nothing to resolve it against.
pub const RELATIVE_URL: &str = "RELATIVE_URL";
/// Neither `http` nor `https` (`javascript:`, `place:`, `ftp:`, `mailto:`, ...).
pub const UNSUPPORTED_SCHEME: &str = "UNSUPPORTED_SCHEME";
/// `http:` without a host.
pub const NO_HOST: &str = "NO_HOST";
/// Longer than [`crate::urls::MAX_URL_BYTES`].
pub const URL_TOO_LONG: &str = "URL_TOO_LONG";
/// A pattern of the deny list matched.
pub const URL_DENIED: &str = "URL_DENIED";
/// There is an allow list and none of its patterns matched.
pub const URL_NOT_ALLOWED: &str = "URL_NOT_ALLOWED";
/// Outside the scope of the seeds.
pub const OUT_OF_SCOPE: &str = "OUT_OF_SCOPE";
/// The path grows by repeating itself.
pub const PATH_REPEATS: &str = "PATH_REPEATS";
/// The path has more segments than any real site.
pub const PATH_TOO_DEEP: &str = "PATH_TOO_DEEP";
/// The query repeats itself.
pub const QUERY_REPEATS: &str = "QUERY_REPEATS";
/// Every page hands out a new session id.
pub const SESSION_LOOP: &str = "SESSION_LOOP";
/// A calendar that can be paged through for ever.
pub const CALENDAR_TRAP: &str = "CALENDAR_TRAP";

/// More URLs than the limit.
pub const TOO_MANY_URLS: &str = "TOO_MANY_URLS";
/// The input is larger than the limit.
pub const INPUT_TOO_LARGE: &str = "INPUT_TOO_LARGE";
/// Decompressed, the input is larger than the limit.
pub const DECOMPRESSED_TOO_LARGE: &str = "DECOMPRESSED_TOO_LARGE";
/// A gzip stream that ends early or turns to junk; what came before is used.
pub const TRUNCATED_GZIP: &str = "TRUNCATED_GZIP";
/// JSON that does not parse; what came before the fault is used.
pub const MALFORMED_JSON: &str = "MALFORMED_JSON";
/// A CSV row that cannot be read, or has no URL.
pub const MALFORMED_ROW: &str = "MALFORMED_ROW";
/// Neither text nor anything else links can be read from.
pub const UNSUPPORTED_INPUT: &str = "UNSUPPORTED_INPUT";
/// Too many nested lists (sitemap indexes).
pub const TOO_MANY_NESTED: &str = "TOO_MANY_NESTED";

/// The document is larger than what may be built into a tree.
pub const DOCUMENT_TOO_LARGE: &str = "DOCUMENT_TOO_LARGE";
/// The document has too many elements for a tree.
pub const TOO_MANY_ELEMENTS: &str = "TOO_MANY_ELEMENTS";
/// There is no article to be found.
pub const NO_ARTICLE: &str = "NO_ARTICLE";

/// A resource the page asks for was not captured.
pub const RESOURCE_MISSING: &str = "RESOURCE_MISSING";
/// A resource is larger than what may be inlined.
pub const RESOURCE_TOO_LARGE: &str = "RESOURCE_TOO_LARGE";
/// A resource is used so often that inlining it each time would blow up the file.
pub const RESOURCE_REPEATED: &str = "RESOURCE_REPEATED";
/// The inlined page reached its cap.
pub const OUTPUT_FULL: &str = "OUTPUT_FULL";
/// Frames within frames, or style sheets importing each other, too deep.
pub const NESTED_TOO_DEEP: &str = "NESTED_TOO_DEEP";
