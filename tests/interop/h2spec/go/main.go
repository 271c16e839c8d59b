// Runs h2spec against a port of 127.0.0.1 and writes what came of it as a JUnit report.
//
//	h2spec PORT PATH REPORT [tls]
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: h2spec PORT PATH REPORT [tls]")
		os.Exit(2)
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	isTLS := len(os.Args) > 4 && os.Args[4] == "tls"
	_, err = h2spec.Run(&config.Config{
		Host: "127.0.0.1", Port: port, Path: os.Args[2], JUnitReport: os.Args[3],
		Timeout: time.Second, MaxHeaderLen: 4000, Strict: true, TLS: isTLS, Insecure: isTLS,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
