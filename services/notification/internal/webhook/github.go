package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"

	"github.com/bullpenhq/bullpen/services/notification/internal/github"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

func (e *Edge) github(ctx context.Context, r *http.Request, body []byte) answer {
	company := e.o.Roster()
	if company == nil {
		return unavailable("No company is active yet.")
	}
	if company.GithubSecret == "" {
		return unavailable("GitHub is not connected: the company document names no webhook secret.")
	}
	secret, err := e.o.Credentials.Resolve(ctx, company.Revision, company.GithubSecret)
	if err != nil {
		e.o.Log.Warn("webhook secret not resolved", "source", github.Source, "error", err)
		return unavailable("The webhook secret is not set up.")
	}
	signature, once := single(r.Header, "X-Hub-Signature-256")
	if !once || !github.Verify(secret.Reveal(), signature, body) {
		return forged()
	}
	// From here on the sender is the vendor: nothing of its is refused.
	event, oneEvent := single(r.Header, "X-GitHub-Event")
	delivery, oneDelivery := single(r.Header, "X-GitHub-Delivery")
	w := store.Webhook{
		Source: github.Source, Endpoint: hook(r.Header), Delivery: identifier(delivery, body), Event: word(event),
		Form: form(r.Header), Body: body,
	}
	if !oneEvent || !oneDelivery {
		w.Reason = "The request has a header twice that says which event or delivery it is."
		w.Delivery = identifier("", body)
	}
	return e.accept(ctx, w)
}

// hook names where the vendor was told to send from: two hooks share a delivery
// id when they tell of one event.
func hook(h http.Header) string {
	if id := word(h.Get("X-GitHub-Hook-ID")); id != "" {
		return "hook-" + id
	}
	return "target-" + word(h.Get("X-GitHub-Hook-Installation-Target-ID"))
}

func form(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

const maxIdentifier = 128

// identifier answers the vendor's id, or one made of the body when there is
// none that can be kept: the same request again is still recognised.
func identifier(id string, body []byte) string {
	if word(id) != "" {
		return id
	}
	sum := sha256.Sum256(body)
	return "sha256-" + hex.EncodeToString(sum[:])
}

// word answers a header's value if it is short and plain, and nothing otherwise.
func word(s string) string {
	if len(s) > maxIdentifier {
		return ""
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return ""
		}
	}
	return s
}
