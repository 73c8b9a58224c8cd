package catalogue

import (
	// Linking a contract is what puts its tools into the catalogue: every service whose RPCs may be tools stands here.
	_ "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	_ "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	_ "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	_ "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	_ "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	_ "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	_ "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
)
