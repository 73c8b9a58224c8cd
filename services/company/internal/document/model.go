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
	Policy         Policy
	// SkillVariables are what tool skills may name as `${name}`. Every seat reads them.
	SkillVariables map[string]string
	// SkillsContainer is the knowledge container whose pages are tool skills; empty when there is none.
	SkillsContainer string
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
	// TransportSSE is HTTP as servers of 2024 speak it.
	TransportSSE = "sse"
)

// The protocols of an MCP server.
const (
	ProtocolAuto   = "auto"
	ProtocolModern = "modern"
	ProtocolLegacy = "legacy"
)

// Server is an MCP server.
type Server struct {
	Name, Transport string
	// Command, Args and Env are for stdio; URL, Headers and Authorization for http and sse.
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string]string
	// Authorization is nil when the server wants nothing, or a header that is declared.
	Authorization *Authorization
	Protocol      string
	Shared        bool
	ToolPrefix    string
	// Annotations and ToolSeconds are by raw or prefixed name.
	Annotations map[string]Annotations
	ToolSeconds map[string]int
	Surfaces    []string
	// InstallSeconds bound what comes before a program's first word, StartSeconds what comes after it.
	InstallSeconds, StartSeconds, CallSeconds int
}

// Authorization says how an OAuth token for a server is had.
type Authorization struct {
	Grant, ClientID string
	// ClientSecret is a template, empty for a public client.
	ClientSecret string
	Scopes       []string
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

// ToolResults says how results reach the model.
type ToolResults struct {
	// Mode is "full" or "summarize".
	Mode      string
	AuditDays int
	// OverBytes and TopItems are for "summarize": the size that a result may have whole, and how many members of a list
	// that is larger are shown.
	OverBytes, TopItems int
}

// The effects of a rule, the first two of which a policy may also say for calls that no rule fits.
const (
	EffectAllow = "allow"
	EffectDeny  = "deny"
	EffectAsk   = "ask"
)

// Policy decides about calls: the first rule that fits, or else Otherwise.
type Policy struct {
	Rules     []Rule
	Otherwise string
	// HoldChanged makes a tool whose definition changed wait for an operator.
	HoldChanged bool
}

// Rule fits a call when everything that it names fits; a list that is empty fits all.
type Rule struct {
	Name, Effect string
	// Seats are handles and Units are ids, whatever the document named them by.
	Seats, Units []string
	// Tools and Sources are names in which `*` stands for any run of characters.
	Tools, Sources []string
	// When is a condition in CEL that has been compiled; empty when there is none.
	When, Reason string
	// ExpireSeconds is 0 but for "ask".
	ExpireSeconds int
}
