package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const modern = "2026-07-28"

// What the server sent of its own accord: a case waits for it, not for a time.
type inbox struct {
	progress, logged, updated, tools, prompts, resources chan string
}

func newInbox() *inbox {
	return &inbox{make(chan string, 64), make(chan string, 64), make(chan string, 64),
		make(chan string, 64), make(chan string, 64), make(chan string, 64)}
}

func await(from chan string) (string, error) {
	select {
	case text := <-from:
		return text, nil
	case <-time.After(10 * time.Second):
		return "", errors.New("it did not come")
	}
}

var errSkip = errors.New("skip")

func skip(why string) error { return fmt.Errorf("%w: %s", errSkip, why) }

// A client with its handlers, and the tools of the server.
type session struct {
	*mcp.ClientSession
	revision string
	inbox    *inbox
	asked    chan string // which of its handlers was asked
	tools    map[string]*mcp.Tool
}

func connect(revision string, target []string) (*session, error) {
	one := &session{revision: revision, inbox: newInbox(), asked: make(chan string, 64), tools: map[string]*mcp.Tool{}}
	box := one.inbox
	client := mcp.NewClient(&mcp.Implementation{Name: "go-peer", Version: "1.0.0"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			one.asked <- "sampling"
			return &mcp.CreateMessageResult{Model: "none", Role: "assistant", StopReason: "endTurn",
				Content: &mcp.TextContent{Text: "sampled words"}}, nil
		},
		ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			one.asked <- "elicitation"
			return &mcp.ElicitResult{Action: "accept", Content: filled(request.Params.RequestedSchema)}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			box.progress <- fmt.Sprint(request.Params.Progress)
		},
		LoggingMessageHandler: func(_ context.Context, request *mcp.LoggingMessageRequest) {
			box.logged <- fmt.Sprint(request.Params.Data)
		},
		ResourceUpdatedHandler: func(_ context.Context, request *mcp.ResourceUpdatedNotificationRequest) {
			box.updated <- request.Params.URI
		},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { box.tools <- "" },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { box.prompts <- "" },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { box.resources <- "" },
	})
	client.AddRoots(&mcp.Root{URI: "file:///interop", Name: "interop"})
	var transport mcp.Transport
	if strings.HasPrefix(target[0], "http://") {
		transport = &mcp.StreamableClientTransport{Endpoint: target[0]}
	} else {
		command := exec.Command(target[0], target[1:]...)
		command.Stderr = os.Stderr
		transport = &mcp.CommandTransport{Command: command}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var err error
	one.ClientSession, err = client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	return one, err
}

// An answer to a form: every property a value of its type.
func filled(schema any) map[string]any {
	answer := map[string]any{}
	object, _ := schema.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	for name, one := range properties {
		property, _ := one.(map[string]any)
		switch property["type"] {
		case "boolean":
			answer[name] = true
		case "integer", "number":
			answer[name] = 42
		case "string":
			answer[name] = "Ada"
			if choices, ok := property["enum"].([]any); ok {
				answer[name] = choices[0]
			}
		}
	}
	return answer
}

func (one *session) call(ctx context.Context, name string, arguments map[string]any) (*mcp.CallToolResult, error) {
	if one.tools[name] == nil {
		return nil, skip("the server has no tool " + name)
	}
	if arguments == nil {
		arguments = map[string]any{} // a nil map would go out as null, which is no object
	}
	return one.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
}

func textOf(content mcp.Content) string {
	if text, ok := content.(*mcp.TextContent); ok {
		return text.Text
	}
	return ""
}

func expect(is bool, format string, values ...any) error {
	if is {
		return nil
	}
	return fmt.Errorf(format, values...)
}

// One of the tools by which the server asks its client something.
func (one *session) asks(ctx context.Context, what, holds string, names ...string) error {
	found := false
	for _, name := range names {
		if one.tools[name] == nil {
			continue
		}
		found = true
		result, err := one.call(ctx, name, map[string]any{"message": "Who?", "prompt": "Say something"})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if result.IsError || len(result.Content) == 0 {
			return fmt.Errorf("%s: it failed: %+v", name, result.Content)
		}
		if what == "roots" {
			continue // the SDK answers without asking anybody
		}
		select {
		case asked := <-one.asked:
			if asked != what {
				return fmt.Errorf("%s: asked for %s", name, asked)
			}
		default:
			return fmt.Errorf("%s: nobody was asked", name)
		}
		if text := textOf(result.Content[0]); !strings.Contains(text, holds) {
			return fmt.Errorf("%s: answered %q", name, text)
		}
	}
	if !found {
		return skip("the server has none of " + strings.Join(names, ", "))
	}
	return nil
}

type testCase struct {
	name string
	run  func(context.Context, *session) error
}

var cases = []testCase{
	{"revision", func(_ context.Context, one *session) error {
		got := one.InitializeResult().ProtocolVersion
		return expect(got == one.revision, "negotiated %s", got)
	}},
	{"tools-list", func(ctx context.Context, one *session) error {
		for tool, err := range one.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			one.tools[tool.Name] = tool
		}
		return expect(one.tools["test_simple_text"] != nil, "only %d tools", len(one.tools))
	}},
	{"content-text", func(ctx context.Context, one *session) error {
		result, err := one.call(ctx, "test_simple_text", nil)
		if err != nil {
			return err
		}
		return expect(!result.IsError && len(result.Content) == 1 && textOf(result.Content[0]) != "", "%+v", result)
	}},
	{"content-image", func(ctx context.Context, one *session) error {
		result, err := one.call(ctx, "test_image_content", nil)
		if err != nil {
			return err
		}
		image, ok := result.Content[0].(*mcp.ImageContent)
		return expect(ok && image.MIMEType == "image/png" && bytes.HasPrefix(image.Data, []byte("\x89PNG")), "%+v", result.Content)
	}},
	{"content-audio", func(ctx context.Context, one *session) error {
		result, err := one.call(ctx, "test_audio_content", nil)
		if err != nil {
			return err
		}
		audio, ok := result.Content[0].(*mcp.AudioContent)
		return expect(ok && audio.MIMEType == "audio/wav" && len(audio.Data) > 0, "%+v", result.Content)
	}},
	{"content-embedded", func(ctx context.Context, one *session) error {
		result, err := one.call(ctx, "test_embedded_resource", nil)
		if err != nil {
			return err
		}
		embedded, ok := result.Content[0].(*mcp.EmbeddedResource)
		return expect(ok && embedded.Resource.URI != "" && embedded.Resource.Text != "", "%+v", result.Content)
	}},
	{"content-mixed", func(ctx context.Context, one *session) error {
		result, err := one.call(ctx, "test_multiple_content_types", nil)
		if err != nil {
			return err
		}
		return expect(len(result.Content) == 3, "%d parts", len(result.Content))
	}},
	{"structured", func(ctx context.Context, one *session) error {
		result, err := one.call(ctx, "test_every_content", nil)
		if err != nil {
			return err
		}
		object, ok := result.StructuredContent.(map[string]any)
		return expect(ok && object["count"] != nil, "%+v", result.StructuredContent)
	}},
	{"tool-error", func(ctx context.Context, one *session) error {
		result, err := one.call(ctx, "test_error_handling", nil)
		if err != nil {
			return err
		}
		return expect(result.IsError && textOf(result.Content[0]) != "", "%+v", result)
	}},
	{"unknown-tool", func(ctx context.Context, one *session) error {
		result, err := one.CallTool(ctx, &mcp.CallToolParams{Name: "no_such_tool"})
		return expect(err != nil, "answered %+v", result)
	}},
	{"header-argument", func(ctx context.Context, one *session) error {
		result, err := one.call(ctx, "test_x_mcp_header", map[string]any{"region": "eu-west-é"})
		if err != nil {
			return err
		}
		return expect(strings.Contains(textOf(result.Content[0]), "eu-west-é"), "%s", textOf(result.Content[0]))
	}},
	{"progress", func(ctx context.Context, one *session) error {
		if one.tools["test_tool_with_progress"] == nil {
			return skip("the server has no such tool")
		}
		params := &mcp.CallToolParams{Name: "test_tool_with_progress", Meta: mcp.Meta{"progressToken": "token-1"}}
		if _, err := one.CallTool(ctx, params); err != nil {
			return err
		}
		for _, want := range []string{"0", "50", "100"} {
			got, err := await(one.inbox.progress)
			if err != nil || got != want {
				return fmt.Errorf("%s came for %s: %w", got, want, err)
			}
		}
		return nil
	}},
	{"logging", func(ctx context.Context, one *session) error {
		if one.tools["test_tool_with_logging"] == nil {
			return skip("the server has no such tool")
		}
		params := &mcp.CallToolParams{Name: "test_tool_with_logging"}
		if one.revision == modern {
			params.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": "debug"}
		} else if err := one.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			return err
		}
		if _, err := one.CallTool(ctx, params); err != nil {
			return err
		}
		for range 3 {
			if _, err := await(one.inbox.logged); err != nil {
				return err
			}
		}
		return nil
	}},
	{"cancel", func(ctx context.Context, one *session) error {
		if one.tools["test_tool_with_progress"] == nil {
			return skip("the server has no such tool")
		}
		cancelled, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			params := &mcp.CallToolParams{Name: "test_tool_with_progress", Meta: mcp.Meta{"progressToken": "token-2"}}
			_, err := one.CallTool(cancelled, params)
			done <- err
		}()
		if _, err := await(one.inbox.progress); err != nil {
			return err
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("ended with %v", err)
		}
		_, err := one.call(ctx, "test_simple_text", nil)
		return err
	}},
	{"resources-list", func(ctx context.Context, one *session) error {
		var found []string
		for resource, err := range one.Resources(ctx, nil) {
			if err != nil {
				return err
			}
			found = append(found, resource.URI)
		}
		for template, err := range one.ResourceTemplates(ctx, nil) {
			if err != nil {
				return err
			}
			found = append(found, template.URITemplate)
		}
		return expect(slices.Contains(found, "test://static-text") && slices.Contains(found, "test://template/{id}/data"), "%v", found)
	}},
	{"resource-text", func(ctx context.Context, one *session) error {
		result, err := one.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://static-text"})
		if err != nil {
			return err
		}
		return expect(result.Contents[0].Text != "" && result.Contents[0].MIMEType == "text/plain", "%+v", result.Contents[0])
	}},
	{"resource-blob", func(ctx context.Context, one *session) error {
		result, err := one.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://static-binary"})
		if err != nil {
			return err
		}
		return expect(bytes.HasPrefix(result.Contents[0].Blob, []byte("\x89PNG")), "%+v", result.Contents[0])
	}},
	{"resource-template", func(ctx context.Context, one *session) error {
		result, err := one.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://template/a%20b/data"})
		if err != nil {
			return err
		}
		return expect(strings.Contains(result.Contents[0].Text, `"a b"`), "%s", result.Contents[0].Text)
	}},
	{"resource-missing", func(ctx context.Context, one *session) error {
		result, err := one.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://nothing"})
		return expect(err != nil, "answered %+v", result)
	}},
	{"subscribe", func(ctx context.Context, one *session) error {
		if err := one.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://watched-resource"}); err != nil {
			return err
		}
		if _, err := one.call(ctx, "test_trigger_resource_change", nil); err != nil {
			return err
		}
		uri, err := await(one.inbox.updated)
		if err != nil {
			return err
		}
		if err := one.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "test://watched-resource"}); err != nil {
			return err
		}
		return expect(uri == "test://watched-resource", "%s was updated", uri)
	}},
	{"list-changed", func(ctx context.Context, one *session) error {
		for name, box := range map[string]chan string{"tool": one.inbox.tools, "prompt": one.inbox.prompts, "resource": one.inbox.resources} {
			if _, err := one.call(ctx, "test_trigger_"+name+"_change", nil); err != nil {
				return err
			}
			if _, err := await(box); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}},
	{"prompts-list", func(ctx context.Context, one *session) error {
		var found []string
		for prompt, err := range one.Prompts(ctx, nil) {
			if err != nil {
				return err
			}
			found = append(found, prompt.Name)
		}
		return expect(slices.Contains(found, "test_prompt_with_arguments"), "%v", found)
	}},
	{"prompt-arguments", func(ctx context.Context, one *session) error {
		result, err := one.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_prompt_with_arguments",
			Arguments: map[string]string{"arg1": "one", "arg2": "\"two\""}})
		if err != nil {
			return err
		}
		text := textOf(result.Messages[0].Content)
		return expect(strings.Contains(text, "one") && strings.Contains(text, "\"two\""), "%s", text)
	}},
	{"prompt-content", func(ctx context.Context, one *session) error {
		embedded, err := one.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_prompt_with_embedded_resource",
			Arguments: map[string]string{"resourceUri": "test://given"}})
		if err != nil {
			return err
		}
		image, err := one.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_prompt_with_image"})
		if err != nil {
			return err
		}
		resource, isResource := embedded.Messages[0].Content.(*mcp.EmbeddedResource)
		_, isImage := image.Messages[0].Content.(*mcp.ImageContent)
		return expect(isResource && resource.Resource.URI == "test://given" && isImage, "%+v %+v", embedded.Messages[0], image.Messages[0])
	}},
	{"completion", func(ctx context.Context, one *session) error {
		result, err := one.Complete(ctx, &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "test_prompt_with_arguments"},
			Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "par"}})
		if err != nil {
			return err
		}
		return expect(slices.Contains(result.Completion.Values, "paris"), "%v", result.Completion.Values)
	}},
	{"elicitation", func(ctx context.Context, one *session) error {
		return one.asks(ctx, "elicitation", "", "test_elicitation", "test_elicitation_sep1034_defaults", "test_input_required_result_elicitation")
	}},
	{"sampling", func(ctx context.Context, one *session) error {
		return one.asks(ctx, "sampling", "sampled words", "test_sampling", "test_input_required_result_sampling")
	}},
	{"roots", func(ctx context.Context, one *session) error {
		return one.asks(ctx, "roots", "", "test_roots", "test_list_roots", "test_input_required_result_list_roots")
	}},
	{"ping", func(ctx context.Context, one *session) error {
		if one.revision == modern {
			return skip("the revision has no ping")
		}
		return one.Ping(ctx, nil)
	}},
	{"close", func(_ context.Context, one *session) error { return one.Close() }},
}

func runClient(revision string, target []string) int {
	one, err := connect(revision, target)
	if err != nil {
		fmt.Println("not ok connect:", err)
		return 1
	}
	failed := 0
	for _, test := range cases {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		switch err := test.run(ctx, one); {
		case err == nil:
			fmt.Println("ok", test.name)
		case errors.Is(err, errSkip):
			fmt.Printf("skip %s: %s\n", test.name, strings.TrimPrefix(err.Error(), "skip: "))
		default:
			failed++
			fmt.Printf("not ok %s: %v\n", test.name, err)
		}
		cancel()
	}
	return min(failed, 1)
}
