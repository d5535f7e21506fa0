//! TLS and HTTP/2.

use super::*;
use crate::testing::{Identity, TestCa};

async fn tls_origin(ca: &TestCa, identity: Identity, alpn: &[&[u8]]) -> Origin {
    let config = OriginConfig { tls: Some(ca.server(identity, alpn).unwrap()), record: true, ..OriginConfig::new() };
    Origin::start(config).await.unwrap()
}

#[tokio::test]
async fn bad_certificates_are_named() {
    let ca = TestCa::new().unwrap();
    let mut strict = config();
    assert_eq!(strict.trust_pem(ca.pem().as_bytes()).unwrap(), 1);
    let lax = FetcherConfig { accept_invalid_certs: true, ..strict.clone() };
    let (strict, lax) = (Fetcher::new(strict).unwrap(), Fetcher::new(lax).unwrap());
    for (identity, problem) in [
        (Identity::Good, None),
        (Identity::Expired, Some(TlsProblem::Expired)),
        (Identity::NotYetValid, Some(TlsProblem::NotYetValid)),
        (Identity::WrongHost, Some(TlsProblem::WrongHost)),
        (Identity::SelfSigned, Some(TlsProblem::SelfSigned)),
        (Identity::Untrusted, Some(TlsProblem::Untrusted)),
    ] {
        let origin = tls_origin(&ca, identity, &[b"http/1.1"]).await;
        let url = origin.url("/faults/until-close");
        let result = strict.fetch(FetchRequest::get(url.clone())).await;
        let error = result.error.as_ref();
        assert_eq!(error.and_then(|e| e.tls_problem), problem, "{identity:?}: {error:?}");
        assert_eq!(code(&result), problem.map(|_| FetchCode::TlsFailed), "{identity:?}");
        // Twice: the second may resume the session and must not forget what is wrong.
        for _ in 0..2 {
            let result = lax.fetch(FetchRequest::get(url.clone())).await;
            let hop = result.answer().expect("an answer");
            assert_eq!(hop.body.as_memory().unwrap(), faults::TEXT);
            let tls = hop.tls.as_ref().unwrap();
            assert_eq!((tls.valid, tls.problem), (problem.is_none(), problem), "{identity:?}");
            assert_eq!((tls.version, tls.chain_der.len()), ("TLSv1.3", 1));
            assert!(tls.cipher.starts_with("TLS13_"), "{}", tls.cipher);
        }
    }
}

#[tokio::test]
async fn http2_is_spoken_and_written_down_as_http1() {
    let ca = TestCa::new().unwrap();
    let origin = tls_origin(&ca, Identity::Good, &[b"h2", b"http/1.1"]).await;
    let with = |http2| Fetcher::new(FetcherConfig { extra_roots: vec![ca.der()], http2, ..config() }).unwrap();
    let fetcher = with(true);
    for n in 0..3 {
        let result = fetcher.fetch(FetchRequest::get(origin.url(&format!("/faults/status/20{n}")))).await;
        let hop = result.answer().expect("an answer");
        assert_eq!(hop.protocol, "h2");
        let head = String::from_utf8(hop.response_head.to_vec()).unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 20{n} \r\ncontent-type: text/plain\r\n")), "{head}");
        assert!(head.ends_with("\r\n\r\n"));
        let head = String::from_utf8(hop.request_head.to_vec()).unwrap();
        let host = format!("GET /faults/status/20{n} HTTP/1.1\r\nHost: localhost:{}\r\n", origin.addr().port());
        assert!(head.starts_with(&host), "{head}");
        assert_eq!(hop.body.as_memory().unwrap(), &format!("20{n}\n"));
    }
    assert_eq!(origin.connections(), 1);
    let plain = with(false).fetch(FetchRequest::get(origin.url("/faults/zero"))).await;
    assert_eq!(plain.answer().unwrap().protocol, "http/1.1");
}
