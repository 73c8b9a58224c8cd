// Package desk is where people answer questions about calls, and where what follows is seen through.
//
//	Approve ─► prepare (company, tool and policy as they are now) ─► commit `approved, running` ─► call ─► commit how it ended
//	                                                                      │
//	                              a runner that is silent for RunLease ───┴─► Sweep: made again, or `unknown`
//
// The commit before the call is what a crash is survived by: whoever finds an approved call without a living runner makes it again
// where that does no more than making it once, and says otherwise that nobody knows. Each question that ends leaves one event.
package desk

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/store"
)

const (
	// sweepEvery is how often lapsed questions and lost runs are looked for.
	sweepEvery = time.Second
	// sweepPortion bounds one look.
	sweepPortion = 100
	// renewEvery is how often a runner says that it is alive.
	renewEvery = approval.RunLease / 6
	// settleTries and settlePause bound how long a database that is away is asked to keep how a call ended.
	settleTries, settlePause = 60, 500 * time.Millisecond
	// giveUp is how long after its approval a call is tried to be made again while the tool cannot be reached.
	giveUp = 10 * time.Minute
)

// Options are what a desk needs. All are required.
type Options struct {
	Store *store.Approvals
	Door  *door.Door
	Log   *slog.Logger
	Now   func() time.Time
	// Node is unique among all processes.
	Node string
}

// Desk answers approvals. Safe for concurrent use.
type Desk struct {
	Options
	runs sync.WaitGroup
}

// New makes a desk; [Desk.Run] ends what nobody answers and finishes what others left.
func New(o Options) *Desk { return &Desk{Options: o} }

// Approve lets a call be made, makes it, and answers how it ended. The call is made whether or not the caller stays. Faults:
// already_answered, who decided and when; conflict, when the question has ended otherwise or the call cannot be made as it was
// asked for; unavailable, when the tool cannot be reached. In the last two the question goes on waiting.
func (d *Desk) Approve(ctx context.Context, by, note string, id uuid.UUID) (*approval.Approval, error) {
	a, err := d.waiting(ctx, id)
	if err != nil {
		return nil, err
	}
	ready, err := d.Door.Prepare(ctx, a)
	if err != nil {
		return nil, unmakeable(err)
	}
	audit, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	runner := d.runner()
	a, err = d.Store.Change(ctx, id, func(a *approval.Approval) error { return a.Approve(by, note, runner, audit.String(), d.Now()) })
	if err != nil {
		return nil, err
	}
	d.Log.InfoContext(ctx, "call approved", "approval_id", id, "seat", a.Asker.Seat, "tool", a.Tool, "by", by)
	return d.make(context.WithoutCancel(ctx), a, runner, ready.Call)
}

// Deny refuses a call. Faults as of Approve.
func (d *Desk) Deny(ctx context.Context, by, note string, id uuid.UUID) (*approval.Approval, error) {
	if _, err := d.waiting(ctx, id); err != nil {
		return nil, err
	}
	return d.Store.Change(ctx, id, func(a *approval.Approval) error { return a.Deny(by, note, d.Now()) })
}

// Cancel takes a question back; seat is empty unless a seat does. Faults as of Approve, and forbidden for another seat's.
func (d *Desk) Cancel(ctx context.Context, by, seat string, id uuid.UUID) (*approval.Approval, error) {
	a, err := d.waiting(ctx, id)
	if err != nil {
		return nil, err
	}
	if seat != "" && seat != a.Asker.Seat {
		return nil, fault.New(fault.Forbidden, "The call is another seat's; only it, or an operator, takes the question back.")
	}
	return d.Store.Change(ctx, id, func(a *approval.Approval) error { return a.Cancel(by, d.Now()) })
}

// waiting answers a question; one that has lapsed is ended first, so that whoever answers it reads so.
func (d *Desk) waiting(ctx context.Context, id uuid.UUID) (*approval.Approval, error) {
	a, err := d.Store.Get(ctx, id)
	if err == nil && a.Lapsed(d.Now()) {
		if err := d.expire(ctx, id); err != nil {
			return nil, err
		}
		a, err = d.Store.Get(ctx, id)
	}
	return a, err
}

func (d *Desk) expire(ctx context.Context, id uuid.UUID) error {
	_, err := d.Store.Change(ctx, id, func(a *approval.Approval) error { return a.Expire(d.Now()) })
	if fault.ClassOf(err) == fault.Conflict {
		return nil // somebody was first
	}
	return err
}

// unmakeable says that a question still waits because its call cannot be made now.
func unmakeable(err error) error {
	f, ok := fault.As(err)
	if !ok || f.Class == fault.Unavailable {
		return err
	}
	return fault.New(fault.Conflict, "The call cannot be made as it was asked for: %s It still waits; deny it, or take the question back.",
		sentence(f.Message)).WithReason(f.Reason).WithCause(err)
}

func sentence(text string) string {
	if n := len(text); n > 0 && text[n-1] != '.' {
		return text + "."
	}
	return text
}

// runner names one run: two of one process are two.
func (d *Desk) runner() string { return d.Node + "/" + uuid.NewString() }
