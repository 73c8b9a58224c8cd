package company_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/company"
)

// bundle is a database and a broker, to build services on.
type bundle struct {
	pool *pgxpool.Pool
	bus  bus.Bus
	log  *bytes.Buffer
}

func setup(t *testing.T) *bundle {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	require.NoError(t, b.EnsureTopics(t.Context(), company.Module.Topics...))
	return &bundle{pool: pgtest.Pool(t, "company", company.Module.Migrations), bus: b, log: &bytes.Buffer{}}
}

func (b *bundle) build(t *testing.T, c company.Config) (*company.Service, error) {
	t.Helper()
	return company.New(t.Context(), company.Deps{
		Config: c, Pool: b.pool, Publisher: b.bus, Log: slog.New(slog.NewTextHandler(b.log, nil)), Now: time.Now,
		Getenv: func(string) string { return "" },
	})
}

// client runs a service until the test ends and answers a client of it.
func client(t *testing.T, s *company.Service) companyv1connect.CompanyServiceClient {
	t.Helper()
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("p", rpc.MinKeyBytes)))
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "company", Log: slog.New(slog.DiscardHandler), Keys: keys})
	s.Register(server)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return companyv1connect.NewCompanyServiceClient(rpc.NewClient(rpc.InProcess(server), rpc.ClientOptions{Service: "turn", Keys: keys}))
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "company.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const small = "name: Lantern\nroles: [{name: Ada}]\n"

func TestADocumentGivenAsAFile(t *testing.T) {
	t.Parallel()

	t.Run("becomes active at start, once", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		path := file(t, small)
		_, err := b.build(t, company.Config{Document: path})
		require.NoError(t, err)
		s, err := b.build(t, company.Config{Document: path})
		require.NoError(t, err)
		c := client(t, s)
		list, err := c.ListRevisions(t.Context(), &companyv1.ListRevisionsRequest{})
		require.NoError(t, err)
		require.Len(t, list.GetRevisions(), 1)
		r := list.GetRevisions()[0]
		require.Equal(t, "applied from file at start", r.GetSummary())
		require.Equal(t, "service:company", r.GetCreatedBy())
		require.True(t, r.GetActive())
	})

	t.Run("replaces what is active when it differs", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		_, err := b.build(t, company.Config{Document: file(t, small)})
		require.NoError(t, err)
		s, err := b.build(t, company.Config{Document: file(t, small+"mission: more\n")})
		require.NoError(t, err)
		out, err := client(t, s).GetCompany(t.Context(), &companyv1.GetCompanyRequest{})
		require.NoError(t, err)
		require.Equal(t, int32(2), out.GetCompany().GetEpoch())
		require.Equal(t, "more", out.GetCompany().GetMission())
	})

	t.Run("stops the start with every problem by path and line", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		path := file(t, "name: Lantern\nroles:\n  - {nam: Ada}\nmision: x\n")
		_, err := b.build(t, company.Config{Document: path})
		require.ErrorContains(t, err, path+":3:6: roles[0].nam: unknown key `nam`; did you mean `name`?")
		require.ErrorContains(t, err, path+":4:1: mision: unknown key `mision`; did you mean `mission`?")
		require.Contains(t, b.log.String(), "at="+path+":4")
	})

	t.Run("that is missing or too large stops the start", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		_, err := b.build(t, company.Config{Document: filepath.Join(t.TempDir(), "none.yaml")})
		require.ErrorIs(t, err, os.ErrNotExist)
		_, err = b.build(t, company.Config{Document: file(t, strings.Repeat("#", 5<<20))})
		require.ErrorContains(t, err, "at most 4194304 (4 MiB)")
	})
}

func TestAnActivationIsAnnouncedOnTheBus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, err := b.build(t, company.Config{})
	require.NoError(t, err)
	c := client(t, s)
	put, err := c.PutCompany(t.Context(), &companyv1.PutCompanyRequest{Document: small, Summary: "first"})
	require.NoError(t, err)

	subscription, err := b.bus.Subscribe("bullpen.company.revision.v1", "test")
	require.NoError(t, err)
	defer subscription.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	messages, err := subscription.Fetch(ctx, 10)
	require.NoError(t, err)
	require.Len(t, messages, 1)
	require.Equal(t, "active", messages[0].Key)
	require.Equal(t, "/bullpen/company", messages[0].Headers["ce_source"])
	var event companyv1.RevisionEvent
	require.NoError(t, proto.Unmarshal(messages[0].Value, &event))
	require.Equal(t, put.GetRevision().GetRevisionId(), event.GetRevisionActivated().GetRevisionId())
	require.Equal(t, messages[0].Headers["ce_id"], event.GetEventId())
}

func TestReadySaysWhetherThereIsACompany(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, err := b.build(t, company.Config{})
	require.NoError(t, err)
	conditions := s.Ready(t.Context())
	require.False(t, conditions[0].OK)
	require.False(t, conditions[0].Blocking, "a company may be put through this process")
	require.Contains(t, conditions[0].Detail, "Put a document first")

	_, err = client(t, s).PutCompany(t.Context(), &companyv1.PutCompanyRequest{Document: small, Summary: "first"})
	require.NoError(t, err)
	conditions = s.Ready(t.Context())
	require.True(t, conditions[0].OK)
	require.Contains(t, conditions[0].Detail, "epoch 1")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	parse := func(t *testing.T, env map[string]string, args ...string) (*company.Config, error) {
		t.Helper()
		c, ok := company.Module.NewConfig().(*company.Config)
		require.True(t, ok)
		fs := flag.NewFlagSet("company", flag.ContinueOnError)
		c.RegisterFlags("company.", fs)
		require.NoError(t, config.Parse(fs, args, func(name string) string { return env[name] }))
		return c, c.Validate()
	}

	t.Run("is complete without any setting", func(t *testing.T) {
		t.Parallel()
		_, err := parse(t, nil)
		require.NoError(t, err)
	})

	t.Run("takes key and document from flags or their twins", func(t *testing.T) {
		t.Parallel()
		c, err := parse(t, map[string]string{"BULLPEN_COMPANY_SEALING_KEY": key}, "-company.document=x.yaml")
		require.NoError(t, err)
		require.Equal(t, key, c.SealingKey.Reveal())
		require.Equal(t, "x.yaml", c.Document)
	})

	t.Run("refuses a key that is none, by both names and without it", func(t *testing.T) {
		t.Parallel()
		_, err := parse(t, map[string]string{"BULLPEN_COMPANY_SEALING_KEY": "hunter2"})
		require.ErrorContains(t, err, "-company.sealing-key (BULLPEN_COMPANY_SEALING_KEY)")
		require.NotContains(t, err.Error(), "hunter2")
	})
}

func TestCheckNeedsNoService(t *testing.T) {
	t.Parallel()
	require.Empty(t, company.Check(small))
	problems := company.Check(small + "mision: x\n")
	require.Len(t, problems, 1)
	require.Equal(t, int32(3), problems[0].GetLine())
}
