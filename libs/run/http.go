package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	readHeaderTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
	// bodyTimeout is how long a caller may take to send a whole body, streams of messages excepted.
	bodyTimeout = time.Minute
)

// listen opens the listeners and serves on them: probes at once, the services when they are built.
func (p *Process) listen() error {
	var err error
	if p.listener, err = net.Listen("tcp", p.o.Listen); err != nil {
		return fmt.Errorf("listen on %s: %w", p.o.Listen, err)
	}
	metrics := promhttp.HandlerFor(p.o.Telemetry.Registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", p.serveReadiness)
	if loopback(p.listener.Addr()) {
		mux.Handle("GET /metrics", metrics)
	}
	mux.HandleFunc("/", p.serveApp)
	p.serve(p.listener, timedBodies(mux, bodyTimeout))
	if p.o.MetricsListen == "" {
		return nil
	}
	second, err := net.Listen("tcp", p.o.MetricsListen)
	if err != nil {
		return errors.Join(fmt.Errorf("listen on %s: %w", p.o.MetricsListen, err), p.servers[0].Close())
	}
	only := http.NewServeMux()
	only.Handle("GET /metrics", metrics)
	p.serve(second, only)
	return nil
}

// serve answers HTTP/1.1 and, without TLS, HTTP/2, which gRPC callers need.
func (p *Process) serve(l net.Listener, h http.Handler) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
	}
	p.servers = append(p.servers, s)
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.failed <- fmt.Errorf("serve on %s: %w", l.Addr(), err)
		}
	}()
}

// serveApp hands on to the services, once there are any.
func (p *Process) serveApp(w http.ResponseWriter, r *http.Request) {
	app := p.app.Load()
	if app == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "The process is starting; try again in a moment.", http.StatusServiceUnavailable)
		return
	}
	app.ServeHTTP(w, r)
}

func (p *Process) serveReadiness(w http.ResponseWriter, r *http.Request) {
	readiness := p.readiness(r.Context())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !readiness.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(readiness)
}

// loopback reports whether only this machine can reach an address.
func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// advertised answers the process's base URL as another machine would write it.
func (p *Process) advertised() string {
	tcp, ok := p.listener.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return p.URL()
	}
	host := "127.0.0.1"
	if addresses, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				host = n.IP.String()
				break
			}
		}
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// timedBodies ends a request whose body does not arrive in time, whether its handler reads it or not: before a connection
// is used again, the server itself reads what the handler left. The server's own ReadTimeout would also end a call that
// takes long to answer. A handler that sets a limit of its own replaces this one.
//
// The request is copied and never changed, because the server looks at its own copy of the body to tell whether the
// connection can be used again. If it did not find its own type there, it would take the rest of a body that nobody read
// for the next request.
func timedBodies(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody || streams(r) {
			next.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(timeout))
		timed := *r
		timed.Body = &timedBody{ReadCloser: r.Body, control: control}
		next.ServeHTTP(w, &timed)
	})
}

// streams reports calls that may send messages for as long as they like. Before HTTP/2 there are none: there, a body ends
// before its answer begins.
func streams(r *http.Request) bool {
	contentType := r.Header.Get("Content-Type")
	return r.ProtoMajor >= 2 &&
		(strings.HasPrefix(contentType, "application/grpc") || strings.HasPrefix(contentType, "application/connect+"))
}

// timedBody lifts the limit when the body has arrived, and only then: after any other error the server still reads what is
// left.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
