package bus

import (
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// recordOverhead is a generous bound for what the wire adds to one record's
// own bytes: lengths, deltas, attributes.
const recordOverhead = 64

// headerOverhead is the same for one header.
const headerOverhead = 10

// headBytes counts what MaxHeadBytes limits.
func headBytes(m Message) int {
	n := len(m.Key)
	for k, v := range m.Headers {
		n += len(k) + len(v)
	}
	return n
}

// wireBytes bounds the size of the message inside a record batch.
func wireBytes(m Message) int {
	return len(m.Value) + headBytes(m) + len(m.Headers)*headerOverhead + recordOverhead
}

// Check refuses, with class invalid, a message that Publish would never send:
// without a topic, or over MaxValueBytes or MaxHeadBytes. Who stores messages
// to publish them later asks before storing.
func Check(m Message) error {
	switch {
	case m.Topic == "":
		return fault.New(fault.Invalid, "message has no topic").WithField("topic")
	case len(m.Value) > MaxValueBytes:
		return fault.New(fault.Invalid, "value of %d bytes for topic %s is over the limit of %d bytes",
			len(m.Value), m.Topic, MaxValueBytes).WithField("value")
	}
	if n := headBytes(m); n > MaxHeadBytes {
		return fault.New(fault.Invalid, "key and headers of %d bytes for topic %s are over the limit of %d bytes",
			n, m.Topic, MaxHeadBytes).WithField("headers")
	}
	return nil
}

func toRecord(m Message) kafka.Record {
	r := kafka.Record{Time: m.Time, Value: kafka.NewBytes(m.Value)}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	if m.Key != "" {
		r.Key = kafka.NewBytes([]byte(m.Key))
	}
	// Sorted, so that the same message has the same bytes.
	for _, k := range slices.Sorted(maps.Keys(m.Headers)) {
		r.Headers = append(r.Headers, kafka.Header{Key: k, Value: []byte(m.Headers[k])})
	}
	return r
}

// fromRecord copies the record out of the pages it was read into.
func fromRecord(topic string, partition int, r *kafka.Record) (Message, error) {
	key, err := readBytes(r.Key)
	if err != nil {
		return Message{}, err
	}
	value, err := readBytes(r.Value)
	if err != nil {
		return Message{}, err
	}
	m := Message{
		Topic:     topic,
		Key:       string(key),
		Value:     value,
		Partition: partition,
		Offset:    r.Offset,
		Time:      r.Time,
	}
	if len(r.Headers) > 0 {
		m.Headers = make(map[string]string, len(r.Headers))
		for _, h := range r.Headers {
			m.Headers[h.Key] = string(h.Value)
		}
	}
	return m, nil
}

func readBytes(b protocol.Bytes) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	data, err := protocol.ReadAll(b)
	return data, errors.Join(err, b.Close())
}

// readRecords reads the messages from offset on. A broker may answer whole
// batches that begin before it. What was read before a broken record is
// kept: the next request begins there and reports it.
func readRecords(topic string, partition int, offset int64, set protocol.RecordReader) ([]Message, error) {
	if set == nil {
		return nil, nil
	}
	var msgs []Message
	for {
		r, err := set.ReadRecord()
		if errors.Is(err, io.EOF) {
			return msgs, nil
		}
		var m Message
		if err == nil {
			m, err = fromRecord(topic, partition, r)
		}
		if err != nil {
			if len(msgs) > 0 {
				return msgs, nil
			}
			return nil, err
		}
		if m.Offset >= offset {
			msgs = append(msgs, m)
		}
	}
}
