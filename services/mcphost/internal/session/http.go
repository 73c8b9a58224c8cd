package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

const (
	// maxMessage is the longest message that is read over HTTP.
	maxMessage = 64 << 20
	// maxRefusal is how much of a body is read that comes with a status of refusal.
	maxRefusal = 64 << 10
	// goodbye bounds the end of a session at the server.
	goodbye = 2 * time.Second

	headerSession = "Mcp-Session-Id"
	headerVersion = "MCP-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
	headerLast    = "Last-Event-ID"
	typeJSON      = "application/json"
	typeEvents    = "text/event-stream"
)

// HTTP is a server at an address.
type HTTP struct {
	// URL is http or https.
	URL string
	// Headers go with every request, and to this host only.
	Headers map[string]string
	// SSE says that the server speaks the transport of 2024-11-05, with one stream of events for all answers. Otherwise that is what
	// is tried when it turns the newer one away.
	SSE bool
	// Authorize stands between the requests and the network where the server wants a token; nil for nothing. An error of its
	// with a method TurnedAway is one of a request that the server turned away unread.
	Authorize func(http.RoundTripper) http.RoundTripper
}

// turnedAway is an error of a request that was sent and that nobody looked at: it may be made again.
type turnedAway interface {
	error
	TurnedAway()
}

// door sends requests to one origin, with the headers that are declared for it, and is not led to another one.
type door struct {
	target  *url.URL
	headers map[string]string
	base    *http.Transport
	through http.RoundTripper // base, behind what authorises
	client  *http.Client
}

func newDoor(h HTTP) (*door, error) {
	target, err := url.Parse(h.URL)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		return nil, errors.New("its address is no http or https URL") // the address may hold a secret
	}
	d := &door{target: target, headers: h.Headers, base: &http.Transport{
		Proxy:                  nil, // the environment of this process is nobody else's business
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    32,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
	}}
	d.through = d.base
	if h.Authorize != nil {
		d.through = h.Authorize(d.base)
	}
	d.client = &http.Client{Transport: d, CheckRedirect: d.redirect}
	return d, nil
}

// redirect follows within the origin: the headers are credentials. A redirect that would drop the message is none.
func (d *door) redirect(r *http.Request, via []*http.Request) error {
	const most = 3
	switch {
	case r.URL.Host != d.target.Host || r.URL.Scheme != d.target.Scheme:
		return errors.New("it redirects to another host, which is not followed")
	case len(via) > most:
		return fmt.Errorf("it redirects more than %d times", most)
	case r.Method != via[0].Method:
		return errors.New("it redirects without the message, which is not followed")
	}
	return nil
}

// RoundTrip implements [http.RoundTripper].
func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != d.target.Host || r.URL.Scheme != d.target.Scheme {
		return nil, errors.New("it leads to another host, which is not followed")
	}
	r = r.Clone(r.Context())
	for name, value := range d.headers {
		r.Header.Set(name, value)
	}
	return d.through.RoundTrip(r)
}

// do makes one request and shows what comes back; nil for nobody. The error quotes no address.
func (d *door) do(ctx context.Context, method, to string, body []byte, header http.Header, show func(*http.Response)) error {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, to, reader)
	if err != nil {
		return errors.New("it has an address that cannot be called")
	}
	r.Header = header
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := d.client.Do(r.WithContext(ctx))
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return err
	}
	defer response.Body.Close()
	if show != nil {
		show(response)
	}
	// A connection that has little left to say can be used again; one on which the server goes on and on is let go.
	const little, soon = 4 << 10, 100 * time.Millisecond
	timer := time.AfterFunc(soon, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, response.Body, little)
	return nil
}

// neverArrived reports that an error left the server without the request.
func neverArrived(err error) bool {
	var broken *net.OpError
	var refused turnedAway
	return errors.As(err, &broken) && broken.Op == "dial" || errors.As(err, &refused)
}

// unreachable marks an error of a connection that was never made.
func unreachable(err error) error {
	var broken *net.OpError
	if errors.As(err, &broken) && broken.Op == "dial" {
		return fmt.Errorf("%w: %w", ErrUnreachable, broken.Err)
	}
	return err
}

// httpLink is Streamable HTTP. Each message of ours is a POST; what the server says about a call comes in the answer to its POST,
// whole or as a stream of events. A server with sessions may also speak on a stream that it is asked for.
type httpLink struct {
	session  *Session
	door     *door
	address  string
	suspects chan struct{}
	renewing sync.Mutex
	// listening is closed once the server has answered whether it has a stream for what it says by itself.
	listening chan struct{}
	streams   wire.Streams

	mu       sync.Mutex
	id       string // of the session, at the server
	protocol string // agreed on
}

func newHTTPLink(s *Session, d *door) *httpLink {
	return &httpLink{session: s, door: d, address: d.target.String(), suspects: make(chan struct{}, 1), listening: make(chan struct{})}
}

func (l *httpLink) send(c *call) {
	l.session.run(c, func(ctx context.Context) { l.exchange(ctx, c) })
}

// errandTime bounds what awaits no answer.
const errandTime = time.Minute

func (l *httpLink) post(message []byte) {
	l.session.background(func(ctx context.Context) { l.tell(ctx, message) })
}

// tell leaves failures to the calls that depend on it: they find out.
func (l *httpLink) tell(ctx context.Context, message []byte) {
	ctx, cancel := context.WithTimeout(ctx, errandTime)
	defer cancel()
	_, header := l.headers(nil)
	_ = l.door.do(ctx, http.MethodPost, l.address, message, header, nil)
}

// cancels: a newer server sees the stream end; an older one may take that for a break.
func (l *httpLink) cancels() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.protocol != "" && l.protocol < modern
}

func (l *httpLink) agreed(protocol string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.protocol = protocol
}

// listenTime is how long a call may have to wait for the stream on which its server asks questions. Many a server drops what it has
// to ask while nobody listens.
const listenTime = time.Second

func (l *httpLink) begin() {
	l.session.background(l.watch)
	if l.session.modern {
		return
	}
	l.session.background(l.listen)
	timer := time.NewTimer(listenTime)
	defer timer.Stop()
	select {
	case <-l.listening:
	case <-timer.C:
	case <-l.session.lifetime.Done():
	}
}

// headers answers what goes with a request, and the session it belongs to.
func (l *httpLink) headers(c *call) (id string, header http.Header) {
	l.mu.Lock()
	defer l.mu.Unlock()
	header = http.Header{}
	if c != nil && c.header != nil {
		header = c.header.Clone()
	}
	header.Set("Content-Type", typeJSON)
	header.Set("Accept", typeJSON+", "+typeEvents)
	if l.protocol != "" {
		header.Set(headerVersion, l.protocol)
	}
	if l.id != "" {
		header.Set(headerSession, l.id)
	}
	return l.id, header
}

// exchange sends a call and reads what comes back until it is settled.
func (l *httpLink) exchange(ctx context.Context, c *call) {
	for again := false; ; again = true {
		id, header := l.headers(c)
		if c.method == methodInitialize {
			header.Del(headerSession)
			header.Del(headerVersion)
		}
		c.sent.Store(true)
		status, body := 0, []byte(nil)
		err := l.door.do(ctx, http.MethodPost, l.address, c.body, header, func(r *http.Response) {
			c.take()
			if status = r.StatusCode; status < http.StatusBadRequest {
				l.read(ctx, c, r)
			} else {
				body = refusalOf(r)
			}
		})
		switch {
		case err != nil:
			l.broken(c, err)
			return
		case status < http.StatusBadRequest:
			return
		case !lost(status, body, id):
			l.turnedAway(c, status, body)
			return
		}
		c.sent.Store(false) // nobody looked at it
		if again {
			l.session.settle(c, reply{failure: fmt.Errorf("it forgets every session at once (HTTP status %d)", status)})
			return
		}
		if err := l.renew(ctx, id); err != nil {
			l.session.fail(fmt.Errorf("it forgot the session, and: %w", err))
			return
		}
	}
}

// broken settles a call for which there was no response.
func (l *httpLink) broken(c *call, err error) {
	if neverArrived(err) {
		c.sent.Store(false)
	}
	if l.session.settle(c, reply{failure: unreachable(err)}) {
		l.suspect()
	}
}

// turnedAway settles a call that came back with a status of refusal. A message in the body is the server's own word; otherwise a
// status of 4xx means that nobody looked at the call.
func (l *httpLink) turnedAway(c *call, status int, body []byte) {
	if messages, err := wire.Decode(body); err == nil && len(messages) == 1 && messages[0].Error != nil {
		l.session.conclude(c, reply{refusal: messages[0].Error})
		return
	}
	if status < http.StatusInternalServerError {
		c.sent.Store(false)
	}
	l.session.settle(c, reply{failure: statusError(status)})
	if status >= http.StatusInternalServerError {
		l.suspect()
	}
}

// statusError is an answer without a message.
type statusError int

// Error implements error.
func (e statusError) Error() string {
	return fmt.Sprintf("it answered with HTTP status %d (%s)", int(e), http.StatusText(int(e)))
}

func (l *httpLink) read(ctx context.Context, c *call, response *http.Response) {
	if c.method == methodInitialize {
		l.mu.Lock()
		l.id = response.Header.Get(headerSession)
		l.mu.Unlock()
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch kind {
	case typeJSON:
		l.document(c, response.Body)
	case typeEvents:
		l.stream(ctx, c, response.Body)
	default:
		l.session.settle(c, reply{failure: fmt.Errorf("it answered with HTTP status %d and no message", response.StatusCode)})
	}
}

// document reads a body that is one message, or several.
func (l *httpLink) document(c *call, body io.Reader) {
	data, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
	switch {
	case err != nil:
		err = fmt.Errorf("its answer was cut off: %w", err)
	case len(data) > maxMessage:
		err = fmt.Errorf("its answer has more than %d MiB", maxMessage>>20)
	default:
		var messages []wire.Message
		if messages, err = wire.Decode(data); err == nil {
			for _, m := range messages {
				l.session.receive(m, c)
			}
			err = errors.New("its answer does not answer the request")
		}
	}
	l.session.settle(c, reply{failure: err})
}

func (l *httpLink) suspect() {
	select {
	case l.suspects <- struct{}{}:
	default:
	}
}

// close says goodbye to a session at the server.
func (l *httpLink) close(ctx context.Context, last [][]byte) {
	id, header := l.headers(nil)
	if id != "" && !errors.Is(l.session.Cause(), ErrUnreachable) {
		ctx, cancel := context.WithTimeout(ctx, goodbye)
		defer cancel()
		const atATime = 8
		var group errgroup.Group
		group.SetLimit(atATime)
		for _, message := range last {
			group.Go(func() error {
				return l.door.do(ctx, http.MethodPost, l.address, message, header.Clone(), nil)
			})
		}
		_ = group.Wait()
		_ = l.door.do(ctx, http.MethodDelete, l.address, nil, header, nil)
	}
	l.door.base.CloseIdleConnections()
}
