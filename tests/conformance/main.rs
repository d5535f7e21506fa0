//! Real input, looked at by tools that are not ours: a crawl of written documentation and a page
//! drawn by a browser, shown to an independent parser of HTML, to the judges of WARC and WACZ
//! (`tests/judges`), and to an independent player once the origin is gone.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `FONDS_JUDGES` | the folder that `judges/install.sh` filled; without it judges and player are passed over |
//! | `FONDS_CONFORMANCE_DOCS` | the documentation to crawl instead of Debian's `python3-doc` |
//! | `FONDS_CONFORMANCE_PAGES` | pages to capture, 60 by default |
//! | `CI` | `true`: whatever is missing is a failure |

mod archive;
mod client;
mod documentation;
mod judges;
mod links;
mod records;
mod rendered;
mod replay;
mod tools;
