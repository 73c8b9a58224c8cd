package document

import (
	"regexp"

	"github.com/goccy/go-yaml"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// draftProvider is a model provider with its place.
type draftProvider struct {
	Provider
	at place
}

func (r *reader) providers(d *draft, o *object) {
	llm := o.object("llm")
	for _, m := range llm.members() {
		r.provider(d, m)
	}
	r.providersLater(o)
	o.done()
}

func (r *reader) provider(d *draft, m member) {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`).MatchString(m.key) {
		r.add(m.at, KindValue, "a provider's key must be 1 to 64 letters, digits, dots, dashes and underscores")
	}
	o := r.object(m.node, m.at)
	if o.wrong {
		return
	}
	kind := o.required("type")
	p := draftProvider{at: m.at, Provider: Provider{Key: m.key, Type: kind.v}}

	model := o.text("model")
	base := o.text("base_url")
	keys := o.texts("api_keys")
	scenario, scenarioAt, scripted := o.take("scenario")
	p.Model, p.BaseURL, p.APIKeys = model.v, base.v, plain(keys)
	p.TimeoutSeconds = o.number("timeout_seconds", defaultModelTimeout, 1, 3600).v
	p.MaxOutputTokens = o.number("max_output_tokens", 0, 0, 1_000_000).v
	cooldowns := o.object("cooldowns")
	p.RateLimitSeconds = cooldowns.number("rate_limit_seconds", defaultRateLimitSeconds, 0, day).v
	p.AuthSeconds = cooldowns.number("auth_seconds", defaultAuthSeconds, 0, day).v
	cooldowns.done()
	r.address(base)
	for _, key := range keys {
		r.secretOnly(key)
	}

	need := func(v value[string], why string) {
		if v.v == "" {
			r.add(v.at, KindRequired, "%s", why)
		}
	}
	cli := o.text("cli")
	refuse := func(at place, given bool, why string) {
		if given {
			r.add(at, KindValue, "%s", why)
		}
	}
	refuse(cli.at, cli.given && kind.v != "cli-agent", "only a provider of type `cli-agent` has a cli")
	switch kind.v {
	case "": // required has said so
	case ProviderAnthropic, ProviderOpenAI, ProviderOpenAICompatible:
		need(model, "is required: it is the name the provider knows the model by")
		refuse(scenarioAt, scripted, "only a provider of type `scripted` has a scenario")
		if kind.v == ProviderOpenAICompatible {
			need(base, "is required for `openai-compatible`: it is where to call")
		} else if len(keys) == 0 {
			r.add(place{path: join(m.at.path, "api_keys"), line: m.at.line, column: m.at.column}, KindRequired,
				"is required: at least one `${NAME}`")
		}
	case ProviderScripted:
		refuse(base.at, base.given, "a scripted provider calls nobody and has no base_url")
		if len(keys) > 0 {
			r.add(keys[0].at, KindValue, "a scripted provider calls nobody and has no api_keys")
		}
		p.Scenario = r.scenario(scenario, scenarioAt, scripted)
	case "cli-agent":
		r.add(kind.at, KindUnsupported, "this build calls models by their API only; use one of %s", list(providerTypes()))
	default:
		r.add(kind.at, KindValue, "%s is not one of %s", quote(kind.v), list(providerTypes()))
	}
	r.providerLater(o)
	o.done()
	d.providers = append(d.providers, p)
}

func providerTypes() []string {
	return []string{ProviderAnthropic, ProviderOpenAI, ProviderOpenAICompatible, ProviderScripted}
}

// scenario answers an inline scenario as YAML of its own. What it means is the turn engine's to say; here it is only sound
// YAML without repeated keys.
func (r *reader) scenario(n *yamltree.Node, at place, given bool) string {
	if !given {
		r.add(at, KindRequired, "is required for `scripted`: the answers that the provider gives")
		return ""
	}
	if n.Kind != yamltree.Map {
		r.wrongType(n, at, "a mapping")
		return ""
	}
	text, err := yaml.Marshal(r.free(n, at))
	if err != nil {
		r.add(at, KindValue, "cannot be written as YAML of its own")
	}
	return string(text)
}

// free answers a value whose keys are nobody's business here, in the order it was written.
func (r *reader) free(n *yamltree.Node, at place) any {
	switch n.Kind {
	case yamltree.Map:
		o := r.object(n, at)
		out := make(yaml.MapSlice, 0, len(o.order))
		for _, m := range o.members() {
			out = append(out, yaml.MapItem{Key: m.key, Value: r.free(m.node, m.at)})
		}
		return out
	case yamltree.List:
		out := make([]any, 0, len(n.Items))
		for _, i := range items(n, at) {
			out = append(out, r.free(i.node, i.at))
		}
		return out
	case yamltree.String:
		return n.Text
	case yamltree.Bool:
		return n.True
	case yamltree.Int:
		return n.Int
	case yamltree.Float:
		return number(n.Text)
	case yamltree.Null:
	}
	return nil
}
