package api

import (
	"context"
	"errors"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
)

// naming answers the handle that a text names.
type naming func(text string) (string, error)

// unknownName says that a text is no handle, so that somebody has to be asked who it names.
type unknownName struct{ text string }

func (u *unknownName) Error() string { return "who is " + u.text + "?" }

// named runs a write that learns only while it holds rows which of its texts name colleagues. It must not wait for the company service then,
// so it is given a naming that knows handles and what was looked up before; a write that meets another name is undone, the name is looked up, and the write
// runs again.
func (h *Handler) named(ctx context.Context, o *org.Org, write func(naming) error) error {
	known, nobody := map[string]string{}, map[string]error{}
	resolve := func(text string) (string, error) {
		if err, ok := nobody[text]; ok {
			return "", err // again from here, so that the refusal names the field
		}
		if handle, ok := known[text]; ok {
			return handle, nil
		}
		if o.Has(text) {
			return text, nil
		}
		return "", &unknownName{text: text}
	}
	for {
		err := write(resolve)
		unknown, ok := errors.AsType[*unknownName](err)
		if !ok {
			return err
		}
		handle, err := h.colleague(ctx, o, "fields", unknown.text)
		switch {
		case err == nil:
			known[unknown.text] = handle
		case fault.ClassOf(err) == fault.Invalid:
			nobody[unknown.text] = err
		default:
			return err
		}
	}
}
