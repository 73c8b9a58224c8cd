package mcp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
)

const (
	// maxBody is room for the largest arguments that a call takes, and what stands round them.
	maxBody = 5 << 20

	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
)

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !local(r) {
		fail(w, http.StatusForbidden, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "Requests of this origin, or to this host name, are not taken."))
		return
	}
	if name := repeated(r.Header); name != "" {
		fail(w, http.StatusBadRequest, nil, mismatch("The header %s is there more than once.", name))
		return
	}
	if s.isDraining() {
		stopping(w)
		return
	}
	from, ok := s.identify(w, r)
	if !ok {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, from)
	case http.MethodGet:
		s.getOrDelete(w, r, from, s.legacyStream)
	case http.MethodDelete:
		s.getOrDelete(w, r, from, s.legacyEnd)
	default:
		notAllowed(w)
	}
}

func stopping(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "30")
	fail(w, http.StatusServiceUnavailable, nil, jsonrpc.Errorf(jsonrpc.InternalError, "This server is being stopped; try again in half a minute."))
}

// identify lets in who bears a token, or is somebody for whom the console signs.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) (*rpc.Principal, bool) {
	from, err := s.Identify(r.Context(), r.Header)
	switch {
	case err != nil && fault.ClassOf(err) == fault.Unavailable:
		w.Header().Set("Retry-After", "5")
		fail(w, http.StatusServiceUnavailable, nil, jsonrpc.Errorf(jsonrpc.InternalError, "%s", sentence(err)))
		return nil, false
	case err != nil:
		challenge := `Bearer realm="bullpen"`
		if r.Header.Get("Authorization") != "" {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		fail(w, http.StatusUnauthorized, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "%s", sentence(err)))
		return nil, false
	case from.GetKind() != rpc.KindOperator && from.GetKind() != rpc.KindPerson:
		fail(w, http.StatusForbidden, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "This address serves operators; a %s calls tools through the registry.", from.GetKind()))
		return nil, false
	default:
		return from, true
	}
}

func sentence(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return "The caller is not known."
}

// getOrDelete belongs to sessions; what is modern has neither.
func (s *Server) getOrDelete(w http.ResponseWriter, r *http.Request, from *rpc.Principal, do func(http.ResponseWriter, *http.Request, *session)) {
	if r.Header.Get(headerSession) == "" || modernVersion(r.Header.Get(headerVersion)) {
		notAllowed(w)
		return
	}
	session, ok := s.session(w, r, from)
	if ok {
		do(w, r, session)
	}
}

func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", http.MethodPost)
	fail(w, http.StatusMethodNotAllowed, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "Send messages with POST."))
}

// post reads a body and decides which era it is of.
func (s *Server) post(w http.ResponseWriter, r *http.Request, from *rpc.Principal) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "The body must be application/json."))
		return
	}
	if !accepts(r.Header.Values("Accept")) {
		fail(w, http.StatusNotAcceptable, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "Accept both application/json and text/event-stream."))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		fail(w, http.StatusRequestEntityTooLarge, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "The body has more than %d bytes.", maxBody))
		return
	}
	if err != nil {
		fail(w, http.StatusBadRequest, nil, jsonrpc.Errorf(jsonrpc.ParseError, "The body did not arrive."))
		return
	}
	messages, batch, failed := jsonrpc.Read(body)
	if failed != nil {
		fail(w, http.StatusBadRequest, messages, failed)
		return
	}
	if modern(r.Header, messages) {
		s.modern(w, r, from, messages, batch)
		return
	}
	s.legacy(w, r, from, messages, batch)
}

// modern reports a request of 2026-07-28 or later, by its header, or by a body that only such a request has.
func modern(header http.Header, messages []jsonrpc.Message) bool {
	if version := header.Get(headerVersion); modernVersion(version) {
		return true
	}
	if header.Get(headerSession) != "" {
		return false
	}
	for _, m := range messages {
		if m.Method == "server/discover" || metaOf(m).Has(metaVersion) {
			return true
		}
	}
	return false
}

// fail answers a request that no method has seen. The id is that of the message at fault, where it has one.
func fail(w http.ResponseWriter, status int, messages []jsonrpc.Message, failed *jsonrpc.Error) {
	answer := jsonrpc.Failure(nil, failed)
	if len(messages) > 0 {
		answer = jsonrpc.Failure(messages[len(messages)-1].ID, failed)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// accepts reports a client that takes both forms of answer.
func accepts(values []string) bool {
	json, stream := false, false
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			kind, _, _ := mime.ParseMediaType(strings.TrimSpace(part))
			json = json || kind == "application/json" || kind == "application/*" || kind == "*/*"
			stream = stream || kind == "text/event-stream" || kind == "text/*" || kind == "*/*"
		}
	}
	return json && stream
}

// local keeps a page in somebody's browser from reaching a server that listens on this machine only, under a name that was made
// to point here. Elsewhere a browser's origin must be the host that it asks.
func local(r *http.Request) bool {
	if len(r.Header.Values("Origin")) > 1 {
		return false
	}
	host := hostname(r.Host)
	origin := r.Header.Get("Origin")
	from, err := url.Parse(origin)
	if origin != "" && (err != nil || from.Host == "") {
		return false
	}
	if listensLocally(r.Context()) {
		return isLoopback(host) && (origin == "" || isLoopback(from.Hostname()))
	}
	return origin == "" || strings.EqualFold(from.Host, r.Host)
}

func listensLocally(ctx context.Context) bool {
	address, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopback(hostname(address.String()))
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
