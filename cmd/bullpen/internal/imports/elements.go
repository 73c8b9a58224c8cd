package imports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// errStop ends the reading of a file whose reader wants no more of it.
var errStop = errors.New("no more is wanted")

// elements answers the elements of a list, of the lists under some keys of an object, or of objects one after another, without holding
// more than one of them. An object without any of the keys is an element itself; what else is in one that has them is not looked at.
func elements(r *bufio.Reader, keys ...string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		decoder := json.NewDecoder(r)
		for {
			err := value(decoder, keys, yield)
			switch {
			case err == nil:
				continue
			case !errors.Is(err, io.EOF) && !errors.Is(err, errStop):
				yield(nil, err)
			}
			return
		}
	}
}

// value reads one value at the top of a file. It answers io.EOF where the file ends between values.
func value(d *json.Decoder, keys []string, yield func(json.RawMessage, error) bool) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		err = list(d, yield)
	case json.Delim('{'):
		err = object(d, keys, yield)
	default:
		err = fmt.Errorf("the file holds %v where an object or a list is expected", token)
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// list answers what is left of a list that has been opened.
func list(d *json.Decoder, yield func(json.RawMessage, error) bool) error {
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		// A list of pages: `gh api --paginate --slurp` writes one.
		var page []json.RawMessage
		if json.Unmarshal(raw, &page) != nil {
			page = []json.RawMessage{raw}
		}
		for _, element := range page {
			if !yield(element, nil) {
				return errStop
			}
		}
	}
	_, err := d.Token()
	return err
}

// object reads what is left of an object that has been opened: lists under the keys are answered as they are read.
func object(d *json.Decoder, keys []string, yield func(json.RawMessage, error) bool) error {
	members := map[string]json.RawMessage{}
	page := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := name.(string) // the name of a member is always one
		if slices.Contains(keys, key) {
			page = true
			if err := listUnder(d, key, yield); err != nil {
				return err
			}
			continue
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if !page {
			members[key] = raw
		}
	}
	if _, err := d.Token(); err != nil || page {
		return err
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	if !yield(raw, nil) {
		return errStop
	}
	return nil
}

func listUnder(d *json.Decoder, key string, yield func(json.RawMessage, error) bool) error {
	token, err := d.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != json.Delim('['):
		return fmt.Errorf("%s is no list", key)
	}
	return list(d, yield)
}
