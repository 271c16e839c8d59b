//! rmcp against ours, in both roles. The cases and what they print are described in ../run.
//!
//!     peer client REVISION URL
//!     peer client REVISION COMMAND...
//!     peer server [PORT]
mod client;
mod server;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The SDK's type that reads like this JSON: what is sent is easier to see so.
pub fn given<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("the SDK knows this shape")
}

pub fn plain<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("the SDK can write its own types")
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["client", revision, target @ ..] if !target.is_empty() => {
            std::process::exit(client::run(revision, target).await?)
        }
        ["server"] => server::serve_stdio().await,
        ["server", port] => server::serve_http(port).await,
        _ => Err("usage: peer client REVISION URL|COMMAND... | peer server [PORT]".into()),
    }
}
