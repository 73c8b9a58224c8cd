// Command notification runs the notification service alone.
package main

import (
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/notification"
)

func main() { run.Main("notification", notification.Module) }
