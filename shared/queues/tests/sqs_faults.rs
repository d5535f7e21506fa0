//! What SQS does under pressure, played by a server of our own: a 200 that holds failures of single messages.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use fonds_queues::{Bell, BellError, Keys, QueueNames, Ring, SqsBell, SqsConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

type Fails = fn(call: usize, body: &str) -> Option<Value>;

/// Answers SendMessageBatch: every entry is taken but those `fails` gives a failure for. Keeps the bodies of each call.
async fn start(fails: Fails) -> (SqsBell, Arc<Mutex<Vec<Vec<String>>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let calls: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let seen = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(serve(connection, Arc::clone(&seen), fails));
        }
    });
    let config = SqsConfig {
        region: Some("us-east-1".to_owned()),
        endpoint: Some(endpoint.clone()),
        keys: Some(Keys { id: "id".to_owned(), secret: "secret".to_owned() }),
    };
    let urls = HashMap::from([("sweep".to_owned(), format!("{endpoint}/1/sweep"))]);
    (SqsBell::connect(&config, QueueNames { urls, prefix: None }).await, calls)
}

async fn serve(connection: TcpStream, calls: Arc<Mutex<Vec<Vec<String>>>>, fails: Fails) {
    let mut connection = BufReader::new(connection);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while connection.read_line(&mut line).await.unwrap_or_default() > 2 {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if length == 0 || connection.read_exact(&mut body).await.is_err() {
            return;
        }
        let answer = answer(&serde_json::from_slice(&body).unwrap(), &calls, fails).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        connection.write_all((head + &answer).as_bytes()).await.unwrap();
    }
}

fn answer(request: &Value, calls: &Mutex<Vec<Vec<String>>>, fails: Fails) -> Value {
    let mut calls = calls.lock().unwrap();
    let (mut taken, mut failed, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for entry in request["Entries"].as_array().unwrap() {
        let body = entry["MessageBody"].as_str().unwrap();
        bodies.push(body.to_owned());
        match fails(calls.len(), body) {
            Some(mut failure) => {
                failure["Id"] = entry["Id"].clone();
                failed.push(failure);
            }
            None => taken.push(json!({ "Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "" })),
        }
    }
    calls.push(bodies);
    json!({ "Successful": taken, "Failed": failed })
}

const ODD: [Uuid; 2] = [Uuid::from_u128(1), Uuid::from_u128(3)];

fn is_odd(body: &str) -> bool {
    ODD.iter().any(|run| body.contains(&run.to_string()))
}

fn later() -> Value {
    json!({ "SenderFault": false, "Code": "InternalError", "Message": "later" })
}

fn rings() -> Vec<Ring> {
    (0..5).map(|run| Ring::new(Uuid::from_u128(run), "sweep")).collect()
}

#[tokio::test]
async fn messages_that_failed_for_now_are_sent_again_and_no_others() {
    let (bell, calls) = start(|call, body| (call < 2 && is_odd(body)).then(later)).await;
    bell.ring(&rings()).await.unwrap();
    let calls = calls.lock().unwrap();
    assert_eq!(calls.iter().map(Vec::len).collect::<Vec<_>>(), [5, 2, 2]);
    assert!(calls[1..].iter().flatten().all(|body| is_odd(body)), "{calls:?}");
}

#[tokio::test]
async fn messages_that_keep_failing_are_named() {
    let cases: [(Fails, usize, bool); 2] = [
        (
            |_, body| {
                is_odd(body).then(|| json!({ "SenderFault": false, "Code": "InternalError", "Message": "later" }))
            },
            4,
            false,
        ),
        (|_, body| is_odd(body).then(|| json!({ "SenderFault": true, "Code": "InvalidMessageContents" })), 1, true),
    ];
    for (fails, rounds, permanent) in cases {
        let (bell, calls) = start(fails).await;
        let BellError { unrung, reason, permanent: found } = bell.ring(&rings()).await.unwrap_err();
        assert_eq!((unrung.as_slice(), found), (&ODD[..], permanent), "{reason}");
        assert_eq!(calls.lock().unwrap().len(), rounds);
    }
}
