//! The API behind API Gateway.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    fonds_submit_api::lambda::run().await
}
