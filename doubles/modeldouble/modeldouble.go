// Package modeldouble stands in for model vendors: one real HTTP server on loopback that speaks Anthropic's Messages and
// OpenAI's chat completions, as JSON and as an event stream, and answers from a script.
//
// What it is for, beside answering: it bills. Every answer that left whole is recorded with a digest of the request that it
// answered, so a test can prove that a conversation was paid for once although processes died. And it fails on command, in
// every way that a vendor does: see [Fault].
//
// It is not a model. An answer depends on the request alone (the opening, the seat in the system prompt, the results so
// far), never on what was asked before, so a conversation may be taken up anywhere.
//
//	POST /v1/messages           Anthropic
//	POST /v1/chat/completions   OpenAI, and whatever is compatible with it
package modeldouble

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/libs/script"
)

// maxRequestBytes bounds a request; the vendors' own limits are about as large.
const maxRequestBytes = 32 << 20

// Options says how the double behaves.
type Options struct {
	// Addr is where it listens; empty means a free port on loopback.
	Addr string
	// Scenario is a script in the language of libs/script, with the fact `seat` and the verb `submit`. Empty when Answer is given.
	Scenario string
	// Answer, if not nil, answers in the scenario's place. It may be called concurrently.
	Answer func(Request) (Answer, error)
	// Keys are the API keys that are accepted; none means any.
	Keys []string
}

// Request is a request of either vendor.
type Request struct {
	// Vendor is `anthropic` or `openai`.
	Vendor string
	Key    string
	Model  string
	System string
	// Tools are the names offered.
	Tools    []string
	Messages []Message
	Stream   bool
	// Digest is the SHA-256 of the body as it came, in hexadecimal, without what differs between a stream and a plain answer.
	Digest string
}

// Message is one message of a conversation.
type Message struct {
	// Role is `user`, `assistant` or `tool`.
	Role string
	Text string
	// Calls are an assistant's.
	Calls []Call
	// CallID and Failed belong to a tool's result; Text is the result.
	CallID string
	Failed bool
}

// Call is a tool call.
type Call struct {
	ID   string
	Tool string
	// Args is what stands on the wire: JSON, unless it is meant not to be.
	Args string
}

// Answer is what the model says.
type Answer struct {
	Text  string
	Calls []Call
	// Stop is `end`, `tool_calls`, `length`, `refusal` or `context`; empty means what the calls imply.
	Stop string
}

// Server is a running double. Its methods are safe for concurrent use.
type Server struct {
	http    *http.Server
	addr    string
	answer  func(Request) (Answer, error)
	keys    map[string]bool
	served  sync.WaitGroup
	closing chan struct{}
	close   sync.Once

	mu     sync.Mutex
	faults []Fault
	bills  []Bill
	seen   int

	// leaving is held for reading while an answer is written and billed.
	leaving sync.RWMutex
}

// Start starts a double. Close it.
func Start(o Options) (*Server, error) {
	s := &Server{answer: o.Answer, keys: map[string]bool{}, closing: make(chan struct{})}
	for _, key := range o.Keys {
		s.keys[key] = true
	}
	if s.answer == nil {
		parsed, err := ParseScenario(o.Scenario)
		if err != nil {
			return nil, err
		}
		s.answer = parsed.answer
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the model double: %w", err)
	}
	s.addr = listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.serve(anthropicWire{}))
	mux.HandleFunc("POST /v1/chat/completions", s.serve(openaiWire{}))
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.served.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// URL answers the address without a path. Anthropic's client takes it as it is, OpenAI's with `/v1` behind it.
func (s *Server) URL() string { return "http://" + s.addr }

// Close stops the double and cuts what is being answered.
func (s *Server) Close() error {
	var err error
	s.close.Do(func() {
		close(s.closing)
		err = s.http.Close()
		s.served.Wait()
	})
	return err
}

// wire is one vendor's format.
type wire interface {
	key(*http.Request) string
	parse(body []byte) (Request, error)
	write(w http.ResponseWriter, r Request, a Answer, number int) error
	stream(e *events, r Request, a Answer, number int) error
	fail(w http.ResponseWriter, status int, kind, message string)
}

func (s *Server) serve(v wire) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
		if err != nil {
			v.fail(w, http.StatusRequestEntityTooLarge, "request_too_large", "the request is too large")
			return
		}
		key := v.key(r)
		if key == "" || len(s.keys) > 0 && !s.keys[key] {
			v.fail(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
			return
		}
		request, err := v.parse(body)
		if err != nil {
			v.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
			return
		}
		request.Key, request.Digest = key, digest(body)
		s.respond(w, r, v, request)
	}
}

func (s *Server) respond(w http.ResponseWriter, r *http.Request, v wire, request Request) {
	fault, number := s.nextFault(request)
	if fault.answerless() {
		s.fail(w, r, v, fault)
		return
	}
	answer, err := s.answer(request)
	if err != nil {
		v.fail(w, http.StatusUnprocessableEntity, "script_error", err.Error())
		return
	}
	answer = fault.spoil(answer)
	for i := range answer.Calls {
		if answer.Calls[i].ID == "" {
			answer.Calls[i].ID = fmt.Sprintf("call_%s_%d", request.Digest[:12], i)
		}
	}
	if answer.Stop == "" {
		answer.Stop = "end"
		if len(answer.Calls) > 0 {
			answer.Stop = "tool_calls"
		}
	}
	// A caller that has read an answer to its end finds it billed: Bills waits for what is leaving.
	s.leaving.RLock()
	defer s.leaving.RUnlock()
	if request.Stream {
		stream := &events{w: w, cutAfter: fault.cutAfter()}
		w.Header().Set("Content-Type", "text/event-stream")
		err = v.stream(stream, request, answer, number)
	} else {
		w.Header().Set("Content-Type", "application/json")
		err = v.write(w, request, answer, number)
	}
	if errors.Is(err, errCut) {
		panic(http.ErrAbortHandler)
	}
	if err == nil {
		s.bill(request, answer)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	encoded, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(encoded)
	return err
}

// Scenario is a script made for models.
type Scenario struct{ script *script.Script }

// ParseScenario reads a script with the fact `seat` and the verb `submit`, which calls submit_work.
func ParseScenario(text string) (*Scenario, error) {
	parsed, err := script.Parse([]byte(text), script.Options{
		Facts: []string{"seat"}, Verbs: map[string]string{"submit": "submit_work"},
	})
	if err != nil {
		return nil, err
	}
	return &Scenario{script: parsed}, nil
}
