package document

import (
	"net/mail"
	"regexp"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// draftSeat is a role as it was written.
type draftSeat struct {
	Seat
	at place
	// named is where the name stands, handleAt where the handle does or, when it is made from the name, the name.
	named, handleAt place
	auto            bool
	email           value[string]
	unit            *draftUnit
	manages         []value[string]
	chains          []value[string]
	env             []draftEnv
	workers         []value[string]
	contacts        []draftContact
	// identities are values that no other seat may have: the Slack app's address among them.
	app value[string]
}

// draftContact is a contact id with its place.
type draftContact struct {
	kind, id string
	at       place
}

// draftEnv is what a seat or a unit declares for one server. The variables are read once the server's transport is known.
type draftEnv struct {
	server string
	node   *yamltree.Node
	at     place
	vars   map[string]string
}

func (r *reader) seat(d *draft, i item, unit *draftUnit) {
	o := r.object(i.node, i.at)
	s := &draftSeat{at: i.at, unit: unit}
	if o.wrong {
		return
	}
	name := o.required("name")
	r.within(name, maxName)
	s.Name, s.named = name.v, name.at
	s.Kind = o.choice("kind", KindAgent, KindAgent, KindHuman).v
	r.handle(s, o.text("handle"))
	s.email = o.text("email")
	s.Email = s.email.v
	if a, err := mail.ParseAddress(s.Email); s.email.given && (err != nil || a.Address != s.Email) {
		r.add(s.email.at, KindValue, "must be an e-mail address such as `ops@example.com`")
	}
	s.Goal, s.Backstory = o.text("goal").v, o.text("backstory").v
	s.Responsibilities = plain(o.texts("responsibilities"))
	s.Guidelines = plain(o.texts("behavioral_guidelines"))
	s.Availability = o.text("availability").v
	s.manages = o.texts("manages")
	r.contacts(s, o.object("contact"))

	if s.Kind == KindHuman {
		r.human(s, o)
	} else {
		r.agent(s, o)
	}
	o.done()
	d.seats = append(d.seats, s)
}

// handle takes the handle as written, or makes it from the name.
func (r *reader) handle(s *draftSeat, v value[string]) {
	s.Handle, s.handleAt = v.v, v.at
	if !v.given {
		s.auto, s.Handle, s.handleAt = true, slug(s.Name), s.named
		if s.Name != "" && s.Handle == "" {
			r.add(s.named, KindRequired, "no handle can be made from a name without Latin letters or digits; give one as `handle`")
		}
	} else if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`).MatchString(v.v) {
		r.add(v.at, KindValue, "must be small letters, digits and dashes and begin with no dash, not %s", quote(v.v))
		s.Handle = ""
		return
	}
	if len(s.Handle) > maxHandle {
		r.add(s.handleAt, KindValue, "the handle has %d characters; at most %d are allowed", len(s.Handle), maxHandle)
	}
}

func (r *reader) contacts(s *draftSeat, o *object) {
	kinds := regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	for _, m := range o.members() {
		switch {
		case !kinds.MatchString(m.key):
			r.add(m.at, KindValue, "a kind of contact must be small letters, digits and underscores and begin with a letter")
		case m.node.Kind != yamltree.String && m.node.Kind != yamltree.Int:
			r.wrongType(m.node, m.at, "text")
		case m.node.Text == "":
			r.add(m.at, KindValue, "must not be empty")
		default:
			s.contacts = append(s.contacts, draftContact{kind: m.key, id: m.node.Text, at: m.at})
		}
	}
}

// human refuses what only a running seat has.
func (r *reader) human(s *draftSeat, o *object) {
	if len(s.contacts) == 0 {
		at := s.named
		at.path = join(s.at.path, "contact")
		r.add(at, KindRequired, "a person needs at least one contact, such as `slack_user_id`, or nobody can reach them")
	}
	for _, key := range []string{
		"llm", "mcp_env", "integrations", "schedules", "token_budget", "workers", "sandbox", "learning_enabled",
	} {
		if _, at, given := o.take(key); given {
			r.add(at, KindValue, "a person's seat runs nothing and has no `%s`", key)
		}
	}
}

func (r *reader) agent(s *draftSeat, o *object) {
	r.chain(s, o)
	s.env = r.environments(o.object("mcp_env"))
	in := o.object("integrations")
	r.slack(s, in.object("slack"))
	r.github(s, in.object("github"))
	r.seatIntegrationsLater(in)
	in.done()
	r.seatLater(s, o)
}

// chain reads the providers of each phase: one key, or a list of them, first choice first. A bare key or list is the default's.
func (r *reader) chain(s *draftSeat, o *object) {
	n, at, given := o.take("llm")
	if !given {
		return
	}
	s.LLM = map[string][]string{}
	if n.Kind != yamltree.Map {
		r.phase(s, "default", n, at)
		return
	}
	phases := r.object(n, at)
	for _, phase := range []string{"default", "review", "subagent", "auxiliary", "judge"} {
		if n, at, given := phases.take(phase); given {
			r.phase(s, phase, n, at)
		}
	}
	phases.done()
}

func (r *reader) phase(s *draftSeat, phase string, n *yamltree.Node, at place) {
	var keys []value[string]
	switch n.Kind {
	case yamltree.String:
		keys = []value[string]{{v: n.Text, at: at, given: true}}
	case yamltree.List:
		if keys = r.textItems(items(n, at)); len(n.Items) == 0 {
			r.add(at, KindValue, "a chain must name at least one provider")
		}
	default:
		r.wrongType(n, at, "a provider's key or a list of them")
	}
	seen := map[string]bool{}
	for _, k := range keys {
		if seen[k.v] {
			r.add(k.at, KindDuplicate, "the chain names %s twice", quote(k.v))
		}
		seen[k.v] = true
		s.LLM[phase] = append(s.LLM[phase], k.v)
	}
	s.chains = append(s.chains, keys...)
}

func (r *reader) environments(o *object) []draftEnv {
	var out []draftEnv
	for _, m := range o.members() {
		out = append(out, draftEnv{server: m.key, node: m.node, at: m.at})
	}
	return out
}

func (r *reader) slack(s *draftSeat, o *object) {
	if !o.given {
		return
	}
	token, secret := o.required("bot_token"), o.required("signing_secret")
	r.secretOnly(token)
	r.secretOnly(secret)
	s.app = o.text("app")
	r.matching(s.app, `^[a-z0-9][a-z0-9_-]{0,99}$`, "small letters, digits, dashes and underscores: it is the end of a web address")
	if !s.app.given {
		s.app = value[string]{v: s.Handle, at: o.at}
	}
	bot := o.text("bot_user_id")
	r.matching(bot, `^[A-Z0-9]{2,32}$`, "a Slack user id such as `U0123ABCD`")
	s.Slack = &SlackApp{App: s.app.v, BotToken: token.v, SigningSecret: secret.v, BotUserID: bot.v}
	if bot.v != "" {
		s.contacts = append(s.contacts, draftContact{kind: "slack_user_id", id: bot.v, at: bot.at})
	}
	o.done()
}

func (r *reader) github(s *draftSeat, o *object) {
	if !o.given {
		return
	}
	login, token := o.required("login"), o.text("token")
	r.secretOnly(token)
	if login.v != "" {
		r.matching(login, `^[A-Za-z0-9](-?[A-Za-z0-9])*(\[bot\])?$`, "a GitHub login")
		r.within(login, 44)
		s.contacts = append(s.contacts, draftContact{kind: "github_login", id: login.v, at: login.at})
	}
	s.Github = &GithubAccount{Login: login.v, Token: token.v}
	o.done()
}
