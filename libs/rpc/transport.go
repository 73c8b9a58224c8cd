package rpc

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
)

// Transport is a [connect.Transport] over HTTP that holds connections.
type Transport struct {
	connect.Transport
	http *http.Transport
}

// HTTPTransport answers a transport to a service of ours at baseURL, such as `http://company:8080`. It follows no redirects and
// asks no proxy: a signed principal goes nowhere but there. Nothing is compressed: between neighbours that takes longer than sending
// does. Connections are kept for 90 seconds; [Transport.Close] drops idle ones at once.
func HTTPTransport(baseURL string) *Transport {
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
	}
	client := &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Transport{
		Transport: connecthttp.NewTransport(onePiece{client}, baseURL,
			connecthttp.WithCodecs(codecs()...), connecthttp.WithReadMaxBytes(MaxResponseBytes), connecthttp.WithCompressors()),
		http: t,
	}
}

// maxPiece is the largest message that is sent in one piece with its headers.
const maxPiece = 64 << 10

// onePiece sends the headers of a request and its message together. The HTTP transport knows the bodies of the standard library to be
// there whole; with any other it sends the headers ahead, in a packet that wakes the far end only for it to wait for the next one.
type onePiece struct{ client *http.Client }

// Do implements [connecthttp.HTTPClient].
func (c onePiece) Do(r *http.Request) (*http.Response, error) {
	if r.ContentLength <= 0 || r.ContentLength > maxPiece {
		return c.client.Do(r)
	}
	message := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, message)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		return nil, err
	}
	whole := *r
	whole.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(message)), nil }
	whole.Body, _ = whole.GetBody()
	return c.client.Do(&whole)
}

// Close drops idle connections. The transport can be used again.
func (t *Transport) Close() { t.http.CloseIdleConnections() }
