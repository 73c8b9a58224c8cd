package document

// Company is a document with every inheritance resolved and every default filled in. Credentials stand in it as `${NAME}`.
// A value that [Parse] answered is shared between readers: do not change it.
type Company struct {
	Name, Mission, Vision string
	// Timezone is an IANA zone, "UTC" when the document names none.
	Timezone string
	Policies []string
	// Units stand parents before children, otherwise in document order.
	Units []Unit
	// Seats stand in document order, those of the root first.
	Seats        []Seat
	Servers      []Server
	Providers    []Provider
	TurnEngine   TurnEngine
	Tracker      string
	Knowledge    string
	Integrations Integrations
	Mail         Mail
	ToolResults  ToolResults
	// IdenticalCalls is how many identical calls in a row run.
	IdenticalCalls int
}

// Unit is a part of the company.
type Unit struct {
	// ID is the name as a slug, unique.
	ID, Name, Type string
	// ParentID is empty at the top.
	ParentID string
	// Lead is a handle, inherited; it may be empty. So is Channel.
	Lead, Channel string
	Purpose       string
	Goals         []string
	// Project and Space are the unit's own and not inherited.
	Project, Space string
}

// The kinds of seat.
const (
	KindAgent = "agent"
	KindHuman = "human"
)

// Seat is a role that an agent or a person holds.
type Seat struct {
	Handle, Name, Kind string
	// UnitID is empty at the root.
	UnitID           string
	Email            string
	Goal, Backstory  string
	Responsibilities []string
	Guidelines       []string
	// Manages holds handles: those named, the direct members of the units named, and what a lead manages unsaid.
	Manages []string
	// Contacts are ids by kind. A seat's GitHub login and its Slack bot's user id are among them.
	Contacts map[string]string
	// LLM holds provider keys by phase, first choice first.
	LLM map[string][]string
	// Env holds variables, or headers, by MCP server, the unit's merged in. Only agents have any.
	Env          map[string]map[string]string
	Slack        *SlackApp
	Github       *GithubAccount
	Availability string
}

// SlackApp is a seat's own Slack app.
type SlackApp struct {
	// App is the last part of its webhook address, the seat's handle unless the document says otherwise.
	App                     string
	BotToken, SigningSecret string
	BotUserID               string
}

// GithubAccount is a seat's own GitHub account.
type GithubAccount struct{ Login, Token string }

// The transports of an MCP server.
const (
	TransportStdio = "stdio"
	TransportHTTP  = "http"
)

// Server is an MCP server.
type Server struct {
	Name, Transport string
	// Command, Args and Env are for stdio; URL and Headers for http.
	Command      string
	Args         []string
	Env          map[string]string
	URL          string
	Headers      map[string]string
	Shared       bool
	ToolPrefix   string
	Annotations  map[string]Annotations
	Surfaces     []string
	StartSeconds int
	CallSeconds  int
}

// Annotations are hints about a tool; nil claims nothing.
type Annotations struct{ ReadOnly, Destructive, Idempotent, OpenWorld *bool }

// The types of provider.
const (
	ProviderAnthropic        = "anthropic"
	ProviderOpenAI           = "openai"
	ProviderOpenAICompatible = "openai-compatible"
	ProviderScripted         = "scripted"
)

// Provider is a model to call.
type Provider struct {
	Key, Type, Model, BaseURL string
	APIKeys                   []string
	TimeoutSeconds            int
	RateLimitSeconds          int
	AuthSeconds               int
	// MaxOutputTokens is 0 for the engine's default.
	MaxOutputTokens int
	// Scenario is YAML, for a scripted provider.
	Scenario string
}

// TurnEngine bounds a turn.
type TurnEngine struct{ MaxToolRounds, DelegationDepthLimit, ToolTimeoutSeconds int }

// Integrations is what inbound webhooks need.
type Integrations struct {
	PublicBaseURL       string
	GithubWebhookSecret string
	// SlackTypingStatus is "always" or "addressed".
	SlackTypingStatus string
}

// Mail bounds how a seat's mailbox is drained.
type Mail struct{ MaxBatch, WindowSeconds int }

// ToolResults says how results reach the model. The only mode is "full".
type ToolResults struct {
	Mode      string
	AuditDays int
}
