package door

import (
	"context"
	"errors"
	"fmt"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
)

// answer cleans a result, records it and hands it over whole.
func (d *Door) answer(ctx context.Context, p *passage, raw dispatch.Answer) *Answer {
	a := &Answer{
		Failed: raw.Failed, ProtocolError: raw.ProtocolError, InputRequired: raw.InputRequired, Receipt: raw.Receipt, Source: p.tool.Source,
		AuditID: p.record.ID, Duration: p.record.Duration,
	}
	clean, err := d.Cleaner.JSON(raw.JSON)
	switch {
	case errors.Is(err, hygiene.ErrBinary):
		a.ProtocolError, a.InputRequired = false, false
		a.Failed, a.Text = true, "The tool answered binary data, which is not passed on."
	case err != nil:
		a.ProtocolError, a.InputRequired = false, false
		a.Failed, a.Text = true, "The tool's answer is not JSON and is not passed on."
	case p.builtin != nil:
		a.JSON, a.Text = clean, clean
	default:
		a.JSON, a.Text = clean, dispatch.Text(clean)
	}
	p.record.Status, p.record.Result = call.OK, a.JSON
	if a.Failed {
		p.record.Status = call.Failed
	} else if !a.InputRequired {
		a.Delivered = p.tool.Delivers
	}
	if a.JSON == "" {
		p.record.Result = a.Text
	}
	p.record.Outcome = a.Receipt.GetOutcome()
	d.keep(ctx, p)
	return a
}

// refuse cleans a failure and records it. An error that nobody claimed is ours.
func (d *Door) refuse(ctx context.Context, p *passage, err error) error {
	f, ok := fault.As(err)
	if !ok {
		f = fault.New(fault.Unavailable, "The registry failed on this call; trying again later may work.").WithCause(err)
	}
	clean := *f
	clean.Message = d.cleaned(f.Message)
	if len(f.Facts) > 0 {
		clean.Facts = make(map[string]string, len(f.Facts))
		for key, value := range f.Facts {
			clean.Facts[key] = d.cleaned(value)
		}
	}
	p.record.Status, p.record.RefusalClass = call.Refused, string(f.Class)
	if f.Class == fault.Unavailable {
		p.record.Status = call.Failed
	}
	p.record.Result, p.record.Outcome = clean.Message, f.Outcome
	d.keep(ctx, p)
	return clean.WithFact("audit_id", p.record.ID.String())
}

// keep records the call: behind its back when a turn's journal proves it, before the answer otherwise.
func (d *Door) keep(ctx context.Context, p *passage) {
	d.metrics.observe(p.record)
	if p.record.TurnID != "" && !p.synchronous {
		d.Audit.Append(ctx, p.record)
		return
	}
	d.Audit.Write(ctx, p.record)
}

// cleaned cleans a text of a caller or of a failure; binary is described.
func (d *Door) cleaned(text string) string {
	clean, err := d.Cleaner.Text(text)
	if err != nil {
		return fmt.Sprintf("(%d bytes of binary data)", len(text))
	}
	return clean
}

// cleanedArguments cleans arguments inside their structure where they have one: a caller may write anything.
func (d *Door) cleanedArguments(text string) string {
	if clean, err := d.Cleaner.JSON(text); err == nil {
		return clean
	}
	return d.cleaned(text)
}
