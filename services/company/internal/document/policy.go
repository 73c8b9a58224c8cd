package document

import (
	"strconv"
	"strings"

	"github.com/bullpenhq/bullpen/libs/toolrule"
)

// sourceServerPrefix stands before a server's name in a source.
const sourceServerPrefix = "mcp:"

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
	if len(all) > toolrule.MaxRules {
		r.add(all[toolrule.MaxRules].at, KindValue, "the policy has %d rules; at most %d are allowed", len(all), toolrule.MaxRules)
		all = all[:toolrule.MaxRules]
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

// rule reads one rule. What is wrong with it by itself is the language's to say, so that whoever decides about calls agrees.
func (r *reader) rule(o *object, named map[string]place) (Rule, draftRule) {
	name, effect := o.required("name"), o.required("effect")
	key := strings.ToLower(name.v)
	if first, twice := named[key]; twice {
		r.add(name.at, KindDuplicate, "the rule on line %d has this name too; decisions are stored under it", first.line)
	} else if name.v != "" {
		named[key] = name.at
	}
	draft := draftRule{seats: o.texts("seats"), units: o.texts("units"), sources: o.texts("sources")}
	tools := o.texts("tools")
	when, reason := o.text("when"), o.text("reason")
	expire := o.number("expire_seconds", int(toolrule.DefaultExpire.Seconds()), 1, int(toolrule.MaxExpire.Seconds()))

	language := toolrule.Rule{
		Name: name.v, Effect: effect.v, Seats: plain(draft.seats), Units: plain(draft.units), Tools: plain(tools),
		Sources: plain(draft.sources), When: when.v, Reason: reason.v,
	}
	out := Rule{
		Name: name.v, Effect: effect.v, Tools: language.Tools, Sources: language.Sources, When: when.v, Reason: reason.v,
	}
	if expire.given {
		language.ExpireSeconds = expire.v
	}
	if effect.v == EffectAsk {
		out.ExpireSeconds = expire.v
	}
	for _, p := range language.Check() {
		at := ruleValue(p.Path, map[string]value[string]{"name": name, "effect": effect, "when": when, "reason": reason},
			map[string][]value[string]{"tools": tools, "sources": draft.sources})
		switch {
		case looksSecret(at.v): // checkTexts says so, and no sentence may repeat it
		case p.Path == "expire_seconds":
			r.add(expire.at, KindValue, "%s", p.Message)
		case at.given:
			r.add(at.at, KindValue, "%s", p.Message)
		case p.Path != "name" && p.Path != "effect": // that these are missing has been said
			r.add(under(o.at, p.Path), KindValue, "%s", p.Message)
		}
	}
	o.done()
	return out, draft
}

// ruleValue finds what a path of the language means, such as "when" or "tools[1]".
func ruleValue(path string, texts map[string]value[string], lists map[string][]value[string]) value[string] {
	key, index, listed := strings.Cut(strings.TrimSuffix(path, "]"), "[")
	if !listed {
		return texts[key]
	}
	n, err := strconv.Atoi(index)
	if err != nil || n >= len(lists[key]) {
		return value[string]{}
	}
	return lists[key][n]
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
			if mcp && server != "" && !strings.Contains(server, "*") && !servers[server] {
				r.add(ref.at, KindReference, "no MCP server has the name %s; %s", quote(server), r.suggestion(ref.v, append(known, "builtin")))
			}
		}
	}
}
