package outbox

import (
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/bus"
)

// Headers of a published message: the attributes of CloudEvents 1.0 in Kafka's binary mode.
const (
	HeaderID          = "ce_id"
	HeaderType        = "ce_type"
	HeaderSource      = "ce_source"
	HeaderTime        = "ce_time"
	HeaderSpecVersion = "ce_specversion"
	HeaderContentType = "content-type"

	specVersion = "1.0"
	// contentType says that values are protobuf messages, which is the suite's rule for events.
	contentType = "application/protobuf"
)

// reserved reports whether a header's name is the relay's own, trace context included.
func reserved(name string) bool {
	switch name {
	case HeaderContentType, "traceparent", "tracestate":
		return true
	default:
		return strings.HasPrefix(name, "ce_")
	}
}

// message answers a row as it goes over the wire.
func (r row) message(source string) bus.Message {
	headers := r.headers
	if headers == nil {
		headers = make(map[string]string, 6)
	}
	headers[HeaderID] = r.eventID.String()
	headers[HeaderType] = r.kind
	headers[HeaderSource] = source
	headers[HeaderTime] = r.createdAt.UTC().Format(time.RFC3339Nano)
	headers[HeaderSpecVersion] = specVersion
	headers[HeaderContentType] = contentType
	return bus.Message{Topic: r.topic, Key: r.key, Value: r.payload, Headers: headers, Time: r.createdAt}
}
