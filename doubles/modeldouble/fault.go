package modeldouble

import (
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Kind is a way to fail.
type Kind string

// The kinds. Those above Cut answer nothing; Cut breaks a streamed answer off; the others answer, wrongly.
const (
	// RateLimited is 429 with Retry-After.
	RateLimited Kind = "rate_limited"
	// Unauthorized is 401.
	Unauthorized Kind = "unauthorized"
	// BadRequest is 400.
	BadRequest Kind = "bad_request"
	// RequestTimeout is 408.
	RequestTimeout Kind = "request_timeout"
	// ServerError is 500.
	ServerError Kind = "server_error"
	// Overloaded is 529, as Anthropic says it; OpenAI's format gets 503.
	Overloaded Kind = "overloaded"
	// Hang answers nothing until the caller gives up.
	Hang Kind = "hang"
	// Drop closes the connection before a byte is sent.
	Drop Kind = "drop"
	// Cut closes the connection in the middle of the stream; for a plain answer it is Drop.
	Cut Kind = "cut"
	// BadArguments makes the arguments of every call no JSON.
	BadArguments Kind = "bad_arguments"
	// UnknownTool calls a tool that was not offered.
	UnknownTool Kind = "unknown_tool"
	// Refusal refuses.
	Refusal Kind = "refusal"
	// MaxTokens stops at the output cap.
	MaxTokens Kind = "max_tokens"
	// ContextFull stops because the context is full.
	ContextFull Kind = "context_full"
	// Empty answers without a word or a call.
	Empty Kind = "empty"
)

// Fault is one failure to come.
type Fault struct {
	Kind Kind
	// RetryAfter is sent with RateLimited, in whole seconds; 0 sends none.
	RetryAfter time.Duration
	// Key, if not empty, waits for a request with this key.
	Key string
	// Rounds, if not nil, waits for a request whose conversation holds that many answers.
	Rounds *int
	// Times is how often; 0 means once.
	Times int
}

// errCut tells the server to cut the connection.
var errCut = errors.New("cut")

// errUnbilled tells the server that what it answered costs nothing.
var errUnbilled = errors.New("unbilled")

// Inject queues faults. Each request takes the first one that is meant for it.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// nextFault takes a fault and the request's number.
func (s *Server) nextFault(r Request) (Fault, int) {
	rounds := sceneOf(r).Round
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen++
	for i, f := range s.faults {
		if f.Key != "" && f.Key != r.Key || f.Rounds != nil && *f.Rounds != rounds {
			continue
		}
		if f.Times > 1 {
			s.faults[i].Times--
		} else {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		}
		if f.Kind == Cut && !r.Stream {
			f.Kind = Drop
		}
		return f, s.seen
	}
	return Fault{}, s.seen
}

func (f Fault) answerless() bool {
	switch f.Kind {
	case RateLimited, Unauthorized, BadRequest, RequestTimeout, ServerError, Overloaded, Hang, Drop:
		return true
	default:
		return false
	}
}

// cutAfter answers after how many events a stream breaks off; 0 means never.
func (f Fault) cutAfter() int {
	if f.Kind == Cut {
		return 3
	}
	return 0
}

// spoil turns a good answer into the one the fault wants.
func (f Fault) spoil(a Answer) Answer {
	switch f.Kind {
	case BadArguments:
		for i := range a.Calls {
			a.Calls[i].Args = `{"title": "unfinished`
		}
	case UnknownTool:
		a.Calls = []Call{{Tool: "no_such_tool", Args: `{}`}}
	case Refusal:
		return Answer{Text: "I can't help with that.", Stop: "refusal"}
	case MaxTokens:
		a.Stop = "length"
	case ContextFull:
		a.Stop = "context"
	case Empty:
		return Answer{Stop: "end"}
	default:
	}
	return a
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, v wire, f Fault) {
	switch f.Kind {
	case RateLimited:
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
		}
		v.fail(w, http.StatusTooManyRequests, "rate_limit_error", "slow down")
	case Unauthorized:
		v.fail(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
	case BadRequest:
		v.fail(w, http.StatusBadRequest, "invalid_request_error", "messages: is not acceptable")
	case RequestTimeout:
		v.fail(w, http.StatusRequestTimeout, "timeout_error", "the request took too long")
	case Overloaded:
		v.fail(w, statusOverloaded, "overloaded_error", "overloaded")
	case Hang:
		select {
		case <-r.Context().Done():
		case <-s.closing:
		}
	case Drop:
		panic(http.ErrAbortHandler)
	default:
		v.fail(w, http.StatusInternalServerError, "api_error", "internal server error")
	}
}

// statusOverloaded is Anthropic's own.
const statusOverloaded = 529
