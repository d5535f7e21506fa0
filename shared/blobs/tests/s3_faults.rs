//! What S3 does under pressure, played from a script by a server of our own: no emulator throttles, races or breaks off.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fonds_blobs::s3::{Keys, S3Blobs, S3Config};
use fonds_blobs::{BlobError, BlobKey, BlobStore, MULTIPART_THRESHOLD, PutOutcome};
use futures_util::{StreamExt, TryStreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// One answer: status, headers, body, and whether the connection breaks after the body.
#[derive(Clone)]
struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    breaks: bool,
}

fn reply(status: u16, body: impl Into<Vec<u8>>) -> Reply {
    Reply { status, headers: Vec::new(), body: body.into(), breaks: false }
}

fn error(status: u16, code: &str) -> Reply {
    reply(status, format!("<Error><Code>{code}</Code><Message>played</Message></Error>"))
}

impl Reply {
    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    /// The body is shorter than its length says.
    fn breaking(mut self, length: usize) -> Self {
        self.breaks = true;
        self.with("content-length", length)
    }
}

/// A request as the script sees it.
#[derive(Debug, Clone)]
struct Seen {
    line: String,
    headers: http::HeaderMap,
    body: Bytes,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

type Script = dyn Fn(&Seen) -> Option<Reply> + Send + Sync;

/// Answers by the script; the rest by a queue; 500 when that is empty.
#[derive(Clone)]
struct Played {
    seen: Arc<Mutex<Vec<Seen>>>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    script: Arc<Script>,
}

impl Played {
    async fn start(
        replies: Vec<Reply>,
        script: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> (Self, S3Blobs) {
        let played =
            Self { seen: Arc::default(), replies: Arc::new(Mutex::new(replies.into())), script: Arc::new(script) };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = played.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let server = server.clone();
                let service = service_fn(move |request| server.clone().answer(request));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(connection), service),
                );
            }
        });
        let config = S3Config {
            region: Some("us-east-1".to_owned()),
            endpoint: Some(endpoint),
            keys: Some(Keys { id: "id".to_owned(), secret: "secret".to_owned() }),
            ..S3Config::bucket("bucket")
        };
        (played, S3Blobs::connect(config).await.unwrap())
    }

    async fn answer(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<StreamBody<stream::BoxStream<'static, Result<Frame<Bytes>, std::io::Error>>>>, Infallible>
    {
        let (head, body) = request.into_parts();
        let line = format!("{} {}", head.method, head.uri);
        let seen = Seen {
            line,
            headers: head.headers,
            body: body.collect().await.map(|all| all.to_bytes()).unwrap_or_default(),
        };
        let played = (self.script)(&seen);
        self.seen.lock().unwrap().push(seen);
        let reply =
            played.or_else(|| self.replies.lock().unwrap().pop_front()).unwrap_or_else(|| error(500, "InternalError"));
        let mut response = Response::builder().status(reply.status);
        for (name, value) in &reply.headers {
            response = response.header(*name, value);
        }
        let mut frames = vec![Ok(Frame::data(Bytes::from(reply.body)))];
        if reply.breaks {
            frames.push(Err(std::io::Error::other("broken off by the script")));
        }
        // A pause lets the server send what it has before the break.
        let frames = stream::iter(frames).then(|frame| async {
            tokio::task::yield_now().await;
            frame
        });
        Ok(response.body(StreamBody::new(frames.boxed())).unwrap())
    }

    fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|seen| seen.line.clone()).collect()
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn key(name: &str) -> BlobKey {
    BlobKey::parse(name).unwrap()
}

fn nothing(_: &Seen) -> Option<Reply> {
    None
}

/// An object of ten bytes under tag `t`, answered by range; the first answers break off after the given bytes.
fn object(cuts: &[usize]) -> impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static {
    let cuts = Mutex::new(VecDeque::from(cuts.to_vec()));
    move |seen| {
        let start: usize = match seen.header("range") {
            Some(range) => range.strip_prefix("bytes=")?.split('-').next()?.parse().ok()?,
            None => 0,
        };
        let rest = &b"0123456789"[start..];
        let status = if seen.header("range").is_some() { 206 } else { 200 };
        let answer = |body: &[u8]| reply(status, body).with("etag", "\"t\"");
        Some(match cuts.lock().unwrap().pop_front() {
            Some(cut) => answer(&rest[..cut]).breaking(rest.len()),
            None => answer(rest).with("content-length", rest.len()),
        })
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_read_on_from_where_it_broke() {
    let (played, store) = Played::start(Vec::new(), object(&[3, 0, 4])).await;
    assert_eq!(&store.get(&key("a")).await.unwrap()[..], b"0123456789");
    let ranges: Vec<_> = played.seen().iter().map(|seen| seen.header("range").map(str::to_owned)).collect();
    assert_eq!(ranges, [None, Some("bytes=3-9".into()), Some("bytes=3-9".into()), Some("bytes=7-9".into())]);
    assert!(played.seen()[1..].iter().all(|seen| seen.header("if-match") == Some("\"t\"")), "the same version or none");

    let (_, store) = Played::start(Vec::new(), object(&[1, 1])).await;
    let pieces: Vec<_> = store.stream(&key("a"), Some(2..10)).await.unwrap().try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"23456789");
}

#[tokio::test]
async fn a_body_that_keeps_breaking_ends_in_an_error_not_in_a_short_object() {
    let (played, store) = Played::start(Vec::new(), object(&[1, 0, 0, 0, 0, 0, 0])).await;
    let error = store.get(&key("a")).await.unwrap_err();
    assert!(matches!(error, BlobError::Unavailable { .. }) && !error.is_permanent(), "{error:?}");
    assert_eq!(played.lines().len(), 5);
}

#[tokio::test]
async fn an_object_replaced_between_two_pieces_is_not_mixed() {
    let script = |seen: &Seen| {
        Some(match seen.header("if-match") {
            Some(_) => error(412, "PreconditionFailed"),
            None => reply(200, "012").with("etag", "\"t\"").breaking(10),
        })
    };
    let (_, store) = Played::start(Vec::new(), script).await;
    let error = store.get(&key("a")).await.unwrap_err();
    assert!(matches!(error, BlobError::Changed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_put_that_meets_another_writer_is_tried_again() {
    let conflict = || error(409, "ConditionalRequestConflict");
    for (replies, expected) in [
        (vec![conflict(), conflict(), reply(200, "")], PutOutcome::Created),
        (vec![conflict(), error(412, "PreconditionFailed")], PutOutcome::Existed),
        (vec![error(503, "SlowDown"), reply(200, "")], PutOutcome::Created),
    ] {
        let (played, store) = Played::start(replies, nothing).await;
        assert_eq!(store.put_if_absent(&key("a"), b"x".to_vec().into(), "text/plain").await.unwrap(), expected);
        for seen in played.seen() {
            assert_eq!(
                (seen.header("if-none-match"), seen.header("cache-control")),
                (Some("*"), Some("private, no-cache"))
            );
            assert_eq!(&seen.body[..], b"x");
        }
    }
    let (_, store) = Played::start(Vec::new(), move |_| Some(conflict())).await;
    let error = store.put_if_absent(&key("a"), b"x".to_vec().into(), "text/plain").await.unwrap_err();
    assert!(!error.is_permanent(), "{error:?}");
}

#[tokio::test]
async fn content_addressed_puts_carry_their_digest() {
    let (played, store) = Played::start(vec![reply(200, "")], nothing).await;
    // SHA-256 of the empty string (FIPS 180-4), in the header's base64.
    let empty = BlobKey::cas_hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855").unwrap();
    store.put_if_absent(&empty, Vec::new().into(), "text/plain").await.unwrap();
    assert_eq!(played.seen()[0].header("x-amz-checksum-sha256"), Some("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="));
}

#[tokio::test]
async fn deletes_that_a_200_reports_as_throttled_are_tried_again() {
    let partial = |name: &str, code: &str| {
        reply(
            200,
            format!(
                "<DeleteResult><Error><Key>{name}</Key><Code>{code}</Code><Message>m</Message></Error></DeleteResult>"
            ),
        )
    };
    let done = || reply(200, "<DeleteResult></DeleteResult>");
    let (played, store) =
        Played::start(vec![partial("b", "SlowDown"), partial("b", "InternalError"), done()], nothing).await;
    store.delete(&[key("a"), key("b")]).await.unwrap();
    let bodies: Vec<_> = played.seen().iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    assert!(
        bodies.len() == 3
            && bodies[0].contains("<Key>a</Key>")
            && bodies[1..].iter().all(|body| !body.contains("<Key>a</Key>"))
    );

    let (_, store) = Played::start(vec![partial("b", "AccessDenied")], nothing).await;
    let error = store.delete(&[key("a"), key("b")]).await.unwrap_err();
    assert!(matches!(&error, BlobError::AccessDenied { reason, .. } if reason.contains('b')), "{error:?}");
}

/// Answers a multipart upload; the part with this number is refused.
fn multipart(refused: &'static str, complete: Reply) -> impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static {
    move |seen| {
        Some(match seen.line.split(' ').next()? {
            "POST" if seen.line.contains("uploads") => {
                reply(200, "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>")
            }
            "PUT" if seen.line.contains(refused) => error(403, "AccessDenied"),
            "PUT" => reply(200, "").with("etag", "\"p\""),
            "POST" => complete.clone(),
            "DELETE" => reply(204, ""),
            _ => return None,
        })
    }
}

#[tokio::test]
async fn an_upload_in_parts_that_fails_is_aborted() {
    let body = Bytes::from(vec![1; usize::try_from(MULTIPART_THRESHOLD).unwrap() + 1]);
    let done = reply(200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
    let (played, store) = Played::start(Vec::new(), multipart("partNumber=3", done.clone())).await;
    let failed = store.put_if_absent(&key("a"), body.clone().into(), "text/plain").await.unwrap_err();
    assert!(matches!(failed, BlobError::AccessDenied { .. }), "{failed:?}");
    assert!(played.lines().last().unwrap().starts_with("DELETE /bucket/a?"), "{:?}", played.lines());

    let (played, store) = Played::start(Vec::new(), multipart("none", error(412, "PreconditionFailed"))).await;
    assert_eq!(store.put_if_absent(&key("a"), body.clone().into(), "text/plain").await.unwrap(), PutOutcome::Existed);
    assert!(played.lines().last().unwrap().starts_with("DELETE /bucket/a?"), "{:?}", played.lines());

    let (played, store) = Played::start(Vec::new(), multipart("none", done)).await;
    assert_eq!(store.put_if_absent(&key("a"), body.into(), "text/plain").await.unwrap(), PutOutcome::Created);
    let complete = played.seen().pop().unwrap();
    assert_eq!(complete.header("if-none-match"), Some("*"));
    assert_eq!(String::from_utf8_lossy(&complete.body).matches("<PartNumber>").count(), 5);
}

#[tokio::test]
async fn a_complete_whose_answer_was_lost_is_success() {
    let sizes = [("10", Ok(PutOutcome::Existed)), ("none", Err(()))];
    for (size, expected) in sizes {
        let script = move |seen: &Seen| {
            Some(match seen.line.split(' ').next()? {
                "HEAD" if size == "none" => reply(404, ""),
                "HEAD" => reply(200, "").with("content-length", size),
                _ => error(404, "NoSuchUpload"),
            })
        };
        let (_, store) = Played::start(Vec::new(), script).await;
        let upload = fonds_blobs::UploadId::from_raw("u1");
        let parts = [fonds_blobs::UploadedPart { number: 1, etag: "p".to_owned() }];
        let outcome = store.complete_multipart(&key("a"), &upload, &parts).await;
        assert_eq!(
            outcome.map_err(|error| assert!(matches!(error, BlobError::UploadGone { .. }), "{error:?}")),
            expected
        );
    }
}
