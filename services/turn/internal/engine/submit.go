package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/turn/internal/delivery"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
	"github.com/bullpenhq/bullpen/services/turn/internal/store"
)

// local runs a tool of the engine's own.
func (t *turn) local(ctx context.Context, call journal.Call) (ended bool, err error) {
	if call.Tool != submitWork {
		return false, t.settle(ctx, journal.Failed, refused(fault.New(fault.Unavailable, "`%s` cannot be run by this worker.", call.Tool)))
	}
	submission, err := t.submission(call)
	if err != nil {
		return false, t.settle(ctx, journal.Failed, refused(err))
	}
	_, ordinal, _ := t.journal.Current()
	summary := submission.GetSummary()
	if open := submission.GetOpenQuestions(); open != "" {
		summary += "\n\nOpen: " + open
	}
	if evidence := submission.GetEvidence(); evidence != "" {
		summary += "\n\nEvidence: " + evidence
	}
	return true, t.end(ctx, ending{
		outcome: submission.GetOutcome(), summary: summary,
		settle: &store.Settle{
			Round: len(t.journal.Rounds), Ordinal: ordinal, State: journal.Done, At: t.engine.Now(),
			Result: journal.Result{Text: `{"status":"accepted"}`},
		},
	})
}

// submission reads a seat's word and holds it against the record.
func (t *turn) submission(call journal.Call) (*turnv1.SubmitWorkRequest, error) {
	if calls := t.journal.Rounds[len(t.journal.Rounds)-1].Calls; calls[len(calls)-1].ID != call.ID {
		return nil, fault.New(fault.Invalid, "`%s` ends the turn, so it must be the last call. Nothing was submitted; call it again, "+
			"alone.", submitWork)
	}
	request := &turnv1.SubmitWorkRequest{}
	if err := decode(call.Args, request); err != nil {
		return nil, err
	}
	if request.GetOutcome() == "" {
		request.Outcome = journal.OutcomeDelivered
	}
	if err := rpc.Validate(request); err != nil {
		return nil, err
	}
	return request, delivery.Check(t.obligation(), delivery.Submission{
		Outcome: request.GetOutcome(), Deliveries: request.GetDeliveries(),
	}, t.record(), t.frozen.reach())
}

// decode reads arguments strictly: an argument that is not known is refused by name.
func decode(args string, m proto.Message) error {
	if args == "" {
		args = "{}"
	}
	var written map[string]json.RawMessage
	if err := json.Unmarshal([]byte(args), &written); err != nil {
		return fault.New(fault.Invalid, "The arguments must be one JSON object: %s.", err)
	}
	fields := m.ProtoReflect().Descriptor().Fields()
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if fields.ByTextName(name) != nil {
			continue
		}
		var known []string
		for i := range fields.Len() {
			known = append(known, "`"+fields.Get(i).TextName()+"`")
		}
		return fault.New(fault.Invalid, "Unknown argument `%s`; it takes %s.", name, strings.Join(known, ", ")).WithField(name)
	}
	for i := range fields.Len() {
		field := fields.Get(i)
		value, given := written[field.TextName()]
		if !given || string(value) == "null" {
			continue
		}
		if field.IsList() && !strings.HasPrefix(string(value), "[") {
			return fault.New(fault.Invalid, "`%s` must be a list.", field.TextName()).WithField(field.TextName())
		}
		if !field.IsList() && !strings.HasPrefix(string(value), `"`) {
			return fault.New(fault.Invalid, "`%s` must be a text.", field.TextName()).WithField(field.TextName())
		}
	}
	if err := protojson.Unmarshal([]byte(args), m); err != nil {
		return fault.New(fault.Invalid, "The arguments do not fit; each is a text, or a list of texts.").WithCause(err)
	}
	return nil
}
