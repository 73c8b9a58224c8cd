package session

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// required is a result that asks for input.
type required struct {
	ResultType    string `json:"resultType"`
	InputRequests map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"inputRequests"`
	RequestState string `json:"requestState"`
}

const asker = `"name":"ask","arguments":{ "big": 9007199254740993 }`

// question makes the first round, and answers the name of its only question and the state.
func question(t *testing.T, s *Session, owner string) (key, state string) {
	t.Helper()
	reply, _ := send(t, s, Request{Method: "tools/call", Params: []byte(`{` + asker + `}`), Capabilities: []byte(`{"elicitation":{"form":{}}}`), Owner: owner})
	require.Empty(t, string(reply.Error))
	var r required
	require.NoError(t, json.Unmarshal(reply.Result, &r), string(reply.Result))
	require.Equal(t, "input_required", r.ResultType, string(reply.Result))
	require.Len(t, r.InputRequests, 1)
	for key, request := range r.InputRequests {
		require.Equal(t, "elicitation/create", request.Method)
		require.Contains(t, string(request.Params), `"Who?"`)
		return key, r.RequestState
	}
	return "", ""
}

func retry(key, state, rest string) []byte {
	return fmt.Appendf(nil, `{%s,"inputResponses":{%q:{"action":"accept","content":{"name":"Ada"}}},"requestState":%q%s}`, asker, key, state, rest)
}

func TestAQuestionInTheMiddleOfACallGoesToItsCallerAndTheAnswerBack(t *testing.T) {
	t.Parallel()
	for _, carriage := range streaming() {
		t.Run(carriage, func(t *testing.T) {
			t.Parallel()
			s, _ := carry(t, carriage)
			key, state := question(t, s, "ada")
			reply, _ := send(t, s, Request{Method: "tools/call", Params: retry(key, state, ""), Capabilities: []byte(`{"elicitation":{}}`), Owner: "ada"})
			require.Equal(t, "accept Ada", text(t, reply))
			require.Empty(t, s.parked)
			require.Empty(t, underWay(s))
		})
	}
}

// underWay answers the public calls under way.
func underWay(s *Session) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []int64
	for id, c := range s.pending {
		if c.public {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestWhoCannotBeAskedIsNotAskedAndTheServerHearsItAtOnce(t *testing.T) {
	t.Parallel()
	for _, carriage := range carriages() {
		t.Run(carriage, func(t *testing.T) {
			t.Parallel()
			s, _ := carry(t, carriage)
			answer, err := s.Call(t.Context(), "ask", []byte(`{}`), time.Minute)
			require.NoError(t, err)
			require.True(t, answer.Failed, string(answer.Result))
			for _, capabilities := range []string{"", `{"elicitation":{"url":{}}}`, `{"sampling":{}}`} {
				reply, _ := send(t, s, Request{Method: "tools/call", Params: []byte(`{"name":"ask","arguments":{}}`), Capabilities: []byte(capabilities)})
				if s.Legacy() {
					require.NotContains(t, string(reply.Result), "input_required")
				}
			}
			require.Empty(t, underWay(s))
		})
	}
}

func TestAStateOpensOnlyTheRequestItCameWith(t *testing.T) {
	t.Parallel()
	s, _ := carry(t, "stdio legacy")
	key, state := question(t, s, "ada")
	other, _ := carry(t, "stdio legacy")
	changed := []byte(state)
	changed[len(changed)/2] ^= 1
	for name, r := range map[string]Request{
		"changed":          {Owner: "ada", Params: retry(key, string(changed), "")},
		"none":             {Owner: "ada", Params: retry(key, "", "")},
		"somebody else":    {Owner: "bo", Params: retry(key, state, "")},
		"another argument": {Owner: "ada", Params: retry(key, state, `,"more":1`)},
		"no text":          {Owner: "ada", Params: []byte(`{` + asker + `,"requestState":7}`)},
		"no object":        {Owner: "ada", Params: fmt.Appendf(nil, `{%s,"inputResponses":7,"requestState":%q}`, asker, state)},
	} {
		r.Method, r.Capabilities = "tools/call", []byte(`{"elicitation":{}}`)
		reply, _ := send(t, s, r)
		require.EqualValues(t, codeInvalidParams, refusedWith(t, reply), name)
	}
	mine := Request{Method: "tools/call", Owner: "ada", Params: retry(key, state, ""), Capabilities: []byte(`{"elicitation":{}}`)}
	reply, _ := send(t, other, mine)
	require.EqualValues(t, codeInvalidParams, refusedWith(t, reply), "of another session")

	// Blanks and the order of members do not count, and the caller may be told of progress under another token.
	reordered := mine
	reordered.Params = fmt.Appendf(nil, `{"requestState":%q,"_meta":{"progressToken":"new"},"inputResponses":{%q:{"action":"decline"}},"arguments":{"big":9007199254740993},"name":"ask"}`, state, key)
	reply, _ = send(t, s, reordered)
	require.Equal(t, "decline <nil>", text(t, reply))
	reply, _ = send(t, s, mine)
	require.EqualValues(t, codeInvalidParams, refusedWith(t, reply), "it has been used")
}

func TestARoundThatAnswersNothingIsAskedAgain(t *testing.T) {
	t.Parallel()
	s, _ := carry(t, "stdio legacy")
	key, state := question(t, s, "")
	reply, _ := send(t, s, Request{Method: "tools/call", Params: fmt.Appendf(nil, `{%s,"requestState":%q}`, asker, state), Capabilities: []byte(`{"elicitation":{}}`)})
	var r required
	require.NoError(t, json.Unmarshal(reply.Result, &r))
	require.Contains(t, r.InputRequests, key)
	reply, _ = send(t, s, Request{Method: "tools/call", Params: retry(key, r.RequestState, ""), Capabilities: []byte(`{"elicitation":{}}`)})
	require.Equal(t, "accept Ada", text(t, reply))
}

func TestACallWhoseQuestionNobodyAnswersIsGivenUp(t *testing.T) {
	t.Parallel()
	s, _ := carry(t, "stdio legacy")
	key, state := question(t, s, "ada")
	s.mu.Lock()
	var kept *exchange
	for _, x := range s.parked {
		kept = x
	}
	s.mu.Unlock()
	kept.expire()
	require.ErrorIs(t, kept.call.reply.failure, errExpired)
	require.Empty(t, underWay(s))
	reply, _ := send(t, s, Request{Method: "tools/call", Params: retry(key, state, ""), Owner: "ada"})
	require.EqualValues(t, codeInvalidParams, refusedWith(t, reply))
	_, ok := s.seal.open(state, time.Now().Add(keptFor+2*time.Second), kept.bound)
	require.False(t, ok, "its time is over wherever it comes from")
	_, ok = s.seal.open(state, time.Now(), kept.bound)
	require.True(t, ok)
	answer, err := s.Call(t.Context(), "echo", []byte(`{"a":1}`), time.Minute)
	require.NoError(t, err)
	require.False(t, answer.Failed)
}

func TestAQuestionWithTwoCallsUnderWayIsAnsweredToNeither(t *testing.T) {
	t.Parallel()
	s, _ := carry(t, "stdio legacy") // on one stream nobody can say whose it is
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, "wait", []byte(`{}`), time.Minute)
		ended <- err
	}()
	require.Eventually(t, func() bool { return len(underWay(s)) == 1 }, 30*time.Second, time.Millisecond)
	reply, _ := send(t, s, Request{Method: "tools/call", Params: []byte(`{"name":"ask","arguments":{}}`), Capabilities: []byte(`{"elicitation":{}}`)})
	require.NotContains(t, string(reply.Result), "input_required")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestCallsThatWaitForInputAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := carry(t, "http legacy")
	for range maxKept {
		question(t, s, "ada")
	}
	reply, _ := send(t, s, Request{Method: "tools/call", Params: []byte(`{"name":"ask","arguments":{}}`), Capabilities: []byte(`{"elicitation":{}}`)})
	require.NotContains(t, string(reply.Result), "input_required")
	require.Contains(t, string(reply.Result)+string(reply.Error), "Too many")
}

func TestQuestionsOfACallAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := carry(t, "stdio legacy")
	x := &exchange{session: s, call: s.newCall(methodCall), wake: make(chan struct{}, 1)}
	for n := range maxAsks + 5 {
		x.heed(wire.Message{ID: fmt.Append(nil, n), Method: methodElicit})
	}
	require.Len(t, x.asks, maxAsks)
}
