package session

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ErrIdle is the end of a call that the server neither answered nor made progress with for too long.
var ErrIdle = errors.New("the server made no progress with it")

// CallError is a call that the server did not answer.
type CallError struct {
	// Sent says that the server may have got the request.
	Sent bool
	// Lost says that the session is over, so that another one may be asked.
	Lost  bool
	cause error
}

// Error answers the reason.
func (e *CallError) Error() string { return e.cause.Error() }

// Unwrap answers the reason: [ErrIdle], an error of the context, or what broke the connection.
func (e *CallError) Unwrap() error { return e.cause }

// Answer is what a server said to a call.
type Answer struct {
	// Result is the result of `tools/call` as the server wrote it, or one that says what the server refused it with.
	Result json.RawMessage
	// Failed says that the server calls it a failure.
	Failed bool
}

// Call calls a tool. Progress that the server reports moves the idle deadline; the deadline of ctx stands. A call that is given up
// is cancelled at the server, and the session stays. The error is a [*CallError].
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage, idle time.Duration) (Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(idle, func() { cancel(ErrIdle) })
	defer timer.Stop()
	e := &exchange{touched: func() { timer.Reset(idle) }}
	token := "call-" + strconv.FormatInt(s.tokens.Add(1), 10)
	s.records.expect(token, e)
	defer s.records.forget(token, e)

	params := &mcp.CallToolParams{Name: tool, Arguments: arguments}
	params.SetProgressToken(token)
	_, err := s.client.CallTool(withExchange(ctx, e), params)
	result, refusal := e.answer()
	switch {
	case refusal != nil:
		return refused(refusal), nil
	case result != nil:
		return answered(result), nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		err = errors.New("the server's answer has no result")
	}
	sent := e.sent.Load()
	return Answer{}, &CallError{Sent: sent, Lost: !sent && s.lost(), cause: err}
}

// lost reports that the session over which a request could not be sent is over, and sees to it that it ends when only the server
// knows. A process that does not take a request is ending; an address may only be out of reach.
func (s *Session) lost() bool {
	select {
	case <-s.done:
		return true
	default:
	}
	if s.process == nil && s.http.forgotten.Load() {
		go s.client.Close() // it may wait for other calls
	}
	return s.process != nil || s.http.forgotten.Load()
}

func answered(result json.RawMessage) Answer {
	var shape struct {
		IsError    bool   `json:"isError"`
		ResultType string `json:"resultType"`
	}
	// Whatever else it is, it is what the server answered.
	_ = json.Unmarshal(result, &shape)
	if shape.ResultType == "input_required" {
		return Failure("The server did not run the tool: it asks for input first, and nobody can give it here.")
	}
	return Answer{Result: result, Failed: shape.IsError}
}

// refused answers an error of the protocol as a failed result, so that its reader finds the server's words in the usual place.
func refused(e *jsonrpc.Error) Answer {
	return Failure("The server refused the call: " + e.Message + " (" + strconv.FormatInt(e.Code, 10) + ")")
}

// Failure is an answer of ours in the server's place, in the shape of a failed result.
func Failure(text string) Answer {
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	data, err := json.Marshal(struct {
		Content []content `json:"content"`
		IsError bool      `json:"isError"`
	}{[]content{{"text", text}}, true})
	if err != nil {
		panic(err) // two strings and a bool
	}
	return Answer{Result: data, Failed: true}
}

// counter numbers progress tokens.
type counter struct{ atomic.Int64 }
