// Package jsonrpc reads and writes the messages of JSON-RPC 2.0 as MCP uses them. Ids, parameters and results stay the bytes that
// their writer wrote: an id goes back with its type, and a number with its digits.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// Codes of errors. Those above -32100 are the protocol's own.
const (
	ParseError         = -32700
	InvalidRequest     = -32600
	MethodNotFound     = -32601
	InvalidParams      = -32602
	InternalError      = -32603
	HeaderMismatch     = -32020
	MissingCapability  = -32021
	UnsupportedVersion = -32022
	// ResourceNotFound is what revisions before 2026-07-28 answer where later ones say InvalidParams.
	ResourceNotFound = -32002
)

// Error is an error of the protocol.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Errorf makes an error without data.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// WithData answers a copy with data, which is written as JSON.
func (e *Error) WithData(data any) *Error {
	text, err := json.Marshal(data)
	if err != nil {
		return e
	}
	return &Error{e.Code, e.Message, text}
}

// Message is a request, a notification or a response.
type Message struct {
	// ID is as its writer wrote it; nil for a notification.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	// Params are never nil in what was read.
	Params rawjson.Object
	// Result or Failure is what a response brings.
	Result, Failure json.RawMessage
}

// IsRequest reports a message that wants an answer.
func (m Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsResponse reports an answer.
func (m Message) IsResponse() bool { return m.Method == "" }

// maxBatch is how many messages one body may hold.
const maxBatch = 64

// Read reads a body: one message, or a batch of them. The message that an error belongs to is answered with it where it has an id.
func Read(body []byte) (messages []Message, batch bool, failed *Error) {
	body = bytes.TrimSpace(body)
	if !json.Valid(body) {
		return nil, false, Errorf(ParseError, "The body is not JSON.")
	}
	if body[0] != '[' {
		m, err := read(body)
		return []Message{m}, false, err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(body, &parts); err != nil || len(parts) == 0 || len(parts) > maxBatch {
		return nil, true, Errorf(InvalidRequest, "A batch has between 1 and %d messages.", maxBatch)
	}
	for _, part := range parts {
		m, err := read(part)
		if err != nil {
			return []Message{m}, true, err
		}
		messages = append(messages, m)
	}
	return messages, true, nil
}

// idShape is a string, or a whole number.
var idShape = regexp.MustCompile(`^("|-?[0-9]+$)`)

func read(text []byte) (Message, *Error) {
	object, err := rawjson.Parse(text)
	if err != nil {
		return Message{}, Errorf(InvalidRequest, "The message cannot be read: %s.", err)
	}
	m := Message{Result: object.Get("result"), Failure: object.Get("error"), Params: rawjson.Object{}}
	if id := object.Get("id"); id != nil {
		if !idShape.Match(id) {
			return m, Errorf(InvalidRequest, "An id is a string or a whole number.")
		}
		m.ID = id
	}
	if version, _ := object.Text("jsonrpc"); version != "2.0" {
		return m, Errorf(InvalidRequest, "A message says `\"jsonrpc\":\"2.0\"`.")
	}
	m.Method, _ = object.Text("method")
	switch {
	case m.Method == "" && (object.Has("method") || m.ID == nil || (m.Result == nil) == (m.Failure == nil)):
		return m, Errorf(InvalidRequest, "A message has a method, or an id and a result or an error.")
	case m.Method != "" && object.Has("params"):
		params, ok := object.Object("params")
		if !ok {
			return m, Errorf(InvalidParams, "`params` must be an object in which no name stands twice.")
		}
		m.Params = params
	}
	return m, nil
}

// Result writes an answer.
func Result(id, result json.RawMessage) []byte {
	return envelope().With("id", id).With("result", result).Bytes()
}

// Failure writes an answer that is an error; a nil id stands for a message that could not be read.
func Failure(id json.RawMessage, failure *Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	text := rawjson.Object{}.With("code", fmt.Appendf(nil, "%d", failure.Code)).With("message", rawjson.Quote(failure.Message))
	if failure.Data != nil {
		text = text.With("data", failure.Data)
	}
	return envelope().With("id", id).With("error", text.Bytes()).Bytes()
}

// Notification writes a message that wants no answer.
func Notification(method string, params json.RawMessage) []byte {
	return envelope().With("method", rawjson.Quote(method)).With("params", params).Bytes()
}

// Request writes a message that wants one.
func Request(id json.RawMessage, method string, params json.RawMessage) []byte {
	return envelope().With("id", id).With("method", rawjson.Quote(method)).With("params", params).Bytes()
}

func envelope() rawjson.Object {
	return rawjson.Object{}.With("jsonrpc", json.RawMessage(`"2.0"`))
}
