package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// newest is the revision without sessions.
const newest = "2026-07-28"

// versions are all that are served, the newest first.
func versions() []string {
	return []string{newest, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// Members of `_meta` that belong to a connection.
const (
	metaPrefix       = "io.modelcontextprotocol/"
	metaVersion      = metaPrefix + "protocolVersion"
	metaCapabilities = metaPrefix + "clientCapabilities"
	metaLogLevel     = metaPrefix + "logLevel"
	metaServer       = metaPrefix + "serverInfo"
	metaSubscription = metaPrefix + "subscriptionId"
)

// modernVersion reports a revision without sessions, known here or not. Revisions are dates.
func modernVersion(version string) bool { return version >= newest }

func metaOf(m jsonrpc.Message) rawjson.Object {
	meta, _ := m.Params.Object("_meta")
	return meta
}

// modern answers a request that stands by itself.
func (s *Server) modern(w http.ResponseWriter, r *http.Request, from *rpc.Principal, messages []jsonrpc.Message, batch bool) {
	m := messages[0]
	switch {
	case batch || m.IsResponse():
		fail(w, http.StatusBadRequest, nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "Send one request, or one notification, at a time."))
		return
	case !m.IsRequest():
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if failed := checkEnvelope(r.Header, m); failed != nil {
		fail(w, http.StatusBadRequest, messages, failed)
		return
	}
	meta := metaOf(m)
	q := &request{from: from, method: m.Method, params: m.Params, progressToken: meta.Get("progressToken"), modern: true}
	q.capabilities = string(meta.Get(metaCapabilities))
	q.logLevel, _ = meta.Text(metaLogLevel)
	if m.Method == "subscriptions/listen" {
		s.listen(w, r, q, m.ID)
		return
	}
	if failed := s.checkParameters(r.Context(), r.Header, m); failed != nil {
		fail(w, http.StatusBadRequest, messages, failed)
		return
	}
	s.serve(w, r, holderOf(from), messages, true, func(a *answer) {
		q.notify = func(method string, params json.RawMessage) { a.send(jsonrpc.Notification(method, params)) }
		result, failed := s.modernResult(r.Context(), q)
		if failed != nil {
			a.finish(statusOf(failed), jsonrpc.Failure(m.ID, failed))
			return
		}
		a.finish(http.StatusOK, jsonrpc.Result(m.ID, result.Bytes()))
	})
}

// statusOf is what HTTP says of an error that a method answered.
func statusOf(failed *jsonrpc.Error) int {
	switch failed.Code {
	case jsonrpc.MethodNotFound:
		return http.StatusNotFound
	case jsonrpc.HeaderMismatch, jsonrpc.MissingCapability, jsonrpc.UnsupportedVersion:
		return http.StatusBadRequest
	default:
		return http.StatusOK
	}
}

// serve runs requests beside the connection, as many as their holder may have, and keeps the connection alive. When the client hangs
// up, a request that stands by itself is cancelled with its context; that of a session goes on, and what it answers is lost.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, holder string, requests []jsonrpc.Message, wait bool, run func(*answer)) {
	n := weight(requests)
	if !s.load.begin(holder, n, s.CallsPerToken) {
		s.overloaded(w, requests)
		return
	}
	a := newAnswer(w)
	defer a.cut()
	done := make(chan struct{})
	if !s.beside(func() {
		defer close(done)
		defer s.load.end(holder, n)
		defer func() {
			if p := recover(); p != nil {
				s.Log.ErrorContext(r.Context(), "a request of the operator's surface panicked", "panic", p, "stack", string(debug.Stack()))
				a.finish(http.StatusInternalServerError, jsonrpc.Failure(nil, jsonrpc.Errorf(jsonrpc.InternalError, "The request failed.")))
			}
		}()
		run(a)
	}) {
		s.load.end(holder, n)
		stopping(w)
		return
	}
	quiet := time.NewTimer(s.Hold)
	defer quiet.Stop()
	for {
		select {
		case <-done:
			return
		case <-quiet.C:
			a.alive()
			quiet.Reset(s.KeepAlive)
		case <-r.Context().Done():
			a.cut()
			if wait {
				<-done
			}
			return
		}
	}
}

// modernResult dresses a result as this revision wants it.
func (s *Server) modernResult(ctx context.Context, q *request) (rawjson.Object, *jsonrpc.Error) {
	if failed := s.unseal(q); failed != nil {
		return nil, failed
	}
	reply, failed := s.handle(ctx, q)
	if failed != nil {
		return nil, failed
	}
	result := reply.result
	if reply.inputRequired {
		if failed := undeclared(q, result); failed != nil {
			return nil, failed
		}
		return s.seal(q, result), nil
	}
	if !result.Has("resultType") {
		result = result.With("resultType", rawjson.Quote("complete"))
	}
	if reply.cacheable {
		// What one token may see is no other token's.
		result = result.With("cacheScope", rawjson.Quote("private"))
		if !result.Has("ttlMs") {
			result = result.With("ttlMs", json.RawMessage("0"))
		}
	}
	return s.signed(result), nil
}

// signed says who answers: this server, whoever stands behind it.
func (s *Server) signed(result rawjson.Object) rawjson.Object {
	meta, _ := result.Object("_meta")
	return result.With("_meta", meta.With(metaServer, s.identity()).Bytes())
}

// identity is the server's name and version, as both eras tell them.
func (s *Server) identity() json.RawMessage {
	return rawjson.Object{}.With("name", rawjson.Quote("bullpen")).With("title", rawjson.Quote("Bullpen")).
		With("version", rawjson.Quote(s.version)).Bytes()
}

func unknownMethod(method string) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.MethodNotFound, "There is no method %q in this revision of the protocol.", method)
}
