// The Go SDK against ours, in both roles. The cases and what they print are described in ../run.
//
//	peer client REVISION URL
//	peer client REVISION COMMAND...
//	peer server [PORT]
package main

import (
	"log"
	"os"
)

func main() {
	switch {
	case len(os.Args) > 3 && os.Args[1] == "client":
		os.Exit(runClient(os.Args[2], os.Args[3:]))
	case len(os.Args) == 2 && os.Args[1] == "server":
		serveStdio()
	case len(os.Args) == 3 && os.Args[1] == "server":
		serveHTTP(os.Args[2])
	default:
		log.Fatal("usage: peer client REVISION URL|COMMAND... | peer server [PORT]")
	}
}
