package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type noArguments struct{}

type echoArguments struct {
	Text string `json:"text"`
}

type sumArguments struct {
	Left  int `json:"left"`
	Right int `json:"right"`
}

type sumResult struct {
	Sum int `json:"sum"`
}

var pixel = []byte("\x89PNG\r\n\x1a\nnot really")

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func addTools(server *mcp.Server) {
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Says it again."},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoArguments) (*mcp.CallToolResult, any, error) {
			return say(in.Text), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "sum", Description: "Adds two numbers."},
		func(_ context.Context, _ *mcp.CallToolRequest, in sumArguments) (*mcp.CallToolResult, sumResult, error) {
			return nil, sumResult{in.Left + in.Right}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "fail", Description: "Always fails."},
		func(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("it cannot be done")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "image", Description: "Answers with an image."},
		func(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: pixel, MIMEType: "image/png"}}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "progress", Description: "Reports its progress, and logs."},
		func(ctx context.Context, request *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, any, error) {
			token := request.Params.GetProgressToken()
			for step := 1; step <= 3; step++ {
				if token != nil {
					params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(step), Total: 3, Message: fmt.Sprint("step ", step)}
					if err := request.Session.NotifyProgress(ctx, params); err != nil {
						return nil, nil, err
					}
				}
			}
			if err := request.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "three steps done"}); err != nil {
				return nil, nil, err
			}
			return say("done"), nil, nil
		})
}

// Tools that ask the client: written once, the SDK carries the questions as the revision wants it.
func addAskingTools(server *mcp.Server) {
	ask := func(name string, question mcp.InputRequest, read func(mcp.InputResponse) string) {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "Asks the client."},
			func(_ context.Context, request *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, any, error) {
				answer := request.Params.InputResponses["question"]
				if answer == nil {
					return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"question": question}, RequestState: "asked"}, nil, nil
				}
				return say(read(answer)), nil, nil
			})
	}
	ask("elicit", &mcp.ElicitParams{Message: "Who are you?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"}}},
		func(answer mcp.InputResponse) string {
			result := answer.(*mcp.ElicitResult)
			return fmt.Sprint(result.Action, " ", result.Content["name"])
		})
	ask("sample", &mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "Say something"}}}},
		func(answer mcp.InputResponse) string {
			switch result := answer.(type) {
			case *mcp.CreateMessageResult:
				return textOf(result.Content)
			case *mcp.CreateMessageWithToolsResult:
				return textOf(result.Content[0])
			}
			return fmt.Sprintf("%T", answer)
		})
	ask("roots", &mcp.ListRootsParams{}, func(answer mcp.InputResponse) string {
		var uris []string
		for _, root := range answer.(*mcp.ListRootsResult).Roots {
			uris = append(uris, root.URI)
		}
		return strings.Join(uris, " ")
	})
}

func newServer() *mcp.Server {
	options := &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, request *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			result := &mcp.CompleteResult{}
			for _, name := range []string{"Ada", "Alan", "Grace"} {
				if strings.HasPrefix(name, request.Params.Argument.Value) {
					result.Completion.Values = append(result.Completion.Values, name)
				}
			}
			return result, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		PageSize:           3, // so that a client has to turn pages
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "go-peer", Version: "1.0.0"}, options)
	addTools(server)
	addAskingTools(server)
	mcp.AddTool(server, &mcp.Tool{Name: "touch", Description: "Says that the note was updated."},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, any, error) {
			err := server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "peer://note"})
			return say("touched"), nil, err
		})
	read := func(text func(uri string) string) mcp.ResourceHandler {
		return func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			contents := &mcp.ResourceContents{URI: request.Params.URI, MIMEType: "text/plain", Text: text(request.Params.URI)}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
		}
	}
	server.AddResource(&mcp.Resource{URI: "peer://note", Name: "note", MIMEType: "text/plain"},
		read(func(string) string { return "a note, naïve ☃" }))
	server.AddResource(&mcp.Resource{URI: "peer://pixel", Name: "pixel", MIMEType: "image/png"},
		func(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			contents := &mcp.ResourceContents{URI: request.Params.URI, MIMEType: "image/png", Blob: pixel}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
		})
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "peer://item/{id}", Name: "item", MIMEType: "text/plain"},
		read(func(uri string) string { return "item " + strings.TrimPrefix(uri, "peer://item/") }))
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := &mcp.TextContent{Text: "Greet " + request.Params.Arguments["name"]}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: text}}}, nil
		})
	return server
}

func serveStdio() {
	if err := newServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

// The SDK serves 2026-07-28 where it keeps no sessions, and all that older revisions have where it does.
func serveHTTP(port string) {
	server := newServer()
	get := func(*http.Request) *mcp.Server { return server }
	withSessions := mcp.NewStreamableHTTPHandler(get, nil)
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == modern {
			stateless.ServeHTTP(w, r)
		} else {
			withSessions.ServeHTTP(w, r)
		}
	})))
}
