package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Kind says whose failure it was.
type Kind string

// The kinds.
const (
	// RateLimited: this key has used what it may for now.
	RateLimited Kind = "rate_limited"
	// Unauthorized: this key is refused.
	Unauthorized Kind = "unauthorized"
	// TimedOut: no answer in time.
	TimedOut Kind = "timed_out"
	// Broken: the provider or the way to it failed.
	Broken Kind = "broken"
	// ContextFull: the conversation is longer than the model reads.
	ContextFull Kind = "context_full"
	// Rejected: the provider will not take this question, from anybody.
	Rejected Kind = "rejected"
)

// Failure is why a provider did not answer. Its text names no key and no address.
type Failure struct {
	Kind     Kind
	Provider string
	// Status is HTTP's; 0 when there was none.
	Status int
	// RetryAfter is what the vendor asked for; 0 for nothing.
	RetryAfter time.Duration
	// Message is the vendor's.
	Message string
}

// Error implements error.
func (f *Failure) Error() string {
	text := fmt.Sprintf("provider %s: %s", f.Provider, f.Kind)
	if f.Status != 0 {
		text += fmt.Sprintf(" (%d)", f.Status)
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	return text
}

// Elsewhere reports whether another provider may do better.
func (f *Failure) Elsewhere() bool {
	switch f.Kind {
	case RateLimited, Unauthorized, TimedOut, Broken:
		return true
	default:
		return false
	}
}

// kindOf reads an HTTP status.
func kindOf(status int) Kind {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusPaymentRequired:
		return RateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Unauthorized
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return TimedOut
	case status >= http.StatusInternalServerError:
		return Broken
	default:
		return Rejected
	}
}

// fromTransport reads an error that has no status. The error itself stays here: it may hold an address.
func fromTransport(err error) *Failure {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Failure{Kind: TimedOut, Message: "no answer in time"}
	}
	return &Failure{Kind: Broken, Message: "the connection failed or broke off"}
}

// retryAfter reads the header in seconds or as a date.
func retryAfter(response *http.Response, now time.Time) time.Duration {
	if response == nil {
		return 0
	}
	value := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
