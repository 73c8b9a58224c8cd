// Command bullpen is the whole suite in one process, and the command line to any installation of it.
package main

import (
	"os"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Getenv))
}
