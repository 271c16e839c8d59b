// One peer on the Go SDK for A2A: as a client and as a server of what tests/interop/a2a/run says.
//
//	peer client VERSION direct|gateway URL BINDING CASE…     VERSION: 1.0
//	peer server PORT GRPC-PORT
package main

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
)

func main() {
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	words := os.Args[1:]
	switch {
	case len(words) >= 5 && words[0] == "client":
		os.Exit(runClient(words[3], words[4], words[5:]))
	case len(words) == 3 && words[0] == "server":
		if err := runServer(words[1], words[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: peer client VERSION WAY URL BINDING CASE... | peer server PORT GRPC-PORT")
		os.Exit(2)
	}
}
