// The Go SDK as a client that logs in: login URL REDIRECT. Prints the page for the person as "open URL", reads the query of
// the redirect from stdin, then lists and calls, and prints what came.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func show(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	fmt.Println("open", args.URL)
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return nil, err
	}
	query, err := url.ParseQuery(strings.TrimSpace(line))
	return &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}, err
}

func run(ctx context.Context, endpoint, redirect string) error {
	login, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{redirect}, ClientName: "Go", TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, Scope: "weather:read"}},
		AuthorizationCodeFetcher: show})
	if err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint, OAuthHandler: login}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Println("tools", len(tools.Tools))
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "weather.get_weather", Arguments: map[string]any{"location": "Tokyo"}})
	if err != nil {
		return err
	}
	fmt.Println("text", result.Content[0].(*mcp.TextContent).Text)
	return nil
}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
