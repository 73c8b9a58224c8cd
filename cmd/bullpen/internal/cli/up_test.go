package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/cli/clitest"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/pgtest"
)

// speechless is a company whose agent has no model.
const speechless = `name: Tidewater Ltd
units:
  - name: Operations
    roles:
      - {name: Ops Lead, handle: ops-lead}
`

// given is a database and a broker for a suite that is to start none of its own.
func given(t *testing.T) map[string]string {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	return map[string]string{"BULLPEN_DATABASE_URL": pgtest.DSN(t), "BULLPEN_KAFKA_BROKERS": broker.Brokers()[0]}
}

// A suite on a database and a broker that it was given: from its start through what goes wrong with it to its end.
func TestUpRunsUntilItIsStoppedAndSaysWhatIsWrongMeanwhile(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	backing := given(t)
	p, err := clitest.Up(data, backing, "--company", write(t, speechless))
	require.NoError(t, err)
	require.NoError(t, p.Await(t.Context()))
	address, err := clitest.Address(data)
	require.NoError(t, err)
	require.Contains(t, p.Said(), "Bullpen is ready on "+address+" after ")
	env := func(name string) string { return map[string]string{"BULLPEN_DATA": data}[name] }

	t.Run("a second one on the same data is told who is in the way", func(t *testing.T) {
		second := func(name string) string { return backing[name] }
		require.Contains(t, failed(t, clitest.Run(second, "up", "--data", data, "--listen", "127.0.0.1:0")),
			"another `bullpen up` runs on \""+data+"\": stop it first, or give this one another --data")
		fine(t, clitest.Run(env, "turns"))
	})

	t.Run("doctor says that there is no model", func(t *testing.T) {
		r := clitest.Run(env, "doctor")
		failed(t, r)
		require.Regexp(t, `(?m)^company: no model is configured`, r.Out)
	})

	t.Run("a message that cannot be read is set aside, shown, and kept when it fails again", func(t *testing.T) {
		b, err := bus.Open(bus.Config{Brokers: []string{backing["BULLPEN_KAFKA_BROKERS"]}, ClientID: "clitest"})
		require.NoError(t, err)
		defer b.Close()
		require.NoError(t, b.Publish(t.Context(), bus.Message{Topic: "bullpen.notification.delivery.v1", Key: "ops-lead", Value: []byte("no event")}))
		out := await(t, func(args ...string) clitest.Result { return clitest.Run(env, args...) },
			func(r clitest.Result) bool { return strings.Contains(r.Out, "delivery.v1") }, "dead", "--json")
		letters := decode(t, out)["dead_letters"].([]any)
		require.Len(t, letters, 1)
		letter := letters[0].(map[string]any)
		require.Equal(t, "bullpen.notification.delivery.v1", letter["topic"])
		require.NotEmpty(t, letter["reason"])
		require.Contains(t, fine(t, clitest.Run(env, "dead", "list")), letter["id"])
		require.Contains(t, clitest.Run(env, "doctor").Out, "`bullpen dead` shows")

		r := clitest.Run(env, "dead", "redrive", letter["id"].(string))
		require.Contains(t, failed(t, r), "1 dead letter failed again")
		require.Equal(t, "0 redriven, 1 kept.\n", r.Out)
		r = clitest.Run(env, "dead", "redrive", "--json")
		failed(t, r)
		require.EqualValues(t, 1, decode(t, r.Out)["failed"])
	})

	code, err := p.Stop(t.Context())
	require.NoError(t, err)
	require.Zero(t, code, p.Said())
	_, err = os.Stat(filepath.Join(data, "endpoint.json"))
	require.ErrorIs(t, err, os.ErrNotExist, "nobody is sent to where nobody listens")
	require.Contains(t, failed(t, clitest.Run(env, "turns")), "start one with `bullpen up`")
}

// unlucky is a company whose one agent answers and whose other one cannot.
const unlucky = `name: Tidewater Ltd
providers:
  llm:
    default:
      type: scripted
      scenario:
        rules:
          - when: {contains: broken}
            rounds:
              - call: {tool: reply, args: {body: I look at it.}}
              - submit: {outcome: delivered, summary: Answered.}
integrations:
  github: {webhook_secret: "${GITHUB_WEBHOOK_SECRET}"}
roles:
  - name: Baker
    integrations: {github: {login: lantern-baker, token: "${GITHUB_TOKEN}"}}
  - name: Clerk
    integrations: {github: {login: lantern-clerk, token: "${GITHUB_TOKEN}"}}
`

func TestDoctorNamesAnswersThatDoNotLeaveAndMailThatFails(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	backing := given(t)
	backing["GITHUB_WEBHOOK_SECRET"], backing["GITHUB_TOKEN"] = "hook", "token"
	p, err := clitest.Up(data, backing, "--company", write(t, unlucky), "--notification.github-api-url", "http://127.0.0.1:1")
	require.NoError(t, err)
	require.NoError(t, p.Await(t.Context()))
	run := func(args ...string) clitest.Result {
		return clitest.Run(func(name string) string {
			return map[string]string{"BULLPEN_DATA": data, "GITHUB_WEBHOOK_SECRET": "hook"}[name]
		}, args...)
	}

	fine(t, run("send", "github", "issue_comment", "--number", "1", "--body", "@lantern-baker it is broken"))
	fine(t, run("send", "github", "issue_comment", "--number", "2", "--body", "@lantern-clerk hello"))
	out := await(t, run, func(r clitest.Result) bool {
		return strings.Contains(r.Out, "notification: ") && strings.Contains(r.Out, "turn: ")
	}, "doctor")
	require.Contains(t, out, "notification: an answer of baker to github:lantern/shop#1 is queued: The vendor cannot be reached.")
	require.Contains(t, out, "turn: mail of clerk from github:lantern/shop#2 failed and is tried again: ")

	code, err := p.Stop(t.Context())
	require.NoError(t, err)
	require.Zero(t, code, p.Said())
}

func TestUpRefusesADocumentWithMistakesByLine(t *testing.T) {
	t.Parallel()
	path := write(t, mistaken)
	data := filepath.Join(t.TempDir(), "data")
	r := clitest.Run(clitest.Without, "up", "--data", data, "--company", path)
	require.Equal(t, 1, r.Code)
	said := failed(t, r)
	require.Contains(t, said, "\n"+path+":2:")
	require.Contains(t, said, "\n"+path+":9:")
	_, err := os.Stat(data)
	require.ErrorIs(t, err, os.ErrNotExist, "it is refused before anything is made for it")
	require.Contains(t, failed(t, clitest.Run(clitest.Without, "up", "--data", data, "--company", path+".none")), "no such file")
}

func TestASecondSignalEndsItAtOnceHoweverFastItFollows(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p, err := clitest.Up(data, given(t), "--json")
	require.NoError(t, err)
	require.NoError(t, p.Await(t.Context()))
	address, err := clitest.Address(data)
	require.NoError(t, err)

	env := func(name string) string { return map[string]string{"BULLPEN_DATA": data}[name] }
	said := failed(t, clitest.Run(env, "tools"))
	require.Contains(t, said, "No company is active")
	// What is wrong, and what cannot be done for it; not the same from every service. What is being built is said as long as it is.
	await(t, func(args ...string) clitest.Result { return clitest.Run(env, args...) }, func(r clitest.Result) bool {
		return len(decode(t, r.Out)["findings"].([]any)) == 2
	}, "doctor", "--json")

	require.NoError(t, p.Signal(os.Interrupt))
	require.NoError(t, p.Signal(syscall.SIGTERM))
	code, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, code)
	require.Equal(t, address, decode(t, p.Printed())["url"])
}
