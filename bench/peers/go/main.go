// A server on the Go SDK with one tool that greets: on stdin and stdout, or, given a port, on
// stateless HTTP that answers in JSON.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type helloArguments struct {
	Name string `json:"name"`
}

func hello(_ context.Context, _ *mcp.CallToolRequest, arguments helloArguments) (*mcp.CallToolResult, any, error) {
	text := &mcp.TextContent{Text: "Hello, " + arguments.Name}
	return &mcp.CallToolResult{Content: []mcp.Content{text}}, nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "hello", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "hello", Description: "Greets somebody."}, hello)
	if len(os.Args) < 2 {
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	options := &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], handler))
}
