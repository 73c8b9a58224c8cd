package modeldouble

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// events writes server-sent events, and breaks off after cutAfter of them when that is not 0.
type events struct {
	w        http.ResponseWriter
	cutAfter int
	sent     int
}

// send writes one event; an empty name is left out, as OpenAI does.
func (e *events) send(name string, data any) error {
	encoded, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return e.raw(name, string(encoded))
}

func (e *events) raw(name, data string) error {
	if e.cutAfter > 0 && e.sent >= e.cutAfter {
		return errCut
	}
	e.sent++
	if name != "" {
		if _, err := fmt.Fprintf(e.w, "event: %s\n", name); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(e.w, "data: %s\n\n", data); err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}

// halves splits a text in two, so that a stream is really put together by its reader.
func halves(text string) []string {
	runes := []rune(text)
	if len(runes) < 2 {
		return []string{text}
	}
	return []string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}
