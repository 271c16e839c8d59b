package main

import (
	"context"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/push"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"
	"google.golang.org/grpc"
)

const resultText = "the result, naïve ☃"

// What "hold NAME" waits for, and "release NAME" opens.
type gates struct {
	lock sync.Mutex
	all  map[string]chan struct{}
}

func (g *gates) find(name string) chan struct{} {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.all[name] == nil {
		g.all[name] = make(chan struct{})
	}
	return g.all[name]
}

// The script: what is done with a message, by its first word.
type script struct{ gates gates }

func said(of *a2asrv.ExecutorContext, text string) *a2a.Message {
	return a2a.NewMessageForTask(a2a.MessageRoleAgent, of, a2a.NewTextPart(text))
}

func answer(of *a2asrv.ExecutorContext, text string) *a2a.Message {
	message := a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(text))
	message.ContextID = of.ContextID
	return message
}

func result(of *a2asrv.ExecutorContext) *a2a.TaskArtifactUpdateEvent {
	event := a2a.NewArtifactEvent(of, a2a.NewTextPart(resultText))
	event.Artifact.Name = "result"
	event.LastChunk = true
	return event
}

func chunks(of *a2asrv.ExecutorContext) []a2a.Event {
	first := a2a.NewArtifactEvent(of, a2a.NewTextPart("one "))
	first.Artifact.Name = "chunks"
	second := a2a.NewArtifactUpdateEvent(of, first.Artifact.ID, a2a.NewTextPart("two "))
	third := a2a.NewArtifactUpdateEvent(of, first.Artifact.ID, a2a.NewTextPart("three"))
	third.LastChunk = true
	return []a2a.Event{first, second, third}
}

func (s *script) Execute(ctx context.Context, of *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		parts := of.Message.Parts
		text := parts[0].Text()
		word, rest, _ := strings.Cut(text, " ")
		status := func(state a2a.TaskState, text string) a2a.Event {
			return a2a.NewStatusUpdateEvent(of, state, said(of, text))
		}
		var events []a2a.Event
		switch {
		case of.StoredTask != nil:
			yield(status(a2a.TaskStateCompleted, "you said "+text), nil)
			return
		case word == "reply":
			yield(answer(of, "a message, naïve ☃"), nil)
			return
		case word == "release":
			close(s.gates.find(rest))
			yield(answer(of, "released"), nil)
			return
		}
		events = append(events, a2a.NewSubmittedTask(of, of.Message))
		working := status(a2a.TaskStateWorking, "on it")
		switch word {
		case "complete":
			events = append(events, working, result(of), status(a2a.TaskStateCompleted, "done"))
		case "parts":
			events = append(events, a2a.NewStatusUpdateEvent(of, a2a.TaskStateCompleted,
				a2a.NewMessageForTask(a2a.MessageRoleAgent, of, parts[1:]...)))
		case "chunks":
			events = append(append(append(events, working), chunks(of)...), status(a2a.TaskStateCompleted, "done"))
		case "ask":
			events = append(events, status(a2a.TaskStateInputRequired, "which one?"))
		case "hold":
			events = append(events, working)
		case "reject":
			events = append(events, status(a2a.TaskStateRejected, "not that"))
		default:
			events = append(events, working, status(a2a.TaskStateFailed, "it broke"))
		}
		for _, event := range events {
			if !yield(event, nil) {
				return
			}
		}
		if word != "hold" {
			return
		}
		select {
		case <-ctx.Done():
		case <-s.gates.find(rest):
			if yield(result(of), nil) {
				yield(status(a2a.TaskStateCompleted, "done"), nil)
			}
		}
	}
}

func (s *script) Cancel(_ context.Context, of *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(of, a2a.TaskStateCanceled, nil), nil)
	}
}

func makeCard(port, grpcPort string) *a2a.AgentCard {
	at := "http://127.0.0.1:" + port
	face := func(url string, binding a2a.TransportProtocol) *a2a.AgentInterface {
		return a2a.NewAgentInterface(url, binding)
	}
	return &a2a.AgentCard{
		Name: "interop", Description: "Does what it is told.", Version: "1.0.0",
		Capabilities: a2a.AgentCapabilities{Streaming: true, PushNotifications: true, ExtendedAgentCard: true},
		SupportedInterfaces: []*a2a.AgentInterface{
			face(at+"/jsonrpc", a2a.TransportProtocolJSONRPC), face(at+"/rest", a2a.TransportProtocolHTTPJSON),
			face("127.0.0.1:"+grpcPort, a2a.TransportProtocolGRPC)},
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills: []a2a.AgentSkill{{ID: "script", Name: "Script", Description: "Script", Tags: []string{"test"}}},
	}
}

func runServer(port, grpcPort string) error {
	card := makeCard(port, grpcPort)
	extended := *card
	extended.Skills = append(extended.Skills[:1:1],
		a2a.AgentSkill{ID: "hidden", Name: "Hidden", Description: "Hidden", Tags: []string{"test"}})
	store := taskstore.NewInMemory(&taskstore.InMemoryStoreConfig{ // it lists for nobody in particular not at all
		Authenticator: func(context.Context) (string, error) { return "interop", nil }})
	handler := a2asrv.NewHandler(&script{gates{all: map[string]chan struct{}{}}}, a2asrv.WithTaskStore(store),
		a2asrv.WithExtendedAgentCard(&extended), a2asrv.WithCapabilityChecks(&card.Capabilities),
		a2asrv.WithPushNotifications(push.NewInMemoryStore(), push.NewHTTPPushSender(&push.HTTPSenderConfig{})))
	listener, err := net.Listen("tcp", "127.0.0.1:"+grpcPort)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	a2agrpc.NewHandler(handler).RegisterWith(server)
	go func() { _ = server.Serve(listener) }()
	mux := http.NewServeMux()
	mux.Handle("/.well-known/agent-card.json", a2asrv.NewStaticAgentCardHandler(card))
	mux.Handle("/jsonrpc", a2asrv.NewJSONRPCHandler(handler))
	mux.Handle("/rest/", http.StripPrefix("/rest", a2asrv.NewRESTHandler(handler)))
	return http.ListenAndServe("127.0.0.1:"+port, mux)
}
