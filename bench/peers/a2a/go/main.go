// An agent on the Go SDK whose tasks are complete at once: hello PORT
package main

import (
	"context"
	"io"
	"iter"
	"log"
	"log/slog"
	"net/http"
	"os"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

const text = "17 degrees and cloudy, light wind from the west, no rain before tonight"

type hello struct{}

func (hello) Execute(_ context.Context, of *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		task := a2a.NewSubmittedTask(of, of.Message)
		task.Status.State = a2a.TaskStateCompleted
		task.Status.Message = a2a.NewMessageForTask(a2a.MessageRoleAgent, of, a2a.NewTextPart(text))
		yield(task, nil)
	}
}

func (hello) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	http.Handle("/", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(hello{})))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
