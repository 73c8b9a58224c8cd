package run_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tool/v1/toolv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/libs/run"
)

func TestServicesReachEachOtherInOneProcessAndInTwo(t *testing.T) {
	t.Parallel()
	t.Run("in one", func(t *testing.T) {
		t.Parallel()
		p := start(t, options(t, companyModule(), trackerModule()))
		checkAsking(t, p)
	})
	t.Run("in two", func(t *testing.T) {
		t.Parallel()
		far := start(t, options(t, companyModule()))
		o := options(t, trackerModule())
		o.Peers = map[string]string{"company": far.URL()}
		checkAsking(t, start(t, o))
	})
}

// checkAsking sees that tracker calls company as itself, and that an API token given to its process is verified there.
func checkAsking(t *testing.T, p *run.Process) {
	t.Helper()
	_, body := get(t, p.URL()+"/ask")
	require.Equal(t, "asked by tracker<nil>", body)

	res, err := askWithToken(t, p, "good")
	require.NoError(t, err)
	require.Equal(t, rpc.KindOperator, res.GetPrincipal().GetKind())
	require.Equal(t, "asked by test", res.GetPrincipal().GetId(), "the process asks, not one of its services")
	_, err = askWithToken(t, p, "bad")
	require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))
}

func askWithToken(t *testing.T, p *run.Process, token string) (*toolv1.VerifyTokenResponse, error) {
	t.Helper()
	transport := rpc.HTTPTransport(p.URL())
	defer transport.Close()
	client := connect.NewClient(transport, func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			info, _ := connect.CallInfoForClientContext(ctx)
			info.RequestHeader().Set("Authorization", "Bearer "+token)
			return next(ctx, spec)
		}
	})
	res := &toolv1.VerifyTokenResponse{}
	err := client.CallUnary(t.Context(), whoAmI(), &toolv1.VerifyTokenRequest{Token: "t"}, res)
	return res, err
}

func TestHostGivesAModuleItsOwnSchemaTopicsAndName(t *testing.T) {
	t.Parallel()
	var host *run.Host
	m := module("tracker", func(h *run.Host) (run.Service, error) {
		host = h
		return piece{}, nil
	})
	m.Migrations = migrations()
	m.Topics = []bus.Topic{{Name: "bullpen.tracker.item.v1", Partitions: 2}}
	other := plain("knowledge", piece{})
	other.Migrations = migrations()
	other.Topics = m.Topics
	o := options(t, m, other)
	o.DatabaseURL = config.Secret(pgtest.DSN(t))
	o.Brokers = broker(t, "")
	p := start(t, o)

	var schema string
	require.NoError(t, host.Pool.QueryRow(t.Context(), "select table_schema from information_schema.columns where table_schema = current_schema() and table_name = 'notes'").Scan(&schema))
	require.Equal(t, "tracker", schema)
	require.NoError(t, host.Bus.Publish(t.Context(), bus.Message{Topic: "bullpen.tracker.item.v1", Key: "k", Value: []byte("v")}))
	require.Equal(t, "tracker", host.Name)
	require.NotEmpty(t, host.Node)
	require.Equal(t, p.URL(), host.URL)
	require.Nil(t, host.Config)
	_, r := readiness(t, p)
	require.Equal(t, "/process=true /postgres=true /kafka=true", names(r))
}

func TestAListenerOnEveryAddressIsNamedByOneThatCanBeDialled(t *testing.T) {
	t.Parallel()
	var host *run.Host
	o := options(t, module("tracker", func(h *run.Host) (run.Service, error) {
		host = h
		return piece{}, nil
	}))
	o.Listen = "0.0.0.0:0"
	start(t, o)
	require.NotContains(t, host.URL, "0.0.0.0")
	response, err := http.Get(host.URL + "/healthz")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func TestProcessEndsInReverseOrderAndNotReadyFirst(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var events []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, s)
	}
	var p *run.Process
	recording := func(name string) run.Module {
		return plain(name, piece{run: func(ctx context.Context) error {
			<-ctx.Done()
			status, r := readiness(t, p)
			require.Equal(t, http.StatusServiceUnavailable, status)
			note(name + " ends while " + r.Conditions[0].Detail)
			return nil
		}})
	}
	p, stop := startUnready(t, options(t, recording("company"), recording("turn")))
	ready(t, p)
	stop()
	require.NoError(t, p.Wait())
	require.Equal(t, []string{"turn ends while draining", "company ends while draining"}, events)
}

func TestRequestInFlightIsAnsweredBeforeTheEnd(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	p, stop := startUnready(t, options(t, plain("company", piece{
		routes: func(mux *http.ServeMux) {
			mux.HandleFunc("GET /slow", func(w http.ResponseWriter, _ *http.Request) {
				close(entered)
				<-release
				w.WriteHeader(http.StatusTeapot)
			})
		},
		run: func(ctx context.Context) error {
			<-ctx.Done()
			close(release)
			return nil
		},
	})))
	ready(t, p)
	go func() {
		<-entered
		stop()
	}()
	status, _ := get(t, p.URL()+"/slow")
	require.Equal(t, http.StatusTeapot, status)
	require.NoError(t, p.Wait())
}

func TestModuleThatFailsEndsTheProcess(t *testing.T) {
	t.Parallel()
	drained := make(chan struct{})
	good := plain("company", piece{run: func(ctx context.Context) error {
		<-ctx.Done()
		close(drained)
		return ctx.Err()
	}})
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"with an error":  {errors.New("out of paper"), "tracker failed: out of paper"},
		"without asking": {nil, "tracker stopped although nobody asked it to"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := plain("tracker", piece{run: func(context.Context) error { return c.err }})
			modules := []run.Module{plain("company", piece{}), bad}
			if c.err != nil {
				modules[0] = good
			}
			p, _ := startUnready(t, options(t, modules...))
			require.EqualError(t, p.Wait(), c.says)
		})
	}
	<-drained
}

func TestModuleThatDoesNotDrainIsLeftBehindAndNamed(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	o := options(t, plain("turn", piece{run: func(context.Context) error {
		<-release
		return nil
	}}))
	o.Drain = 50 * time.Millisecond
	p, stop := startUnready(t, o)
	ready(t, p)
	stop()
	require.ErrorContains(t, p.Wait(), "turn did not drain within 50ms")
}

func TestModuleThatCannotBeBuiltFailsTheStart(t *testing.T) {
	t.Parallel()
	p, _ := startUnready(t, options(t, plain("company", piece{}), module("tracker", func(*run.Host) (run.Service, error) {
		return nil, errors.New("no index")
	})))
	require.EqualError(t, p.Wait(), "tracker cannot be built: no index")
}

func TestPeerThatCannotBeReachedFailsTheStartInASentence(t *testing.T) {
	t.Parallel()
	p, _ := startUnready(t, options(t, trackerModule()))
	require.EqualError(t, p.Wait(), "tracker needs to know where company is: give -peer.company-url or BULLPEN_PEER_COMPANY_URL")

	undeclared := trackerModule()
	undeclared.Peers = nil
	p, _ = startUnready(t, options(t, companyModule(), undeclared))
	require.EqualError(t, p.Wait(), "tracker calls company but does not name it in Module.Peers")
}

func TestConditionsDecideReadiness(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	model := run.Condition{Name: "model", Detail: "No model is configured: deliveries wait."}
	p := start(t, options(t, plain("turn", piece{ready: func() []run.Condition {
		mu.Lock()
		defer mu.Unlock()
		return []run.Condition{model}
	}})))
	status, r := readiness(t, p)
	require.Equal(t, http.StatusOK, status, "a condition that does not block only shows")
	require.Equal(t, run.ServiceCondition{Service: "turn", Condition: model}, r.Conditions[1])

	mu.Lock()
	model.Blocking = true
	mu.Unlock()
	status, _ = readiness(t, p)
	require.Equal(t, http.StatusServiceUnavailable, status)
}

func TestMetricsAreServedOnLoopbackOrApart(t *testing.T) {
	t.Parallel()
	counted := module("company", func(h *run.Host) (run.Service, error) {
		h.Metrics.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "bullpen_seats", Help: "Seats."}))
		return piece{}, nil
	})
	near := start(t, options(t, counted))
	status, body := get(t, near.URL()+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "go_goroutines")
	require.Contains(t, body, `bullpen_seats{service="company"} 0`)

	o := options(t, counted)
	o.Listen = "0.0.0.0:0"
	far := start(t, o)
	status, _ = get(t, strings.Replace(far.URL(), "[::]", "127.0.0.1", 1)+"/metrics")
	require.Equal(t, http.StatusNotFound, status)
}

func TestPrincipalServiceAnswersStrangersNothing(t *testing.T) {
	t.Parallel()
	p := start(t, options(t, companyModule()))
	transport := rpc.HTTPTransport(p.URL())
	t.Cleanup(transport.Close)
	_, err := toolv1connect.NewPrincipalServiceClient(connect.NewClient(transport)).VerifyToken(t.Context(), &toolv1.VerifyTokenRequest{Token: "good"})
	require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))
	status, _ := get(t, p.URL()+"/healthz")
	require.Equal(t, http.StatusOK, status)
}
