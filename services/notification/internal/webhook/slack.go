package webhook

import (
	"bytes"
	"context"
	"net/http"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/notification/internal/slack"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

// slack serves one app's events. The secret is the path's app's: nothing in the
// body has a say before it is verified. The handshake alone is answered
// unverified, as it comes before an app's credentials are known here, and it
// gives away nothing.
func (e *Edge) slack(ctx context.Context, r *http.Request, body []byte) answer {
	if len(body) <= handshakeBytes && bytes.Contains(body, []byte("url_verification")) {
		if envelope, err := slack.ReadEnvelope(body); err == nil && envelope.Type == "url_verification" {
			return answer{status: http.StatusOK, outcome: "handshake", text: envelope.Challenge}
		}
	}
	company := e.o.Roster()
	if company == nil {
		return unavailable("No company is active yet.")
	}
	app, known := company.App(r.PathValue("app"))
	if !known {
		return refuse(http.StatusNotFound, "unknown_app", "No seat of the company has an app of this name.")
	}
	secret, err := e.o.Credentials.Resolve(ctx, company.Revision, app.SigningSecret)
	if err != nil {
		e.o.Log.Warn("signing secret not resolved", "source", slack.Source, "app", app.Name, "error", err)
		return unavailable("The app's signing secret is not set up.")
	}
	signature, oneSignature := single(r.Header, "X-Slack-Signature")
	stamp, oneStamp := single(r.Header, "X-Slack-Request-Timestamp")
	if !oneSignature || !oneStamp || !slack.Verify(secret.Reveal(), signature, stamp, body, e.o.Now()) {
		return forged()
	}
	w := store.Webhook{Source: slack.Source, Endpoint: app.Name, Body: body}
	envelope, err := slack.ReadEnvelope(body)
	if f, ok := fault.As(err); ok {
		w.Reason = f.Message
	}
	w.Delivery, w.Event = identifier(envelope.EventID, body), word(envelope.Type)
	return e.accept(ctx, w)
}
