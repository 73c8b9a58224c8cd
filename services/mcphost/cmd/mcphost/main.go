// Command mcphost runs the host of MCP servers alone.
package main

import (
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/mcphost"
)

func main() { run.Main("mcphost", mcphost.Module) }
