package document

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// draftServer is an MCP server with its place.
type draftServer struct {
	Server
	at place
}

func (r *reader) servers(d *draft, all []item) {
	names := map[string]place{}
	for _, i := range all {
		o := r.object(i.node, i.at)
		if o.wrong {
			continue
		}
		s := r.server(o)
		if first, twice := names[strings.ToLower(s.Name)]; twice {
			r.add(s.at, KindDuplicate, "another server on line %d has this name", first.line)
		} else if s.Name != "" {
			names[strings.ToLower(s.Name)] = s.at
		}
		d.servers = append(d.servers, s)
	}
}

func (r *reader) server(o *object) draftServer {
	name := o.required("name")
	if name.v != "" && !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`).MatchString(name.v) {
		r.add(name.at, KindValue, "must be 1 to 64 letters, digits, dashes and underscores, not %s", quote(name.v))
	}
	transport := o.choice("transport", TransportStdio, TransportStdio, TransportHTTP)
	s := draftServer{at: name.at, Server: Server{
		Name: name.v, Transport: transport.v,
		Shared:       o.boolean("shared", true).v,
		StartSeconds: o.number("startup_timeout_seconds", defaultStartSeconds, 1, 1800).v,
		CallSeconds:  o.number("request_timeout_seconds", defaultCallSeconds, 1, 3600).v,
	}}
	command, args := o.text("command"), o.texts("args")
	url := o.text("url")
	env, headers := o.object("env"), o.object("headers")
	s.Command, s.Args, s.URL = command.v, plain(args), url.v
	r.address(url)
	if transport.v == TransportHTTP {
		s.Headers = r.variables(headers, TransportHTTP)
		r.only(url, "is required for `http`: the address of the server",
			misplaced{command.at, command.given, "is for `stdio`; an `http` server is not started, it has a url"},
			misplaced{env.at, env.given, "is for `stdio`; an `http` server takes headers"})
	} else {
		s.Env = r.variables(env, TransportStdio)
		r.only(command, "is required for `stdio`: the program to start",
			misplaced{url.at, url.given, "is for `http`; say `transport: http`"},
			misplaced{headers.at, headers.given, "is for `http`; a `stdio` server takes env"})
	}
	s.ToolPrefix = r.matching(o.text("tool_prefix"), `^[A-Za-z0-9_-]{1,32}$`, "1 to 32 letters, digits, dashes and underscores")
	for _, surface := range o.texts("surfaces") {
		s.Surfaces = append(s.Surfaces, r.matching(surface, `^[a-z][a-z0-9_]{0,31}$`, "a surface's name such as `slack`"))
	}
	s.Annotations = r.annotations(o.object("tool_annotations"))
	o.done()
	return s
}

// misplaced is a key of the other transport.
type misplaced struct {
	at    place
	given bool
	why   string
}

func (r *reader) only(needed value[string], why string, others ...misplaced) {
	wrong := false
	for _, m := range others {
		if m.given {
			r.add(m.at, KindValue, "%s", m.why)
			wrong = true
		}
	}
	if needed.v == "" && !wrong {
		r.add(needed.at, KindRequired, "%s", why)
	}
}

// matching checks a text's shape; want says the shape in words.
func (r *reader) matching(v value[string], pattern, want string) string {
	if v.given && !regexp.MustCompile(pattern).MatchString(v.v) {
		r.add(v.at, KindValue, "must be %s, not %s", want, quote(v.v))
	}
	return v.v
}

// variables reads environment variables, or headers for an http server.
func (r *reader) variables(o *object, transport string) map[string]string {
	shape, want := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`), "an environment variable's name: letters, digits and underscores, no digit first"
	if transport == TransportHTTP {
		shape, want = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$"), "a header's name: letters, digits and dashes"
	}
	out := map[string]string{}
	for _, m := range o.members() {
		if !shape.MatchString(m.key) {
			r.add(m.at, KindValue, "the key must be %s", want)
		}
		switch m.node.Kind {
		case yamltree.String, yamltree.Int, yamltree.Float, yamltree.Bool:
			v := value[string]{v: m.node.Text, at: m.at, given: true}
			if transport == TransportHTTP && strings.ContainsAny(v.v, "\r\n") {
				r.add(m.at, KindValue, "a header must stand on one line")
			}
			r.secretIn(m.key, v)
			out[m.key] = v.v
		default:
			r.wrongType(m.node, m.at, "text")
		}
	}
	return out
}

func (r *reader) annotations(o *object) map[string]Annotations {
	out := map[string]Annotations{}
	for _, m := range o.members() {
		tool := r.object(m.node, m.at)
		hint := func(key, hintKey string) *bool {
			v, twin := tool.boolean(key, false), tool.boolean(hintKey, false)
			switch {
			case v.given && twin.given:
				r.add(twin.at, KindDuplicate, "says the same as %s; keep one of them", quote(key))
				return &v.v
			case v.given:
				return &v.v
			case twin.given:
				return &twin.v
			}
			return nil
		}
		out[m.key] = Annotations{
			ReadOnly:    hint("read_only", "readOnlyHint"),
			Destructive: hint("destructive", "destructiveHint"),
			Idempotent:  hint("idempotent", "idempotentHint"),
			OpenWorld:   hint("open_world", "openWorldHint"),
		}
		tool.done()
	}
	return out
}

// number answers a scalar that YAML reads as a number, or its text when Go does not.
func number(text string) any {
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return text
}
