package document

import (
	"time"
	"unicode/utf8"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// The limits and defaults of the document. Where the limit is a number, the sentence that refuses gives both numbers.
const (
	maxName   = 200
	maxHandle = 100
	maxSeats  = 2000

	defaultCoalesceBatch    = 20
	defaultMaxToolRounds    = 24
	maxToolRounds           = 48
	defaultDepthLimit       = 3
	defaultToolTimeout      = 60
	defaultIdenticalCalls   = 3
	defaultAuditDays        = 30
	defaultSummarizeOver    = 16384
	defaultTopItems         = 5
	defaultTypingStatus     = "always"
	defaultTimezone         = "UTC"
	defaultModelTimeout     = 120
	defaultRateLimitSeconds = 3600
	defaultAuthSeconds      = 300
	defaultInstallSeconds   = 600
	defaultStartSeconds     = 120
	defaultCallSeconds      = 300

	day = 24 * 60 * 60
)

// draft is a document as it was written, every reference with its place.
type draft struct {
	company   Company
	providers []draftProvider
	servers   []draftServer
	// units stand parents before children.
	units []*draftUnit
	// seats stand in document order, those of the root first.
	seats   []*draftSeat
	workers []draftWorker
	rules   []draftRule
	// skills is the container of tool skills.
	skills value[string]
	// hierarchy is made by checkReferences.
	hierarchy *hierarchy
}

// draft reads the whole tree.
func (r *reader) draft(root *yamltree.Node) *draft {
	d := &draft{}
	o := r.object(root, placeOf("", root))
	if o.wrong {
		return d
	}
	c := &d.company

	name := o.required("name")
	r.within(name, maxName)
	c.Name = name.v
	c.Mission = o.text("mission").v
	c.Vision = o.text("vision").v
	c.Timezone = r.timezone(o.text("timezone"))
	c.Policies = plain(o.texts("policies"))
	c.Mail = Mail{
		WindowSeconds: o.number("notification_coalesce_window_seconds", 0, 0, 60).v,
		MaxBatch:      o.number("notification_coalesce_max_batch", defaultCoalesceBatch, 1, 100).v,
	}

	r.providers(d, o.object("providers"))
	c.Tracker = r.tracker(o.object("tracker"))
	c.Knowledge, d.skills = r.knowledge(o.object("knowledge"))
	c.SkillsContainer = d.skills.v
	c.SkillVariables = r.skillVariables(o.object("skill_variables"))
	c.TurnEngine = r.turnEngine(o.object("turn_engine"))
	r.servers(d, o.list("mcp_servers"))
	c.Integrations = r.integrations(o.object("integrations"))
	c.ToolResults = r.toolResults(o.object("tool_results"))
	c.Policy, d.rules = r.policy(o.object("tool_policy"))
	guard := o.object("loop_guard")
	c.IdenticalCalls = guard.number("identical_calls", defaultIdenticalCalls, 1, 20).v
	guard.done()

	r.workers(d, o.object("workers"))
	for _, i := range o.list("roles") {
		r.seat(d, i, nil)
	}
	for _, i := range o.list("units") {
		r.unit(d, i, nil)
	}
	r.companyLater(o)
	o.done()
	switch n := len(d.seats); {
	case n == 0:
		r.add(o.at, KindRequired, "the company has no seat; name at least one under roles or units")
	case n > maxSeats:
		r.add(d.seats[maxSeats].at, KindValue, "the company has %d seats; at most %d are allowed", n, maxSeats)
	}
	return d
}

// within bounds a text by its characters.
func (r *reader) within(v value[string], most int) {
	if n := utf8.RuneCountInString(v.v); n > most {
		r.add(v.at, KindValue, "has %d characters; at most %d are allowed", n, most)
	}
}

func (r *reader) timezone(v value[string]) string {
	if !v.given {
		return defaultTimezone
	}
	// Local would mean another clock on every machine, and the empty name is UTC by accident.
	if _, err := time.LoadLocation(v.v); err != nil || v.v == "Local" || v.v == "" {
		r.add(v.at, KindValue, "%s is not an IANA time zone such as `Europe/Lisbon`", quote(v.v))
	}
	return v.v
}

func (r *reader) turnEngine(o *object) TurnEngine {
	ceiling := o.number("execute_max_tool_rounds_ceiling", maxToolRounds, 1, 200)
	rounds := o.number("max_tool_rounds", min(defaultMaxToolRounds, ceiling.v), 1, 200)
	if rounds.v > ceiling.v {
		r.add(rounds.at, KindValue, "must be at most execute_max_tool_rounds_ceiling, which is %d, not %d", ceiling.v, rounds.v)
	}
	engine := TurnEngine{
		MaxToolRounds:        rounds.v,
		DelegationDepthLimit: o.number("delegation_depth_limit", defaultDepthLimit, 1, 10).v,
		ToolTimeoutSeconds:   o.number("tool_timeout_seconds", defaultToolTimeout, 1, 600).v,
	}
	r.turnEngineLater(o)
	o.done()
	return engine
}

func (r *reader) integrations(o *object) Integrations {
	base := o.text("public_base_url")
	r.address(base)

	slack := o.object("slack")
	typing := slack.choice("typing_status", defaultTypingStatus, "always", "addressed")
	slack.done()

	github := o.object("github")
	secret := github.text("webhook_secret")
	r.secretOnly(secret)
	if github.given && !secret.given {
		r.add(secret.at, KindRequired, "is required: without it no webhook of GitHub can be verified")
	}
	github.done()

	r.integrationsLater(o)
	o.done()
	return Integrations{PublicBaseURL: base.v, GithubWebhookSecret: secret.v, SlackTypingStatus: typing.v}
}

func (r *reader) toolResults(o *object) ToolResults {
	out := ToolResults{
		Mode:      o.choice("mode", "full", "full", "summarize").v,
		OverBytes: o.number("summarize_over_bytes", defaultSummarizeOver, 1, 64<<20).v,
		TopItems:  o.number("top_items", defaultTopItems, 1, 1000).v,
		AuditDays: o.number("audit_days", defaultAuditDays, 1, 3650).v,
	}
	o.done()
	return out
}
