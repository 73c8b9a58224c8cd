// Command company runs the company service alone.
package main

import (
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/company"
)

func main() { run.Main("company", company.Module) }
