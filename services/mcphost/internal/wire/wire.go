// Package wire reads and writes JSON-RPC messages and server-sent events without changing a byte of what they carry.
//
// Everything inside a message stays the JSON that its author wrote: numbers keep their digits, unknown members stay, members that
// are not set stay unset. The package knows the envelope and nothing of MCP.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Message is a request (ID and Method), a notification (Method) or a response (ID and one of Result and Error). What is absent is
// nil.
type Message struct {
	ID     []byte
	Method string
	Params []byte
	Result []byte
	Error  []byte
}

// Request reports whether an answer is awaited.
func (m *Message) Request() bool { return m.Method != "" && m.ID != nil }

// Response reports whether it answers something.
func (m *Message) Response() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

var errMessage = errors.New("it is no JSON-RPC message")

// maxBatch bounds the messages of a batch.
const maxBatch = 1000

// Decode reads a message, or a batch of them, which one revision of the protocol had. The messages share data's memory. Bytes
// that are no UTF-8 are replaced.
func Decode(data []byte) ([]Message, error) {
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil, errMessage
	}
	if data[0] != '[' {
		m, err := decode(data)
		return []Message{m}, err
	}
	elements, err := Elements(data, maxBatch)
	if err != nil {
		return nil, err
	}
	messages := make([]Message, 0, len(elements))
	for _, e := range elements {
		m, err := decode(e)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

func decode(data []byte) (m Message, err error) {
	var known [6]Member
	members, err := object(data, known[:0])
	if err != nil {
		return m, err
	}
	for _, member := range members {
		switch member.Name {
		case "id":
			if member.Value[0] != 'n' { // null stands for a request that could not be read, which is none of ours
				m.ID = member.Value
			}
		case "method":
			text, ok := Text(member.Value)
			if !ok || text == "" {
				return m, errMessage
			}
			m.Method = text
		case "params":
			m.Params = member.Value
		case "result":
			m.Result = member.Value
		case "error":
			if member.Value[0] != 'n' {
				m.Error = member.Value
			}
		}
	}
	if m.Method == "" && m.Result == nil && m.Error == nil {
		return m, errMessage
	}
	return m, nil
}

// Call writes a request of ours.
func Call(id int64, method string, params []byte) []byte {
	const envelope = 64
	b := make([]byte, 0, len(params)+len(method)+envelope)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, id, 10)
	return appendCall(b, method, params)
}

// Notification writes a notification; nil params are left out.
func Notification(method string, params []byte) []byte {
	return appendCall([]byte(`{"jsonrpc":"2.0"`), method, params)
}

func appendCall(b []byte, method string, params []byte) []byte {
	b = append(b, `,"method":"`...)
	b = append(b, method...) // ours: letters and slashes
	b = append(b, '"')
	if params != nil {
		b = append(b, `,"params":`...)
		b = append(b, params...)
	}
	return append(b, '}')
}

// Result writes the answer to a request, echoing its id as it came.
func Result(id, result []byte) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// Failure writes the refusal of a request, echoing its id as it came.
func Failure(id, refusal []byte) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, refusal)
}

// Refusal writes an error of the protocol.
func Refusal(code int, message string) []byte {
	return fmt.Appendf(nil, `{"code":%d,"message":%s}`, code, Quote(message))
}

// Line answers a message as one line: a newline within JSON is space, and nothing else of it changes.
func Line(message []byte) []byte {
	if bytes.IndexByte(message, '\n') >= 0 || bytes.IndexByte(message, '\r') >= 0 {
		for i, c := range message {
			if c == '\n' || c == '\r' { // within a text they would be escaped
				message[i] = ' '
			}
		}
	}
	return append(message, '\n')
}
