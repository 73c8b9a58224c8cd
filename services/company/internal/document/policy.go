package document

import (
	"regexp"
	"strings"
)

// The bounds of a policy.
const (
	maxRules            = 500
	maxReason           = 500
	maxCondition        = 4096
	defaultAskSeconds   = day
	maxAskSeconds       = 30 * day
	sourceBuiltin       = "builtin"
	sourceServerPrefix  = "mcp:"
	sourceShape         = `^(\*|builtin|mcp:[A-Za-z0-9_*-]{1,64})$`
	sourceShapeInWords  = "`builtin` or `mcp:` and a server's name, in which `*` stands for any run of characters"
	toolGlobShape       = `^[A-Za-z0-9_.*/-]{1,128}$`
	toolGlobShapeInWord = "a tool's name, in which `*` stands for any run of characters"
)

// draftRule is a rule with the places of what it names.
type draftRule struct {
	seats, units, sources []value[string]
}

// policy reads who may call what. Seats, units and servers are looked up by checkPolicy.
func (r *reader) policy(o *object) (Policy, []draftRule) {
	p := Policy{
		Otherwise:   o.choice("otherwise", EffectAllow, EffectAllow, EffectDeny).v,
		HoldChanged: o.boolean("hold_changed_tools", false).v,
	}
	var drafts []draftRule
	named := map[string]place{}
	all := o.list("rules")
	if len(all) > maxRules {
		r.add(all[maxRules].at, KindValue, "the policy has %d rules; at most %d are allowed", len(all), maxRules)
		all = all[:maxRules]
	}
	for _, i := range all {
		rule := r.object(i.node, i.at)
		if rule.wrong {
			continue
		}
		read, draft := r.rule(rule, named)
		p.Rules = append(p.Rules, read)
		drafts = append(drafts, draft)
	}
	o.done()
	return p, drafts
}

func (r *reader) rule(o *object, named map[string]place) (Rule, draftRule) {
	name := o.required("name")
	r.matching(name, `^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$`, "1 to 64 letters, digits, blanks, dots, dashes and underscores, the first no sign")
	key := strings.ToLower(name.v)
	if first, twice := named[key]; twice {
		r.add(name.at, KindDuplicate, "the rule on line %d has this name too; decisions are stored under it", first.line)
	} else if name.v != "" {
		named[key] = name.at
	}
	effect := o.required("effect")
	effects := []string{EffectAllow, EffectDeny, EffectAsk}
	if effect.v != "" && !contains(effects, effect.v) {
		r.add(effect.at, KindValue, "%s is not one of %s", quote(effect.v), list(effects))
	}
	tools, sources := o.texts("tools"), o.texts("sources")
	for _, v := range tools {
		r.matching(v, toolGlobShape, toolGlobShapeInWord)
	}
	for _, v := range sources {
		r.matching(v, sourceShape, sourceShapeInWords)
	}
	when, reason := o.text("when"), o.text("reason")
	r.condition(when)
	r.within(reason, maxReason)
	expire := o.number("expire_seconds", defaultAskSeconds, 1, maxAskSeconds)
	if expire.given && effect.v != EffectAsk {
		r.add(expire.at, KindValue, "is for `ask`: only a question waits for its answer")
	}
	out := Rule{
		Name: name.v, Effect: effect.v, Tools: plain(tools), Sources: plain(sources), When: when.v, Reason: reason.v,
	}
	if effect.v == EffectAsk {
		out.ExpireSeconds = expire.v
	}
	draft := draftRule{seats: o.texts("seats"), units: o.texts("units"), sources: sources}
	o.done()
	return out, draft
}

// checkPolicy looks up whom and what the rules name, and writes down seats by handle and units by id. A rule that names
// nobody by a slip of the pen would otherwise fit nobody, or everybody.
func (d *draft) checkPolicy(r *reader, n *names) {
	servers := map[string]bool{}
	var known []string
	for _, s := range d.servers {
		servers[s.Name] = true
		known = append(known, sourceServerPrefix+s.Name)
	}
	var units []string
	for _, u := range d.units[:min(len(d.units), maxCandidates)] {
		units = append(units, u.Name)
	}
	for i, rule := range d.rules {
		out := &d.company.Policy.Rules[i]
		for _, ref := range rule.seats {
			s := n.seat(ref.v)
			if s == nil {
				r.add(ref.at, KindReference, "no seat has the handle or name %s; %s", quote(ref.v), r.suggestion(ref.v, d.seatNames()))
				continue
			}
			out.Seats = append(out.Seats, s.Handle)
		}
		for _, ref := range rule.units {
			u := n.unit(ref.v)
			if u == nil {
				r.add(ref.at, KindReference, "no unit has the name or id %s; %s", quote(ref.v), r.suggestion(ref.v, units))
				continue
			}
			out.Units = append(out.Units, u.ID)
		}
		for _, ref := range rule.sources {
			server, mcp := strings.CutPrefix(ref.v, sourceServerPrefix)
			if mcp && !strings.Contains(server, "*") && regexp.MustCompile(sourceShape).MatchString(ref.v) && !servers[server] {
				r.add(ref.at, KindReference, "no MCP server has the name %s; %s", quote(server), r.suggestion(ref.v, append(known, sourceBuiltin)))
			}
		}
	}
}

// condition bounds what a rule asks of a call's arguments.
func (r *reader) condition(v value[string]) {
	if n := len(v.v); n > maxCondition {
		r.add(v.at, KindValue, "has %d bytes; at most %d are allowed", n, maxCondition)
	}
}
