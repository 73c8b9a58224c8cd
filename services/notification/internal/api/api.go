// Package api answers the service's RPCs. A seat may reply; people and services
// may look at what came in, what went out and what was set aside.
package api

import (
	"context"
	"time"

	"github.com/bullpenhq/bullpen/gen/bullpen/notification/v1/notificationv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/notification/internal/store"
)

// Options are what a Handler works with; all fields are required.
type Options struct {
	Store *store.Store
	// Queued is called after a message was queued.
	Queued func()
	// Settled answers a channel that is closed when a message was next posted
	// or given up here.
	Settled func() <-chan struct{}
	// Drain routes all webhooks that wait.
	Drain func(ctx context.Context) error
	// RedriveEvents takes dead events in once more and answers how many it could.
	RedriveEvents func(ctx context.Context, ids ...int64) (int, error)
	// Wait is how long a reply waits to be posted before it answers pending.
	Wait time.Duration
}

// Handler serves NotificationService.
type Handler struct {
	o Options
}

var _ notificationv1connect.NotificationServiceHandler = (*Handler)(nil)

// New makes a handler.
func New(o Options) *Handler { return &Handler{o: o} }

// reader admits who may look at everybody's mail.
func reader(ctx context.Context) error {
	_, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindPerson, rpc.KindService)
	return err
}

// mender admits who may set work going again that was set aside.
func mender(ctx context.Context) error {
	_, err := rpc.RequireKind(ctx, rpc.KindOperator, rpc.KindService)
	return err
}

const (
	defaultLimit = 50
)

func limitOf(limit int32) int {
	if limit == 0 {
		return defaultLimit
	}
	return int(limit)
}
