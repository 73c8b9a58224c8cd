package authorize_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/outbox"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/sealed"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/authorize"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/oauthtest"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// host is one process's authorizer with its public address.
type host struct {
	*authorize.Authorizer
	public *httptest.Server
	log    *record

	mu      sync.Mutex
	now     time.Time
	granted []string
	hidden  []string
}

// record is a log that tests read while it is written.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// start starts a host over a pool, nil for one that keeps everything in memory. change may be nil.
func start(t testing.TB, pool *pgxpool.Pool, change func(*authorize.Options)) *host {
	t.Helper()
	h := &host{now: time.Now(), log: &record{}}
	mux := http.NewServeMux()
	h.public = httptest.NewServer(mux)
	t.Cleanup(h.public.Close)
	o := authorize.Options{
		BaseURL: func() string { return h.public.URL }, Version: "1", Log: slog.New(slog.NewJSONHandler(h.log, nil)),
		Now: func() time.Time {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.now
		},
		Granted: func(server, seat string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.granted = append(h.granted, server+"/"+seat)
		},
	}
	if pool != nil {
		o.Store, o.Box = keep(t, pool), box(t, "k")
	}
	if change != nil {
		change(&o)
	}
	h.Authorizer = authorize.New(o)
	h.Routes(mux)
	return h
}

func keep(t testing.TB, pool *pgxpool.Pool) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), pool, store.Node{Name: "one"}, func(store.Fact, func() (int64, error)) ([]outbox.Message, error) { return nil, nil }, func() {})
	require.NoError(t, err)
	return s
}

func box(t testing.TB, letter string) *sealed.Box {
	t.Helper()
	b, err := sealed.NewBox(config.Secret(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))))
	require.NoError(t, err)
	return b
}

func pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return pgtest.Pool(t, "mcphost", store.Migrations())
}

// pass moves the clock.
func (h *host) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// secrets are the values that were to be hidden.
func (h *host) secrets() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.hidden...)
}

// open answers the access to a resource as a company would declare it.
func (h *host) open(t testing.TB, p *oauthtest.Resource, change func(*authorize.Server)) *authorize.Access {
	t.Helper()
	s := authorize.Server{Name: "crm", URL: p.URL + oauthtest.Path, Grant: authorize.AuthorizationCode, Hide: func(values ...string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hidden = append(h.hidden, values...)
	}}
	if change != nil {
		change(&s)
	}
	access, err := h.For(s)
	require.NoError(t, err)
	return access
}

// ask makes a request through the access and answers what came of it.
func ask(t testing.TB, access *authorize.Access, p *oauthtest.Resource) (body string, err error) {
	t.Helper()
	client := &http.Client{Transport: access.Transport(http.DefaultTransport), Timeout: 30 * time.Second}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+oauthtest.Path, strings.NewReader("hello"))
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(data))
	return string(data), nil
}

// refused answers why a request was not authorised.
func refused(t testing.TB, err error) *authorize.Refused {
	t.Helper()
	var r *authorize.Refused
	require.ErrorAs(t, err, &r)
	return r
}

// browse opens a page as an operator's browser does, and answers where it ended and what it saw.
func browse(t testing.TB, page string) (at string, status int, text string) {
	t.Helper()
	require.NotEmpty(t, page)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	require.NoError(t, err)
	response, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.Request.URL.String(), response.StatusCode, string(data)
}

// page answers where to consent.
func (h *host) page(t testing.TB, seat string) string {
	t.Helper()
	pages, err := h.Pages(t.Context())
	require.NoError(t, err)
	return pages[[2]string{"crm", seat}]
}

// consent does what an operator does, and what is needed before it.
func (h *host) consent(t testing.TB, access *authorize.Access) {
	t.Helper()
	require.True(t, refused(t, access.Prepare(t.Context())).Consent)
	_, status, text := browse(t, h.page(t, ""))
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, "can be used now")
}

// echo answers the body, and that a token was shown.
func echo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte("echo "), data...))
	})
}
