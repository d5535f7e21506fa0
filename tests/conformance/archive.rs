//! A crawl's objects on disk, for tools that want files.

use fonds_domain::CrawlId;
use fonds_store::listing;
use fonds_tests::World;
use fonds_warc::WaczReader;
use fonds_warc::wacz::WARC_NAME;
use std::io::Cursor;
use std::path::PathBuf;

/// One object of a crawl: a package, and the WARC out of it.
pub(crate) struct Object {
    pub(crate) key: String,
    pub(crate) wacz: PathBuf,
    /// Under the name that the package's index gives it.
    pub(crate) warc: PathBuf,
    pub(crate) warc_bytes: Vec<u8>,
}

/// All objects of a crawl; the files go when it is dropped.
pub(crate) struct Archive {
    pub(crate) objects: Vec<Object>,
    _folder: tempfile::TempDir,
}

/// Writes every object that a crawl made or refers to.
pub(crate) async fn unpack(world: &World, crawl: CrawlId) -> Archive {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let listed = {
        let mut conn = world.db.conn().await.expect("database");
        listing::objects(&mut conn, crawl).await.expect("objects")
    };
    assert!(!listed.is_empty(), "the crawl has no object");
    let mut objects = Vec::with_capacity(listed.len());
    for (n, object) in listed.into_iter().enumerate() {
        let bytes = world.object(&object.key).await;
        assert_eq!(bytes.len() as u64, object.size, "{}", object.key);
        let mut package = WaczReader::open(Cursor::new(&bytes[..])).expect("a package");
        let names: Vec<&str> = package.warcs().collect();
        let name = format!("archive/{WARC_NAME}");
        assert_eq!(names, [&name], "{}", object.key);
        let warc_bytes = package.read(&name, 1 << 30).expect("the WARC");
        let place = folder.path().join(n.to_string());
        std::fs::create_dir(&place).expect("a folder");
        let (wacz, warc) = (place.join(format!("object-{n}.wacz")), place.join(WARC_NAME));
        std::fs::write(&wacz, &bytes).expect("written");
        std::fs::write(&warc, &warc_bytes).expect("written");
        objects.push(Object { key: object.key, wacz, warc, warc_bytes });
    }
    Archive { objects, _folder: folder }
}
