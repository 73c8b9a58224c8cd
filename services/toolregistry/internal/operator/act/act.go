// Package act is how a person's screen writes: `POST /operator/act/{tool}` calls one tool of the operator catalogue that writes,
// as the person whose token it is.
//
// A gesture carries an id of its own, a UUIDv7 that the screen made. Together with the token it names the operation, so sending the
// same request again is the retry, and the write lands once. Everything else is the door's: this package knows HTTP.
//
//	draining ─► token ─► bound to a person's seat ─► tool writes ─► body ─► door ─► 200, or a refusal with the status of its class
package act

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"

	"github.com/google/uuid"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// MaxBody is how many bytes a request may have.
const MaxBody = 1_114_112

// Door calls tools.
type Door interface {
	Call(ctx context.Context, from *rpc.Principal, request door.Request) (*door.Answer, error)
}

// Options are what a handler needs; all are required.
type Options struct {
	Door      Door
	Catalogue *catalogue.Catalogue
	// Company answers the active revision; nil when there is none.
	Company func(ctx context.Context, revision string) *companyv1.Company
	// Identify answers who makes a request; its errors are faults.
	Identify func(ctx context.Context, header http.Header) (*rpc.Principal, error)
	// Draining reports that the process is being stopped.
	Draining func() bool
	Log      *slog.Logger
}

// Handler serves the address. The path's last part is the value `tool`.
type Handler struct{ Options }

// New makes a handler.
func New(o Options) *Handler { return &Handler{o} }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tool := r.PathValue("tool")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer h.recovered(w, r, tool)
	from, refused := h.caller(r)
	if refused == nil {
		refused = h.writable(tool)
	}
	var request door.Request
	if refused == nil {
		request, refused = read(w, r, from, tool)
	}
	if refused != nil {
		refused.write(w, tool)
		return
	}
	answer, err := h.Door.Call(r.Context(), from, request)
	if err != nil {
		refusedBy(err).write(w, tool)
		return
	}
	accept(w, tool, answer)
}

// recovered answers for a handler that broke.
func (h *Handler) recovered(w http.ResponseWriter, r *http.Request, tool string) {
	if p := recover(); p != nil {
		h.Log.ErrorContext(r.Context(), "a gesture panicked", "tool", tool, "panic", p)
		broken().write(w, tool)
	}
}

// caller answers who acts: somebody whose token is bound to a person's seat.
func (h *Handler) caller(r *http.Request) (*rpc.Principal, *refusal) {
	if h.Draining() {
		return nil, &refusal{status: http.StatusServiceUnavailable, Error: "draining", Detail: "This server is being stopped; nothing was done.", retryAfter: "30"}
	}
	from, err := h.Identify(r.Context(), r.Header)
	switch {
	case err != nil && fault.ClassOf(err) == fault.Unavailable:
		return nil, refusedBy(err)
	case err != nil:
		return nil, &refusal{status: http.StatusUnauthorized, Error: "invalid_token", Detail: refusedBy(err).Detail}
	case from.GetKind() != rpc.KindOperator && from.GetKind() != rpc.KindPerson, !h.isPersons(r.Context(), from.GetSeat()):
		return nil, &refusal{
			status: http.StatusForbidden, Error: "unbound", Detail: "This token is nobody's: what it does here could not be said to be a person's.",
			Hint: "Make a token for a person's seat, with `bullpen token create NAME --seat HANDLE`, or use /operator/mcp.",
		}
	default:
		return from, nil
	}
}

// isPersons reports a seat that a person holds.
func (h *Handler) isPersons(ctx context.Context, handle string) bool {
	if handle == "" {
		return false
	}
	for _, seat := range h.Company(ctx, "").GetSeats() {
		if seat.GetHandle() == handle {
			return seat.GetKind() == "human"
		}
	}
	return false
}

// writable refuses a tool that is not among the writes of the operator catalogue.
func (h *Handler) writable(name string) *refusal {
	tool, ok := h.Catalogue.Lookup(name)
	switch {
	case !ok || !tool.For(catalogue.Operator) || tool.EngineLocal:
		return &refusal{status: http.StatusNotFound, Error: "unknown_tool", Detail: "The operator catalogue has no tool of this name."}
	case !tool.Writes():
		return &refusal{status: http.StatusBadRequest, Error: "read_only_tool", Detail: "This tool reads; here is for writes alone."}
	default:
		return nil
	}
}

// read takes the request's body apart.
func read(w http.ResponseWriter, r *http.Request, from *rpc.Principal, tool string) (door.Request, *refusal) {
	none := door.Request{}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		// A page of another origin can make a browser send a form, and not this.
		return none, &refusal{status: http.StatusUnsupportedMediaType, Error: "unsupported_media_type", Detail: "The body must be application/json."}
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return none, &refusal{status: http.StatusRequestEntityTooLarge, Error: "body_too_large", Detail: "The body has more than 1114112 bytes."}
	}
	if err != nil {
		return none, &refusal{status: http.StatusBadRequest, Error: "unreadable_body", Detail: "The body did not arrive."}
	}
	body, err := rawjson.Parse(text)
	if err != nil {
		return none, invalidBody("The body must be one JSON object with `request_id` and `args`: " + err.Error() + ".")
	}
	for _, member := range body {
		if member.Name != "request_id" && member.Name != "args" {
			return none, invalidBody("The body has `request_id` and `args`, and nothing else.")
		}
	}
	id, ok := requestID(body)
	if !ok {
		return none, &refusal{status: http.StatusBadRequest, Error: "invalid_request_id", Detail: "`request_id` must be a UUID of version 7, made for this gesture."}
	}
	args, ok := body.Object("args")
	if !ok && body.Has("args") {
		return none, invalidBody("`args` must be an object in which no name stands twice.")
	}
	return door.Request{
		Tool: tool, Arguments: string(args.Bytes()), OperationID: operation(from, id), CallID: id,
	}, nil
}

func invalidBody(detail string) *refusal {
	return &refusal{status: http.StatusBadRequest, Error: "invalid_body", Detail: detail}
}

// canonicalUUID is the length of the one form that is taken.
const canonicalUUID = 36

func requestID(body rawjson.Object) (string, bool) {
	text, ok := body.Text("request_id")
	if !ok || len(text) != canonicalUUID {
		return "", false
	}
	id, err := uuid.Parse(text)
	return id.String(), err == nil && id.Version() == 7 && id.Variant() == uuid.RFC4122
}

// operation derives what the ledgers keep a gesture under: another token's request of the same id is another gesture.
func operation(from *rpc.Principal, requestID string) string {
	sum := sha256.Sum256([]byte(from.GetKind() + ":" + cmp.Or(from.GetTokenId(), from.GetId()) + "\x00" + requestID))
	return "act-" + hex.EncodeToString(sum[:16])
}

// accept answers a write that landed.
func accept(w http.ResponseWriter, tool string, answer *door.Answer) {
	body := rawjson.Object{}.With("tool", rawjson.Quote(tool)).
		With("outcome", textOrNull(answer.Receipt.GetOutcome())).With("position", textOrNull(answer.Receipt.GetPosition())).
		With("receipt", json.RawMessage(answer.JSON))
	if answer.JSON == "" {
		body = body.With("receipt", json.RawMessage("null"))
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body.Bytes())
}

func textOrNull(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage("null")
	}
	return rawjson.Quote(text)
}
