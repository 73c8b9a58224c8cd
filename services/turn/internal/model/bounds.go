package model

import (
	"io"
	"net/http"
)

const (
	// maxAnswerBytes is what is read of an answer's text, calls and thoughts: several times what the longest answers of today's
	// models hold. Whoever sends more has gone wrong, and would fill the memory of every seat's worker.
	maxAnswerBytes = 2 << 20
	// maxAnswerCalls is how many calls an answer may hold.
	maxAnswerCalls = 256
	// maxErrorBytes is what is read of a refusal.
	maxErrorBytes = 1 << 20
)

// bounded answers an HTTP client for a vendor. All of them share their connections.
func bounded() *http.Client { return &http.Client{Transport: boundedErrors{http.DefaultTransport}} }

// boundedErrors reads no more of a refusal than anybody wants to know. Answers are counted as they stream.
type boundedErrors struct{ next http.RoundTripper }

func (b boundedErrors) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(r)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxErrorBytes), response.Body}
	}
	return response, err
}
