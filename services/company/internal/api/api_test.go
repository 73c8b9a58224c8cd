package api_test

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/sealed"
	"github.com/bullpenhq/bullpen/services/company/internal/api"
	"github.com/bullpenhq/bullpen/services/company/internal/events"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
)

// bundle is a company service behind the in-process transport, on a database of its own.
type bundle struct {
	t       *testing.T
	pool    *pgxpool.Pool
	connect func(service string) *clients
	clock   *clock
	keys    *rpc.Keys
	server  *connect.Server
	// company calls as an operator.
	*clients
}

// clients are generated clients that call as one service.
type clients struct {
	company    companyv1connect.CompanyServiceClient
	principals toolv1connect.PrincipalServiceClient
}

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// options say how a bundle differs from the usual one.
type options struct {
	pool  *pgxpool.Pool
	noKey bool
	key   byte
	env   map[string]string
}

func setup(t *testing.T, o options) *bundle {
	t.Helper()
	if o.pool == nil {
		o.pool = pgtest.Pool(t, "company", store.Migrations())
	}
	if o.key == 0 {
		o.key = 'k'
	}
	var box *sealed.Box
	if !o.noKey {
		var err error
		key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(o.key)), 32)))
		box, err = sealed.NewBox(config.Secret(key))
		require.NoError(t, err)
	}
	b := &bundle{t: t, pool: o.pool, clock: &clock{now: time.Now()}}
	handler := api.New(api.Options{
		Store: store.New(o.pool, events.Activated), Box: box, Now: b.clock.Now, Wake: func() {},
		Getenv: func(name string) string { return o.env[name] },
	})
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("p", rpc.MinKeyBytes)))
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "company", Log: slog.New(slog.DiscardHandler), Keys: keys})
	companyv1connect.RegisterCompanyServiceHandler(server, handler)
	toolv1connect.RegisterPrincipalServiceHandler(server, handler)
	b.keys, b.server = keys, server
	b.connect = func(service string) *clients {
		client := rpc.NewClient(rpc.InProcess(server), rpc.ClientOptions{Service: service, Keys: keys})
		return &clients{companyv1connect.NewCompanyServiceClient(client), toolv1connect.NewPrincipalServiceClient(client)}
	}
	b.clients = b.connect("console")
	return b
}

// mux answers the routes of plain HTTP.
func (b *bundle) mux() *http.ServeMux {
	mux := http.NewServeMux()
	api.Routes(mux, b.server)
	return mux
}

// as makes calls in the name of a principal of a kind.
func as(t *testing.T, kind, id string) context.Context {
	t.Helper()
	return rpc.As(t.Context(), &rpc.Principal{Kind: kind, Id: id, DisplayName: id})
}

func operator(t *testing.T) context.Context {
	t.Helper()
	return as(t, rpc.KindOperator, "op-1")
}

// refused demands a fault of a class and answers it.
func refused(t *testing.T, err error, class fault.Class) fault.Error {
	t.Helper()
	require.Error(t, err)
	f := rpc.FromError(err)
	require.Equal(t, class, f.Class, f.Message)
	return *f
}

// lantern is a company that the tests share.
const lantern = `name: Tidewater Ltd
providers:
  llm:
    big: {type: anthropic, model: m, api_keys: ['${LLM_KEY}']}
mcp_servers:
  - {name: chat, shared: false, command: chat-mcp, tool_annotations: {post: {read_only: false, open_world: true}}}
roles:
  - name: Ines Rocha
    kind: human
    email: ines@lantern.example
    contact: {slack_user_id: U01}
    availability: Weekdays until five
units:
  - name: Operations
    lead: Ops Lead
    project: OPS
    mcp_env: {chat: {TEAM: ops}}
    roles:
      - name: Ops Lead
        llm: big
        integrations: {github: {login: lantern-ops, token: '${GH}'}}
        mcp_env: {chat: {BOT_TOKEN: 'Bearer ${BOT}'}}
      - name: Ops Engineer
`

// variant is another document that is as good.
func variant(n string) string { return strings.Replace(lantern, "Tidewater Ltd", "Lantern "+n, 1) }
