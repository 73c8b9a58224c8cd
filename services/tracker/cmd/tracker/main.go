// Command tracker runs the tracker service alone.
package main

import (
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/tracker"
)

func main() { run.Main("tracker", tracker.Module) }
