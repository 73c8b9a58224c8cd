package modeldouble

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Bill is one answer that left whole and is charged for, used or not.
type Bill struct {
	// Request is the digest of what was asked: equal for the same question however often it is put.
	Request string
	Vendor  string
	Key     string
	Model   string
	// Rounds is how many answers the conversation held before this one.
	Rounds int
	// Opening is the first user message.
	Opening string
	Answer  Answer
}

// Bills answers everything charged so far, oldest first. Answers that are being written are waited for.
func (s *Server) Bills() []Bill {
	s.leaving.Lock()
	defer s.leaving.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bills)
}

// Requests answers how many well-formed requests came, failed ones included.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *Server) bill(r Request, a Answer) {
	scene := sceneOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bills = append(s.bills, Bill{
		Request: r.Digest, Vendor: r.Vendor, Key: r.Key, Model: r.Model, Rounds: scene.Round, Opening: scene.Opening, Answer: a,
	})
}

// digest hashes a body without what says only how the answer is to be carried.
func digest(body []byte) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) == nil {
		delete(fields, "stream")
		delete(fields, "stream_options")
		if canonical, err := json.Marshal(fields); err == nil {
			body = canonical
		}
	}
	sum := sha256.Sum256(bytes.TrimSpace(body))
	return hex.EncodeToString(sum[:])
}

// tokens is a stand-in for a tokenizer: four bytes a token, at least one.
func tokens(text string) int { return len(text)/4 + 1 }
