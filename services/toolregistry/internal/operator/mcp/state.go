package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// stateFor is how long a client may take to answer what it was asked.
const stateFor = time.Hour

const statePurpose = "mcp request state"

// seal replaces the server's state in a result that asks for input by one of ours: it is taken back from the same token, for the
// same thing with the same arguments, and from nobody else. A server that keeps no state gets none.
func (s *Server) seal(q *request, result rawjson.Object) rawjson.Object {
	state := result.Get("requestState")
	if state == nil {
		return s.signed(result)
	}
	body := fmt.Appendf(nil, "%d %s", s.Now().Unix(), state)
	sealed := base64.RawURLEncoding.EncodeToString(body) + "." +
		base64.RawURLEncoding.EncodeToString(s.Keys.MAC(statePurpose, append(body, q.bound()...)))
	return s.signed(result.With("requestState", rawjson.Quote(sealed)))
}

// unseal takes what a client brings back, and puts the server's own state in its place.
func (s *Server) unseal(q *request) *jsonrpc.Error {
	if responses := q.params.Get("inputResponses"); responses != nil {
		if _, err := rawjson.Parse(responses); err != nil {
			return jsonrpc.Errorf(jsonrpc.InvalidParams, "`inputResponses` must be an object.")
		}
		q.inputResponses = responses
	}
	if !q.params.Has("requestState") {
		return nil
	}
	sealed, _ := q.params.Text("requestState")
	first, second, _ := strings.Cut(sealed, ".")
	body, err := base64.RawURLEncoding.DecodeString(first)
	mac, macErr := base64.RawURLEncoding.DecodeString(second)
	if err != nil || macErr != nil || !s.Keys.Confirms(statePurpose, append(bytes.Clone(body), q.bound()...), mac) {
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "`requestState` is not what this request was answered with.")
	}
	var made int64
	instant, state, _ := bytes.Cut(body, []byte(" "))
	if _, err := fmt.Sscan(string(instant), &made); err != nil || s.Now().Sub(time.Unix(made, 0)) > stateFor {
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "`requestState` is older than %s; begin the request anew.", stateFor)
	}
	q.requestState = state
	return nil
}

// bound names what a state belongs to.
func (q *request) bound() []byte {
	name := q.params.Get("name")
	if name == nil {
		name = q.params.Get("uri")
	}
	return fmt.Appendf(nil, "\x00%s\x00%s\x00%s\x00%x", holderOf(q.from), q.method, canonical(name), sha256.Sum256(canonical(q.params.Get("arguments"))))
}

// canonical writes equal values alike, whatever order and space their writer chose.
func canonical(value json.RawMessage) []byte {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return value
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		return value
	}
	return text
}
