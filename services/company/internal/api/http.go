package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"connectrpc.com/connect/v2"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
	"github.com/bullpenhq/bullpen/services/company/internal/splice"
)

// maxBody is the largest entry that is read, with what JSON may add to it.
const maxBody = 256 << 10

// Routes adds the configuration of MCP servers over plain HTTP: `GET /config/mcp-servers` and `GET|PUT /config/mcp-servers/{name}`.
// They are answered by the RPCs of s, called in process with the request's own credentials, so there is one place that decides
// who may see and change what. The entity tag of everything here is the active revision's id.
func Routes(mux *http.ServeMux, s *connect.Server) {
	h := &configuration{company: companyv1connect.NewCompanyServiceClient(connect.NewClient(rpc.InProcess(s)))}
	mux.HandleFunc("GET /config/mcp-servers", h.list)
	mux.HandleFunc("GET /config/mcp-servers/{name}", h.get)
	mux.HandleFunc("PUT /config/mcp-servers/{name}", h.put)
}

type configuration struct {
	company companyv1connect.CompanyServiceClient
}

func (h *configuration) list(w http.ResponseWriter, r *http.Request) {
	answer, err := h.company.ListMcpServers(withCredentials(r), &companyv1.ListMcpServersRequest{})
	if err != nil {
		refuse(w, err, nil)
		return
	}
	servers := []json.RawMessage{}
	for _, server := range answer.GetServers() {
		servers = append(servers, json.RawMessage(server.GetEntryJson()))
	}
	show(w, r, answer.GetRevision(), map[string]any{"servers": servers, "revision_id": answer.GetRevision().GetRevisionId()})
}

func (h *configuration) get(w http.ResponseWriter, r *http.Request) {
	answer, err := h.company.GetMcpServer(withCredentials(r), &companyv1.GetMcpServerRequest{Name: r.PathValue("name")})
	if err != nil {
		refuse(w, err, nil)
		return
	}
	show(w, r, answer.GetRevision(), json.RawMessage(answer.GetServer().GetEntryJson()))
}

// show answers what the active revision says, or that the reader has it already.
func show(w http.ResponseWriter, r *http.Request, active *companyv1.Revision, body any) {
	tag := strconv.Quote(active.GetRevisionId())
	w.Header().Set("ETag", tag)
	for _, known := range tags(r, "If-None-Match") {
		if known == "*" || known == active.GetRevisionId() {
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	write(w, http.StatusOK, body)
}

func (h *configuration) put(w http.ResponseWriter, r *http.Request) {
	ctx := withCredentials(r)
	req, err := h.read(ctx, w, r)
	if err != nil {
		refuse(w, err, nil)
		return
	}
	if req.ValidateOnly, err = dryRun(r.URL); err != nil {
		refuse(w, err, nil)
		return
	}
	answer, err := h.company.PutMcpServer(ctx, req)
	switch {
	case err != nil:
		refuse(w, err, h.problems(ctx, req, err))
	case req.GetValidateOnly():
		write(w, http.StatusOK, map[string]any{
			"valid": len(answer.GetProblems()) == 0, "base_revision_id": answer.GetBaseRevisionId(),
			"warnings": listed(answer.GetWarnings()), "problems": problemsToJSON(answer.GetProblems()),
		})
	default:
		status := http.StatusCreated
		if answer.GetUnchanged() {
			status = http.StatusOK
		}
		w.Header().Set("ETag", strconv.Quote(answer.GetRevision().GetRevisionId()))
		write(w, status, map[string]any{
			"revision_id": answer.GetRevision().GetRevisionId(), "epoch": answer.GetRevision().GetEpoch(),
			"unchanged": answer.GetUnchanged(), "warnings": listed(answer.GetWarnings()),
		})
	}
}

// dryRun reads the query of a put. What is not understood is refused: it may have meant that nothing is to be stored.
func dryRun(u *url.URL) (bool, error) {
	query, err := url.ParseQuery(u.RawQuery)
	given := query["dry_run"]
	switch {
	case err != nil, len(query) > 1, len(query) == 1 && len(given) != 1:
	case len(query) == 0 || given[0] == "false":
		return false, nil
	case given[0] == "true":
		return true, nil
	}
	return false, &refusal{http.StatusBadRequest, "invalid_query", "A put takes `dry_run`, once, as `true` or `false`; nothing was stored."}
}

// read makes the RPC's request of headers and body.
func (h *configuration) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (*companyv1.PutMcpServerRequest, error) {
	req := &companyv1.PutMcpServerRequest{Name: r.PathValue("name"), Summary: strings.TrimSpace(r.Header.Get("X-Summary"))}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &refusal{http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the entry as application/json."}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "body_too_large", "An entry has at most " + strconv.Itoa(maxBody) + " bytes."}
	} else if err != nil {
		return nil, &refusal{http.StatusBadRequest, "unreadable_body", "The body ended early."}
	}
	entry, err := splice.ParseObject(string(body))
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "invalid_body", "The body " + err.Error() + "."}
	}
	if said, ok := entry.Text("_summary"); ok && req.GetSummary() == "" {
		req.Summary = strings.TrimSpace(said)
	}
	req.EntryJson = entry.Without("_summary").JSON()

	known, wanted := tags(r, "If-None-Match"), tags(r, "If-Match")
	switch {
	case len(known) == 1 && known[0] == "*":
		req.Create = true
	case len(known) > 0:
		return nil, &refusal{http.StatusBadRequest, "invalid_precondition", "If-None-Match is `*` on a put: it adds a server."}
	}
	switch {
	case len(wanted) > 1:
		return nil, &refusal{http.StatusBadRequest, "invalid_precondition", "If-Match names one revision, or is `*`."}
	case len(wanted) == 1 && wanted[0] == "*":
		if err := h.active(ctx); err != nil {
			return nil, err
		}
	case len(wanted) == 1:
		req.IfMatch = wanted[0]
	}
	return req, nil
}

// active refuses when there is no revision that `If-Match: *` could mean.
func (h *configuration) active(ctx context.Context) error {
	_, err := h.company.ListMcpServers(ctx, &companyv1.ListMcpServersRequest{})
	if f := rpc.FromError(err); err != nil && f.Reason == revision.ReasonNone {
		return &refusal{http.StatusPreconditionFailed, "no_active_revision", f.Message}
	}
	return err
}

// problems asks for everything that is wrong with the company that a refused entry would have made.
func (h *configuration) problems(ctx context.Context, req *companyv1.PutMcpServerRequest, err error) []problemJSON {
	if reason := rpc.FromError(err).Reason; reason != reasonProblems && reason != reasonBody {
		return nil
	}
	req.ValidateOnly = true
	answer, err := h.company.PutMcpServer(ctx, req)
	if err != nil {
		return nil
	}
	return problemsToJSON(answer.GetProblems())
}

// tags reads a header of entity tags; quotes are left off, and a bare tag is taken too.
func tags(r *http.Request, header string) []string {
	var out []string
	for _, part := range strings.Split(strings.Join(r.Header.Values(header), ","), ",") {
		if tag := strings.Trim(strings.TrimPrefix(strings.TrimSpace(part), "W/"), `"`); tag != "" {
			out = append(out, tag)
		}
	}
	return out
}

func withCredentials(r *http.Request) context.Context {
	ctx, info := connect.NewClientContext(r.Context())
	for _, header := range []string{"Authorization", "Bullpen-Principal", "Bullpen-Operation"} {
		if values := r.Header.Values(header); len(values) > 0 {
			info.RequestHeader().SetValues(header, values)
		}
	}
	return ctx
}

// refusal is one that plain HTTP brings with it and no RPC makes.
type refusal struct {
	status        int
	name, message string
}

func (r *refusal) Error() string { return r.message }

// refuse writes a refusal: `error` is its name, for programs, `detail` its sentence.
func refuse(w http.ResponseWriter, err error, problems []problemJSON) {
	if own, ok := errors.AsType[*refusal](err); ok {
		write(w, own.status, map[string]any{"error": own.name, "detail": own.message})
		return
	}
	f := rpc.FromError(err)
	status, name := statusOf(err, f)
	body := map[string]any{"error": name, "detail": f.Message}
	if f.Field != "" {
		body["field"] = f.Field
	}
	if problems != nil {
		body["problems"] = problems
	}
	for _, fact := range []string{revision.FactCurrent, revision.FactStored} {
		if value := f.Facts[fact]; value != "" {
			body[fact] = value
		}
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	write(w, status, body)
}

// statusOf answers the status of a refusal, and its name: its reason, or else its class.
func statusOf(err error, f *fault.Error) (int, string) {
	if c, ok := errors.AsType[*connect.Error](err); ok && c.Code() == connect.CodeUnauthenticated {
		return http.StatusUnauthorized, "invalid_token"
	}
	name := strings.ToLower(f.Reason)
	if name == "" {
		name = string(f.Class)
	}
	switch {
	case f.Reason == reasonProblems, f.Reason == reasonNothing:
		return http.StatusUnprocessableEntity, name
	case f.Class == fault.Invalid:
		return http.StatusBadRequest, name
	case f.Class == fault.Forbidden:
		return http.StatusForbidden, name
	case f.Class == fault.NotFound:
		return http.StatusNotFound, name
	case f.Class == fault.Exists:
		return http.StatusPreconditionFailed, name
	case f.Class == fault.StaleVersion, f.Class == fault.Conflict:
		return http.StatusConflict, name
	default:
		return http.StatusServiceUnavailable, name
	}
}

func listed(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body) // the reader has gone
}
