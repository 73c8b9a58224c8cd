// Command toolregistry runs the tool registry alone.
package main

import (
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/toolregistry"
)

func main() { run.Main("toolregistry", toolregistry.Module) }
