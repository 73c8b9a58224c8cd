package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxEvent is the longest message that is read over HTTP.
const maxEvent = 64 << 20

// HTTP is a server at an address.
type HTTP struct {
	// URL is http or https.
	URL string
	// Headers go with every request, and to this host only.
	Headers map[string]string
	// Authorize stands between the requests and the network where the server wants a token; nil for nothing. An error of its
	// with a method TurnedAway is one of a request that the server turned away unread.
	Authorize func(http.RoundTripper) http.RoundTripper
}

// turnedAway is an error of a request that was sent and that nobody looked at: it may be made again.
type turnedAway interface {
	error
	TurnedAway()
}

// httpTransport is what the SDK's own transport sends its requests through. It adds the headers, refuses to be led to another
// host, answers the probe in the server's place when the server is silent, and shows the recorder what passes.
type httpTransport struct {
	target  *url.URL
	headers map[string]string
	records *recorder
	base    *http.Transport
	through http.RoundTripper // base, behind what authorises
	// forgotten is set when the server does not know the session any more.
	forgotten atomic.Bool
}

func newHTTPTransport(h HTTP, records *recorder) (*httpTransport, error) {
	target, err := url.Parse(h.URL)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		return nil, errors.New("its address is no http or https URL") // the address may hold a secret
	}
	t := &httpTransport{target: target, headers: h.Headers, records: records, base: &http.Transport{
		Proxy:               nil, // the environment of this process is nobody else's business
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}}
	t.through = t.base
	if h.Authorize != nil {
		t.through = h.Authorize(t.base)
	}
	return t, nil
}

func (t *httpTransport) sdk() mcp.Transport {
	return &mcp.StreamableClientTransport{
		Endpoint: t.target.String(), MaxEventSize: maxEvent,
		HTTPClient: &http.Client{Transport: t, CheckRedirect: t.redirect},
	}
}

// redirect follows within the host: the headers are credentials.
func (t *httpTransport) redirect(r *http.Request, via []*http.Request) error {
	const most = 3
	if r.URL.Host != t.target.Host || r.URL.Scheme != t.target.Scheme {
		return errors.New("it redirects to another host, which is not followed")
	}
	if len(via) > most {
		return fmt.Errorf("it redirects more than %d times", most)
	}
	return nil
}

func (t *httpTransport) close() { t.base.CloseIdleConnections() }

// RoundTrip implements [http.RoundTripper].
func (t *httpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.target.Host {
		return nil, errors.New("it leads to another host, which is not followed")
	}
	id, method := t.outgoing(r)
	r = r.Clone(r.Context())
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	response, err := t.send(r, id, method)
	var broken *net.OpError
	var refused turnedAway
	switch {
	case errors.As(err, &broken) && broken.Op == "dial", errors.As(err, &refused):
		t.records.unsent(id)
		return nil, err
	case err != nil:
		return nil, err
	case response.StatusCode >= http.StatusBadRequest && response.StatusCode < http.StatusInternalServerError:
		t.records.unsent(id) // turned away before anybody looked at it
		if r.Header.Get("Mcp-Session-Id") != "" && forgets(response) {
			t.forgotten.Store(true)
		}
	}
	switch kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) {
	case "application/json":
		response.Body = &tee{ReadCloser: response.Body, sink: &document{records: t.records}}
	case "text/event-stream":
		response.Body = &tee{ReadCloser: response.Body, sink: &stream{records: t.records}}
	}
	return response, nil
}

// forgets reports that a server does not know the session any more. Not all say so as they should, with 404. The body stays whole.
func forgets(response *http.Response) bool {
	const enough = 4 << 10
	switch response.StatusCode {
	case http.StatusNotFound:
		return true
	case http.StatusBadRequest:
		start := make([]byte, enough)
		n, err := io.ReadFull(response.Body, start)
		rest := io.Reader(response.Body)
		if err != nil {
			rest = http.NoBody
		}
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(start[:n]), rest), response.Body}
		return bytes.Contains(bytes.ToLower(start[:n]), []byte("session"))
	default:
		return false
	}
}

// outgoing reads which message a request carries, and tells the recorder.
func (t *httpTransport) outgoing(r *http.Request) (id jsonrpc.ID, method string) {
	if r.Method != http.MethodPost || r.GetBody == nil {
		return id, ""
	}
	body, err := r.GetBody()
	if err != nil {
		return id, ""
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return id, ""
	}
	message, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return id, ""
	}
	if request, ok := message.(*jsonrpc.Request); ok {
		t.records.request(r.Context(), request.ID)
		return request.ID, request.Method
	}
	return id, ""
}

// send bounds the wait for the answer to the probe.
func (t *httpTransport) send(r *http.Request, id jsonrpc.ID, method string) (*http.Response, error) {
	if method != methodDiscover {
		return t.through.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	timer := time.AfterFunc(probeTime, cancel)
	response, err := t.through.RoundTrip(r.WithContext(ctx))
	silent := !timer.Stop() && r.Context().Err() == nil
	if err == nil && !silent {
		response.Body = &bounded{ReadCloser: response.Body, cancel: cancel}
		return response, nil
	}
	cancel()
	if err == nil {
		_ = response.Body.Close()
	}
	if silent {
		return refusalOf(r, id), nil
	}
	return nil, err
}

// bounded is a body whose context ends with it.
type bounded struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements [io.Closer].
func (b *bounded) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// refusalOf is the answer of a server that does not know the probe.
func refusalOf(r *http.Request, id jsonrpc.ID) *http.Response {
	data, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: silence()})
	if err != nil {
		data = nil
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), ContentLength: int64(len(data)),
	}
}

// tee shows what is read to a sink before the reader gets it.
type tee struct {
	io.ReadCloser
	sink interface{ take(data []byte, end bool) }
}

// Read implements [io.Reader].
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.sink.take(p[:n], err != nil)
	return n, err
}

// document is a body that is one message.
type document struct {
	records *recorder
	data    []byte
}

func (d *document) take(data []byte, end bool) {
	if len(d.data)+len(data) <= maxEvent {
		d.data = append(d.data, data...)
	}
	if end {
		d.records.message(d.data)
		d.data = nil
	}
}

// stream is a body of server-sent events, each with a message.
type stream struct {
	records *recorder
	line    []byte
	data    []byte // of the event so far
}

func (s *stream) take(data []byte, end bool) {
	for len(data) > 0 {
		before, after, whole := bytes.Cut(data, []byte("\n"))
		if len(s.line)+len(s.data)+len(before) <= maxEvent {
			s.line = append(s.line, before...)
		}
		if !whole {
			break
		}
		s.endLine()
		data = after
	}
	if end {
		s.endLine()
		s.flush()
	}
}

// endLine takes one whole line.
func (s *stream) endLine() {
	line := bytes.TrimSuffix(s.line, []byte("\r"))
	if len(line) == 0 {
		s.flush()
	} else if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(s.data) > 0 {
			s.data = append(s.data, '\n')
		}
		s.data = append(s.data, bytes.TrimPrefix(value, []byte(" "))...)
	}
	s.line = s.line[:0]
}

func (s *stream) flush() {
	s.records.message(s.data)
	s.data = nil
}

// message shows the recorder a message that passed.
func (r *recorder) message(data []byte) {
	if len(data) == 0 {
		return
	}
	var m struct {
		ID     any             `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	if json.Unmarshal(data, &m) != nil || m.Result == nil && m.Error == nil {
		return
	}
	if id, err := jsonrpc.MakeID(m.ID); err == nil {
		r.response(id, m.Result, m.Error)
	}
}
