package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// maxDecisionBytes is the largest body of a decision.
const maxDecisionBytes = 64 << 10

// textOf reads a decision's body, which says one thing or nothing, and writes the refusal when it cannot. Only JSON is read: a form
// that a browser sends by itself is not.
func textOf(w http.ResponseWriter, r *http.Request, member string) (text string, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		write(w, http.StatusUnsupportedMediaType, errorJSON("invalid", "The body must be JSON, with `Content-Type: application/json`.", ""))
		return "", false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDecisionBytes))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		write(w, http.StatusRequestEntityTooLarge, errorJSON("invalid", "The body is larger than 64 KiB.", ""))
		return "", false
	}
	if text, ok = textIn(body, member); err != nil || !ok {
		write(w, http.StatusBadRequest, errorJSON("invalid", fmt.Sprintf("The body must be one JSON object with at most `%s`, a text.", member), ""))
		return "", false
	}
	return text, true
}

// textIn reads nothing, or exactly one object with at most the member: whoever decides has been understood whole.
func textIn(body []byte, member string) (text string, ok bool) {
	if len(bytes.TrimSpace(body)) == 0 {
		return "", true
	}
	object, err := rawjson.Parse(body)
	if err != nil || len(object.Without(member)) > 0 {
		return "", false
	}
	text, ok = object.Text(member)
	return text, ok || !object.Has(member)
}
