package tracker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// receipt is what every answer to a write has.
type receipt interface {
	proto.Message
	GetOutcome() string
	GetPosition() string
}

// deed is a write that was acknowledged.
type deed struct {
	receipt
	// rows is how many rows of history it left, text what it said that nothing else says.
	rows int
	text string
}

// shares says how often each kind of write is made.
type shares []struct {
	weight int
	write  func(l *load, n int) errand
}

// errand is a call that can be made again, and how many rows of history its answer promises.
type errand struct {
	call func(ctx context.Context) (receipt, error)
	rows func(receipt) int
	text string
}

func one(receipt) int { return 1 }

var (
	everyday = shares{
		{12, (*load).comment},
		{12, (*load).update},
		{6, (*load).create},
		{3, (*load).claim},
		{4, (*load).relate},
		{1, (*load).move},
		{1, (*load).merge},
		{1, (*load).remove},
		{3, (*load).restore},
		{1, (*load).place},
	}
	gesturesAlone = shares{{3, (*load).move}, {2, (*load).merge}, {3, (*load).remove}, {4, (*load).restore}, {1, (*load).hang}, {2, (*load).update}}
)

// load is callers who write, each call until its outcome is known.
type load struct {
	client trackerv1connect.TrackerServiceClient
	storm  storm
	items  targets
	next   atomic.Int64

	unknown, nothing, doubled atomic.Int64

	mu           sync.Mutex
	acknowledged map[string]deed // by operation
	refused      []string        // operations
	wrong        []string
}

func newLoad(client trackerv1connect.TrackerServiceClient, s storm) *load {
	return &load{client: client, storm: s, acknowledged: map[string]deed{}}
}

// prepare files trees of three levels.
func (l *load) prepare(ctx context.Context, t *testing.T) {
	t.Helper()
	for n := range 6 {
		parent := ""
		for level := range 3 {
			for range 1 + level*2 {
				l.settle(ctx, l.filing(fmt.Sprintf("tree %d, level %d, %d", n, level, rand.Int()), "OPS", parent))
			}
			parent = l.items.ids[len(l.items.ids)-1]
		}
	}
	require.Empty(t, l.wrong)
	require.Len(t, l.acknowledged, 6*9)
}

func (l *load) run(ctx context.Context) {
	var group sync.WaitGroup
	total := 0
	for _, s := range l.storm.share {
		total += s.weight
	}
	for range l.storm.callers {
		group.Go(func() {
			for {
				n := int(l.next.Add(1))
				if n > l.storm.writes || ctx.Err() != nil {
					return
				}
				at := rand.IntN(total)
				for _, s := range l.storm.share {
					if at -= s.weight; at < 0 {
						l.settle(ctx, s.write(l, n))
						break
					}
				}
			}
		})
	}
	group.Wait()
}

var operations atomic.Int64

// settle makes a write until it is acknowledged or refused. What certainly did nothing is done under another operation, so that the audit can
// prove that it did nothing; whatever nobody knows is asked for again under the same one.
func (l *load) settle(ctx context.Context, w errand) {
	who := rand.IntN(3)
	op, sure := "", true
	for ctx.Err() == nil {
		if op == "" {
			op = fmt.Sprint("storm-", operations.Add(1))
		}
		as := []context.Context{operator(ctx), person(ctx, "ines"), seat(ctx, "ops-lead")}[who]
		res, err := l.deliver(rpc.WithOperation(as, op), w)
		f := rpc.FromError(err)
		switch {
		case err == nil:
			l.acknowledge(rpc.WithOperation(as, op), op, w, res)
			return
		case f.Outcome == fault.OutcomeUnknown:
			l.unknown.Add(1)
			sure = false
		case f.Class == fault.Unavailable:
			l.nothing.Add(1)
			if sure {
				l.refuse(op)
				op = ""
			}
		default:
			l.refuse(op)
			return
		}
		pause(ctx, 10*time.Millisecond+rand.N(70*time.Millisecond))
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// deliver sends a call, one of six twice at once.
func (l *load) deliver(ctx context.Context, w errand) (receipt, error) {
	if rand.IntN(6) > 0 {
		return w.call(ctx)
	}
	l.doubled.Add(1)
	type answer struct {
		receipt
		error
	}
	twin := make(chan answer, 1)
	go func() {
		res, err := w.call(ctx)
		twin <- answer{res, err}
	}()
	res, err := w.call(ctx)
	other := <-twin
	switch {
	case err == nil && other.error == nil:
		l.same(res, other.receipt)
	case err != nil && rpc.FromError(err).Outcome == "": // the twin may have landed all the same
		return other.receipt, other.error
	}
	return res, err
}

func (l *load) same(a, b receipt) {
	if !proto.Equal(kept(a), kept(b)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wrong = append(l.wrong, fmt.Sprintf("one operation was answered %v and %v", a, b))
	}
}

// kept is what an operation answers for ever. Whoever claims an item is shown it as it is now, which is no part of that.
func kept(answer proto.Message) proto.Message {
	if c, ok := answer.(*trackerv1.ClaimWorkItemResponse); ok {
		c = proto.CloneOf(c)
		c.Item = &trackerv1.WorkItem{Id: c.GetItem().GetId()}
		return c
	}
	return answer
}

func (l *load) acknowledge(ctx context.Context, op string, w errand, res receipt) {
	d := deed{receipt: res, text: w.text}
	if res.GetOutcome() != "unchanged" {
		d.rows = w.rows(res)
	}
	if created, ok := res.(*trackerv1.CreateWorkItemResponse); ok {
		l.items.add(created.GetId())
	}
	l.mu.Lock()
	l.acknowledged[op] = d
	l.mu.Unlock()
	if rand.IntN(20) == 0 { // asked for once more, long after it was answered
		if again, err := w.call(ctx); err == nil {
			l.same(res, again)
		}
	}
}

func (l *load) refuse(op string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = append(l.refused, op)
}

// done is how many writes are settled.
func (l *load) done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acknowledged) + len(l.refused)
}

func (l *load) applied() (n int) {
	for _, d := range l.acknowledged {
		if d.GetOutcome() != "unchanged" {
			n++
		}
	}
	return n
}

func calls[Q proto.Message, A receipt](do func(context.Context, Q) (A, error), req Q) func(context.Context) (receipt, error) {
	return func(ctx context.Context) (receipt, error) {
		res, err := do(ctx, req)
		return res, err
	}
}

func (l *load) filing(title, project, parent string) errand {
	return errand{calls(l.client.CreateWorkItem, &trackerv1.CreateWorkItemRequest{Title: title, Project: project, Parent: parent}), one, title}
}

func (l *load) create(n int) errand {
	parent := ""
	if rand.IntN(6) == 0 {
		parent = l.items.some()
	}
	return l.filing(fmt.Sprint("filed by write ", n), "OPS", parent)
}

func (l *load) comment(n int) errand {
	text := fmt.Sprint("said by write ", n)
	return errand{calls(l.client.CommentOnWorkItem, &trackerv1.CommentOnWorkItemRequest{Item: l.items.some(), Body: text}), one, text}
}

func (l *load) update(n int) errand {
	req := &trackerv1.UpdateWorkItemRequest{Item: l.items.some()}
	switch rand.IntN(4) {
	case 0:
		req.Status = proto.String(statuses[rand.IntN(len(statuses))])
	case 1:
		req.Assignee = proto.String(people[rand.IntN(len(people))])
	default:
		req.Title = proto.String(fmt.Sprint("titled by write ", n))
	}
	return errand{calls(l.client.UpdateWorkItem, req), one, ""}
}

func (l *load) claim(int) errand {
	req := &trackerv1.ClaimWorkItemRequest{Item: l.items.some(), Release: rand.IntN(2) == 0}
	return errand{calls(l.client.ClaimWorkItem, req), one, ""}
}

func (l *load) relate(int) errand {
	change := &trackerv1.SetChange{Add: []string{l.items.some()}}
	if rand.IntN(3) == 0 {
		change = &trackerv1.SetChange{Remove: change.GetAdd()}
	}
	return errand{calls(l.client.UpdateWorkItem, &trackerv1.UpdateWorkItemRequest{Item: l.items.some(), WaitingOn: change}), one, ""}
}

func (l *load) hang(int) errand {
	parent := l.items.some()
	if rand.IntN(2) == 0 {
		parent = ""
	}
	return errand{calls(l.client.UpdateWorkItem, &trackerv1.UpdateWorkItemRequest{Item: l.items.some(), Parent: &parent}), one, ""}
}

func (l *load) move(int) errand {
	req := &trackerv1.MoveWorkItemRequest{Item: l.items.some(), Project: []string{"OPS", "SHOP"}[rand.IntN(2)]}
	return errand{calls(l.client.MoveWorkItem, req), func(r receipt) int { return 1 + int(r.(*trackerv1.MoveWorkItemResponse).GetSubtasksMoved()) }, ""}
}

func (l *load) merge(int) errand {
	req := &trackerv1.MergeWorkItemRequest{Item: l.items.some(), Into: l.items.some()}
	return errand{calls(l.client.MergeWorkItem, req), func(r receipt) int { return 1 + int(r.(*trackerv1.MergeWorkItemResponse).GetSubtasksMoved()) }, ""}
}

func (l *load) remove(int) errand {
	req := &trackerv1.RemoveWorkItemRequest{Item: l.items.some(), Subtree: true}
	return errand{calls(l.client.RemoveWorkItem, req), func(r receipt) int { return int(r.(*trackerv1.RemoveWorkItemResponse).GetRemoved()) }, ""}
}

func (l *load) restore(int) errand {
	req := &trackerv1.RestoreWorkItemRequest{Item: l.items.some()}
	return errand{calls(l.client.RestoreWorkItem, req), func(r receipt) int { return int(r.(*trackerv1.RestoreWorkItemResponse).GetRestored()) }, ""}
}

func (l *load) place(int) errand {
	req := &trackerv1.PlaceWorkItemRequest{Item: l.items.some(), IfMatch: int32(1 + rand.IntN(3)), After: l.items.some()}
	return errand{calls(l.client.PlaceWorkItem, req), one, ""}
}
