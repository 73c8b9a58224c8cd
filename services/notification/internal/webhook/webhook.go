// Package webhook is the edge that vendors call.
//
// A request passes, in this order: the method, the form it is in, the size cap,
// the raw bytes, the signature, one commit, and the answer. Its meaning is read
// only after that, elsewhere. The commit holds both the mark that recognises a
// repetition and the work to do, so neither can be lost without the other.
//
// The answer's class is a message to the vendor: 2xx is "we have it, or do not
// want it", 401 "this is not from you", 503 "send it again". What is verified
// but makes no sense is ours to deal with and gets 2xx, because a vendor that
// is refused gives up, or turns the hook off.
package webhook

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/bullpenhq/bullpen/services/notification/internal/credential"
	"github.com/bullpenhq/bullpen/services/notification/internal/github"
	"github.com/bullpenhq/bullpen/services/notification/internal/roster"
	"github.com/bullpenhq/bullpen/services/notification/internal/slack"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

const (
	// handshakeBytes is more than any url_verification has.
	handshakeBytes = 16 << 10

	// githubDeadline and slackDeadline are inside what the vendors wait, 10 s
	// and 3 s, so that they hear 503 from us and not silence.
	githubDeadline = 9 * time.Second
	slackDeadline  = 2500 * time.Millisecond
	commitTimeout  = githubDeadline
	// retryAfter is in seconds.
	retryAfter = "5"
)

// Options are what the edge works with. All fields but Metrics are required.
type Options struct {
	Writer      *Writer
	Roster      func() *roster.Roster
	Credentials *credential.Cache
	Log         *slog.Logger
	Now         func() time.Time
	Metrics     prometheus.Registerer
}

// Edge answers webhooks. It is safe for concurrent use.
type Edge struct {
	o        Options
	inFlight *semaphore.Weighted
	answered *prometheus.CounterVec
}

// New makes an edge.
func New(o Options) *Edge {
	answered := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bullpen_notification_webhooks_total", Help: "Webhooks by how they were answered.",
	}, []string{"source", "outcome"})
	if o.Metrics != nil {
		o.Metrics.MustRegister(answered)
	}
	return &Edge{o: o, inFlight: semaphore.NewWeighted(inFlightBytes), answered: answered}
}

// Routes adds the edge's paths.
func (e *Edge) Routes(mux *http.ServeMux) {
	mux.Handle("/webhooks/github", e.handler(github.Source, githubDeadline, e.github))
	mux.Handle("/webhooks/slack/{app}", e.handler(slack.Source, slackDeadline, e.slack))
}

// answer is what a vendor is told.
type answer struct {
	status  int
	outcome string // a word for metrics and the body
	detail  string
	text    string // instead of JSON
}

func refuse(status int, outcome, detail string) answer {
	return answer{status: status, outcome: outcome, detail: detail}
}

func unavailable(detail string) answer {
	return refuse(http.StatusServiceUnavailable, "unavailable", detail)
}

func forged() answer {
	return refuse(http.StatusUnauthorized, "forged", "The signature does not fit the body.")
}

// handler wraps what all vendors have in common around one's own way.
func (e *Edge) handler(source string, deadline time.Duration, serve func(ctx context.Context, r *http.Request, body []byte) answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), deadline)
		defer cancel()
		// Bounds a body that trickles in; a server without deadlines still has the cap.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(deadline))
		body, held, refused := e.read(ctx, w, r)
		defer e.inFlight.Release(held)
		a := refused
		if refused.status == 0 {
			a = serve(ctx, r, body)
		}
		e.answered.WithLabelValues(source, a.outcome).Inc()
		write(w, a)
	})
}

func write(w http.ResponseWriter, a answer) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	switch a.status {
	case http.StatusMethodNotAllowed:
		header.Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", retryAfter)
	case http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		header.Set("Connection", "close") // the rest of the body is not read
	}
	if a.text != "" {
		header.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.text)
		return
	}
	header.Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
		Detail string `json:"detail,omitempty"`
	}{a.outcome, a.detail})
}

// accept makes a verified webhook durable.
func (e *Edge) accept(ctx context.Context, w store.Webhook) answer {
	w.ReceivedAt = e.o.Now()
	fresh, err := e.o.Writer.Write(ctx, w)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			e.o.Log.Warn("webhook not stored", "source", w.Source, "delivery", w.Delivery, "error", err)
		}
		return unavailable("The webhook could not be stored. Send it again.")
	case fresh:
		return answer{status: http.StatusOK, outcome: "accepted"}
	default:
		return answer{status: http.StatusOK, outcome: "duplicate"}
	}
}

// single answers a header that may be given once only: of two, nobody knows
// which one another reader on the way has believed.
func single(h http.Header, name string) (string, bool) {
	values := h.Values(name)
	if len(values) > 1 {
		return "", false
	}
	return h.Get(name), true
}
