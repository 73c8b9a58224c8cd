package notification_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/signed"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/notification/v1/notificationv1connect"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/notification"
)

const (
	githubSecret = "It's a Secret to Everybody"
	slackSecret  = "8f742231b10e8888abcd99yyyzzz85a5"
)

// officeOf is a company of the two agents quill and sage and the person ines.
func officeOf() *companyv1.Company {
	agent := func(handle string) *companyv1.Seat {
		return &companyv1.Seat{
			Handle: handle, Kind: "agent", UnitId: "writing",
			Github: &companyv1.GithubAccount{Login: handle, Token: "${GH_" + handle + "}"},
			Slack:  &companyv1.SlackApp{App: handle, BotToken: "${SLACK_" + handle + "}", SigningSecret: "${SIGN_" + handle + "}"},
		}
	}
	return &companyv1.Company{
		RevisionId: "r1",
		Units:      []*companyv1.Unit{{UnitId: "writing", Lead: "sage"}},
		Seats: []*companyv1.Seat{agent("quill"), agent("sage"), {
			Handle: "ines", Kind: "human", Contacts: map[string]string{"github_login": "Ines-H", "slack_user_id": "U0INES"},
		}},
		Integrations: &companyv1.Integrations{GithubWebhookSecret: "${GITHUB_WEBHOOK}"},
	}
}

// office plays the company service.
type office struct {
	mu      sync.Mutex
	company *companyv1.Company
	values  map[string]string
}

func newOffice(c *companyv1.Company) *office {
	values := map[string]string{"${GITHUB_WEBHOOK}": githubSecret}
	for _, s := range c.GetSeats() {
		values["${GH_"+s.GetHandle()+"}"] = "ghp_" + s.GetHandle()
		values["${SLACK_"+s.GetHandle()+"}"] = "xoxb-" + s.GetHandle()
		values["${SIGN_"+s.GetHandle()+"}"] = slackSecret
	}
	return &office{company: c, values: values}
}

func (o *office) GetCompany(context.Context, *companyv1.GetCompanyRequest) (*companyv1.GetCompanyResponse, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.company == nil {
		return nil, fault.New(fault.NotFound, "no company")
	}
	return &companyv1.GetCompanyResponse{Company: o.company}, nil
}

func (o *office) ResolveSecrets(_ context.Context, req *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	res := &companyv1.ResolveSecretsResponse{}
	for _, template := range req.GetTemplates() {
		value, ok := o.values[template]
		if !ok {
			return nil, fault.New(fault.NotFound, "nothing is called so")
		}
		res.Values = append(res.Values, value)
	}
	return res, nil
}

// world is a running service with everything around it.
type world struct {
	office *office
	github *githubdouble.Server
	slack  *slackdouble.Server
	pool   *pgxpool.Pool
	bus    bus.Bus
	url    string
	server *connect.Server
	rpc    notificationv1connect.NotificationServiceClient // of the door
	deps   notification.Deps
	keys   *rpc.Keys
	stop   func()
}

type option func(*world)

func withCompany(c *companyv1.Company) option { return func(w *world) { w.office = newOffice(c) } }

func withPosting(p notification.Posting) option { return func(w *world) { w.deps.Posting = p } }

func withWakes(n int) option { return func(w *world) { w.deps.Config.MachineWakes = n } }

// quick makes the outbound queue as impatient as a test.
func quick() notification.Posting {
	return notification.Posting{
		Poll: 20 * time.Millisecond, Lease: 3 * time.Second, Timeout: 700 * time.Millisecond, Grace: 50 * time.Millisecond,
		Backoff: 20 * time.Millisecond, BackoffMax: 100 * time.Millisecond,
	}
}

func setup(t testing.TB, options ...option) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{office: newOffice(officeOf())}
	w.deps = notification.Deps{
		Config: notification.Config{WebhookKeep: 720 * time.Hour, MachineWakes: 20, MachineWindow: 10 * time.Minute},
		Log:    slog.New(slog.DiscardHandler), Now: time.Now, Node: "node-1", Posting: quick(),
	}
	var err error
	w.github, err = githubdouble.Start(ctx, githubdouble.Options{})
	require.NoError(t, err)
	w.slack, err = slackdouble.Start(ctx, slackdouble.Options{})
	require.NoError(t, err)
	for _, seat := range []string{"quill", "sage"} {
		w.github.Grant("ghp_"+seat, seat)
		id := strings.ToUpper(seat)
		w.slack.Install(slackdouble.Bot{Token: "xoxb-" + seat, UserID: "U0" + id, BotID: "B0" + id, AppID: "A0" + id, TeamID: "T0ACME"})
	}
	for _, o := range options {
		o(w)
	}
	if w.pool == nil {
		w.pool = pgtest.Pool(t, "notification", notification.Module.Migrations)
	}
	broker, err := embedded.Start(ctx, embedded.Options{})
	require.NoError(t, err)
	w.bus, err = bus.Open(bus.Config{Brokers: broker.Brokers()})
	require.NoError(t, err)
	require.NoError(t, w.bus.EnsureTopics(ctx, notification.Module.Topics...))
	w.keys, err = rpc.NewKeys(config.Secret("a key that is long enough for tests of ours"))
	require.NoError(t, err)

	w.deps.Pool, w.deps.Bus, w.deps.Company = w.pool, w.bus, w.office
	w.deps.Config.GithubAPIURL, w.deps.Config.SlackAPIURL = w.github.URL(), w.slack.URL()
	t.Cleanup(func() {
		require.NoError(t, w.bus.Close())
		require.NoError(t, broker.Close())
		require.NoError(t, w.github.Close())
		require.NoError(t, w.slack.Close())
	})
	w.start(t)
	return w
}

// start runs a service of the world; a second one is a replica.
func (w *world) start(t testing.TB) {
	t.Helper()
	service, err := notification.New(t.Context(), w.deps)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx) }()
	mux := http.NewServeMux()
	service.Routes(mux)
	server := httptest.NewServer(mux)
	w.url = server.URL
	rpcs := rpc.NewServer(rpc.ServerOptions{Service: "notification", Log: slog.New(slog.DiscardHandler), Keys: w.keys})
	service.Register(rpcs)
	w.server = rpcs
	w.rpc = w.client("toolregistry")
	w.stop = sync.OnceFunc(func() {
		server.Close()
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(w.stop)
	if w.office.company == nil {
		return
	}
	require.Eventually(t, func() bool {
		for _, c := range service.Ready(ctx) {
			if c.Name == "company" && c.OK {
				return true
			}
		}
		return false
	}, 10*time.Second, 5*time.Millisecond, "the company is known")
}

// send delivers a webhook and answers its status and body.
func (w *world) send(t testing.TB, path string, hook signed.Webhook) (int, string) {
	t.Helper()
	req, err := hook.Request(t.Context(), w.url+path)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(body)
}

func (w *world) sendGithub(t testing.TB, h githubdouble.Happening) {
	t.Helper()
	status, body := w.send(t, "/webhooks/github", githubdouble.Webhook(githubdouble.Envelope{Secret: githubSecret}, h))
	require.Equal(t, http.StatusOK, status, body)
}

func (w *world) sendSlack(t testing.TB, app string, h slackdouble.Happening) {
	t.Helper()
	if h.BotUserID == "" {
		h.BotUserID, h.AppID = "U0"+strings.ToUpper(app), "A0"+strings.ToUpper(app)
	}
	status, body := w.send(t, "/webhooks/slack/"+app, slackdouble.Event(slackSecret, time.Now(), h))
	require.Equal(t, http.StatusOK, status, body)
}

// routed waits until nothing waits to be routed.
func (w *world) routed(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waiting int
		err := w.pool.QueryRow(t.Context(), `select count(*) from webhooks where state = 'received'`).Scan(&waiting)
		return err == nil && waiting == 0
	}, 20*time.Second, 5*time.Millisecond, "all webhooks are routed")
}

// client calls as another service does.
func (w *world) client(service string) notificationv1connect.NotificationServiceClient {
	return notificationv1connect.NewNotificationServiceClient(
		rpc.NewClient(rpc.InProcess(w.server), rpc.ClientOptions{Service: service, Keys: w.keys}))
}

// operator is somebody who may look.
func operator(ctx context.Context) context.Context {
	return rpc.As(ctx, &toolv1.PrincipalClaims{Kind: "operator", Id: "op"})
}

// deliveries waits for the routing and answers what came of it, oldest first.
func (w *world) deliveries(t testing.TB) []*notificationv1.Delivery {
	t.Helper()
	w.routed(t)
	var all []*notificationv1.Delivery
	cursor := ""
	for {
		res, err := w.rpc.ListDeliveries(operator(t.Context()), &notificationv1.ListDeliveriesRequest{Limit: 200, Cursor: cursor})
		require.NoError(t, err)
		for _, d := range res.GetDeliveries() {
			all = append([]*notificationv1.Delivery{d}, all...)
		}
		if cursor = res.GetNextCursor(); cursor == "" {
			return all
		}
	}
}

// told is a delivery in short: who was told of what, why, and what is owed.
func told(deliveries []*notificationv1.Delivery) []string {
	short := []string{}
	for _, d := range deliveries {
		short = append(short, fmt.Sprintf("%s %s %s", d.GetSeat(), d.GetReason(), d.GetObligation()))
	}
	return short
}

// states answers the state and reason of every webhook, in order.
func (w *world) states(t testing.TB) []string {
	t.Helper()
	w.routed(t)
	rows, err := w.pool.Query(t.Context(), `select state || ': ' || reason from webhooks order by id`)
	require.NoError(t, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		all = append(all, s)
	}
	return all
}

// seat is a turn of a seat about a conversation, calling through the door.
func seat(ctx context.Context, handle, conversation, operation string) context.Context {
	ctx = rpc.As(ctx, &toolv1.PrincipalClaims{
		Kind: "seat", Id: handle, Seat: handle, DisplayName: handle,
		Turn: &toolv1.TurnClaims{TurnId: "turn-1", WorkKey: "work-1", ConversationKey: conversation},
	})
	if operation != "" {
		ctx = rpc.WithOperation(ctx, operation)
	}
	return ctx
}
