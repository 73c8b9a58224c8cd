// Package signed holds a webhook as a vendor sends it: the headers, signature
// included, and the exact bytes they sign. The vendor doubles make them.
package signed

import (
	"bytes"
	"context"
	"net/http"
)

// Webhook is one delivery, ready to be sent any number of times. The body must
// not be changed after the signature was made.
type Webhook struct {
	Header http.Header
	Body   []byte
}

// Request makes a POST of the webhook to url. Every call answers a new request
// with the same headers and bytes, as a vendor's retry has.
func (w Webhook) Request(ctx context.Context, url string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(w.Body))
	if err != nil {
		return nil, err
	}
	req.Header = w.Header.Clone()
	return req, nil
}

// With answers a copy with one header replaced, such as the count of a retry.
func (w Webhook) With(name, value string) Webhook {
	header := w.Header.Clone()
	header.Set(name, value)
	return Webhook{Header: header, Body: w.Body}
}
