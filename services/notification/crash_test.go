package notification_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/mishap"
	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/notification/v1/notificationv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/notification"
)

// childEnv makes this test program run the service instead, with these settings.
const childEnv = "BULLPEN_NOTIFICATION_CHILD"

type child struct {
	DSN, Broker, Github, Key, Node string
}

func TestMain(m *testing.M) {
	if settings := os.Getenv(childEnv); settings != "" {
		if err := runChild(settings); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runChild is the service as a process of its own, to be killed.
func runChild(settings string) error {
	var c child
	if err := json.Unmarshal([]byte(settings), &c); err != nil {
		return err
	}
	ctx := context.Background()
	pool, err := pg.Open(ctx, c.DSN, "notification")
	if err != nil {
		return err
	}
	kafka, err := bus.Open(bus.Config{Brokers: []string{c.Broker}})
	if err != nil {
		return err
	}
	posting := quick()
	posting.Lease, posting.Timeout = time.Second, 400*time.Millisecond
	service, err := notification.New(ctx, notification.Deps{
		Config: notification.Config{
			GithubAPIURL: c.Github, SlackAPIURL: c.Github, WebhookKeep: 720 * time.Hour, MachineWakes: 20, MachineWindow: time.Minute,
		},
		Pool: pool, Bus: kafka, Log: slog.New(slog.DiscardHandler), Now: time.Now, Node: c.Node,
		Company: newOffice(officeOf()), Posting: posting,
	})
	if err != nil {
		return err
	}
	keys, err := rpc.NewKeys(config.Secret(c.Key))
	if err != nil {
		return err
	}
	server := rpc.NewServer(rpc.ServerOptions{Service: "notification", Log: slog.New(slog.DiscardHandler), Keys: keys})
	service.Register(server)
	mux := http.NewServeMux()
	rpc.Mount(mux, server)
	service.Routes(mux)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() { _ = http.Serve(listener, mux) }()
	return service.Run(ctx)
}

// kennel keeps one child alive at a time and knows where it listens.
type kennel struct {
	settings child
	url      atomic.Pointer[string]
	started  int
}

func (k *kennel) spawn(t *testing.T) *exec.Cmd {
	t.Helper()
	k.started++
	k.settings.Node = fmt.Sprint("child-", k.started)
	settings, err := json.Marshal(k.settings)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(settings))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSpace(line)
	k.url.Store(&url)
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Kill())
	_, err := cmd.Process.Wait()
	require.True(t, err == nil || errors.Is(err, os.ErrProcessDone))
}

// TestAKilledProcessLosesAndDoublesNothing kills the service with SIGKILL
// wherever it happens to be while webhooks come in and answers go out.
func TestAKilledProcessLosesAndDoublesNothing(t *testing.T) {
	const (
		kills    = 6
		webhooks = 400
		answers  = 40
		key      = "a key that is long enough for tests of ours"
	)
	ctx := t.Context()
	dsn := pgtest.DSN(t)
	require.NoError(t, pg.Migrate(ctx, dsn, map[string]fs.FS{"notification": notification.Module.Migrations}))
	broker, err := embedded.Start(ctx, embedded.Options{})
	require.NoError(t, err)
	defer broker.Close()
	kafka, err := bus.Open(bus.Config{Brokers: broker.Brokers()})
	require.NoError(t, err)
	defer kafka.Close()
	require.NoError(t, kafka.EnsureTopics(ctx, notification.Module.Topics...))
	github, err := githubdouble.Start(ctx, githubdouble.Options{})
	require.NoError(t, err)
	defer github.Close()
	github.Grant("ghp_quill", "quill")
	for range answers { // so that a process dies with a call under way
		github.Mishaps.Add("create", mishap.Slow(5*time.Millisecond))
	}
	keys, err := rpc.NewKeys(config.Secret(key))
	require.NoError(t, err)

	k := &kennel{settings: child{DSN: dsn, Broker: broker.Brokers()[0], Github: github.URL(), Key: key}}
	running := k.spawn(t)
	deliver := func(h githubdouble.Happening) {
		hook := githubdouble.Webhook(githubdouble.Envelope{Secret: githubSecret}, h)
		for ctx.Err() == nil {
			req, err := hook.Request(ctx, *k.url.Load()+githubPath)
			if err != nil {
				t.Error(err)
				return
			}
			if res, err := http.DefaultClient.Do(req); err == nil {
				_ = res.Body.Close()
				if res.StatusCode == http.StatusOK {
					return
				}
			}
		}
	}
	say := func(i int) {
		for ctx.Err() == nil {
			client := notificationv1connect.NewNotificationServiceClient(
				rpc.NewClient(rpc.HTTPTransport(*k.url.Load()), rpc.ClientOptions{Service: "toolregistry", Keys: keys}))
			_, err := client.Reply(seat(ctx, "quill", issueKey, fmt.Sprint("op-", i)), &notificationv1.ReplyRequest{Body: fmt.Sprint("answer ", i)})
			if err == nil {
				return
			}
		}
	}
	deliver(githubdouble.Happening{Body: "@quill hi", ID: 1})
	pool, err := pg.Open(ctx, dsn, "notification")
	require.NoError(t, err)
	defer pool.Close()
	w := &world{pool: pool}
	w.routed(t)

	var load sync.WaitGroup
	load.Go(func() {
		for i := 2; i <= webhooks; i++ {
			deliver(githubdouble.Happening{Body: "@quill hi", ID: int64(i)})
		}
	})
	load.Go(func() {
		for i := range answers {
			say(i)
		}
	})
	for range kills {
		life := time.NewTimer(time.Duration(150+rand.IntN(500)) * time.Millisecond)
		select {
		case <-life.C:
		case <-ctx.Done():
		}
		kill(t, running)
		running = k.spawn(t)
	}
	load.Wait()
	w.routed(t)
	require.Eventually(t, func() bool {
		var open int
		err := pool.QueryRow(ctx, `select (select count(*) from outbound where state <> 'posted') + (select count(*) from outbox where sent_at is null)`).Scan(&open)
		return err == nil && open == 0
	}, 30*time.Second, 20*time.Millisecond, "all answers are posted and all events are out")
	kill(t, running)

	var want []string
	for i := range answers {
		want = append(want, fmt.Sprint("answer ", i))
	}
	w.github = github
	require.Equal(t, want, w.standing("github"))
	events, err := kafka.ReadAll(ctx, "bullpen.notification.delivery.v1")
	require.NoError(t, err)
	told := map[string]bool{}
	for _, e := range events {
		var event notificationv1.DeliveryEvent
		require.NoError(t, proto.Unmarshal(e.Value, &event))
		told[event.GetDeliveryAddressed().GetDelivery().GetMessageId()] = true
	}
	require.Len(t, told, webhooks)
	var rows, attempts int
	require.NoError(t, pool.QueryRow(ctx, `select count(*), (select sum(attempts) from outbound) from deliveries`).Scan(&rows, &attempts))
	require.Equal(t, webhooks, rows)
	t.Logf("%d answers took %d attempts, %d deliveries %d events", answers, attempts, rows, len(events))
}
