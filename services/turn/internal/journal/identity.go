package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
)

// Canonical answers a JSON text with its keys sorted, its spaces gone and its numbers as written. A text that is no JSON is
// answered as it is.
func Canonical(text string) string {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return text
	}
	if _, err := decoder.Token(); err != io.EOF {
		return text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return text
	}
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}

// Hash tells calls apart: equal for the same tool with arguments that mean the same.
func Hash(tool, args string) [32]byte {
	return sha256.Sum256([]byte(tool + "\x00" + Canonical(args)))
}

// OperationID names the write that a call is. earlier are the calls of the turn before it. Identical calls made again without
// a different one to the same tool in between are the same write; A, B, A are three. It is the same in every execution of the
// same work that makes the same calls.
func OperationID(workKey, tool, args string, earlier []Call) string {
	same := Hash(tool, args)
	different := 0
	for _, call := range earlier {
		if call.Tool == tool && Hash(call.Tool, call.Args) != same {
			different++
		}
	}
	sum := sha256.Sum256([]byte(workKey + "\x00" + tool + "\x00" + Canonical(args) + "\x00" + strconv.Itoa(different)))
	return "t-" + hex.EncodeToString(sum[:])
}
