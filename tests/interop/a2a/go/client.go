package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const caseTime = 30 * time.Second

type peer struct {
	ctx    context.Context
	card   *a2a.AgentCard
	client *a2aclient.Client
	gates  int
}

func textOf(parts a2a.ContentParts) string {
	var text strings.Builder
	for _, part := range parts {
		text.WriteString(part.Text())
	}
	return text.String()
}

func saidBy(status a2a.TaskStatus) string {
	if status.Message == nil {
		return ""
	}
	return textOf(status.Message.Parts)
}

func isComplete(task *a2a.Task) error {
	if task.Status.State != a2a.TaskStateCompleted || saidBy(task.Status) != "done" || len(task.Artifacts) != 1 ||
		task.Artifacts[0].Name != "result" || textOf(task.Artifacts[0].Parts) != resultText {
		return fmt.Errorf("answered %+v", task)
	}
	return nil
}

func (p *peer) request(config *a2a.SendMessageConfig, task a2a.TaskID, parts ...*a2a.Part) *a2a.SendMessageRequest {
	message := a2a.NewMessage(a2a.MessageRoleUser, parts...)
	message.TaskID = task
	return &a2a.SendMessageRequest{Message: message, Config: config}
}

func (p *peer) send(text string, config *a2a.SendMessageConfig, task a2a.TaskID) (a2a.SendMessageResult, error) {
	return p.client.SendMessage(p.ctx, p.request(config, task, a2a.NewTextPart(text)))
}

// The task that a text begins, or goes on with.
func (p *peer) task(text string, config *a2a.SendMessageConfig, task a2a.TaskID) (*a2a.Task, error) {
	answer, err := p.send(text, config, task)
	if err != nil {
		return nil, err
	}
	found, isTask := answer.(*a2a.Task)
	if !isTask {
		return nil, fmt.Errorf("answered %+v", answer)
	}
	return found, nil
}

func (p *peer) get(id a2a.TaskID, history *int) (*a2a.Task, error) {
	return p.client.GetTask(p.ctx, &a2a.GetTaskRequest{ID: id, HistoryLength: history})
}

func (p *peer) cancel(id a2a.TaskID) (*a2a.Task, error) {
	return p.client.CancelTask(p.ctx, &a2a.CancelTaskRequest{ID: id})
}

func (p *peer) hold() (string, a2a.TaskID, error) {
	p.gates++
	gate := fmt.Sprintf("go-%d-%d", time.Now().UnixNano(), p.gates)
	task, err := p.task("hold "+gate, &a2a.SendMessageConfig{ReturnImmediately: true}, "")
	if err != nil {
		return "", "", err
	}
	if task.Status.State != a2a.TaskStateSubmitted && task.Status.State != a2a.TaskStateWorking {
		return "", "", fmt.Errorf("not held: %+v", task)
	}
	return gate, task.ID, nil
}

func (p *peer) release(gate string) error {
	_, err := p.send("release "+gate, nil, "")
	return err
}

// What a stream's events add up to.
type followed struct {
	state     a2a.TaskState
	said      string
	id        a2a.TaskID
	artifacts map[a2a.ArtifactID]*a2a.Artifact
	pieces    []*a2a.TaskArtifactUpdateEvent
	messages  []*a2a.Message
	isTask    bool // the first event was
}

func (f *followed) take(event a2a.Event, isFirst bool) {
	switch one := event.(type) {
	case *a2a.Task:
		f.isTask = f.isTask || isFirst
		f.state, f.said, f.id = one.Status.State, saidBy(one.Status), one.ID
		for _, artifact := range one.Artifacts {
			f.artifacts[artifact.ID] = artifact
		}
	case *a2a.TaskStatusUpdateEvent:
		f.state, f.said, f.id = one.Status.State, saidBy(one.Status), one.TaskID
	case *a2a.TaskArtifactUpdateEvent:
		f.pieces = append(f.pieces, one)
		known := f.artifacts[one.Artifact.ID]
		if one.Append && known != nil {
			known.Parts = append(known.Parts, one.Artifact.Parts...)
		} else {
			copied := *one.Artifact
			f.artifacts[one.Artifact.ID] = &copied
		}
	case *a2a.Message:
		f.messages = append(f.messages, one)
	}
}

func follow(events iter.Seq2[a2a.Event, error], first func() error) (*followed, error) {
	found := &followed{artifacts: map[a2a.ArtifactID]*a2a.Artifact{}}
	isFirst := true
	for event, err := range events {
		if err != nil {
			return nil, err
		}
		found.take(event, isFirst)
		if isFirst && first != nil {
			if err := first(); err != nil {
				return nil, err
			}
		}
		isFirst = false
	}
	return found, nil
}

func (f *followed) isComplete() error {
	task := &a2a.Task{Status: a2a.TaskStatus{State: f.state, Message: a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart(f.said))}}
	for _, artifact := range f.artifacts {
		task.Artifacts = append(task.Artifacts, artifact)
	}
	return isComplete(task)
}

func (p *peer) stream(text string, task a2a.TaskID) (*followed, error) {
	return follow(p.client.SendStreamingMessage(p.ctx, p.request(nil, task, a2a.NewTextPart(text))), nil)
}

func refused(err error, wanted ...error) error {
	if err == nil {
		return errors.New("it was answered")
	}
	for _, one := range wanted {
		if errors.Is(err, one) {
			return nil
		}
	}
	return fmt.Errorf("refused by %w", err)
}

// ---- webhooks -----------------------------------------------------------------------------------

type webhook struct {
	server *httptest.Server
	lock   sync.Mutex
	fields []http.Header
	done   chan struct{}
	once   sync.Once
}

func newWebhook() *webhook {
	hook := &webhook{done: make(chan struct{})}
	hook.server = httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		hook.lock.Lock()
		hook.fields = append(hook.fields, request.Header)
		hook.lock.Unlock()
		writer.WriteHeader(http.StatusOK)
		if strings.Contains(strings.ToUpper(string(body)), "COMPLETED") {
			hook.once.Do(func() { close(hook.done) })
		}
	}))
	return hook
}

// Every request bore this field, and the end was told.
func (w *webhook) check(field, value string) error {
	select {
	case <-w.done:
	case <-time.After(15 * time.Second):
		return errors.New("the webhook did not hear of the end")
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, fields := range w.fields { // some name the token's field with X-, some without, some both
		if fields.Get(field) != value && fields.Get("X-"+field) != value {
			return fmt.Errorf("the webhook got %v", fields)
		}
	}
	return nil
}

func (p *peer) pushed(config a2a.PushConfig, field, value string) error {
	hook := newWebhook()
	defer hook.server.Close()
	config.URL = hook.server.URL
	if _, err := p.task("complete", &a2a.SendMessageConfig{PushConfig: &config}, ""); err != nil {
		return err
	}
	return hook.check(field, value)
}

// ---- cases --------------------------------------------------------------------------------------

func sameParts(sent, back a2a.ContentParts) error {
	if len(sent) != len(back) {
		return fmt.Errorf("%d parts", len(back))
	}
	for i, part := range back {
		same := reflect.DeepEqual(part.Content, sent[i].Content) && part.Filename == sent[i].Filename
		if !same || (part.Filename != "" && part.MediaType != sent[i].MediaType) {
			return fmt.Errorf("part %d is %+v", i, part)
		}
	}
	return nil
}

func (p *peer) pushConfigs() error {
	_, id, err := p.hold()
	if err != nil {
		return err
	}
	made, err := p.client.CreateTaskPushConfig(p.ctx, &a2a.PushConfig{TaskID: id, ID: "one", URL: "http://127.0.0.1:9/hook", Token: "t"})
	if err != nil {
		return err
	}
	found, err := p.client.GetTaskPushConfig(p.ctx, &a2a.GetTaskPushConfigRequest{TaskID: id, ID: made.ID})
	if err != nil {
		return err
	}
	if found.URL != "http://127.0.0.1:9/hook" {
		return fmt.Errorf("answered %+v", found)
	}
	for count := 1; count >= 0; count-- {
		all, err := p.client.ListTaskPushConfigs(p.ctx, &a2a.ListTaskPushConfigRequest{TaskID: id})
		if err != nil || len(all) != count {
			return fmt.Errorf("%d configurations, %w", len(all), err)
		}
		if count == 1 {
			if err := p.client.DeleteTaskPushConfig(p.ctx, &a2a.DeleteTaskPushConfigRequest{TaskID: id, ID: made.ID}); err != nil {
				return err
			}
		}
	}
	_, err = p.cancel(id)
	return err
}

func (p *peer) list() error {
	task, err := p.task("complete", nil, "")
	if err != nil {
		return err
	}
	page, err := p.client.ListTasks(p.ctx, &a2a.ListTasksRequest{ContextID: task.ContextID, IncludeArtifacts: true, PageSize: 50})
	if err != nil {
		return err
	}
	if len(page.Tasks) != 1 || page.Tasks[0].ID != task.ID {
		return fmt.Errorf("answered %+v", page)
	}
	if err := isComplete(page.Tasks[0]); err != nil {
		return err
	}
	first, err := p.client.ListTasks(p.ctx, &a2a.ListTasksRequest{PageSize: 1})
	if err != nil {
		return err
	}
	if len(first.Tasks) != 1 || first.NextPageToken == "" {
		return fmt.Errorf("answered %+v", first)
	}
	return nil
}

func (p *peer) ask(isStream bool) error {
	if isStream {
		asked, err := p.stream("ask", "")
		if err != nil {
			return err
		}
		done, err := p.stream("the red one", asked.id)
		if err != nil {
			return err
		}
		if asked.state != a2a.TaskStateInputRequired || done.id != asked.id || done.said != "you said the red one" {
			return fmt.Errorf("%+v, then %+v", asked, done)
		}
		return nil
	}
	asked, err := p.task("ask", nil, "")
	if err != nil {
		return err
	}
	done, err := p.task("the red one", nil, asked.ID)
	if err != nil {
		return err
	}
	if asked.Status.State != a2a.TaskStateInputRequired || done.ID != asked.ID || saidBy(done.Status) != "you said the red one" {
		return fmt.Errorf("%+v, then %+v", asked, done)
	}
	return nil
}

func (p *peer) ends(text string, state a2a.TaskState, said string) error {
	task, err := p.task(text, nil, "")
	if err == nil && (task.Status.State != state || saidBy(task.Status) != said) {
		return fmt.Errorf("answered %+v", task)
	}
	return err
}

func (p *peer) chunks() error {
	found, err := p.stream("chunks", "")
	if err != nil {
		return err
	}
	var pieces []string
	for i, piece := range found.pieces {
		pieces = append(pieces, textOf(piece.Artifact.Parts))
		if piece.Append != (i > 0) || piece.LastChunk != (i == 2) {
			return fmt.Errorf("piece %d is %+v", i, piece)
		}
	}
	if strings.Join(pieces, "|") != "one |two |three" {
		return fmt.Errorf("pieces %q", pieces)
	}
	task, err := p.get(found.id, nil)
	if err == nil && textOf(task.Artifacts[0].Parts) != "one two three" {
		return fmt.Errorf("answered %+v", task)
	}
	return err
}

var cases = map[string]func(p *peer) error{
	"card": func(p *peer) error {
		if p.card.Name != "interop" || p.card.Skills[0].ID != "script" || !p.card.Capabilities.Streaming {
			return fmt.Errorf("%+v", p.card)
		}
		return nil
	},
	"send": func(p *peer) error {
		task, err := p.task("complete", nil, "")
		if err != nil {
			return err
		}
		return isComplete(task)
	},
	"no-wait": func(p *peer) error {
		gate, id, err := p.hold()
		if err != nil {
			return err
		}
		if err := p.release(gate); err != nil {
			return err
		}
		for range 500 {
			task, err := p.get(id, nil)
			if err != nil {
				return err
			}
			if task.Status.State.Terminal() {
				return isComplete(task)
			}
			time.Sleep(20 * time.Millisecond)
		}
		return errors.New("the task does not end")
	},
	"reply": func(p *peer) error {
		answer, err := p.send("reply", nil, "")
		if message, isMessage := answer.(*a2a.Message); err != nil || !isMessage || textOf(message.Parts) != "a message, naïve ☃" {
			return fmt.Errorf("answered %+v, %w", answer, err)
		}
		return nil
	},
	"stream-reply": func(p *peer) error {
		found, err := p.stream("reply", "")
		if err == nil && (len(found.messages) != 1 || textOf(found.messages[0].Parts) != "a message, naïve ☃") {
			return fmt.Errorf("%+v", found)
		}
		return err
	},
	"parts": func(p *peer) error {
		raw := a2a.NewRawPart([]byte{0x89, 'P', 'N', 'G', 0, 0xff, '\n'})
		raw.Filename, raw.MediaType = "pixel.png", "image/png"
		url := a2a.NewFileURLPart("https://files.example/a%20b.txt", "text/plain")
		url.Filename = "b.txt"
		sent := a2a.ContentParts{a2a.NewTextPart("naïve ☃ \"quoted\" \\"), raw, url, a2a.NewDataPart(
			map[string]any{"n": 1.0, "list": []any{true, nil, "x"}, "deep": map[string]any{"a": 0.5}})}
		answer, err := p.client.SendMessage(p.ctx, p.request(nil, "", append(a2a.ContentParts{a2a.NewTextPart("parts")}, sent...)...))
		if err != nil {
			return err
		}
		return sameParts(sent, answer.(*a2a.Task).Status.Message.Parts)
	},
	"stream": func(p *peer) error {
		found, err := p.stream("complete", "")
		if err != nil {
			return err
		}
		return found.isComplete()
	},
	"chunks": (*peer).chunks,
	"get": func(p *peer) error {
		task, err := p.task("complete", nil, "")
		if err != nil {
			return err
		}
		one := 1
		short, err := p.get(task.ID, &one)
		if err != nil {
			return err
		}
		if len(short.History) != 1 {
			return fmt.Errorf("answered %+v", short)
		}
		return isComplete(short)
	},
	"list": (*peer).list,
	"cancel": func(p *peer) error {
		_, id, err := p.hold()
		if err != nil {
			return err
		}
		task, err := p.cancel(id)
		if err == nil && task.Status.State != a2a.TaskStateCanceled {
			return fmt.Errorf("answered %+v", task)
		}
		return err
	},
	"resubscribe": func(p *peer) error {
		gate, id, err := p.hold()
		if err != nil {
			return err
		}
		found, err := follow(p.client.SubscribeToTask(p.ctx, &a2a.SubscribeToTaskRequest{ID: id}), func() error { return p.release(gate) })
		if err != nil {
			return err
		}
		if !found.isTask {
			return errors.New("the first event is no task")
		}
		return found.isComplete()
	},
	"ask":        func(p *peer) error { return p.ask(false) },
	"stream-ask": func(p *peer) error { return p.ask(true) },
	"reject":     func(p *peer) error { return p.ends("reject", a2a.TaskStateRejected, "not that") },
	"fail":       func(p *peer) error { return p.ends("fail", a2a.TaskStateFailed, "it broke") },
	"push": func(p *peer) error {
		return p.pushed(a2a.PushConfig{Token: "hook-token"}, "A2A-Notification-Token", "hook-token")
	},
	"push-credentials": func(p *peer) error {
		return p.pushed(a2a.PushConfig{Auth: &a2a.PushAuthInfo{Scheme: "Bearer", Credentials: "hook-secret"}}, "Authorization", "Bearer hook-secret")
	},
	"push-late": func(p *peer) error {
		hook := newWebhook()
		defer hook.server.Close()
		gate, id, err := p.hold()
		if err != nil {
			return err
		}
		if _, err := p.client.CreateTaskPushConfig(p.ctx, &a2a.PushConfig{TaskID: id, ID: "hook", URL: hook.server.URL, Token: "late-token"}); err != nil {
			return err
		}
		if err := p.release(gate); err != nil {
			return err
		}
		return hook.check("A2A-Notification-Token", "late-token")
	},
	"push-configs": (*peer).pushConfigs,
	"extended-card": func(p *peer) error {
		card, err := p.client.GetExtendedAgentCard(p.ctx, &a2a.GetExtendedAgentCardRequest{})
		if err == nil && (len(card.Skills) != 2 || card.Skills[1].ID != "hidden") {
			return fmt.Errorf("answered %+v", card)
		}
		return err
	},
	"unknown-task": func(p *peer) error {
		if _, err := p.get("no-such-task", nil); refused(err, a2a.ErrTaskNotFound) != nil {
			return refused(err, a2a.ErrTaskNotFound)
		}
		_, err := p.cancel("no-such-task")
		return refused(err, a2a.ErrTaskNotFound)
	},
	"terminal-task": func(p *peer) error {
		task, err := p.task("complete", nil, "")
		if err != nil {
			return err
		}
		_, err = p.send("more", nil, task.ID)
		return refused(err, a2a.ErrUnsupportedOperation)
	},
	"subscribe-terminal": func(p *peer) error {
		task, err := p.task("complete", nil, "")
		if err != nil {
			return err
		}
		_, err = follow(p.client.SubscribeToTask(p.ctx, &a2a.SubscribeToTaskRequest{ID: task.ID}), nil)
		return refused(err, a2a.ErrUnsupportedOperation)
	},
	"not-cancelable": func(p *peer) error {
		task, err := p.task("complete", nil, "")
		if err != nil {
			return err
		}
		_, err = p.cancel(task.ID)
		return refused(err, a2a.ErrTaskNotCancelable)
	},
	"no-credential": func(p *peer) error {
		ctx := a2aclient.AttachServiceParams(context.Background(), a2aclient.ServiceParams{"authorization": {"Bearer wrong"}})
		_, err := p.client.SendMessage(ctx, p.request(nil, "", a2a.NewTextPart("complete")))
		if err == nil {
			return errors.New("it was answered")
		}
		return nil
	},
}

// ---- running them -------------------------------------------------------------------------------

func open(url, binding string) (*peer, error) {
	card, err := agentcard.DefaultResolver.Resolve(context.Background(), url)
	if err != nil {
		return nil, err
	}
	var fitting []*a2a.AgentInterface
	for _, one := range card.SupportedInterfaces {
		if string(one.ProtocolBinding) == binding && strings.HasPrefix(string(one.ProtocolVersion), "1.") {
			fitting = append(fitting, one)
		}
	}
	card.SupportedInterfaces = fitting
	client, err := a2aclient.NewFromCard(context.Background(), card,
		a2agrpc.WithGRPCTransport(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		return nil, err
	}
	return &peer{card: card, client: client}, nil
}

func runClient(url, binding string, wanted []string) int {
	status := 0
	p, err := open(url, binding)
	for _, name := range wanted {
		failure := err
		if failure == nil && cases[name] == nil {
			failure = errors.New("there is no such case")
		}
		if failure == nil {
			ctx, done := context.WithTimeout(context.Background(), caseTime)
			p.ctx = a2aclient.AttachServiceParams(ctx, a2aclient.ServiceParams{"authorization": {"Bearer interop-token"}})
			failure = cases[name](p)
			done()
		}
		if failure != nil {
			status = 1
			said := strings.ReplaceAll(failure.Error(), "\n", " ")
			fmt.Printf("not ok %s: %.400s\n", name, said)
		} else {
			fmt.Printf("ok %s\n", name)
		}
	}
	return status
}
