//! A server on rmcp with one tool that greets: on stdin and stdout, or, given a port, on stateless
//! HTTP that answers in JSON. One core is measured, so the runtime has one thread.
use std::{env, error::Error};

use rmcp::{
    ServiceExt,
    handler::server::wrapper::Parameters,
    tool, tool_router,
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct HelloArguments {
    name: String,
}

#[derive(Clone)]
struct Hello;

#[tool_router(server_handler)]
impl Hello {
    #[tool(description = "Greets somebody.")]
    async fn hello(&self, Parameters(arguments): Parameters<HelloArguments>) -> String {
        format!("Hello, {}", arguments.name)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let Some(port) = env::args().nth(1) else {
        Hello.serve(stdio()).await?.waiting().await?;
        return Ok(());
    };
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let service: StreamableHttpService<Hello, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Hello), Default::default(), config);
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, axum::Router::new().fallback_service(service)).await?;
    Ok(())
}
