// Package upstream puts together what the company's shared MCP servers bring besides tools: prompts, resources, templates of
// resources, completion. A request for one of them goes to the server that owns it.
//
// Lists are asked of all servers at once. A server that fails costs its own part of a list and nothing else; only when every one
// fails does the list. Two servers' things of one name are settled as tools are: the first server of the company document has it.
package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
)

const (
	// believedFor is how long what is known of servers, and of whose a thing is, is used without a look.
	believedFor = 30 * time.Second
	// failedFor is how long a look that failed is not repeated.
	failedFor = 2 * time.Second
	// lookTimeout bounds a look at mcphost.
	lookTimeout = 5 * time.Second
	// listTimeout bounds one server's part of a list: a slow one is left out rather than waited for.
	listTimeout = 15 * time.Second
	// askTimeout bounds every other request where the company sets no limit.
	askTimeout = 60 * time.Second
)

// Host is what is asked of mcphost; its generated client is one.
type Host interface {
	dispatch.Host
	ListServerTools(ctx context.Context, req *mcphostv1.ListServerToolsRequest) (*mcphostv1.ListServerToolsResponse, error)
}

// Options are what upstreams need; all are required.
type Options struct {
	Host    Host
	Company func(ctx context.Context, revision string) *companyv1.Company
	Cleaner *hygiene.Cleaner
	Log     *slog.Logger
	Now     func() time.Time
}

// Upstreams are the shared servers. Safe for concurrent use.
type Upstreams struct {
	Options

	mu      sync.Mutex
	servers []Server
	looked  time.Time // when servers were looked at; zero for stale
	indexes map[Kind]index
}

// New makes upstreams that have not looked yet.
func New(o Options) *Upstreams { return &Upstreams{Options: o, indexes: map[Kind]index{}} }

// Server is a shared server that is ready.
type Server struct {
	Name, Prefix, Instructions string
	Capabilities               Capabilities
	timeout                    time.Duration
}

// Capabilities are what a server declares, as far as they matter here.
type Capabilities struct {
	Prompts     *struct{} `json:"prompts"`
	Completions *struct{} `json:"completions"`
	Logging     *struct{} `json:"logging"`
	Resources   *struct {
		Subscribe bool `json:"subscribe"`
	} `json:"resources"`
}

// Invalidate makes the next caller look again.
func (u *Upstreams) Invalidate() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.looked, u.indexes = time.Time{}, map[Kind]index{}
}

// Servers answers the shared servers that are ready, in the order of the company document. When mcphost cannot be asked, they are
// what they were.
func (u *Upstreams) Servers(ctx context.Context) []Server {
	u.mu.Lock()
	servers, fresh := u.servers, u.Now().Sub(u.looked) < believedFor
	u.mu.Unlock()
	company := u.Company(ctx, "")
	if company == nil || len(company.GetMcpServers()) == 0 {
		return nil
	}
	if fresh {
		return servers
	}
	began := u.Now()
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	answer, err := u.Host.ListServerTools(ctx, &mcphostv1.ListServerToolsRequest{})
	if err != nil {
		u.Log.WarnContext(ctx, "mcp servers cannot be looked at", "error", err)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.looked = began.Add(failedFor - believedFor)
		return servers
	}
	servers = serversOf(company, answer)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.servers, u.looked = servers, began
	return servers
}

func serversOf(company *companyv1.Company, answer *mcphostv1.ListServerToolsResponse) []Server {
	timeouts := map[string]time.Duration{}
	for _, declared := range company.GetMcpServers() {
		timeouts[declared.GetName()] = time.Duration(declared.GetRequestTimeoutSeconds()) * time.Second
	}
	var servers []Server
	for _, s := range answer.GetServers() {
		if s.GetOwn() || s.GetState() != "ready" {
			continue
		}
		server := Server{Name: s.GetServer(), Prefix: s.GetToolPrefix(), Instructions: s.GetInstructions()}
		server.timeout = cmp.Or(timeouts[server.Name], askTimeout)
		// A server that declares nothing that can be read brings tools only.
		_ = json.Unmarshal([]byte(s.GetCapabilitiesJson()), &server.Capabilities)
		servers = append(servers, server)
	}
	return servers
}

// Ask sends a request to a server and answers the result, clean. The error is the server's own, or says that it cannot be asked.
func (u *Upstreams) Ask(ctx context.Context, server Server, r dispatch.Request) (json.RawMessage, *jsonrpc.Error) {
	r.Server = server.Name
	if r.Timeout == 0 {
		r.Timeout = server.timeout
	}
	notify := r.Notify
	r.Notify = func(notification string) {
		if clean, err := u.Cleaner.JSON(notification); err == nil && notify != nil {
			notify(clean)
		}
	}
	reply, err := dispatch.Exchange(ctx, u.Host, "", r)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The server `%s` cannot be asked: %s", server.Name, rpc.FromError(err).Message)
	}
	if reply.Error != "" {
		return nil, u.failure(server, reply.Error)
	}
	clean, err := u.Cleaner.JSON(reply.Result)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The server `%s` answered what is not text, which is not passed on.", server.Name)
	}
	return json.RawMessage(clean), nil
}

// failure reads a server's error, whose code and data are passed on.
func (u *Upstreams) failure(server Server, text string) *jsonrpc.Error {
	failure := &jsonrpc.Error{}
	clean, err := u.Cleaner.JSON(text)
	if err != nil || json.Unmarshal([]byte(clean), failure) != nil || failure.Code == 0 {
		return jsonrpc.Errorf(jsonrpc.InternalError, "The server `%s` failed without an error that can be read.", server.Name)
	}
	return failure
}
