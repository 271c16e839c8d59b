//! A server on rmcp. What it sends is written as the JSON that the SDK's types stand for.
#![allow(deprecated)] // sampling, roots, logging and subscribe are, and still there
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::{RequestContext, SubscriptionContext},
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::{Error, given, plain};

const PIXEL: &str = "iVBORw0KGgpub3QgcmVhbGx5";
const NOTE: &str = "peer://note";

#[derive(Clone)]
struct Peer {
    touched: broadcast::Sender<()>,
    /// Of listeners that are acknowledged and not yet served: nothing in between is lost.
    listening: Arc<Mutex<VecDeque<broadcast::Receiver<()>>>>,
}

fn say(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn no_arguments() -> Value {
    json!({"type": "object"})
}

fn invalid(why: &str) -> ErrorData {
    ErrorData::invalid_params(why.to_string(), None)
}

/// The question of a tool that asks: the client answers it, whatever its revision, and the call is
/// made again with the answer.
fn question(tool: &str) -> Option<Value> {
    Some(match tool {
        "elicit" => json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Who are you?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}),
        "sample" => json!({"method": "sampling/createMessage", "params": {"maxTokens": 10,
            "messages": [{"role": "user", "content": {"type": "text", "text": "Say something"}}]}}),
        "roots" => json!({"method": "roots/list"}),
        _ => return None,
    })
}

fn answered(answer: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
    if answer["action"].is_string() {
        return format!("{} {}", word(&answer["action"]), word(&answer["content"]["name"]));
    }
    match answer["roots"].as_array() {
        Some(roots) => roots.iter().map(|one| word(&one["uri"])).collect::<Vec<_>>().join(" "),
        None => word(&answer["content"]["text"]),
    }
}

impl Peer {
    /// The answer of a client of an older revision, who is asked in the middle of the call.
    async fn ask(&self, tool: &str, context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
        let params = question(tool).expect("asked by a tool that asks")["params"].clone();
        let peer = &context.peer;
        let answer = match tool {
            "elicit" => peer.create_elicitation(given(params)).await.map(|one| plain(&one)),
            "sample" => peer.create_message(given(params)).await.map(|one| plain(&one)),
            _ => peer.list_roots().await.map(|one| plain(&one)),
        };
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn report(&self, context: &RequestContext<RoleServer>) -> Result<(), Error> {
        if let Some(token) = context.meta.get_progress_token() {
            for step in 1..=3 {
                let params = json!({"progressToken": token, "progress": step, "total": 3,
                    "message": format!("step {step}")});
                context.peer.notify_progress(given(params)).await?;
            }
        }
        let params = json!({"level": "info", "data": "three steps done"});
        Ok(context.peer.notify_logging_message(given(params)).await?)
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(given(json!({"tools": {}, "prompts": {}, "completions": {},
            "logging": {}, "resources": {"subscribe": true}})));
        info.server_info = Implementation::new("rust-peer", "1.0.0");
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let numbers = json!({"type": "object", "required": ["left", "right"],
            "properties": {"left": {"type": "integer"}, "right": {"type": "integer"}}});
        let text = json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}});
        let mut tools = vec![json!({"name": "echo", "inputSchema": text}), json!({"name": "sum", "inputSchema": numbers})];
        for name in ["fail", "image", "progress", "elicit", "sample", "roots", "touch"] {
            tools.push(json!({"name": name, "inputSchema": no_arguments()}));
        }
        Ok(given(json!({"tools": tools, "ttlMs": 0, "cacheScope": "public"})))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let result = match request.name.as_ref() {
            "echo" => say(arguments["text"].as_str().ok_or_else(|| invalid("text is missing"))?),
            "sum" => {
                let number = |name: &str| arguments[name].as_i64().ok_or_else(|| invalid("a number is missing"));
                let sum = number("left")? + number("right")?;
                json!({"content": [{"type": "text", "text": sum.to_string()}], "structuredContent": {"sum": sum}})
            }
            "fail" => json!({"content": [{"type": "text", "text": "it cannot be done"}], "isError": true}),
            "image" => json!({"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}),
            "progress" => {
                let done = self.report(&context).await;
                done.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                say("done")
            }
            "touch" => {
                let _ = self.touched.send(()); // nobody listens: no matter
                say("touched")
            }
            name => {
                let asked = question(name).ok_or_else(|| invalid("no such tool"))?;
                let answers = request.input_responses.as_ref().map(plain);
                let is_modern = context.protocol_version() == Some(ProtocolVersion::V_2026_07_28);
                match answers {
                    Some(answers) => say(&answered(&answers["question"])),
                    None if is_modern => {
                        let required: InputRequiredResult = given(json!({"resultType": "input_required",
                            "inputRequests": {"question": asked}, "requestState": "asked"}));
                        return Ok(required.into());
                    }
                    None => say(&answered(&self.ask(name, &context).await?)),
                }
            }
        };
        Ok(given::<CallToolResult>(result).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(given(json!({"resources": [{"uri": NOTE, "name": "note", "mimeType": "text/plain"},
            {"uri": "peer://pixel", "name": "pixel", "mimeType": "image/png"}],
            "ttlMs": 0, "cacheScope": "public"})))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(given(json!({"resourceTemplates": [{"uriTemplate": "peer://item/{id}", "name": "item"}],
            "ttlMs": 0, "cacheScope": "public"})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let content = match (uri, uri.strip_prefix("peer://item/")) {
            (NOTE, _) => json!({"uri": uri, "mimeType": "text/plain", "text": "a note, naïve ☃"}),
            ("peer://pixel", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL}),
            (_, Some(id)) => json!({"uri": uri, "mimeType": "text/plain", "text": format!("item {id}")}),
            _ => return Err(ErrorData::resource_not_found("no such resource", Some(json!({"uri": uri})))),
        };
        let result: ReadResourceResult =
            given(json!({"contents": [content], "ttlMs": 0, "cacheScope": "public"}));
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(given(json!({"prompts": [{"name": "greet", "arguments": [{"name": "name", "required": true}]}],
            "ttlMs": 0, "cacheScope": "public"})))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = plain(&request.arguments);
        let name = arguments["name"].as_str().ok_or_else(|| invalid("name is missing"))?;
        let result: GetPromptResult = given(json!({"messages": [{"role": "user",
            "content": {"type": "text", "text": format!("Greet {name}")}}]}));
        Ok(result.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let start = request.argument.value.as_str();
        let values: Vec<_> = ["Ada", "Alan", "Grace"].into_iter().filter(|name| name.starts_with(start)).collect();
        Ok(given(json!({"completion": {"values": values}})))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let mut touched = self.touched.subscribe();
        tokio::spawn(async move {
            while touched.recv().await.is_ok() {
                let params = ResourceUpdatedNotificationParam::new(NOTE);
                if context.peer.notify_resource_updated(params).await.is_err() {
                    break;
                }
            }
        });
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let uris = requested.resource_subscriptions.clone()?;
        self.listening.lock().expect("no holder panics").push_back(self.touched.subscribe());
        Some(given(json!({"resourceSubscriptions": uris})))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let waiting = self.listening.lock().expect("no holder panics").pop_front();
        let mut touched = waiting.unwrap_or_else(|| self.touched.subscribe());
        loop {
            tokio::select! {
                _ = context.cancelled() => return Ok(()),
                one = touched.recv() => {
                    if one.is_err() || context.sink().notify_resource_updated(NOTE).await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn peer() -> Peer {
    Peer { touched: broadcast::channel(16).0, listening: Default::default() }
}

pub async fn serve_stdio() -> Result<(), Error> {
    peer().serve(stdio()).await?.waiting().await?;
    Ok(())
}

pub async fn serve_http(port: &str) -> Result<(), Error> {
    let shared = peer();
    let service: StreamableHttpService<Peer, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(shared.clone()), Default::default(), StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, axum::Router::new().fallback_service(service)).await?;
    Ok(())
}
