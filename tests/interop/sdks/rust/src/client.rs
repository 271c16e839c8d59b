//! Cases of a client on rmcp. Results are looked at as the JSON that they came from.
#![allow(deprecated)] // sampling, roots, logging and subscribe are, and still there
use std::{collections::HashSet, time::Duration};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, mpsc},
    time::timeout,
};

use crate::{Error, given, plain};

const MODERN: &str = "2026-07-28";
const PATIENCE: Duration = Duration::from_secs(10);
const UPDATED: &str = "notifications/resources/updated";

type Event = (&'static str, Value);

/// What the server sent of its own accord, and what it asked.
struct Handler {
    events: mpsc::UnboundedSender<Event>,
    asked: mpsc::UnboundedSender<&'static str>,
}

/// An answer to a form: every property a value of its type.
fn filled(schema: &Value) -> Value {
    let mut answer = serde_json::Map::new();
    for (name, one) in schema["properties"].as_object().into_iter().flatten() {
        let value = match one["type"].as_str() {
            Some("boolean") => json!(true),
            Some("integer" | "number") => json!(42),
            Some("string") => one["enum"].get(0).cloned().unwrap_or(json!("Ada")),
            _ => continue,
        };
        answer.insert(name.clone(), value);
    }
    Value::Object(answer)
}

impl Handler {
    fn tell(&self, method: &'static str, params: Value) {
        let _ = self.events.send((method, params)); // nobody waits any more: no matter
    }

    fn was_asked(&self, what: &'static str) {
        let _ = self.asked.send(what);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = given(json!({"sampling": {}, "elicitation": {}, "roots": {}}));
        info.client_info = Implementation::new("rust-peer", "1.0.0");
        info
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.was_asked("sampling");
        Ok(given(json!({"role": "assistant", "model": "none", "stopReason": "endTurn",
            "content": {"type": "text", "text": "sampled words"}})))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.was_asked("elicitation");
        let content = filled(&plain(&request)["requestedSchema"]);
        Ok(given(json!({"action": "accept", "content": content})))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.was_asked("roots");
        Ok(given(json!({"roots": [{"uri": "file:///interop", "name": "interop"}]})))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.tell("notifications/progress", plain(&params));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.tell("notifications/message", plain(&params));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.tell(UPDATED, plain(&params));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tell("notifications/tools/list_changed", Value::Null);
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tell("notifications/prompts/list_changed", Value::Null);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tell("notifications/resources/list_changed", Value::Null);
    }
}

struct Session {
    service: RunningService<RoleClient, Handler>,
    revision: String,
    events: Mutex<mpsc::UnboundedReceiver<Event>>,
    asked: Mutex<mpsc::UnboundedReceiver<&'static str>>,
    tools: HashSet<String>,
}

enum Outcome {
    Skip(String),
    Fail(String),
}

impl<E: std::fmt::Display> From<E> for Outcome {
    fn from(error: E) -> Self {
        Outcome::Fail(error.to_string())
    }
}

type Verdict = Result<(), Outcome>;

fn expect(claim: bool, found: impl std::fmt::Debug) -> Verdict {
    if claim { Ok(()) } else { Err(Outcome::Fail(format!("answered {found:?}"))) }
}

async fn connect(revision: &str, target: &[&str]) -> Result<Session, Error> {
    let (events, from_events) = mpsc::unbounded_channel();
    let (asked, from_asked) = mpsc::unbounded_channel();
    let handler = Handler { events, asked };
    let mode = if revision == MODERN {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    let service = if target[0].starts_with("http://") {
        handler.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(target[0]), mode).await?
    } else {
        let mut command = tokio::process::Command::new(target[0]);
        command.args(&target[1..]);
        handler.serve_with_lifecycle(TokioChildProcess::new(command)?, mode).await?
    };
    Ok(Session {
        service,
        revision: revision.into(),
        events: from_events.into(),
        asked: from_asked.into(),
        tools: HashSet::new(),
    })
}

impl Session {
    fn is_modern(&self) -> bool {
        self.revision == MODERN
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<Value, Outcome> {
        self.call_with(json!({"name": name, "arguments": arguments})).await
    }

    async fn call_with(&self, params: Value) -> Result<Value, Outcome> {
        let name = params["name"].as_str().unwrap_or_default();
        if !self.tools.contains(name) {
            return Err(Outcome::Skip(format!("the server has no tool {name}")));
        }
        Ok(plain(&self.service.call_tool(given(params)).await?))
    }

    async fn first_part(&self, name: &str) -> Result<Value, Outcome> {
        Ok(self.call(name, json!({})).await?["content"][0].clone())
    }

    async fn read(&self, uri: &str) -> Result<Value, Outcome> {
        let result = self.service.read_resource(given(json!({"uri": uri}))).await?;
        Ok(plain(&result)["contents"][0].clone())
    }

    async fn prompt(&self, name: &str, arguments: Value) -> Result<Value, Outcome> {
        let result = self.service.get_prompt(given(json!({"name": name, "arguments": arguments}))).await?;
        Ok(plain(&result)["messages"][0]["content"].clone())
    }

    async fn forget(&self) {
        while self.events.lock().await.try_recv().is_ok() {}
    }

    /// The next event of this kind.
    async fn event(&self, wanted: &str) -> Result<Value, Outcome> {
        let mut events = self.events.lock().await;
        let next = async {
            loop {
                match events.recv().await {
                    Some((method, params)) if method == wanted => break params,
                    Some(_) => {}
                    None => std::future::pending().await,
                }
            }
        };
        timeout(PATIENCE, next).await.map_err(|_| Outcome::Fail(format!("it did not come: {wanted}")))
    }

    /// Calls the tool that makes the server announce something, and waits for the announcement.
    async fn announces(&self, filter: Value, tool: &str, method: &str) -> Result<Value, Outcome> {
        self.forget().await;
        if !self.is_modern() {
            self.call(tool, json!({})).await?;
            return self.event(method).await;
        }
        let mut subscription = self.service.listen(given(filter)).await?;
        self.call(tool, json!({})).await?;
        loop {
            let next = timeout(PATIENCE, subscription.next()).await;
            let Some(one) = next.map_err(|_| Outcome::Fail(format!("it did not come: {method}")))?? else {
                return Err(Outcome::Fail("the subscription ended".into()));
            };
            let message = plain(&one);
            if message["method"] == method {
                subscription.cancel().await?;
                return Ok(message["params"].clone());
            }
        }
    }

    async fn asks(&self, what: &str, holds: &str, names: &[&str]) -> Verdict {
        let there: Vec<_> = names.iter().filter(|name| self.tools.contains(**name)).collect();
        if there.is_empty() {
            return Err(Outcome::Skip(format!("the server has none of {}", names.join(", "))));
        }
        for name in there {
            let result = self.call(name, json!({"message": "Who?", "prompt": "Say something"})).await?;
            expect(self.asked.lock().await.try_recv().ok() == Some(what), &result)?;
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            expect(result["isError"] != json!(true) && text.contains(holds), &result)?;
        }
        Ok(())
    }

    async fn list_tools(&mut self) -> Verdict {
        self.tools = self.service.list_all_tools().await?.iter().map(|tool| tool.name.to_string()).collect();
        expect(self.tools.contains("test_simple_text"), &self.tools)
    }

    async fn check_progress(&self) -> Verdict {
        self.forget().await;
        self.call("test_tool_with_progress", json!({})).await?;
        for wanted in [0.0, 50.0, 100.0] {
            let found = self.event("notifications/progress").await?;
            expect(found["progress"] == json!(wanted) && found["total"] == json!(100.0), &found)?;
        }
        Ok(())
    }

    async fn check_logging(&self) -> Verdict {
        let mut params = json!({"name": "test_tool_with_logging", "arguments": {}});
        if self.is_modern() {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "debug"});
        } else {
            self.service.set_level(given(json!({"level": "debug"}))).await?;
        }
        self.forget().await;
        self.call_with(params).await?;
        for _ in 0..3 {
            self.event("notifications/message").await?;
        }
        Ok(())
    }

    async fn check_cancel(&self) -> Verdict {
        self.forget().await;
        tokio::select! {
            result = self.call("test_tool_with_progress", json!({})) => {
                return Err(Outcome::Fail(format!("it was not cancelled: {:?}", result?)));
            }
            event = self.event("notifications/progress") => { event?; }
        } // the call is dropped here, which cancels it
        self.first_part("test_simple_text").await?;
        Ok(())
    }

    async fn check_lists(&self) -> Verdict {
        let resources = plain(&self.service.list_all_resources().await?).to_string();
        let templates = plain(&self.service.list_all_resource_templates().await?).to_string();
        expect(resources.contains("test://static-text"), &resources)?;
        expect(templates.contains("test://template/{id}/data"), &templates)
    }

    async fn check_subscribe(&self) -> Verdict {
        let uri = "test://watched-resource";
        if !self.is_modern() {
            self.service.subscribe(given(json!({"uri": uri}))).await?;
        }
        let filter = json!({"resourceSubscriptions": [uri]});
        let found = self.announces(filter, "test_trigger_resource_change", UPDATED).await?;
        if !self.is_modern() {
            self.service.unsubscribe(given(json!({"uri": uri}))).await?;
        }
        expect(found["uri"] == uri, &found)
    }

    async fn check_changes(&self) -> Verdict {
        for kind in ["tool", "prompt", "resource"] {
            let (tool, method) =
                (format!("test_trigger_{kind}_change"), format!("notifications/{kind}s/list_changed"));
            self.announces(json!({format!("{kind}sListChanged"): true}), &tool, &method).await?;
        }
        Ok(())
    }

    async fn check_prompt_content(&self) -> Verdict {
        let embedded = json!({"resourceUri": "test://given"});
        let resource = self.prompt("test_prompt_with_embedded_resource", embedded).await?;
        let image = self.prompt("test_prompt_with_image", json!({})).await?;
        expect(resource["resource"]["uri"] == "test://given" && image["type"] == "image", (resource, image))
    }

    async fn run(&mut self, case: &str) -> Verdict {
        match case {
            "revision" => {
                let found = self.service.peer().peer_info().map(|info| info.protocol_version.to_string());
                expect(self.is_modern() || found.as_deref() == Some(&self.revision), found)
            }
            "tools-list" => self.list_tools().await,
            "content-text" => {
                let part = self.first_part("test_simple_text").await?;
                expect(part["text"].as_str().is_some_and(|text| !text.is_empty()), part)
            }
            "content-image" => {
                let part = self.first_part("test_image_content").await?;
                let is_png = part["data"].as_str().is_some_and(|data| data.starts_with("iVBORw0KGgo"));
                expect(is_png && part["mimeType"] == "image/png", part)
            }
            "content-audio" => {
                let part = self.first_part("test_audio_content").await?;
                expect(part["type"] == "audio" && part["mimeType"] == "audio/wav", part)
            }
            "content-embedded" => {
                let part = self.first_part("test_embedded_resource").await?;
                expect(part["type"] == "resource" && part["resource"]["text"].is_string(), part)
            }
            "content-mixed" => {
                let result = self.call("test_multiple_content_types", json!({})).await?;
                expect(result["content"].as_array().is_some_and(|parts| parts.len() == 3), result)
            }
            "structured" => {
                let result = self.call("test_every_content", json!({})).await?;
                expect(result["structuredContent"]["count"].is_number(), result)
            }
            "tool-error" => {
                let result = self.call("test_error_handling", json!({})).await?;
                expect(result["isError"] == true, result)
            }
            "unknown-tool" => {
                let result = self.service.call_tool(given(json!({"name": "no_such_tool"}))).await;
                expect(result.is_err(), result)
            }
            "header-argument" => {
                let result = self.call("test_x_mcp_header", json!({"region": "eu-west-é"})).await?;
                expect(result.to_string().contains("eu-west-é"), result)
            }
            "progress" => self.check_progress().await,
            "logging" => self.check_logging().await,
            "cancel" => self.check_cancel().await,
            "resources-list" => self.check_lists().await,
            "resource-text" => {
                let part = self.read("test://static-text").await?;
                expect(part["text"].is_string() && part["mimeType"] == "text/plain", part)
            }
            "resource-blob" => {
                let part = self.read("test://static-binary").await?;
                expect(part["blob"].as_str().is_some_and(|blob| blob.starts_with("iVBORw0KGgo")), part)
            }
            "resource-template" => {
                let part = self.read("test://template/a%20b/data").await?;
                expect(part["text"].as_str().is_some_and(|text| text.contains("\"a b\"")), part)
            }
            "resource-missing" => {
                let result = self.service.read_resource(given(json!({"uri": "test://nothing"}))).await;
                expect(result.is_err(), result)
            }
            "subscribe" => self.check_subscribe().await,
            "list-changed" => self.check_changes().await,
            "prompts-list" => {
                let found = plain(&self.service.list_all_prompts().await?).to_string();
                expect(found.contains("test_prompt_with_arguments"), found)
            }
            "prompt-arguments" => {
                let arguments = json!({"arg1": "one", "arg2": "\"two\""});
                let part = self.prompt("test_prompt_with_arguments", arguments).await?;
                let text = part["text"].as_str().unwrap_or_default();
                expect(text.contains("one") && text.contains("\"two\""), text)
            }
            "prompt-content" => self.check_prompt_content().await,
            "completion" => {
                let result = self.service.complete(given(json!({
                    "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
                    "argument": {"name": "arg1", "value": "par"}})));
                let values = plain(&result.await?)["completion"]["values"].clone();
                expect(values.to_string().contains("\"paris\""), values)
            }
            "elicitation" => {
                let names = ["test_elicitation", "test_elicitation_sep1034_defaults",
                    "test_input_required_result_elicitation"];
                self.asks("elicitation", "", &names).await
            }
            "sampling" => {
                let names = ["test_sampling", "test_input_required_result_sampling"];
                self.asks("sampling", "sampled words", &names).await
            }
            "roots" => {
                let names = ["test_roots", "test_list_roots", "test_input_required_result_list_roots"];
                self.asks("roots", "", &names).await
            }
            "ping" if self.is_modern() => Err(Outcome::Skip("the revision has no ping".into())),
            "ping" => {
                self.service.send_request(ClientRequest::PingRequest(Default::default())).await?;
                Ok(())
            }
            _ => Err(Outcome::Fail("no such case".into())),
        }
    }
}

const CASES: &[&str] = &[
    "revision", "tools-list", "content-text", "content-image", "content-audio", "content-embedded",
    "content-mixed", "structured", "tool-error", "unknown-tool", "header-argument", "progress", "logging",
    "cancel", "resources-list", "resource-text", "resource-blob", "resource-template", "resource-missing",
    "subscribe", "list-changed", "prompts-list", "prompt-arguments", "prompt-content", "completion",
    "elicitation", "sampling", "roots", "ping",
];

pub async fn run(revision: &str, target: &[&str]) -> Result<i32, Error> {
    let mut session = connect(revision, target).await?;
    let mut status = 0;
    for case in CASES {
        let verdict = timeout(2 * PATIENCE, session.run(case)).await;
        match verdict.unwrap_or_else(|_| Err(Outcome::Fail("it did not end".into()))) {
            Ok(()) => println!("ok {case}"),
            Err(Outcome::Skip(why)) => println!("skip {case}: {why}"),
            Err(Outcome::Fail(why)) => {
                status = 1;
                println!("not ok {case}: {}", why.replace('\n', " "));
            }
        }
    }
    session.service.cancel().await?;
    println!("ok close");
    Ok(status)
}
