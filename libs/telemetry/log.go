package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

func newHandler(out io.Writer, level, format string) (slog.Handler, error) {
	options := &slog.HandlerOptions{ReplaceAttr: hideSecrets}
	if level != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("log level must be debug, info, warn or error, not %q", level)
		}
		options.Level = l
	}
	switch format {
	case "", "text":
		return traced{slog.NewTextHandler(out, options)}, nil
	case "json":
		return traced{slog.NewJSONHandler(out, options)}, nil
	default:
		return nil, fmt.Errorf("log format must be text or json, not %q", format)
	}
}

// traced puts the ids of the context's span on every line, so that logs and traces can be read side by side.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }
