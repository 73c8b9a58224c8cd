// Command turn is the turn service as a process of its own.
package main

import (
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/turn"
)

func main() { run.Main("turn", turn.Module) }
