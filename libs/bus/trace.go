package bus

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// Inject writes the trace of ctx into the message's headers (W3C traceparent
// and tracestate). Without a trace it writes nothing.
func Inject(ctx context.Context, m *Message) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if len(carrier) > 0 && m.Headers == nil {
		m.Headers = make(map[string]string, len(carrier))
	}
	for k, v := range carrier {
		m.Headers[k] = v
	}
}

// Extract returns ctx with the trace that the message was published under as
// the remote parent, or ctx as it is.
func Extract(ctx context.Context, m Message) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(m.Headers))
}
