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

// remote reports whether a server is reached by its address rather than started.
func remote(transport string) bool { return transport == TransportHTTP || transport == TransportSSE }

func (r *reader) server(o *object) draftServer {
	name := o.required("name")
	if name.v != "" && !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`).MatchString(name.v) {
		r.add(name.at, KindValue, "must be 1 to 64 letters, digits, dashes and underscores, not %s", quote(name.v))
	}
	transport := o.choice("transport", TransportStdio, TransportStdio, TransportHTTP, TransportSSE)
	s := draftServer{at: name.at, Server: Server{
		Name: name.v, Transport: transport.v,
		Protocol:       r.protocol(o, transport.v),
		Shared:         o.boolean("shared", true).v,
		InstallSeconds: o.number("install_timeout_seconds", defaultInstallSeconds, 1, 3600).v,
		StartSeconds:   o.number("startup_timeout_seconds", defaultStartSeconds, 1, 1800).v,
		CallSeconds:    o.number("request_timeout_seconds", defaultCallSeconds, 1, maxCallSeconds).v,
	}}
	command, args := o.text("command"), o.texts("args")
	url := o.text("url")
	env, headers := o.object("env"), o.object("headers")
	authorization := o.object("authorization")
	s.Command, s.Args, s.URL = command.v, plain(args), url.v
	r.address(url)
	if remote(transport.v) {
		kind := quote(transport.v)
		s.Headers = r.variables(headers, transport.v)
		s.Authorization = r.authorization(authorization, headers)
		r.only(url, "is required for "+kind+": the address of the server",
			misplaced{command.at, command.given, "is for `stdio`; an " + kind + " server is not started, it has a url"},
			misplaced{env.at, env.given, "is for `stdio`; an " + kind + " server takes headers"})
	} else {
		s.Env = r.variables(env, TransportStdio)
		r.only(command, "is required for `stdio`: the program to start",
			misplaced{url.at, url.given, "is for `http`; say `transport: http`"},
			misplaced{headers.at, headers.given, "is for `http`; a `stdio` server takes env"},
			misplaced{authorization.at, authorization.given, "is for `http`; a `stdio` server takes its credentials from env"})
	}
	s.ToolPrefix = r.matching(o.text("tool_prefix"), `^[A-Za-z0-9_-]{1,32}$`, "1 to 32 letters, digits, dashes and underscores")
	for _, surface := range o.texts("surfaces") {
		s.Surfaces = append(s.Surfaces, r.matching(surface, `^[a-z][a-z0-9_]{0,31}$`, "a surface's name such as `slack`"))
	}
	s.Annotations = r.annotations(o.object("tool_annotations"), s.ToolPrefix)
	s.ToolSeconds = r.toolSeconds(o.object("tool_timeout_seconds"), s.ToolPrefix)
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
	if remote(transport) {
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
			if remote(transport) && strings.ContainsAny(v.v, "\r\n") {
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

// number answers a scalar that YAML reads as a number, or its text when Go does not.
func number(text string) any {
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return text
}
