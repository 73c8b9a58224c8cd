// Command knowledge runs the knowledge service alone.
package main

import (
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/knowledge"
)

func main() { run.Main("knowledge", knowledge.Module) }
