package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// Event is one server-sent event.
type Event struct {
	// Name is its type; empty for a message.
	Name string
	Data []byte
	// ID is the last event id so far.
	ID string
}

// Events reads a stream of server-sent events. It has one user.
type Events struct {
	reader *bufio.Reader
	most   int
	id     string
	retry  time.Duration
}

const eventsBuffer = 32 << 10

// NewEvents reads events of at most most bytes.
func NewEvents(r io.Reader, most int) *Events {
	return &Events{reader: bufio.NewReaderSize(r, eventsBuffer), most: most}
}

// Streams reads many streams with few buffers: a server answers every call with a stream of its own, and most of these have one short
// event. The zero value is ready; safe for concurrent use.
type Streams struct{ readers sync.Pool }

// Read is [NewEvents] for as long as show takes. What was read stays valid.
func (s *Streams) Read(r io.Reader, most int, show func(*Events)) {
	reader, ok := s.readers.Get().(*bufio.Reader)
	if !ok {
		reader = bufio.NewReaderSize(nil, eventsBuffer)
	}
	reader.Reset(r)
	events := &Events{reader: reader, most: most}
	show(events)
	events.reader = nil
	reader.Reset(nil)
	s.readers.Put(reader)
}

// ID answers the last event id so far, whether or not its event had data.
func (e *Events) ID() string { return e.id }

// Retry answers how long the server wants a reader that was cut off to wait; 0 when it did not say.
func (e *Events) Retry() time.Duration { return e.retry }

// Next answers the next event with data. What the end of the stream cuts off is no event.
func (e *Events) Next() (Event, error) {
	event, has := Event{}, false
	size := 0
	for {
		line, err := e.line(e.most - size)
		if err != nil {
			return Event{}, err
		}
		size += len(line)
		if len(line) == 0 {
			if has {
				event.ID = e.id
				return event, nil
			}
			event, size = Event{}, 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if has {
				event.Data = append(event.Data, '\n')
			}
			event.Data, has = append(event.Data, value...), true
		case "event":
			event.Name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line answers a line without its end, which may be a newline, a carriage return or both.
func (e *Events) line(most int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.reader.ReadSlice('\n')
		if line == nil && err == nil {
			line = part // stands in the reader's buffer until the next read
		} else {
			line = append(line, part...)
		}
		switch {
		case len(line) > most:
			return nil, fmt.Errorf("it sent an event of more than %d MiB", e.most>>20)
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
