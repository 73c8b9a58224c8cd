// Package page makes the opaque cursors of lists.
//
// A list is read by keyset: the cursor holds the sort key of the last row that was shown, never an offset, so a page is
// as cheap at the end as at the start and no row is shown twice when others come and go. A cursor means something only
// to the list it came from. It is therefore bound to that list: the caller passes the same bind text, naming the tool
// and everything that filters or sorts, when it makes a cursor and when it takes one back.
//
// A cursor is not a secret and not a permission. It is readable with some effort, and whoever alters one can only move
// to another place in a list that the query lets them see anyway.
package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	// bindBytes of the hash are kept: the binding catches mistakes, not forgers.
	bindBytes = 8
	// maxTokenBytes is checked before anything is decoded.
	maxTokenBytes = 4096
)

// Reasons of the faults of [Decode], all of class invalid on the field "cursor".
const (
	// ReasonMismatch: the cursor comes from another list, or from this one with another filter or order.
	ReasonMismatch = "CURSOR_MISMATCH"
	// ReasonMalformed: the text is no cursor of ours.
	ReasonMalformed = "CURSOR_MALFORMED"
)

// Encode makes the token that continues a list after cursor, a value that JSON can carry: a struct of sort keys. It
// fails only when the cursor cannot be written as JSON or is longer than a token may be, both mistakes of the program.
func Encode(bind string, cursor any) (string, error) {
	body, err := json.Marshal(cursor)
	if err != nil {
		return "", fmt.Errorf("encode a cursor: %w", err)
	}
	sum := sha256.Sum256([]byte(bind))
	token := base64.RawURLEncoding.EncodeToString(append(sum[:bindBytes], body...))
	if len(token) > maxTokenBytes {
		return "", fmt.Errorf("encode a cursor: %d bytes are more than %d", len(token), maxTokenBytes)
	}
	return token, nil
}

// Decode reads a token that Encode made with the same bind into cursor, a pointer. An empty token is the first page: it
// leaves cursor as it is. After an error cursor is not to be used.
func Decode(token, bind string, cursor any) error {
	if token == "" {
		return nil
	}
	if len(token) > maxTokenBytes {
		return malformed()
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) < bindBytes {
		return malformed()
	}
	sum := sha256.Sum256([]byte(bind))
	if !bytes.Equal(raw[:bindBytes], sum[:bindBytes]) {
		return fault.New(fault.Invalid, "The cursor belongs to another list or to another filter. Repeat the first "+
			"call's arguments with it, or leave it out to start from the beginning.").
			WithField("cursor").WithReason(ReasonMismatch)
	}
	body := json.NewDecoder(bytes.NewReader(raw[bindBytes:]))
	body.DisallowUnknownFields()
	if err := body.Decode(cursor); err != nil || body.More() {
		return malformed()
	}
	return nil
}

func malformed() error {
	return fault.New(fault.Invalid, "The cursor is not one that a list has answered. Pass it exactly as it was given, or "+
		"leave it out to start from the beginning.").WithField("cursor").WithReason(ReasonMalformed)
}
