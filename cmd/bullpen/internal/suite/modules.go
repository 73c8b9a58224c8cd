package suite

import (
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/company"
	"github.com/bullpenhq/bullpen/services/knowledge"
	"github.com/bullpenhq/bullpen/services/mcphost"
	"github.com/bullpenhq/bullpen/services/notification"
	"github.com/bullpenhq/bullpen/services/toolregistry"
	"github.com/bullpenhq/bullpen/services/tracker"
	"github.com/bullpenhq/bullpen/services/turn"
)

// Modules answers every service of the suite, each before those that call it.
func Modules() []run.Module {
	return []run.Module{
		company.Module,
		knowledge.Module,
		tracker.Module,
		notification.Module,
		mcphost.Module,
		toolregistry.Module,
		turn.Module,
	}
}
