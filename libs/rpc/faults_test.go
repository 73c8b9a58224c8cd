package rpc_test

import (
	"context"
	"errors"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func failing(err error) answer {
	return func(context.Context, *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		return nil, err
	}
}

func TestFaultOfEveryClassArrivesWhole(t *testing.T) {
	t.Parallel()
	for _, class := range fault.Classes() {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			sent := fault.New(class, "No, because of %d reasons.", 2).WithField("waiting_on.add[0]").WithReason("TWO_REASONS").
				WithFact("current_version", "7").WithOutcome(fault.OutcomeUnknown).WithOperation("op-1").
				WithCause(errors.New("password=hunter2"))
			onBothTransports(t, rpc.ServerOptions{}, serving(failing(sent)), func(t *testing.T, b *bundle) {
				_, err := b.ask(t.Context())
				require.NotContains(t, err.Error(), "hunter2")
				got := rpc.FromError(err)
				require.NotErrorIs(t, got, sent, "the fault itself stays on the other side")
				require.Equal(t, []any{sent.Class, sent.Message, sent.Field, sent.Reason, sent.Facts, sent.Outcome, sent.Operation},
					[]any{got.Class, got.Message, got.Field, got.Reason, got.Facts, got.Outcome, got.Operation})
			})
		})
	}
}

func TestErrorNobodyClaimedIsUnavailableAndStaysHome(t *testing.T) {
	t.Parallel()
	onBothTransports(t, rpc.ServerOptions{}, serving(failing(errors.New("dial postgres://secret"))), func(t *testing.T, b *bundle) {
		_, err := b.ask(t.Context())
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
		require.NotContains(t, err.Error(), "secret")
		f := rpc.FromError(err)
		require.Equal(t, fault.Unavailable, f.Class)
		require.Empty(t, f.Outcome, "a read changes nothing")
		require.Contains(t, b.log.String(), "dial postgres://secret")

		err = callWrite(rpc.WithOperation(t.Context(), "op-9"), b.client("turn"))
		f = rpc.FromError(err)
		require.Equal(t, fault.OutcomeUnknown, f.Outcome, "a write may have been committed before its handler failed")
		require.Equal(t, "op-9", f.Operation)
	})
}

func TestPanicIsLoggedAndNeverSent(t *testing.T) {
	t.Parallel()
	panicking := func(context.Context, *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		panic("secret state")
	}
	onBothTransports(t, rpc.ServerOptions{}, serving(panicking), func(t *testing.T, b *bundle) {
		_, err := b.ask(t.Context())
		require.Equal(t, connect.CodeInternal, connect.CodeOf(err))
		require.NotContains(t, err.Error(), "secret")
		require.Equal(t, fault.Unavailable, rpc.FromError(err).Class)
		require.Contains(t, b.log.String(), "secret state")
		require.Contains(t, b.log.String(), "faults_test.go", "the stack is that of the panic")

		require.Equal(t, fault.OutcomeUnknown, rpc.FromError(callWrite(t.Context(), b.client("turn"))).Outcome)
	})
}

func TestRefusalOfAPeerIsNotOursUntilSaidSo(t *testing.T) {
	t.Parallel()
	back := newBundle(t, rpc.ServerOptions{}, serving(failing(fault.New(fault.NotFound, "No such seat."))))
	back.dial = func() connect.Transport { return rpc.InProcess(back.server) }
	careless := func(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		return back.ask(ctx)
	}
	express := func(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		_, err := back.ask(ctx)
		return nil, rpc.FromError(err)
	}
	onBothTransports(t, rpc.ServerOptions{}, serving(careless), func(t *testing.T, b *bundle) {
		_, err := b.ask(t.Context())
		require.Equal(t, fault.Unavailable, rpc.FromError(err).Class)
		require.NotContains(t, err.Error(), "No such seat")
	})
	onBothTransports(t, rpc.ServerOptions{}, serving(express), func(t *testing.T, b *bundle) {
		_, err := b.ask(t.Context())
		require.Equal(t, fault.NotFound, rpc.FromError(err).Class)
		require.Equal(t, "No such seat.", rpc.FromError(err).Message)
	})
}

func TestPeerThatCannotBeReachedIsNotTalkedAbout(t *testing.T) {
	t.Parallel()
	keys, err := rpc.NewKeys(keyA)
	require.NoError(t, err)
	nobody := rpc.HTTPTransport("http://127.0.0.1:1")
	t.Cleanup(nobody.Close)
	careless := func(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		return nil, callWrite(ctx, rpc.NewClient(nobody, rpc.ClientOptions{Service: "turn", Keys: keys}))
	}
	onBothTransports(t, rpc.ServerOptions{}, serving(careless), func(t *testing.T, b *bundle) {
		_, err := b.ask(t.Context())
		require.Equal(t, fault.Unavailable, rpc.FromError(err).Class)
		require.NotContains(t, err.Error(), "127.0.0.1:1")
		require.Contains(t, b.log.String(), "127.0.0.1:1")
	})
}

func TestConnectErrorMadeHerePasses(t *testing.T) {
	t.Parallel()
	onBothTransports(t, rpc.ServerOptions{}, serving(failing(connect.NewError(connect.CodeUnimplemented, "not here"))), func(t *testing.T, b *bundle) {
		_, err := b.ask(t.Context())
		require.Equal(t, connect.CodeUnimplemented, connect.CodeOf(err))
		f := rpc.FromError(err)
		require.Equal(t, fault.Unavailable, f.Class)
		require.Empty(t, f.Outcome, "what is not implemented has done nothing")
	})
}

func TestUnknownProcedureIsUnimplemented(t *testing.T) {
	t.Parallel()
	onBothTransports(t, rpc.ServerOptions{}, func(*connect.Server) {}, func(t *testing.T, b *bundle) {
		_, err := b.ask(t.Context())
		require.Equal(t, connect.CodeUnimplemented, connect.CodeOf(err))
		require.Empty(t, rpc.FromError(err).Outcome)
	})
}

func TestNoErrorIsNoFault(t *testing.T) {
	t.Parallel()
	require.Nil(t, rpc.FromError(nil))
	own := fault.New(fault.Conflict, "Not now.")
	require.Same(t, own, rpc.FromError(own))
}
