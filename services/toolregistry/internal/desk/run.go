package desk

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pg"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/approval"
)

// make makes an approved call while it holds the run, and keeps how it ended. A runner that has lost the run keeps nothing.
func (d *Desk) make(
	ctx context.Context, a *approval.Approval, runner string, call func(context.Context, string) approval.Call,
) (*approval.Approval, error) {
	renewing, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.renew(renewing, a.ID, runner)
	}()
	made := call(ctx, a.Call.AuditID)
	settled, err := d.settle(ctx, a.ID, runner, made)
	stop()
	<-done
	if err != nil {
		d.Log.WarnContext(ctx, "the end of an approved call is not kept", "approval_id", a.ID, "tool", a.Tool, "error", err)
		return nil, err
	}
	d.Log.InfoContext(ctx, "approved call ended", "approval_id", a.ID, "tool", a.Tool, "status", made.Status)
	return settled, nil
}

// settle keeps how a call ended. A database that is away is asked again: what is not kept would be a call in doubt.
func (d *Desk) settle(ctx context.Context, id uuid.UUID, runner string, made approval.Call) (settled *approval.Approval, err error) {
	for range settleTries {
		settled, err = d.Store.Change(ctx, id, func(a *approval.Approval) error { return a.Settle(runner, made) })
		if !pg.Transient(err) {
			return settled, err
		}
		pause := time.NewTimer(settlePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return settled, err
		}
	}
	return settled, err
}

// renew holds a run until ctx ends or it is lost.
func (d *Desk) renew(ctx context.Context, id uuid.UUID, runner string) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, err := d.Store.Change(ctx, id, func(a *approval.Approval) error { return a.Renew(runner, d.Now()) })
		if err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "an approved call is not held", "approval_id", id, "error", err)
		}
	}
}

// Run sweeps until ctx ends, then waits for the calls that it took over.
func (d *Desk) Run(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	defer d.runs.Wait()
	for {
		if err := d.Sweep(ctx); err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "approvals are not swept", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Sweep ends questions that nobody answered in time, and takes over calls whose runner has been silent. The calls go on behind
// it; [Desk.Wait] waits for them.
func (d *Desk) Sweep(ctx context.Context) error {
	lapsed, orphaned, err := d.Store.Due(ctx, d.Now(), sweepPortion)
	if err != nil {
		return err
	}
	for _, id := range lapsed {
		if err := d.expire(ctx, id); err != nil {
			return err
		}
	}
	for _, id := range orphaned {
		runner := d.runner()
		a, err := d.Store.Change(ctx, id, func(a *approval.Approval) error { return a.Take(runner, d.Now()) })
		if fault.ClassOf(err) == fault.Conflict {
			continue // another was first
		}
		if err != nil {
			return err
		}
		d.runs.Go(func() { d.finish(context.WithoutCancel(ctx), a, runner) })
	}
	return nil
}

// Wait waits for the calls that sweeps have taken over.
func (d *Desk) Wait() { d.runs.Wait() }

// finish brings a call to its end that another runner left in doubt.
func (d *Desk) finish(ctx context.Context, a *approval.Approval, runner string) {
	d.Log.InfoContext(ctx, "approved call taken over", "approval_id", a.ID, "tool", a.Tool, "repeatable", a.Repeatable)
	call := func(ctx context.Context, _ string) approval.Call { return d.Door.Doubt(ctx, a) }
	if a.Repeatable {
		ready, err := d.Door.Resume(ctx, a)
		switch {
		case err == nil:
			call = ready.Call
		case fault.ClassOf(err) == fault.Unavailable && d.Now().Before(a.DecidedAt.Add(giveUp)),
			fault.ClassOf(err) == fault.NotFound && d.Now().Before(a.DecidedAt.Add(giveUp)):
			// Its server may still be starting: the run lapses and is taken over again.
			d.Log.InfoContext(ctx, "approved call waits for its tool", "approval_id", a.ID, "tool", a.Tool, "error", err)
			return
		}
	}
	_, _ = d.make(ctx, a, runner, call) // its failures are logged, and the run lapses
}
