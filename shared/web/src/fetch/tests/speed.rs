//! How fast small fetches are.

use super::*;

/// Prints small fetches per second; run with `--release -- --ignored speed --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn speed_of_small_fetches() {
    let body = "x".repeat(4096);
    let config = OriginConfig::new().route("/small", Reply::html(body));
    let origin = Origin::start(config).await.unwrap();
    let fetcher = Fetcher::new(FetcherConfig {
        pool_max_idle_per_host: 64,
        ..FetcherConfig::new(Guard::new(GuardConfig { allow_private: true, ..Default::default() }))
    })
    .unwrap();
    const EACH: u32 = 2000;
    for workers in [1, 16, 50] {
        let began = Instant::now();
        let tasks: Vec<_> = (0..workers)
            .map(|_| {
                let (fetcher, url) = (fetcher.clone(), origin.url("/small"));
                tokio::spawn(async move {
                    for _ in 0..EACH {
                        let result = fetcher.fetch(FetchRequest::get(url.clone())).await;
                        assert_eq!(result.answer().unwrap().body.len(), 4096);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let rate = f64::from(EACH * workers) / began.elapsed().as_secs_f64();
        eprintln!("{workers} at once: {rate:.0} fetches/s, {} connections", origin.connections());
    }
}
