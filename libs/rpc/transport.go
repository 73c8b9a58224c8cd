package rpc

import (
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
		Transport: connecthttp.NewTransport(client, baseURL,
			connecthttp.WithCodecs(codecs()...), connecthttp.WithReadMaxBytes(MaxResponseBytes), connecthttp.WithCompressors()),
		http: t,
	}
}

// Close drops idle connections. The transport can be used again.
func (t *Transport) Close() { t.http.CloseIdleConnections() }
