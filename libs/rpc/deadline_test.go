package rpc_test

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// deaf is a handler that does not look at its context. It touches what it shares with the transport after it was given up.
type deaf struct {
	entered chan struct{}
	release chan struct{}
	panics  bool
}

func newDeaf(t *testing.T) *deaf {
	d := &deaf{entered: make(chan struct{}, 8), release: make(chan struct{})}
	t.Cleanup(func() {
		select {
		case <-d.release:
		default:
			close(d.release)
		}
	})
	return d
}

func (d *deaf) handle(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
	d.entered <- struct{}{}
	<-d.release
	if info, ok := connect.CallInfoForServerContext(ctx); ok {
		info.ResponseHeader().Set("Too-Late", "yes")
	}
	if d.panics {
		panic("nobody waits any more")
	}
	return &toolv1.VerifyTokenResponse{}, nil
}

// onBothTransportsDeaf is onBothTransports with a deaf handler for each.
func onBothTransportsDeaf(t *testing.T, o rpc.ServerOptions, test func(t *testing.T, b *bundle, d *deaf)) {
	t.Helper()
	for name, dial := range transports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDeaf(t)
			b := newBundle(t, o, serving(d.handle))
			b.dial = func() connect.Transport { return dial(t, b.server) }
			test(t, b, d)
		})
	}
}

func TestDeafHandlerDoesNotHoldItsCallerPastTheCallersDeadline(t *testing.T) {
	t.Parallel()
	onBothTransportsDeaf(t, rpc.ServerOptions{}, func(t *testing.T, b *bundle, _ *deaf) {
		// Long enough for the call to have been sent on a busy machine: before that its outcome is known.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := callWrite(ctx, b.client("turn"))
		require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
		require.Equal(t, fault.OutcomeUnknown, rpc.FromError(err).Outcome)
	})
}

func TestDeafHandlerDoesNotHoldACallerWhoLeaves(t *testing.T) {
	t.Parallel()
	onBothTransportsDeaf(t, rpc.ServerOptions{}, func(t *testing.T, b *bundle, d *deaf) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-d.entered
			cancel()
		}()
		err := callWrite(ctx, b.client("turn"))
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(err))
		require.Equal(t, fault.OutcomeUnknown, rpc.FromError(err).Outcome)
	})
}

func TestCallWithoutDeadlineIsBoundedByTheServer(t *testing.T) {
	t.Parallel()
	onBothTransportsDeaf(t, rpc.ServerOptions{MaxDeadline: 50 * time.Millisecond}, func(t *testing.T, b *bundle, _ *deaf) {
		err := callWrite(t.Context(), b.client("turn"))
		require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
		require.Contains(t, rpc.FromError(err).Message, "longer than its deadline")
		require.Equal(t, fault.OutcomeUnknown, rpc.FromError(err).Outcome)

		_, err = b.ask(t.Context())
		require.Empty(t, rpc.FromError(err).Outcome, "a read changes nothing")
	})
}

func TestPanicAfterTheDeadlineIsStillLogged(t *testing.T) {
	t.Parallel()
	d := newDeaf(t)
	d.panics = true
	b := newBundle(t, rpc.ServerOptions{MaxDeadline: 20 * time.Millisecond}, serving(d.handle))
	b.dial = func() connect.Transport { return rpc.InProcess(b.server) }
	require.Error(t, callWrite(t.Context(), b.client("turn")))
	close(d.release)
	eventually(t, b.log, "handler panicked after its deadline")
}

func TestClientBoundsACallThatHasNoDeadline(t *testing.T) {
	t.Parallel()
	onBothTransportsDeaf(t, rpc.ServerOptions{}, func(t *testing.T, b *bundle, _ *deaf) {
		c := rpc.NewClient(b.dial(), rpc.ClientOptions{Service: "turn", Keys: b.keys, Timeout: 50 * time.Millisecond})
		require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(callWrite(t.Context(), c)))
	})
}

func TestCallWhoseTimeIsOverIsNotSent(t *testing.T) {
	t.Parallel()
	onBothTransports(t, rpc.ServerOptions{}, serving(whoami), func(t *testing.T, b *bundle) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := rpc.FromError(callWrite(ctx, b.client("turn")))
		require.Equal(t, fault.Unavailable, f.Class)
		require.Empty(t, f.Outcome)
	})
}

func TestHandlersHeadersReachTheCaller(t *testing.T) {
	t.Parallel()
	setting := func(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		info, _ := connect.CallInfoForServerContext(ctx)
		info.ResponseHeader().Set("Bullpen-Position", "tracker@1:7")
		return &toolv1.VerifyTokenResponse{}, nil
	}
	refusing := func(ctx context.Context, req *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		_, _ = setting(ctx, req)
		return nil, fault.New(fault.Conflict, "Not now.")
	}
	for name, handler := range map[string]answer{"with a result": setting, "with a refusal": refusing} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothTransports(t, rpc.ServerOptions{}, serving(handler), func(t *testing.T, b *bundle) {
				ctx, info := connect.NewClientContext(t.Context())
				_, _ = b.ask(ctx)
				require.Equal(t, "tracker@1:7", info.ResponseHeader().Get("Bullpen-Position"))
			})
		})
	}
}
