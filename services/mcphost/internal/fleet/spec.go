package fleet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/secrets"
)

// identity names an instance: a server, and the seat that it runs as; no seat for a shared one.
type identity struct{ server, seat string }

const (
	defaultInstall = 10 * time.Minute
	defaultStart   = time.Minute
	defaultCall    = 300 * time.Second
	stdio          = "stdio"
	sse            = "sse"
)

// spec is what an instance is started from, templates unfilled. Two instances of equal digest are interchangeable: what else the
// company says of a server, its prefix or its annotations, takes effect without a restart.
type spec struct {
	transport, command, url, protocol string
	args                              []string
	variables                         map[string]string // of the environment, or headers
	// installTimeout is how long until the program says its first word, startTimeout how long from then on until it is ready.
	installTimeout, startTimeout time.Duration
	authorization                *authorization
	digest                       [sha256.Size]byte
}

// specOf joins a server with the credentials of a seat, which win; own is nil for a shared one.
func specOf(s *companyv1.McpServer, own map[string]string) spec {
	p := spec{transport: s.GetTransport(), command: s.GetCommand(), url: s.GetUrl(), protocol: s.GetProtocol(), args: s.GetArgs(), variables: map[string]string{}}
	if p.transport == stdio {
		maps.Copy(p.variables, s.GetEnv())
	} else {
		maps.Copy(p.variables, s.GetHeaders())
	}
	maps.Copy(p.variables, own)
	p.startTimeout = seconds(s.GetStartupTimeoutSeconds(), defaultStart)
	if p.transport == stdio {
		p.installTimeout = seconds(s.GetInstallTimeoutSeconds(), defaultInstall)
	}
	p.authorization = authorizationOf(s)
	data, err := json.Marshal([]any{p.transport, p.command, p.args, p.url, p.protocol, p.variables, p.startTimeout, p.installTimeout, p.authorization})
	if err != nil {
		panic(fmt.Errorf("texts do not marshal: %w", err))
	}
	p.digest = sha256.Sum256(data)
	return p
}

// fill answers the spec with its templates filled, for one start.
func (p spec) fill() (filled *spec, filler *secrets.Filler) {
	c := p
	c.args, c.variables = append([]string(nil), p.args...), maps.Clone(p.variables)
	filler = &secrets.Filler{}
	filler.Add(c.command, func(v string) { c.command = v })
	filler.Add(c.url, func(v string) { c.url = v })
	for i, arg := range c.args {
		filler.Add(arg, func(v string) { c.args[i] = v })
	}
	filler.AddMap(c.variables)
	c.authorization = p.authorization.fill(filler)
	return &c, filler
}

func seconds(n int32, otherwise time.Duration) time.Duration {
	if n > 0 {
		return time.Duration(n) * time.Second
	}
	return otherwise
}

// limits answers how long a call of a tool may go without progress, and how long it may take in all; 0 for no such limit. A tool's
// own limit, by raw or prefixed name, stands for both: whoever set it knows how long the tool takes.
func limits(s *companyv1.McpServer, tool string) (idle, all time.Duration) {
	own, ok := s.GetToolTimeoutSeconds()[tool]
	if !ok {
		own = s.GetToolTimeoutSeconds()[s.GetToolPrefix()+tool]
	}
	if own > 0 {
		all = time.Duration(own) * time.Second
		return all, all
	}
	return seconds(s.GetRequestTimeoutSeconds(), defaultCall), 0
}

func credentials(c *companyv1.Company, seat, server string) (own map[string]string, ok bool) {
	for _, s := range c.GetSeats() {
		if s.GetHandle() == seat {
			env, ok := s.GetMcpEnv()[server]
			return env.GetVariables(), ok
		}
	}
	return nil, false
}

func declaredServer(c *companyv1.Company, name string) *companyv1.McpServer {
	for _, s := range c.GetMcpServers() {
		if s.GetName() == name {
			return s
		}
	}
	return nil
}
